//! Stand-in for `libcupti.so.13`: callbacks around the calls of the stand-in driver.
//!
//! It has one subscriber at a time, as CUPTI 13.0 has, and misbehaves on request:
//!
//! ```text
//! STANDIN_CUPTI_FAULT=subscribe=39    cuptiSubscribe fails with that CUptiResult
//! STANDIN_CUPTI_FAULT=enable=35       cuptiEnableCallback fails with that CUptiResult
//! STANDIN_CUPTI_FAULT=version=14      cuptiGetVersion says so
//! STANDIN_CUPTI_FAULT=slow=1500       cuptiSubscribe takes that many milliseconds
//! STANDIN_CUPTI_FAULT=symbol-name     callbacks carry a symbol name that must not be read
//! STANDIN_CUPTI_FAULT=NAME=8          of the SASS metrics, the call of that name fails with that
//!                                     CUptiResult: profiler-initialize, device-supported,
//!                                     chip-name, properties, set-config, sass-enable,
//!                                     data-properties, flush-data, sass-disable, unset-config
//! STANDIN_CUPTI_FAULT=unsupported     SASS metrics are not supported on any device
//! STANDIN_CUPTI_FAULT=lacks=2         the device has no metric number 2 (see sass.rs)
//! STANDIN_CUPTI_FAULT=fits=2          a configuration takes two metrics and no more
//! STANDIN_CUPTI_FAULT=lazy-zeros      kernels that are patched lazily count nothing
//! STANDIN_CUPTI_FAULT=zeros           no kernel counts anything
//! STANDIN_CUPTI_FAULT=context-gone    a context is destroyed as soon as it is enabled
//! STANDIN_CUPTI_FAULT=slow-window=50  patching takes that many milliseconds
//! STANDIN_CUPTI_FAULT=exit-in-window=7      patching calls exit(7)
//! STANDIN_CUPTI_FAULT=exit-in-subscribe=7   so does cuptiSubscribe
//! STANDIN_CUPTI_FAULT=record-names=1  names of counted records are 1 no addresses, 2 constants,
//!                                     3 one and the same, 4 inside of allocated memory
//! STANDIN_CUPTI_FAULT=no-records      a window brings none
//! STANDIN_CUPTI_FAULT=many-records    a window is said to bring more than memory holds
//! STANDIN_CUPTI_FAULT=garbage=1       counted values are 1 of metrics that nobody asked for, 2 the
//!                                     largest number there is
//! STANDIN_CUPTI_FAULT=activity-register=1   the buffers' callbacks are refused with that
//!                                     CUptiResult; so are activity-enable=14, activity-copies=14
//!                                     (copies alone) and activity-flush=999
//! STANDIN_CUPTI_FAULT=activity-name=1 kernels' names are at addresses where nothing is: 1 near
//!                                     null, 2 null, 3 far away
//! STANDIN_CUPTI_FAULT=activity-times  kernels have no times
//! STANDIN_CUPTI_FAULT=activity-cut=1  the last record of a buffer is cut off: 1 and CUPTI says so,
//!                                     2 and it does not
//! STANDIN_CUPTI_FAULT=activity-others records that nobody asked for are among the kernels
//! STANDIN_CUPTI_OTHER_TOOL=FILE       another tool has the slot while there is such a file
//! STANDIN_CUPTI_LOG=FILE              a line for each subscribe, unsubscribe and finalize, each kind of
//!                                     activity that is switched on or off, and for each call of the SASS metrics that is made in wrong order
//! ```
//!
//! Layouts and numbers are those of cupti_activity.h, cupti_callbacks.h, cupti_result.h and cupti_sass_metrics.h
//! (CUPTI 13.0).
#![allow(non_snake_case, reason = "the exported names are CUPTI's")]
#![allow(unsafe_code, reason = "a C interface: pointers come from the caller")]

#[path = "../../interface.rs"]
mod interface;

mod activity;
mod driver;
mod event;
mod fault;
mod result;
mod sass;
mod subscriber;

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
//! STANDIN_CUPTI_LOG=FILE              a line for each subscribe, unsubscribe and finalize
//! ```
//!
//! Layouts and numbers are those of cupti_callbacks.h and cupti_result.h (CUPTI 13.0).
#![allow(non_snake_case, reason = "the exported names are CUPTI's")]
#![allow(unsafe_code, reason = "a C interface: pointers come from the caller")]

#[path = "../../interface.rs"]
mod interface;

mod driver;
mod event;
mod fault;
mod result;
mod subscriber;

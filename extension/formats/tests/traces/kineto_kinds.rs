//! Every kind of record that Kineto writes, today and in 2021, becomes what it means.

use warpgauge_formats::time::{Span, Timestamp};
use warpgauge_formats::trace::{
    EventType, Flow, FlowType, Id, Labelled, MemoryOperation, Record, TraceEvent, Value,
};

use crate::collect::kineto;

/// The one record of a trace.
fn only(event: &str) -> Record<'static> {
    let read = kineto(format!("{{\"traceEvents\":[{event}]}}").as_bytes());
    assert_eq!((read.said(), &*read.unknown), (vec![], &[][..]), "{event}");
    let [record] = <[_; 1]>::try_from(read.into_records()).unwrap();
    record
}

fn event(event: &str) -> TraceEvent<'static> {
    match only(event) {
        Record::Event(event) => event,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_time_of_the_epoch_is_exact_to_the_nanosecond() {
    let event = event(r#"{"ph":"X","name":"a","ts":1790857026123456.789,"dur":9007199254740.993}"#);
    assert_eq!(event.timestamp, Timestamp(1_790_857_026_123_456_789));
    assert_eq!(event.duration, Some(Span(9_007_199_254_740_993)));
}

#[test]
fn categories_and_names_tell_what_an_event_was() {
    for (category, name, expected) in [
        ("kernel", "gemm", EventType::KernelComplete),
        ("kernel", "ncclDevKernel_AllReduce", EventType::NcclComplete),
        ("collective_comm", "nccl:all_reduce", EventType::NcclComplete),
        ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", EventType::MemcpyH2D),
        ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", EventType::MemcpyD2H),
        ("gpu_memcpy", "Memcpy DtoD (Device -> Device)", EventType::MemcpyD2D),
        ("gpu_memcpy", "Memcpy HtoH", EventType::Custom),
        ("gpu_memset", "Memset (Device)", EventType::MemsetDevice),
        ("cuda_runtime", "cudaLaunchKernel", EventType::KernelLaunch),
        ("cuda_runtime", "cudaGraphLaunch", EventType::KernelLaunch),
        ("cuda_runtime", "hipExtModuleLaunchKernel", EventType::KernelLaunch),
        ("cuda_driver", "cuLaunchKernelEx", EventType::KernelLaunch),
        ("cuda_runtime", "cudaStreamSynchronize", EventType::StreamSync),
        ("cuda_runtime", "cudaDeviceSynchronize", EventType::DeviceSync),
        ("cuda_runtime", "cudaEventRecordWithFlags", EventType::EventRecord),
        ("cuda_runtime", "cudaMallocAsync", EventType::MemAlloc),
        ("cuda_runtime", "cudaFree", EventType::MemFree),
        ("cuda_runtime", "cudaStreamCreateWithPriority", EventType::StreamCreate),
        ("cuda_driver", "cuCtxDestroy_v2", EventType::ContextDestroy),
        ("cuda_sync", "Stream Sync", EventType::StreamSync),
        ("cuda_sync", "Context Sync", EventType::DeviceSync),
        ("cpu_op", "aten::add", EventType::Custom),
        ("Kernel", "gemm", EventType::KernelComplete),
        ("Memcpy", "Memcpy HtoD (Pageable -> Device)", EventType::MemcpyH2D),
        ("Memset", "Memset (Device)", EventType::MemsetDevice),
        ("Runtime", "cudaLaunchKernel", EventType::KernelLaunch),
        ("Operator", "aten::add", EventType::Custom),
    ] {
        let record = format!(
            r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":0,"tid":7,"ts":1,"dur":2}}"#
        );
        assert_eq!(event(&record).event_type, expected, "{category} {name}");
    }
}

#[test]
fn flows_of_today_and_of_2021_are_told_apart_by_what_they_mean() {
    for (category, flow_type) in [
        ("ac2g", FlowType::AsyncCpuToGpu),
        ("fwdbwd", FlowType::ForwardBackward),
        ("async", FlowType::AsyncCpuToGpu),
        ("mine", FlowType::Custom),
    ] {
        let record = format!(
            r#"{{"ph":"f","id":5,"pid":0,"tid":7,"ts":10,"cat":"{category}","name":"n","bp":"e"}}"#
        );
        let Record::Flow(point) = only(&record) else { panic!("a flow") };
        assert_eq!(point.flow, Flow { id: 5, flow_type, start: false });
        assert!(point.enclosing && point.timestamp == Timestamp(10_000));
    }
    let start = only(r#"{"ph":"s","id":5,"pid":1,"tid":2,"ts":9.5,"cat":"ac2g","name":"ac2g"}"#);
    assert!(matches!(start, Record::Flow(point) if point.flow.start && !point.enclosing));
}

#[test]
fn a_process_or_thread_may_be_a_text_and_stays_one() {
    let span = event(
        r#"{"ph":"X","cat":"Trace","name":"P","pid":"Spans","tid":"7","ts":1,"dur":2,"args":{}}"#,
    );
    assert_eq!(span.track.process, Id::Text("Spans".into()));
    assert_eq!(span.track.row, Id::Text("7".into()));
    assert_eq!((span.thread, span.resource), (None, None));
    let end = event(r#"{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":3}"#);
    assert_eq!((end.event_type, end.duration), (EventType::Marker, None));
    assert_eq!(end.track.process, Id::Text("".into()));
    assert_eq!(end.extra, [("s".into(), Value::Text("g".into()))]);
}

#[test]
fn memory_that_is_freed_has_its_bytes_and_no_sign() {
    let record = only(
        r#"{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":1,"tid":2,"ts":3.004,
            "args":{"Total Reserved":4096,"Total Allocated":0,"Bytes":-512,"Device Id":0,
            "Device Type":1,"Addr":18446744073709551615,"Ev Idx":9}}"#,
    );
    let Record::Memory(memory) = record else { panic!("{record:?}") };
    assert_eq!((memory.operation, memory.bytes), (MemoryOperation::Free, 512));
    assert_eq!((memory.device, memory.device_type), (Some(0), Some(1)));
    assert_eq!((memory.address, memory.thread), (Some(u64::MAX), Some(2)));
    assert_eq!((memory.total_allocated, memory.total_reserved), (Some(0), Some(4096)));
    assert_eq!(memory.metadata, [("Ev Idx".into(), Value::Integer(9))]);
}

#[test]
fn counters_keep_the_names_of_their_series() {
    let record = only(
        r#"{"ph":"C","cat":"hardware_counters","name":"sm__cycles","pid":0,"ts":1,"args":{"":7.5}}"#,
    );
    let Record::Counter(counter) = record else { panic!("{record:?}") };
    assert_eq!((&*counter.name, counter.track.row), ("sm__cycles", Id::None));
    assert_eq!(counter.values, [("".into(), Value::Float(7.5))]);
}

#[test]
fn labels_name_processes_and_threads() {
    let says = |name: &str, args: &str| {
        let record = format!(r#"{{"ph":"M","name":"{name}","pid":1,"tid":0,"args":{args}}}"#);
        match only(&record) {
            Record::Label(label) => label.says,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(says("process_name", r#"{"name":"p"}"#), Labelled::ProcessName("p".into()));
    assert_eq!(
        says("process_labels", r#"{"labels":"CPU"}"#),
        Labelled::ProcessLabels("CPU".into())
    );
    assert_eq!(says("process_sort_index", r#"{"sort_index":3}"#), Labelled::ProcessSortIndex(3));
    assert_eq!(says("thread_name", r#"{"name":"t"}"#), Labelled::ThreadName("t".into()));
    assert_eq!(says("thread_sort_index", r#"{"sort_index":-1}"#), Labelled::ThreadSortIndex(-1));
    let other = Labelled::Other {
        name: "thread_sort_index".into(),
        metadata: vec![("sort_index".into(), Value::Text("last".into()))],
    };
    assert_eq!(says("thread_sort_index", r#"{"sort_index":"last"}"#), other);
}

#[test]
fn metadata_keeps_its_types() {
    let event = event(
        r#"{"ph":"X","cat":"cuda_runtime","name":"hipMemcpy","pid":1,"tid":2,"ts":1,"dur":2,
            "args":{"stream":"0x0","queued":0,"ptr":18446744073709551615,"share":0.5,"ok":true,
            "Input type":["float",""],"Input Dims":[[2, 3],[]],"none":null,
            "huge":99999999999999999999}}"#,
    );
    assert_eq!(event.stream, None, "a text is no number of a stream");
    let expected: [(&str, Value<'_>); 9] = [
        ("stream", Value::Text("0x0".into())),
        ("queued", Value::Integer(0)),
        ("ptr", Value::Unsigned(u64::MAX)),
        ("share", Value::Float(0.5)),
        ("ok", Value::Boolean(true)),
        ("Input type", Value::List(vec![Value::Text("float".into()), Value::Text("".into())])),
        ("Input Dims", Value::Json("[[2, 3],[]]".into())),
        ("none", Value::Json("null".into())),
        ("huge", Value::Json("99999999999999999999".into())),
    ];
    assert_eq!(event.metadata, expected.map(|(name, value)| (name.into(), value)));
}

#[test]
fn the_base_time_may_stand_behind_the_events_or_be_missing() {
    let behind = kineto(
        br#"{"note":"a","traceEvents":[{"ph":"X","name":"a","ts":1,"dur":2}],"late":{"x":[1]},
            "baseTimeNanoseconds":1790857026000000000}"#,
    );
    assert_eq!(behind.said(), [""; 0]);
    let records = behind.into_records();
    assert!(
        matches!(&records[0], Record::Document { key, json } if key == "note" && json == "\"a\"")
    );
    assert!(
        matches!(&records[2], Record::Document { key, json } if key == "late" && json == "{\"x\":[1]}")
    );
    assert_eq!(records[3], Record::BaseTime(1_790_857_026_000_000_000));
    assert_eq!(kineto(b"{\"traceEvents\":[]}").records, []);
    let wrong = kineto(b"{\"baseTimeNanoseconds\":\"soon\",\"traceEvents\":[]}");
    let said = "line 1: baseTimeNanoseconds: expected a whole number of 64 bits, found \"soon\"";
    assert_eq!(wrong.said(), [said]);
}

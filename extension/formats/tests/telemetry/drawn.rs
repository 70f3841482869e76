//! Events become the records of a trace, and samples of scopes.

use warpgauge_formats::event::What;
use warpgauge_formats::finding::Finding;
use warpgauge_formats::loss::Losses;
use warpgauge_formats::telemetry::{Options, TelemetryEvent, Timeline, Units, scope_sample};
use warpgauge_formats::trace::{Labelled, Record, Sink};

#[derive(Default)]
struct Shown(Vec<String>);

impl Sink for Shown {
    fn record(&mut self, line: u64, record: &Record<'_>) {
        self.0.push(match record {
            Record::BaseTime(base) => format!("base {base}"),
            Record::Counter(counter) => format!(
                "{line} {} {:?} {} {:?} {:?}",
                counter.timestamp.0,
                counter.track.process,
                counter.name,
                counter.device,
                counter.unit.as_deref()
            ),
            Record::Event(event) => format!("{line} {} {}", event.timestamp.0, event.name),
            Record::Label(label) => match &label.says {
                Labelled::ProcessLabels(labels) => format!("{:?}: {labels}", label.track.process),
                _ => return,
            },
            other => format!("{other:?}"),
        });
    }

    fn finding(&mut self, finding: Finding) {
        panic!("{finding}");
    }

    fn unknown(&mut self, _: u64, name: &str) {
        panic!("{name}");
    }
}

fn event(members: &str) -> TelemetryEvent<'static> {
    let text = format!(r#"{{"device_id":0,{members}}}"#);
    let options = Options { accept_distributed: true, ..Options::default() };
    TelemetryEvent::from_json(&text, &options).unwrap().into_owned()
}

fn drawn(events: &[&str]) -> (Vec<String>, Losses) {
    let (mut timeline, mut shown) = (Timeline::new(Units::Apart), Shown::default());
    for (line, members) in (1..).zip(events) {
        timeline.event(line, &event(members), &mut shown);
    }
    (shown.0, timeline.losses().clone())
}

#[test]
fn a_plain_sample_is_counters_and_nothing_else() {
    let (shown, losses) = drawn(&[r#""timestamp_ns":1700000000000000005,"pid":7,"host":"a""#]);
    let expected = [
        "base 1699920000000000000",
        "Number(7): host a, pid 7, every 0 ms",
        "1 80000000000005 Number(7) GPU 0 allocator Some(0) Some(\"By\")",
        "1 80000000000005 Number(7) GPU 0 allocator change Some(0) Some(\"By\")",
        "1 80000000000005 Number(7) GPU 0 memory Some(0) Some(\"By\")",
    ];
    assert_eq!(shown, expected);
    assert!(losses.is_empty());
}

#[test]
fn collectors_hosts_and_ranks_with_one_pid_are_processes_of_their_own() {
    let pid = r#""timestamp_ns":5,"pid":7"#;
    let (shown, _) = drawn(&[
        &format!(r#"{pid},"host":"a""#),
        &format!(r#"{pid},"host":"b""#),
        &format!(r#"{pid},"host":"a","collector":"c","job_id":"j","rank":1,"world_size":2"#),
        &format!(r#"{pid},"host":"a""#),
    ]);
    let labels: Vec<_> = shown.iter().filter(|line| line.contains(": host")).collect();
    let expected = [
        "Number(7): host a, pid 7, every 0 ms",
        "Number(4194304): host b, pid 7, every 0 ms",
        "Number(4194305): host a, pid 7, every 0 ms, job j, rank 1 of 2, local rank 1",
    ];
    assert_eq!(labels, expected);
    assert!(shown.last().unwrap().starts_with("4 5 Number(7) "), "{shown:?}");
}

#[test]
fn what_happened_is_an_instant_and_what_does_not_fit_is_lost_by_name() {
    let (shown, losses) = drawn(&[
        r#""timestamp_ns":5,"type":"error","metadata_oom_reason":"full""#,
        r#""timestamp_ns":6,"type":"error","metadata_oom_reason":null"#,
        r#""timestamp_ns":7,"message":"step""#,
        r#""timestamp_ns":9223372036854775808"#,
    ]);
    let is_instant = |line: &&String| !line.contains("GPU") && !line.contains(": host");
    let instants: Vec<_> = shown.iter().filter(is_instant).collect();
    assert_eq!(instants, ["1 5 out of memory", "2 6 error", "3 7 sample"]);
    assert_eq!(losses.iter().collect::<Vec<_>>(), [("event with a number beyond 64 bits", 1)]);
}

#[test]
fn processes_are_bounded_and_what_is_beyond_is_lost_by_name() {
    let (mut timeline, mut shown) = (Timeline::new(Units::Apart), Shown::default());
    for pid in 1..5_000 {
        timeline.event(1, &event(&format!(r#""timestamp_ns":5,"pid":{pid}"#)), &mut shown);
    }
    let long = "x".repeat(5_000);
    timeline.event(1, &event(&format!(r#""timestamp_ns":5,"host":"{long}""#)), &mut shown);
    let lost = ("event of a process beyond those that a trace has", 4_999 - 4_096 + 1);
    assert_eq!(timeline.losses().iter().collect::<Vec<_>>(), [lost]);
    assert_eq!(shown.0.iter().filter(|line| line.contains(": host")).count(), 4_096);
}

#[test]
fn a_sample_of_a_scope_has_whole_mib_and_names_the_rest() {
    let mut losses = Losses::default();
    let members = r#""timestamp_ns":5,"pid":7,"device_used_bytes":3145729,"device_free_bytes":1048576,"device_total_bytes":8388608"#;
    let event = event(members);
    let sample = scope_sample(&event, &mut losses).unwrap();
    let What::Scope(scope) = sample.what else { panic!("{sample:?}") };
    let device = &scope.devices[0];
    assert_eq!((device.used_mib, device.free_mib, device.total_mib), (Some(3), Some(1), Some(8)));
    assert!(losses.iter().any(|loss| loss == ("bytes below a MiB", 1)), "{losses:?}");
}

#[test]
fn gap_and_fragmentation_are_what_the_format_says() {
    let of = |members: &str| {
        let event = event(members);
        (event.gap_bytes(), event.fragmentation())
    };
    let tracker = r#""timestamp_ns":5,"memory_allocated":30,"memory_reserved":40"#;
    assert_eq!(of(&format!(r#"{tracker},"device_used_bytes":100"#)), (60, Some(0.25)));
    assert_eq!(of(&format!(r#"{tracker},"device_used_bytes":40"#)), (0, Some(0.25)));
    assert_eq!(of(r#""timestamp_ns":5"#), (0, None));
}

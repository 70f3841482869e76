//! Passes follow telemetry files, and what they say of memory arrives.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use support::points::{Point, sum, sum_for};
use support::rotated_log::{RotatedLog, Rotation};
use support::world::{World, write};
use warpgauge::metrics::{
    DEVICE_MEMORY_LIMIT, DEVICE_MEMORY_USAGE, EVENT_LINES, EVENTS_SKIPPED, MEMORY_ALLOCATED,
    MEMORY_ALLOCATED_MAX, MEMORY_EVENTS, MEMORY_FRAGMENTATION, MEMORY_FREE, MEMORY_GAP,
    MEMORY_INACTIVE, MEMORY_RESERVED, OUT_OF_MEMORY,
};

fn follow(world: &mut World) {
    std::fs::create_dir(world.path("telemetry")).unwrap();
    let pattern = world.path("telemetry/*.log").display().to_string();
    let table = "format = \"telemetry-v2\"";
    write!(world.tables, "[[events]]\npattern = \"{pattern}\"\n{table}\n\n").unwrap();
}

fn record(changed: &Value) -> String {
    let mut record = json!({
        "schema_version": 2, "timestamp_ns": 1_700_000_000_000_000_000_i64,
        "event_type": "sample", "collector": "gpumemprof.cuda_tracker",
        "sampling_interval_ms": 100, "pid": 7, "host": "node3", "device_id": 1,
        "allocator_allocated_bytes": 10, "allocator_reserved_bytes": 40,
        "allocator_active_bytes": null, "allocator_inactive_bytes": 5,
        "allocator_change_bytes": 0, "device_used_bytes": 60,
        "device_free_bytes": 40, "device_total_bytes": 100,
        "context": null, "metadata": {},
    });
    for (key, value) in changed.as_object().unwrap() {
        record[key] = value.clone();
    }
    format!("{record}\n")
}

fn at(time: i64, allocated: i64) -> String {
    record(&json!({
        "timestamp_ns": 1_700_000_000_000_000_000_i64 + time,
        "allocator_allocated_bytes": allocated,
    }))
}

fn of<'p>(points: &'p [Point], metric: &str) -> Vec<&'p Point> {
    points.iter().filter(|point| point.metric == metric).collect()
}

#[test]
fn memory_arrives_by_host_process_device_and_collector() {
    let mut world = World::new();
    follow(&mut world);
    let mut log = RotatedLog::new(world.path("telemetry"), "run", Rotation::Rename);
    // Written out of order, as threads do it.
    log.write(at(1, 10) + &at(3, 20) + &at(2, 35));
    let ran_out = json!({
        "event_type": "error", "pid": -1, "host": "unknown", "device_id": -1,
        "collector": "own", "metadata": { "oom_reason": "full" },
    });
    log.write(record(&ran_out));
    let pass = world.pass_ends(0);
    assert_eq!(pass.report["events"]["lines"], 4, "{pass:#?}");
    let points = world.exported();
    let tracker = |metric: &str| -> &Point {
        let points = of(&points, metric);
        let is_its = |point: &&Point| point.resource["warpgauge.app"] == "gpumemprof.cuda_tracker";
        points.into_iter().find(is_its).unwrap()
    };
    for (metric, value) in [
        (MEMORY_ALLOCATED, 20),
        (MEMORY_ALLOCATED_MAX, 35),
        (MEMORY_RESERVED, 40),
        (MEMORY_INACTIVE, 5),
        (DEVICE_MEMORY_USAGE, 60),
        (MEMORY_FREE, 40),
        (DEVICE_MEMORY_LIMIT, 100),
        (MEMORY_GAP, 20),
        (MEMORY_EVENTS, 3),
    ] {
        assert_eq!(tracker(metric.name).count(), value, "{}", metric.name);
    }
    assert_eq!(tracker(MEMORY_FRAGMENTATION.name).double(), 0.5);
    let point = tracker(MEMORY_EVENTS.name);
    let attributes = [("hw.id", "1"), ("hw.type", "gpu"), ("warpgauge.event.type", "sample")];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(point.attributes, BTreeMap::from(attributes));
    for (name, value) in [
        ("host.name", "node3"),
        ("process.pid", "7"),
        ("service.name", "gpumemprof.cuda_tracker"),
        ("warpgauge.source", "events"),
    ] {
        assert_eq!(point.resource[name], value, "{:?}", point.resource);
    }
    let [ran_out] = of(&points, OUT_OF_MEMORY.name)[..] else { panic!("{points:?}") };
    assert_eq!((ran_out.count(), ran_out.attributes.len()), (1, 0));
    assert!(!ran_out.resource.contains_key("process.pid"));
    assert_ne!(ran_out.resource["host.name"], "unknown");
}

#[test]
fn counts_go_on_behind_a_rotation_and_what_is_no_record_is_counted() {
    let mut world = World::new();
    follow(&mut world);
    let mut log = RotatedLog::new(world.path("telemetry"), "run", Rotation::Rename);
    log.write(at(1, 1));
    world.pass_ends(0);
    log.write(at(2, 2));
    log.rotate();
    // Legacy records, blank lines, and what is none.
    log.write("{\"timestamp\": 5, \"memory_allocated\": 3}\n\r\n{\"pid\": 1}\nnot JSON\n");
    log.write(at(3, 3).replace("\"pid\":7", "\"pid\":9223372036854775808"));
    // A list is no log: each of its lines is refused.
    write(world.path("telemetry/list.log"), format!("[\n{}]\n", at(4, 4).trim_end()));
    world.pass_ends(0);
    let points = world.exported();
    assert_eq!(sum(&points, MEMORY_EVENTS.name), 3);
    assert_eq!(sum_for(&points, EVENTS_SKIPPED.name, "line_refused"), 4);
    assert_eq!(sum_for(&points, EVENTS_SKIPPED.name, "number_too_large"), 1);
    assert_eq!(sum(&points, EVENT_LINES.name), 9);
}

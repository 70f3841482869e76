//! Passes follow event logs, are killed at any moment, and in the end exactly what the logs say has
//! arrived.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use support::kills::{Dice, kill_passes};
use support::points::{Point, assert_windows_follow, sum, sum_for};
use support::receiver::Receiver;
use support::rotated_log::{RotatedLog, Rotation};
use support::world::{World, write};
use warpgauge::metrics::{
    COPIED, DEVICE_MEMORY_USAGE, DEVICE_UTILIZATION, EVENT_LINES, EVENTS_SKIPPED, KERNEL_DURATION,
    KERNEL_EXECUTIONS, SCOPE_DURATION,
};

/// What a log says, to be compared with what arrived.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    lines: u64,
    kernels: u64,
    kernel_ns: u64,
    scopes: u64,
    scope_ns: u64,
}

fn events(world: &mut World, format: &str, pattern: &str) {
    let pattern = world.path(pattern).display().to_string();
    write!(world.tables, "[[events]]\npattern = \"{pattern}\"\nformat = \"{format}\"\n\n").unwrap();
}

fn kernel(pid: usize, name: &str, start: u64, duration: u64) -> String {
    format!(
        "{{\"type\":\"kernel\",\"pid\":{pid},\"app\":\"a{pid}\",\"kernel\":\"{name}\",\"ts_start_ns\":{start},\"ts_end_ns\":{},\"duration_ns\":{duration},\"grid\":[1,1,1],\"block\":[1,1,1],\"shared_mem_bytes\":0,\"cuda_error\":\"cudaSuccess\"}}\n",
        start + duration
    )
}

/// The end of a scope as later producers write it: its beginning is in another line, perhaps in
/// another file.
fn scope(pid: usize, what: &str, time: u64) -> String {
    format!(
        "{{\"type\":\"scope_{what}\",\"pid\":{pid},\"app\":\"a{pid}\",\"name\":\"step\",\"ts_ns\":{time}}}\n"
    )
}

/// A thread that writes a gpumon log and rotates it.
struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Written>,
}

impl Writer {
    fn start(folder: PathBuf, pid: usize, rotation: Rotation, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let log = RotatedLog::new(folder, &format!("gpumon_a_{pid}"), rotation);
        let thread = thread::spawn(move || go_on_writing(log, pid, &mut Dice::new(seed), &stopped));
        Self { stop, thread }
    }

    fn stop(self) -> Written {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}

fn go_on_writing(
    mut log: RotatedLog,
    pid: usize,
    dice: &mut Dice,
    stopped: &AtomicBool,
) -> Written {
    let (mut written, mut now) = (Written::default(), 1_000);
    while !stopped.load(Ordering::SeqCst) {
        // No line is like another, so that none can stand for another.
        now += 1;
        log.write(scope(pid, "begin", now));
        let began = now;
        for _ in 0..dice.below(30) {
            let duration = dice.below(3_000_000);
            let line = kernel(pid, &format!("k{}", dice.below(30)), now, duration);
            // Now and then a pass meets half a line.
            let (half, rest) =
                line.split_at(usize::try_from(dice.below(line.len() as u64)).unwrap());
            log.write(half);
            if dice.below(10) == 0 {
                thread::sleep(Duration::from_millis(dice.below(8)));
            }
            log.write(rest);
            now += duration;
            written.kernels += 1;
            written.kernel_ns += duration;
            written.lines += 1;
        }
        if dice.below(5) == 0 {
            log.rotate();
        }
        now += 1;
        log.write(scope(pid, "end", now));
        written.scopes += 1;
        written.scope_ns += now - began;
        written.lines += 2;
        thread::sleep(Duration::from_millis(dice.below(60)));
    }
    written
}

fn seconds(points: &[Point], metric: &str) -> f64 {
    points.iter().filter(|point| point.metric == metric).filter_map(|point| point.sum).sum()
}

#[track_caller]
fn assert_arrived(points: &[Point], pid: usize, written: &Written) {
    let own: Vec<_> = points
        .iter()
        .filter(|point| point.resource["service.name"] == format!("a{pid}"))
        .cloned()
        .collect();
    let at = format!("log {pid}: {written:?}");
    assert!(written.kernels > 0, "{at}");
    assert_eq!(sum(&own, KERNEL_EXECUTIONS.name), written.kernels, "{at}");
    assert_eq!(sum(&own, KERNEL_DURATION.name), written.kernels, "{at}");
    assert_eq!(sum(&own, SCOPE_DURATION.name), written.scopes, "{at}");
    for (metric, nanoseconds) in
        [(KERNEL_DURATION, written.kernel_ns), (SCOPE_DURATION, written.scope_ns)]
    {
        let (found, expected) = (seconds(&own, metric.name), nanoseconds as f64 / 1e9);
        assert!((found - expected).abs() < 1e-6, "{at}: {} {found} s", metric.name);
    }
}

#[test]
fn every_line_counts_once_though_logs_are_rotated_and_passes_killed() {
    let receiver = Receiver::start();
    let mut world = World::sending_to(&receiver.url());
    std::fs::create_dir(world.path("logs")).unwrap();
    events(&mut world, "gpumon", "logs/gpumon_*.log");
    let mut dice = Dice::roll("rotated event logs");
    let writers: Vec<_> = Rotation::ALL
        .iter()
        .enumerate()
        .map(|(pid, rotation)| Writer::start(world.path("logs"), pid, *rotation, dice.next()))
        .collect();
    kill_passes(&world, 40, &mut dice);
    let written: Vec<_> = writers.into_iter().map(Writer::stop).collect();
    // A pass reads for ten seconds at most; on a busy machine much may be left by then.
    let (mut passes, mut silent) = (0, 0);
    while silent < 2 {
        let lines = world.pass_ends(0).report["events"]["lines"].as_u64().unwrap();
        silent = if lines == 0 { silent + 1 } else { 0 };
        passes += 1;
        assert!(passes < 100, "there is no end to it");
    }
    let points = receiver.points();
    for (pid, written) in written.iter().enumerate() {
        assert_arrived(&points, pid, written);
    }
    assert_eq!(sum(&points, EVENT_LINES.name), written.iter().map(|log| log.lines).sum::<u64>());
    assert_eq!(sum(&points, EVENTS_SKIPPED.name), 0);
    assert_windows_follow(&points);
}

/// One pass for each change that a pass makes, killed right before it; the log is rotated each time.
#[cfg(target_arch = "x86_64")]
#[test]
fn no_change_to_the_disk_is_one_before_which_a_kill_loses_or_repeats_a_line() {
    use support::kill_points::{End, pass_killed_before};

    let mut world = World::new();
    std::fs::create_dir(world.path("logs")).unwrap();
    events(&mut world, "gpumon", "logs/gpumon_*.log");
    let mut logs: Vec<_> = [Rotation::Rename, Rotation::CopyTruncate, Rotation::Compressed]
        .into_iter()
        .enumerate()
        .map(|(pid, rotation)| {
            RotatedLog::new(world.path("logs"), &format!("gpumon_a_{pid}"), rotation)
        })
        .collect();
    let (mut rounds, mut written) = (0, Written::default());
    let mut end = End::Killed;
    while end == End::Killed {
        for (pid, log) in logs.iter_mut().enumerate() {
            log.write(kernel(pid, "k", rounds, rounds + 1) + &scope(pid, "begin", rounds));
            log.rotate();
            log.write(kernel(pid, "k", rounds, 7) + "{\n");
            written.kernels += 2;
            written.kernel_ns += rounds + 1 + 7;
        }
        end = pass_killed_before(&world, rounds as usize);
        if end == End::Untraceable {
            eprintln!("skipped: this machine does not let a process trace its child");
            return;
        }
        for (pid, log) in logs.iter_mut().enumerate() {
            log.write(scope(pid, "end", rounds + 50));
            written.scopes += 1;
            written.scope_ns += 50;
        }
        rounds += 1;
        world.pass_ends(0);
        let points = world.exported();
        let at = format!("killed before change {}", rounds - 1);
        assert_eq!(sum(&points, KERNEL_EXECUTIONS.name), written.kernels, "{at}");
        assert_eq!(sum(&points, SCOPE_DURATION.name), written.scopes, "{at}");
        assert_eq!(sum_for(&points, EVENTS_SKIPPED.name, "line_refused"), 3 * rounds, "{at}");
        let spent = seconds(&points, KERNEL_DURATION.name) + seconds(&points, SCOPE_DURATION.name);
        let expected = (written.kernel_ns + written.scope_ns) as f64 / 1e9;
        assert!((spent - expected).abs() < 1e-9, "{at}: {spent} {expected}");
        assert_windows_follow(&points);
        assert_eq!(world.spooled(), Vec::<String>::new(), "{at}");
    }
    println!("killed before each of {} changes", rounds - 1);
    assert_eq!(end, End::Finished(0));
    assert!(rounds > 20, "only {rounds} changes were seen");
}

#[test]
fn a_gpu_flight_session_is_read_over_several_passes_with_what_earlier_ones_said() {
    let mut world = World::new();
    std::fs::create_dir(world.path("logs")).unwrap();
    events(&mut world, "gpu-flight", "logs/*.log");
    world.tables += "group = \"trainers\"\nkernels = 1\n";
    let start =
        "{\"type\":\"job_start\",\"session_id\":\"s1\",\"pid\":7,\"app\":\"train\",\"ts_ns\":1}\n";
    let mut device = RotatedLog::new(world.path("logs"), "run.device", Rotation::Rename);
    let mut system = RotatedLog::new(world.path("logs"), "run.system", Rotation::Rename);
    let mut scopes = RotatedLog::new(world.path("logs"), "run.scope", Rotation::Rename);
    device.write(start);
    device.write("{\"type\":\"dictionary_update\",\"session_id\":\"s1\",\"kernel_dict\":{\"1\":\"gemm\",\"2\":\"relu\"}}\n");
    scopes.write("{\"type\":\"dictionary_update\",\"session_id\":\"s1\",\"scope_name_dict\":{\"1\":\"step\"}}\n");
    scopes.write("{\"type\":\"scope_event_batch\",\"session_id\":\"s1\",\"batch_id\":1,\"base_time_ns\":0,\"columns\":[\"dt_ns\",\"scope_instance_id\",\"name_id\",\"event_type\",\"depth\"],\"rows\":[[100,1,1,0,0]]}\n");
    world.pass_ends(0);
    device.rotate();
    device.write("{\"type\":\"kernel_event_batch\",\"session_id\":\"s1\",\"batch_id\":1,\"base_time_ns\":0,\"columns\":[\"dt_ns\",\"kernel_id\",\"duration_ns\"],\"rows\":[[1,1,500],[2,2,300],[3,2,100]]}\n");
    device.write("{\"type\":\"memcpy_event_batch\",\"session_id\":\"s1\",\"batch_id\":1,\"base_time_ns\":0,\"columns\":[\"dt_ns\",\"duration_ns\",\"bytes\",\"copy_kind\"],\"rows\":[[1,9,4096,1],[2,9,4,1]]}\n");
    scopes.write("{\"type\":\"scope_event_batch\",\"session_id\":\"s1\",\"batch_id\":2,\"base_time_ns\":0,\"columns\":[\"dt_ns\",\"scope_instance_id\",\"name_id\",\"event_type\",\"depth\"],\"rows\":[[2000000100,1,1,1,0]]}\n");
    system.write("{\"type\":\"device_metric_batch\",\"session_id\":\"s1\",\"batch_id\":1,\"base_time_ns\":0,\"columns\":[\"dt_ns\",\"device_id\",\"gpu_util\",\"mem_util\",\"temp_c\",\"power_mw\",\"used_mib\"],\"rows\":[[1,0,20,1,40,90000,10],[2,0,40,1,41,70000,12]]}\n");
    let pass = world.pass_ends(0);
    assert_eq!(pass.report["events"]["lines"], 4, "{pass:#?}");
    assert_eq!(pass.report["events"]["skipped"].as_array().unwrap().len(), 0, "{pass:#?}");

    let points = world.exported();
    let of = |metric: &str| -> Vec<_> {
        points.iter().filter(|point| point.metric == metric).cloned().collect()
    };
    let executions = of(KERNEL_EXECUTIONS.name);
    let named: Vec<_> = executions
        .iter()
        .map(|point| (point.attributes["gpu.kernel.name"].as_str(), point.count()))
        .collect();
    assert_eq!(named, [("gemm", 1), ("_OTHER", 2)]);
    let resource = &executions[0].resource;
    for (name, value) in [
        ("service.name", "trainers"),
        ("warpgauge.group", "trainers"),
        ("warpgauge.app", "train"),
        ("process.pid", "7"),
        ("session.id", "s1"),
        ("warpgauge.source", "events"),
    ] {
        assert_eq!(resource.get(name).map(String::as_str), Some(value), "{resource:?}");
    }
    assert_eq!(seconds(&points, SCOPE_DURATION.name), 2.0);
    let copied = &of(COPIED.name)[0];
    assert_eq!(
        (copied.attributes["gpu.memory.copy.kind"].as_str(), copied.count()),
        ("HtoD", 4100)
    );
    let memory = &of(DEVICE_MEMORY_USAGE.name)[0];
    assert_eq!((memory.attributes["hw.id"].as_str(), memory.count()), ("0", 12 << 20));
    assert_eq!(of(DEVICE_UTILIZATION.name)[0].double(), 0.3);
}

#[test]
fn totals_go_on_through_passes_in_which_a_log_is_silent() {
    let receiver = Receiver::start();
    let mut world = World::sending_to(&receiver.url());
    world.export = world.export.map(|export| export + "temporality = \"cumulative\"\n");
    std::fs::create_dir(world.path("logs")).unwrap();
    events(&mut world, "gpumon", "logs/gpumon_*.log");
    let mut log = RotatedLog::new(world.path("logs"), "gpumon_a_1", Rotation::Rename);
    for rest in 0..3 {
        log.write(kernel(1, "k", rest, 10));
        world.pass_ends(0);
        world.pass_ends(0);
    }
    let totals: Vec<_> = receiver
        .points()
        .into_iter()
        .filter(|point| point.metric == KERNEL_EXECUTIONS.name)
        .map(|point| (point.start_ns, point.count()))
        .collect();
    let counts: Vec<_> = totals.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [1, 2, 3]);
    assert!(totals.iter().all(|(start, _)| *start == totals[0].0), "{totals:?}");
}

#[test]
fn logs_are_followed_from_their_end_where_the_table_says_so() {
    let mut world = World::new();
    std::fs::create_dir(world.path("logs")).unwrap();
    events(&mut world, "gpumon", "logs/gpumon_*.log");
    world.tables += "start = \"end\"\n";
    let mut log = RotatedLog::new(world.path("logs"), "gpumon_a_1", Rotation::CopyTruncate);
    log.write(kernel(1, "k", 1, 10) + &kernel(1, "k", 2, 10));
    let first = world.pass_ends(0);
    assert_eq!(first.report["events"]["lines"], 0, "{first:#?}");
    log.write(kernel(1, "k", 3, 10));
    log.rotate();
    log.write(kernel(1, "k", 4, 10));
    // A log that comes later is read whole.
    write(world.path("logs/gpumon_a_2.log"), kernel(2, "k", 5, 10));
    let second = world.pass_ends(0);
    assert_eq!(second.report["events"]["lines"], 3, "{second:#?}");
    assert_eq!(sum(&world.exported(), KERNEL_EXECUTIONS.name), 3);
}

#[test]
fn every_fault_of_the_tables_is_told_with_its_key_and_line() {
    let mut world = World::new();
    world.whole = Some(
        "[[events]]\npattern = \"logs/*.log\"\nformat = \"csv\"\ngroup = \"\"\n\n[[events]]\nkernels = 0\nfrom = 1\nstart = \"middle\"\n\n[export]\nprotocol = \"file\"\npath = \"/nowhere/x\"\n"
            .to_owned(),
    );
    let pass = world.pass_ends(78);
    for fault in [
        ":2: events[0].pattern: `logs/*.log` is relative",
        ":3: events[0].format: ",
        ":4: events[0].group: a group name is empty",
        ":6: events[1].pattern: is missing",
        ":6: events[1].format: is missing",
        ":7: events[1].kernels: 0 is not between 1 and 1000",
        ":8: events[1].from: unknown key",
        ":9: events[1].start: ",
    ] {
        assert_eq!(pass.lines_with(fault).len(), 1, "{fault}\n{}", pass.log);
    }
}

#[test]
fn damaged_cursors_stop_the_logs_and_nothing_else() {
    let mut world = World::new();
    std::fs::create_dir(world.path("logs")).unwrap();
    events(&mut world, "gpumon", "logs/gpumon_*.log");
    write(world.path("logs/gpumon_a_1.log"), kernel(1, "k", 1, 10));
    let sleeper = world.sleeper();
    world.pass_ends(0);
    write(world.state().join("cursors/metrics.json"), "{");
    world.publish(sleeper.pid(), "0:5\n");
    let pass = world.pass_ends(78);
    let failure = pass.report["events"]["failure"].as_str().unwrap();
    assert!(failure.contains("remove it"), "{failure}");
    assert_eq!(pass.report["read"], 1);
    std::fs::remove_file(world.state().join("cursors/metrics.json")).unwrap();
    world.pass_ends(0);
}

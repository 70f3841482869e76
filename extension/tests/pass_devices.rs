//! Passes ask the stand-in for NVML, and what it says arrives at the receiver.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::fs;

use support::nvml::Machine;
use support::points::{Point, of_process, of_roll_ups, sum_for};
use support::world::{GROUP, write};
use warpgauge::metrics::{
    DEVICE_FAULTS, DEVICE_MEMORY_USAGE, DEVICE_POWER, DEVICE_TEMPERATURE, DEVICE_UTILIZATION,
    PROCESS_DEVICE_MEMORY,
};
use warpgauge_formats::telemetry::{Options, TelemetryEvent};

const H100: &str = "device uuid=GPU-1 name=H100 total=1000 reserved=100 used=300 gpu=50 memory=20 temperature=60 power=300500 throttling=4\n";

/// A device's memory of every metric that says what a process or a group uses.
fn used(points: &[Point]) -> Vec<(String, u64)> {
    let of_metric = points.iter().filter(|point| point.metric == PROCESS_DEVICE_MEMORY.name);
    of_metric.map(|point| (point.attributes["hw.id"].clone(), point.count())).collect()
}

#[test]
fn what_a_device_says_arrives_under_the_names_of_the_conventions() {
    let machine = Machine::new(H100);
    let pass = machine.pass(0);
    assert_eq!(
        machine.shown("GPU-1"),
        [
            "hw.gpu.memory.limit 1000",
            "hw.gpu.memory.usage 300",
            "hw.gpu.utilization 0.5",
            "hw.power 300.5",
            "hw.temperature 60",
            "warpgauge.device.memory.activity 0.2",
            "warpgauge.device.memory.reserved 100",
            "warpgauge.device.throttling 1 sw_power_cap",
        ]
    );
    assert_eq!(pass.report["devices"]["gpus"], 1);
    assert_eq!(pass.log, "");
}

#[test]
fn what_a_monitored_process_uses_stands_with_what_else_is_known_of_it_and_of_its_group() {
    let machine = Machine::new("");
    let [first, second] = [machine.world.sleeper(), machine.world.sleeper()];
    let stranger = machine.world.stranger();
    machine.becomes(&format!(
        "device uuid=GPU-1 total=1000 used=900\nprocess pid={0} used=100\nprocess pid={0} used=100 graphics\nprocess pid={1} used=30\nprocess pid={2} used=500\ndevice uuid=GPU-2 total=1000 used=7\nprocess pid={1} used=7\n",
        first.pid(),
        second.pid(),
        stranger.pid(),
    ));
    machine.pass(0);
    machine.world.publish(first.pid(), "1:50\n");
    machine.pass(0);
    let points = machine.points();
    let pair = |id: &str, bytes| (id.to_owned(), bytes);
    let both = |one: Vec<(String, u64)>| [one.clone(), one].concat();
    assert_eq!(used(&of_process(&points, first.pid())), both(vec![pair("GPU-1", 100)]));
    let of_second = vec![pair("GPU-1", 30), pair("GPU-2", 7)];
    assert_eq!(used(&of_process(&points, second.pid())), both(of_second));
    assert_eq!(used(&of_process(&points, stranger.pid())), []);
    let of_group = vec![pair("GPU-1", 130), pair("GPU-2", 7)];
    assert_eq!(used(&of_roll_ups(&points)), both(of_group));
}

#[test]
fn memory_that_the_driver_cannot_tell_is_not_told_as_none() {
    let machine = Machine::new("");
    let [known, unknown] = [machine.world.sleeper(), machine.world.sleeper()];
    machine.becomes(&format!(
        "device uuid=GPU-1 total=1000 used=900\nprocess pid={} used=100\nprocess pid={}\n",
        known.pid(),
        unknown.pid()
    ));
    machine.pass(0);
    let points = machine.points();
    assert_eq!(used(&of_process(&points, unknown.pid())), []);
    assert_eq!(used(&of_process(&points, known.pid())), [("GPU-1".to_owned(), 100)]);
    assert_eq!(used(&of_roll_ups(&points)), [], "a sum of which a part is not known is none");
}

#[test]
fn instances_of_a_divided_device_name_it_and_have_its_processes() {
    let machine = Machine::new("");
    let sleeper = machine.world.sleeper();
    machine.becomes(&format!(
        "device uuid=GPU-1 name=H100 total=1000 used=300 temperature=60\nmig uuid=MIG-1 name=1g total=500 used=200\nprocess pid={} used=150\nmig uuid=MIG-2 name=1g total=500 used=100\n",
        sleeper.pid()
    ));
    let pass = machine.pass(0);
    let points = machine.points();
    let used = used(&of_process(&points, sleeper.pid()));
    assert_eq!(used, [("MIG-1".to_owned(), 150)]);
    let mut memory: Vec<_> = points
        .iter()
        .filter(|point| point.metric == DEVICE_MEMORY_USAGE.name)
        .map(|point| {
            let text = |name: &str| point.attributes.get(name).map(String::as_str);
            (text("hw.id").unwrap(), text("hw.parent"), point.count())
        })
        .collect();
    memory.sort_unstable();
    assert_eq!(
        memory,
        [("GPU-1", None, 300), ("MIG-1", Some("GPU-1"), 200), ("MIG-2", Some("GPU-1"), 100)]
    );
    assert_eq!(sum_for(&points, DEVICE_FAULTS.name, "not_supported"), 1, "its utilization");
    assert_eq!(pass.report["devices"]["mig_instances"], 2);
}

#[test]
fn a_library_that_the_configuration_names_has_to_be_there() {
    let machine = Machine::new(H100);
    fs::remove_file(machine.world.path("libnvidia-ml.so.1")).unwrap();
    let pass = machine.pass(0);
    assert_eq!(sum_for(&machine.points(), DEVICE_FAULTS.name, "library_unusable"), 1);
    assert_eq!(pass.lines_with("library_unusable").len(), 1, "{}", pass.log);
    write(machine.world.path("libnvidia-ml.so.1"), "no library");
    machine.pass(0);
    assert_eq!(sum_for(&machine.points(), DEVICE_FAULTS.name, "library_unusable"), 2);
}

#[test]
fn who_switches_the_devices_off_has_no_library_loaded() {
    let mut machine = Machine::new(H100);
    machine.world.devices.push_str("enabled = false\n");
    assert!(machine.pass(0).report.get("devices").is_none());
    assert_eq!(machine.shown("GPU-1"), Vec::<String>::new());
}

#[test]
fn a_lost_device_is_counted_and_hides_no_other() {
    for call in ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetMemoryInfo_v2"] {
        let machine = Machine::new(&format!(
            "{H100}device uuid=GPU-2 total=1000 used=1\nfault {call} result=15 device=0\n"
        ));
        let pass = machine.pass(0);
        assert_eq!(machine.shown("GPU-1"), Vec::<String>::new());
        assert!(machine.shown("GPU-2").contains(&"hw.gpu.memory.usage 1".to_owned()));
        assert_eq!(sum_for(&machine.points(), DEVICE_FAULTS.name, "gpu_lost"), 1);
        assert_eq!(pass.lines_with("gpu_lost").len(), 1, "{}", pass.log);
    }
}

#[test]
fn each_fault_costs_one_figure_and_is_counted_by_its_reason() {
    let faults = [
        (3, "not_supported", false),
        (4, "no_permission", true),
        (19, "in_use", true),
        (21, "unexpected", true),
        (777, "unexpected", true),
    ];
    for (result, reason, is_told) in faults {
        let machine =
            Machine::new(&format!("{H100}fault nvmlDeviceGetPowerUsage result={result}\n"));
        let pass = machine.pass(0);
        let points = machine.points();
        assert_eq!(sum_for(&points, DEVICE_FAULTS.name, reason), 1, "{result}");
        assert!(points.iter().all(|point| point.metric != DEVICE_POWER.name));
        assert!(points.iter().any(|point| point.metric == DEVICE_TEMPERATURE.name));
        assert_eq!(pass.lines_with("device 0, power").len(), usize::from(is_told), "{}", pass.log);
    }
}

#[test]
fn a_library_that_does_not_begin_is_counted_by_its_reason() {
    let faults = [(9, "driver_not_loaded"), (18, "driver_library_mismatch"), (4, "no_permission")];
    for (result, reason) in faults {
        let machine = Machine::new(&format!("{H100}fault nvmlInit_v2 result={result}\n"));
        machine.pass(0);
        assert_eq!(sum_for(&machine.points(), DEVICE_FAULTS.name, reason), 1);
    }
    let machine = Machine::new(&format!("{H100}fault nvmlDeviceGetCount_v2 result=1\n"));
    machine.pass(0);
    assert_eq!(sum_for(&machine.points(), DEVICE_FAULTS.name, "uninitialized"), 1);
}

#[test]
fn what_an_older_driver_does_not_know_is_missing_and_nothing_else() {
    let machine = Machine::new(H100);
    machine.forgets("nvmlDeviceGetMemoryInfo_v2");
    machine.forgets("nvmlDeviceGetComputeRunningProcesses_v3");
    machine.forgets("nvmlDeviceGetMigMode");
    let pass = machine.pass(0);
    let shown = machine.shown("GPU-1");
    assert!(shown.iter().all(|figure| !figure.contains(".memory.usage")), "{shown:?}");
    assert!(shown.contains(&"hw.temperature 60".to_owned()));
    assert_eq!(sum_for(&machine.points(), DEVICE_FAULTS.name, "function_missing"), 2);
    assert_eq!(pass.log, "", "an old driver is as it is");
}

#[test]
fn a_list_that_grows_while_it_is_read_is_read_again() {
    let machine = Machine::new("");
    let sleeper = machine.world.sleeper();
    let process = format!("process pid={} used=100\n", sleeper.pid());
    machine.becomes(&format!("device uuid=GPU-1 total=1000 used=1 grow=20 grows=4\n{process}"));
    machine.pass(0);
    let points = machine.points();
    assert_eq!(used(&of_process(&points, sleeper.pid())), [("GPU-1".to_owned(), 100)]);
    assert_eq!(sum_for(&points, DEVICE_FAULTS.name, "insufficient_size"), 0);
    machine.becomes(&format!("device uuid=GPU-1 total=1000 used=1 grow=20 grows=99\n{process}"));
    machine.pass(0);
    assert_eq!(sum_for(&machine.points(), DEVICE_FAULTS.name, "insufficient_size"), 2);
}

#[test]
fn a_call_that_never_returns_keeps_no_pass_and_what_came_before_it_arrives() {
    for call in ["nvmlInit_v2", "nvmlDeviceGetTemperature"] {
        let whose = if call == "nvmlInit_v2" { "" } else { " device=1" };
        let second = "device uuid=GPU-2 total=10 used=1";
        let mut machine = Machine::new(&format!("{H100}{second}\nhang {call}{whose}\n"));
        machine.world.devices.push_str("timeout = \"300ms\"\n");
        let pass = machine.pass(0);
        assert_eq!(sum_for(&machine.points(), DEVICE_FAULTS.name, "no_answer"), 1);
        assert_eq!(pass.lines_with("no_answer").len(), 1, "{}", pass.log);
        let first = machine.shown("GPU-1");
        assert_eq!(first.is_empty(), call == "nvmlInit_v2", "{first:?}");
        // The call that hangs holds nothing that the next pass needs.
        machine.becomes(H100);
        machine.pass(0);
    }
}

#[test]
fn what_cannot_be_true_is_not_told() {
    let machine = Machine::new("device uuid=GPU-1 total=10 used=11 gpu=101\n");
    machine.pass(0);
    let points = machine.points();
    assert_eq!(sum_for(&points, DEVICE_FAULTS.name, "implausible"), 2);
    for absent in [DEVICE_MEMORY_USAGE, DEVICE_UTILIZATION] {
        assert!(points.iter().all(|point| point.metric != absent.name));
    }
}

#[test]
fn devices_of_one_uuid_or_of_none_are_told_apart() {
    let machine =
        Machine::new("device uuid=GPU-1 total=1\ndevice uuid=GPU-1 total=2\ndevice total=3\n");
    machine.pass(0);
    for (id, total) in [("GPU-1", 1), ("1", 2), ("2", 3)] {
        let limit = format!("hw.gpu.memory.limit {total}");
        assert!(machine.shown(id).contains(&limit), "{id}");
    }
}

#[test]
fn only_so_many_devices_are_read_and_the_rest_is_counted() {
    let script: String =
        (0..300).map(|number| format!("device uuid=GPU-{number} total=1\n")).collect();
    let machine = Machine::new(&script);
    let pass = machine.pass(0);
    assert_eq!(pass.report["devices"]["gpus"], 256);
    assert_eq!(sum_for(&machine.points(), DEVICE_FAULTS.name, "too_many_devices"), 1);
}

#[test]
fn records_are_those_of_the_format_and_the_next_pass_adds_its_own() {
    let mut machine = Machine::new("");
    let sleeper = machine.world.sleeper();
    machine.becomes(&format!(
        "{H100}process pid={} used=200\nprocess pid=1 used=50\ndevice uuid=GPU-2 total=9 used=2\n",
        sleeper.pid()
    ));
    let output = machine.world.path("telemetry.ndjson");
    machine.writes_records_to(&output);
    for _ in 0..3 {
        assert_eq!(machine.pass(0).report["devices"]["records"], 3);
    }
    let text = fs::read_to_string(&output).unwrap();
    let mut records = Vec::new();
    for line in text.lines() {
        let event = TelemetryEvent::from_v2_json(line, &Options::default()).unwrap();
        assert_eq!(event.collector, "warpgauge.nvml");
        assert_eq!(event.metadata.get("allocator"), Some("\"unknown\""));
        records.push((
            event.pid,
            event.device_id,
            event.allocator_reserved_bytes,
            event.device_used_bytes,
        ));
    }
    let pid = i128::from(sleeper.pid());
    let of_a_pass = [(-1, 0, 300, 300), (pid, 0, 200, 300), (-1, 1, 2, 2)];
    assert_eq!(records, [of_a_pass, of_a_pass, of_a_pass].concat());
    assert!(text.contains(&format!("\"group\":\"{GROUP}\"")));
}

#[test]
fn records_that_cannot_be_written_are_told_and_the_figures_arrive_all_the_same() {
    let mut machine = Machine::new(H100);
    let output = machine.world.path("telemetry.ndjson");
    fs::create_dir(&output).unwrap();
    machine.writes_records_to(&output);
    let pass = machine.pass(78);
    assert!(pass.report["devices"]["failure"].as_str().unwrap().contains("telemetry.output"));
    assert!(!machine.shown("GPU-1").is_empty());
}

#[test]
fn the_check_tells_of_the_library_and_of_what_it_does_not_answer() {
    let machine = Machine::new(&format!("{H100}fault nvmlDeviceGetPowerUsage result=3\n"));
    let said = |machine: &Machine| {
        let remarks = machine.run(&["check", "--offline", "--json"]).report;
        let remarks = remarks.as_array().unwrap().clone();
        let about = remarks.into_iter().filter(|remark| remark["about"] == "devices");
        let shown = about.map(|remark| {
            format!(
                "{}: {}",
                remark["level"].as_str().unwrap(),
                remark["message"].as_str().unwrap()
            )
        });
        shown.collect::<Vec<_>>()
    };
    let remarks = said(&machine);
    assert_eq!(remarks.len(), 2, "{remarks:?}");
    assert!(
        remarks[0].starts_with("good: 1 GPUs; driver 580.95.05, NVML 13.580.95.05"),
        "{remarks:?}"
    );
    assert!(remarks[1].starts_with("note: 1 x not_supported"), "{remarks:?}");
    machine.becomes(&format!("{H100}fault nvmlInit_v2 result=18\n"));
    assert!(said(&machine)[0].starts_with("warning: 1 x driver_library_mismatch"));
}

#[test]
fn a_dry_run_asks_and_writes_nothing() {
    let mut machine = Machine::new(H100);
    let output = machine.world.path("telemetry.ndjson");
    machine.writes_records_to(&output);
    let report = machine.run(&["run", "--dry-run", "--json"]).report;
    assert_eq!(report["devices"]["gpus"], 1);
    assert!(!output.exists());
}

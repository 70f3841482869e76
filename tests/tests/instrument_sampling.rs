//! Instructions, coalescence and divergence: few launches are measured and stand for all.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use warpgauge_tests::{Host, Outcome, Published, World, eventually};

/// Launches for some seconds, so that there is time for windows, which may be frequent here.
fn sampled<'world>(world: &'world World, arguments: &[&str]) -> Host<'world> {
    let arguments = [&["--pause-before", "init", "--pause-before", "exit"], arguments].concat();
    world
        .host(&arguments)
        .env("WARPGAUGE_WINDOW_INTERVAL", "0.01")
        .env("WARPGAUGE_WINDOW_BUDGET_PERCENT", "50")
}

fn run(host: Host<'_>, functions: &str) -> Outcome {
    let mut host = host.start_listed(functions).unwrap();
    host.wait_until_ready_after_report().unwrap();
    host.go_on().unwrap();
    let outcome = host.finish().unwrap();
    assert!(outcome.status.success() && outcome.errors.is_empty(), "{outcome:?}");
    outcome
}

fn run_script(script: &str, arguments: &[&str]) -> (Outcome, Published, Vec<String>) {
    let world = World::new().unwrap();
    let script = world.script(script).unwrap();
    let host = sampled(&world, arguments).env("STANDIN_CUDA_SCRIPT", script);
    let outcome = run(host, "0,1,2,3");
    assert_eq!(world.cupti_log().unwrap(), ["subscribe"], "no call is out of order");
    let (published, log) = (world.published_by(outcome.pid).unwrap(), world.log().unwrap());
    (outcome, published, log)
}

/// How far what was published is from what was executed, relative to that.
fn error(outcome: &Outcome, published: &Published) -> f64 {
    let (truth, estimate) = (outcome.instructions(), published.instructions.unwrap());
    assert!(truth > 0);
    (estimate as f64 - truth as f64).abs() / truth as f64
}

/// Constant work: one measurement of each shape is enough, and the launches before it wait for it.
#[test]
fn constant_kernels_are_counted_without_an_error() {
    let script = "device\n\
        kernel saxpy registers=32 instructions=12 global=3 lines=12 branches=4 divergent=1\n\
        kernel tiny instructions=7\n";
    let kernels = ["--kernel=saxpy=108:256", "--kernel=tiny=3:33", "--seconds=2", "--rate=1000"];
    let (outcome, published, log) = run_script(script, &kernels);
    assert_eq!(published.instructions, Some(outcome.instructions()), "{log:?}");
    assert_eq!(published.launches, outcome.launches());
    assert_eq!(published.coalescence.get(), Some(25.0), "tiny touches no memory and says nothing");
    assert_eq!(published.divergence.get(), Some(25.0));
    assert!(published.rounded().contains_key("100"), "occupancy comes beside the others");
}

/// Work that is evenly spread between half and one and a half: its standard deviation is
/// 0.5 / sqrt(3) = 29 %. At least 20 windows come in two seconds, and intervals are published
/// with means that scatter by 29 % / sqrt(15) = 7.5 % around the truth once eight were measured;
/// three times that is the bound.
#[test]
fn kernels_whose_work_depends_on_data_are_estimated_within_the_bound() {
    let script = "device\nkernel saxpy instructions=1000 spread=0.5\n";
    let kernels = ["--kernel=saxpy=10:256", "--seconds=3", "--rate=1000"];
    let (outcome, published, _) = run_script(script, &kernels);
    let error = error(&outcome, &published);
    assert!(error < 3.0 * 0.075, "{error}");
}

/// Work that grows fourfold while it is measured. Each interval of a second is published with a
/// mean that lags by at most 7 measurements; with a shape that surprises measured every 20 ms that
/// is 7 x 20 ms of drift, and the end of an interval stands for its beginning: half a second of
/// drift. Together 0.64 s of 3 s x 300 %, compared with a mean of 250 %.
#[test]
fn kernels_whose_work_drifts_are_followed_within_the_bound() {
    let script = "device\nkernel saxpy instructions=1000 drift=0.001\n";
    let kernels = ["--kernel=saxpy=10:256", "--seconds=3", "--rate=1000"];
    let (outcome, published, _) = run_script(script, &kernels);
    let error = error(&outcome, &published);
    assert!(error < 0.64 / 3.0 * 3.0 / 2.5, "{error}");
}

#[test]
fn functions_are_measured_in_any_combination() {
    for functions in ["0", "2", "3", "0,2", "0,3", "2,3", "1,2", "0,1,2,3"] {
        let world = World::new().unwrap();
        let outcome = run(sampled(&world, &["--seconds=1", "--rate=500"]), functions);
        let published = world.published_by(outcome.pid).unwrap();
        let asked = |id: &str| functions.contains(id);
        assert_eq!(published.instructions.is_some(), asked("0"), "{functions}");
        assert_eq!(!published.occupancies.is_empty(), asked("1"), "{functions}");
        assert_eq!(published.coalescence.get().is_some(), asked("2"), "{functions}");
        assert_eq!(published.divergence.get().is_some(), asked("3"), "{functions}");
        assert_eq!(published.launches, outcome.launches(), "{functions}");
    }
}

/// A warp of the stand-in has 32 threads, whose predicates are on for every other instruction.
#[test]
fn instructions_are_counted_by_warp_or_by_thread_with_or_without_those_switched_off() {
    for (warps, without_off, times) in
        [("true", "false", 1), ("true", "true", 1), ("false", "false", 32), ("false", "true", 16)]
    {
        let world = World::new().unwrap();
        let host = sampled(&world, &["--seconds=0.6", "--rate=500"])
            .env("WARPGAUGE_COUNT_WARP_LEVEL", warps)
            .env("WARPGAUGE_EXCLUDE_PRED_OFF", without_off);
        let outcome = run(host, "0");
        let published = world.published_by(outcome.pid).unwrap();
        let what = format!("by warp {warps}, without those off {without_off}");
        assert_eq!(published.instructions, Some(times * outcome.instructions()), "{what}");
    }
}

#[test]
fn metrics_that_do_not_fit_into_one_configuration_are_measured_in_turn() {
    let world = World::new().unwrap();
    let host = sampled(&world, &["--seconds=2", "--rate=500"]).env("STANDIN_CUPTI_FAULT", "fits=2");
    let outcome = run(host, "0,2,3");
    let published = world.published_by(outcome.pid).unwrap();
    assert_eq!(published.instructions, Some(outcome.instructions()));
    assert_eq!(published.coalescence.get(), Some(25.0));
    assert_eq!(published.divergence.get(), Some(25.0));
}

#[test]
fn a_collective_kernel_is_never_measured() {
    let script = "device\nkernel ncclDevKernel_AllReduce_Sum instructions=9\n\
        kernel saxpy instructions=12\n";
    let world = World::new().unwrap();
    let host = sampled(
        &world,
        &[
            "--kernel=ncclDevKernel_AllReduce_Sum=4:64",
            "--kernel=saxpy=1:32",
            "--seconds=1",
            "--rate=500",
        ],
    );
    let outcome = run(host.env("STANDIN_CUDA_SCRIPT", world.script(script).unwrap()), "0");
    let published = world.published_by(outcome.pid).unwrap();
    assert_eq!(published.instructions, Some(12 * outcome.launches_of("saxpy")));
    assert_eq!(published.launches, outcome.launches());
}

#[test]
fn cooperative_launches_are_counted_and_never_measured() {
    let world = World::new().unwrap();
    let host = sampled(&world, &["--seconds=1", "--rate=500", "--api=cooperative"]);
    let outcome = run(host, "0,1");
    let published = world.published_by(outcome.pid).unwrap();
    assert_eq!((published.instructions, published.launches), (None, outcome.launches()));
}

/// Threads that launch into one context disturb each other's windows; what is published is right.
#[test]
fn a_window_that_another_thread_launched_into_is_thrown_away() {
    let world = World::new().unwrap();
    let host = sampled(&world, &["--mode=threads", "--threads=4", "--seconds=2", "--rate=2000"])
        .env("STANDIN_CUPTI_FAULT", "slow-window=2");
    let mut host = host.start_listed("0").unwrap();
    let pid = host.pid();
    let discarded = eventually("a window is thrown away", || {
        let health = world.health_of(pid)?;
        let discarded = health.and_then(|health| health["windows_discarded"].as_u64());
        Ok(discarded.filter(|count| *count > 0))
    });
    discarded.unwrap();
    host.wait_until_ready_after_report().unwrap();
    host.go_on().unwrap();
    let outcome = host.finish().unwrap();
    let published = world.published_by(pid).unwrap();
    // 8 warps of 12 instructions a launch; a launch too many in a window would show at once.
    let instructions = published.instructions.unwrap_or(0);
    assert!(instructions == 0 || instructions == 96 * outcome.launches(), "{published:?}");
}

#[test]
fn nothing_is_published_for_what_was_never_measured() {
    let world = World::new().unwrap();
    let outcome = run(
        sampled(&world, &["--seconds=1", "--rate=500"]).env("STANDIN_CUPTI_FAULT", "zeros"),
        "0,1,2,3",
    );
    let published = world.published_by(outcome.pid).unwrap();
    assert_eq!(published.instructions, None);
    assert_eq!((published.coalescence.get(), published.divergence.get()), (None, None));
    assert_eq!(published.launches, outcome.launches());
    let log = world.log().unwrap();
    assert!(log.iter().any(|line| line.contains("counted nothing")), "{log:?}");
}

#[test]
fn patches_that_work_only_eagerly_are_made_eagerly() {
    let world = World::new().unwrap();
    let host = sampled(&world, &["--seconds=1", "--rate=500"]);
    let outcome = run(host.env("STANDIN_CUPTI_FAULT", "lazy-zeros"), "0");
    let published = world.published_by(outcome.pid).unwrap();
    assert_eq!(published.instructions, Some(outcome.instructions()));
}

#[test]
fn the_health_file_tells_what_is_measured_and_goes_with_the_process() {
    let world = World::new().unwrap();
    let mut host = sampled(&world, &["--seconds=2", "--rate=500"]).start_listed("0,1").unwrap();
    let pid = host.pid();
    let health = eventually("launches are measured", || {
        let health = world.health_of(pid)?;
        Ok(health.filter(|health| {
            health["windows"].as_u64() > Some(0)
                && health["launches_measured_share"].as_f64() > Some(0.5)
        }))
    })
    .unwrap();
    assert_eq!(health["version"], 1);
    assert_eq!(health["pid"], pid);
    assert_eq!(health["state"], "measuring");
    assert!(health["reason"].is_null());
    assert_eq!(health["functions"], serde_json::json!(["instructions", "occupancy"]));
    assert_eq!(health["launches_dropped"], 0);
    assert_eq!(health["devices"][0]["ordinal"], 0);
    assert_eq!(health["devices"][0]["launches"], health["launches_seen"]);
    assert!(health["window_time_ns"].as_u64() > Some(0));
    host.wait_until_ready_after_report().unwrap();
    host.go_on().unwrap();
    host.finish().unwrap();
    assert_eq!(world.health_of(pid).unwrap(), None);
    let left: Vec<_> = std::fs::read_dir(world.measurements())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn several_devices_are_measured_each_with_its_own_context() {
    let world = World::new().unwrap();
    let devices = "device\ndevice warps=48\nkernel saxpy registers=32 instructions=12\n";
    let host = sampled(&world, &["--mode=devices", "--devices=2", "--seconds=1", "--rate=500"])
        .env("STANDIN_CUDA_SCRIPT", world.script(devices).unwrap());
    let mut host = host.start_listed("0,1").unwrap();
    let pid = host.pid();
    host.wait_until_ready_after_report().unwrap();
    let health = eventually("both devices are in the health file", || {
        let health = world.health_of(pid)?;
        Ok(health.filter(|health| health["devices"].as_array().is_some_and(|all| all.len() == 2)))
    })
    .unwrap();
    host.go_on().unwrap();
    let outcome = host.finish().unwrap();
    let published = world.published_by(pid).unwrap();
    assert_eq!(published.instructions, Some(outcome.instructions()));
    let of = |index: usize| health["devices"][index]["launches"].as_u64().unwrap();
    assert!(of(0) > 0 && of(1) > 0 && of(0) + of(1) <= outcome.launches());
    let log = world.log().unwrap();
    let by_device =
        log.iter().find(|line| line.contains(" on device 0, ")).expect("a line of devices");
    assert!(by_device.ends_with(" on device 1"), "{by_device}");
    assert_eq!(published.launches, outcome.launches());
}

/// A program whose round of launches is longer than the time between two surveys: every shape is the
/// last one of some survey and comes again much later.
#[test]
fn hundreds_of_shapes_in_turn_are_measured_one_after_the_other() {
    const SHAPES: u64 = 200;
    let shapes: Vec<String> = (1..=SHAPES).map(|n| format!("--kernel=saxpy={n}:256")).collect();
    let world = World::new().unwrap();
    let arguments: Vec<&str> =
        ["--seconds=10", "--rate=4000"].into_iter().chain(shapes.iter().map(|s| &**s)).collect();
    let outcome = run(sampled(&world, &arguments), "0");
    let published = world.published_by(outcome.pid).unwrap();
    // Two hundred windows take two seconds at least; on a busy machine the last ones may be late.
    assert!(error(&outcome, &published) < 0.05, "{published:?}");
}

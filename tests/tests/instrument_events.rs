//! The event log of a process: every kernel once, in a form that the formats' readers find nothing
//! wrong with; what is not in it is counted; and the program never notices.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use nix::libc;
use serde_json::Value;
use warpgauge_formats::event::{Event, Kernel, Phase, Scope, What};
use warpgauge_formats::finding::{Finding, Sink};
use warpgauge_formats::{gpu_flight, gpumon};
use warpgauge_tests::{Host, Outcome, RunningHost, World, eventually};

/// What a log tells.
#[derive(Debug, Default)]
struct Told {
    kernels: Vec<Kernel<'static>>,
    copies: usize,
    scopes: Vec<Scope<'static>>,
    memory: usize,
    starts: usize,
    ends: usize,
    findings: Vec<Finding>,
}

impl Sink for Told {
    fn event(&mut self, _line: u64, event: &Event<'_>) {
        match &event.what {
            What::Kernel(kernel) => self.kernels.push(kernel.clone().into_owned()),
            What::Copy(_) => self.copies += 1,
            What::Scope(scope) if scope.phase == Phase::Sample => {
                self.memory += 1;
                assert_eq!((scope.name.as_ref(), scope.devices.len()), ("epoch", 1));
            }
            What::Scope(scope) => self.scopes.push(Scope {
                phase: scope.phase,
                time: scope.time,
                duration: scope.duration,
                name: scope.name.clone().into_owned().into(),
                ..Scope::default()
            }),
            What::System(system) => self.memory += system.devices.len(),
            What::Start(_) => self.starts += 1,
            What::End(_) => self.ends += 1,
            _ => {}
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn unknown(&mut self, _line: u64, _name: &str) {}
}

fn events_of(world: &World) -> PathBuf {
    world.path("events")
}

fn paths(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(events_of(world)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// The lines of a file, the last one of a process that was killed included.
fn lines(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap();
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(<[u8]>::to_vec).collect()
}

/// Reads every file of a world, one after the other.
fn told(world: &World, format: &str) -> Told {
    let mut told = Told::default();
    let mut strict = gpumon::Reader::new(gpumon::Mode::Strict);
    let mut flight = gpu_flight::Reader::default();
    for path in paths(world) {
        for (index, line) in lines(&path).iter().enumerate() {
            match format {
                "gpumon" => strict.line(index as u64 + 1, line, &mut told),
                _ => flight.line(index as u64 + 1, line, &mut told),
            }
        }
    }
    flight.end(&mut told);
    told
}

/// What is wrong with a log besides a last line that was being written when the program ended.
fn damage(world: &World, told: &Told) -> Vec<Finding> {
    let torn: Vec<u64> = paths(world)
        .iter()
        .filter(|path| fs::read(path).unwrap().last() != Some(&b'\n'))
        .map(|path| lines(path).len() as u64)
        .collect();
    told.findings.iter().filter(|finding| !torn.contains(&finding.line)).cloned().collect()
}

/// The last line of a log that was ended.
fn last_line(world: &World) -> Value {
    let last = lines(&paths(world)[0]).pop().unwrap();
    serde_json::from_slice(&last).unwrap()
}

fn host<'world>(world: &'world World, format: &str, arguments: &[&str]) -> Host<'world> {
    fs::create_dir_all(events_of(world)).unwrap();
    let arguments = [&["--pause-before=init"], arguments].concat();
    world
        .host(&arguments)
        .env("WARPGAUGE_EVENTS", format)
        .env("WARPGAUGE_EVENTS_FOLDER", events_of(world))
}

/// Waits until so many kernels are in the log.
fn wait_for_kernels(world: &World, format: &str, kernels: usize) {
    eventually("the kernels are in the log", || {
        Ok((told(world, format).kernels.len() >= kernels).then_some(()))
    })
    .unwrap();
}

/// Runs a program that launches and does not exit before everything is in the log.
fn run_to_the_end(world: &World, host: Host<'_>, format: &str, kernels: usize) -> Outcome {
    let mut running = host.start_listed("1").unwrap();
    running.wait_until_ready_after_report().unwrap();
    wait_for_kernels(world, format, kernels);
    running.go_on().unwrap();
    let outcome = running.finish().unwrap();
    assert!(outcome.status.success() && outcome.errors.is_empty(), "{outcome:?}");
    outcome
}

const FORMATS: [&str; 2] = ["gpumon", "gpu-flight"];

#[test]
fn every_kernel_is_in_the_log_once_with_its_shape_and_its_times() {
    for format in FORMATS {
        let world = World::new().unwrap();
        let script = "device\nkernel gemm registers=40 shared=1024 duration=2500\nkernel relu\n";
        let host = host(
            &world,
            format,
            &[
                "--launches=12000",
                "--kernel=gemm=4x2:16x16:64",
                "--kernel=relu=7:128",
                "--copies=3",
                "--pause-before=exit",
            ],
        );
        let host = host.env("STANDIN_CUDA_SCRIPT", world.script(script).unwrap());
        let outcome = run_to_the_end(&world, host, format, 12_000);
        assert_eq!(outcome.launches(), 12_000);
        let told = told(&world, format);
        assert_eq!(told.findings, [], "{format}");
        assert_eq!(told.kernels.len(), 12_000, "{format}");
        let gemm = told.kernels.iter().find(|kernel| kernel.name == "gemm").unwrap();
        assert_eq!((gemm.duration.0, gemm.dynamic_shared_bytes), (2500, Some(64)));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let age = i64::try_from(now.as_nanos()).unwrap() - gemm.start.0;
        assert!((0..600_000_000_000).contains(&age), "{age} ns ago, by the wall clock");
        let last = last_line(&world);
        assert_eq!((&last["type"], &last["lost"]), (&"shutdown".into(), &0.into()), "{last}");
        match format {
            "gpumon" => {
                assert_eq!((gemm.grid, gemm.block), (Some([4, 2, 1]), Some([16, 16, 1])));
                assert_eq!((told.starts, told.ends), (1, 1));
                let name = format!("gpumon_warpgauge-host_{}.log", outcome.pid);
                assert!(paths(&world)[0].ends_with(name));
                assert!(world.log().unwrap().iter().any(|line| line.contains("memcpy 6")));
            }
            _ => {
                assert_eq!((gemm.registers, told.copies), (Some(40), 6));
                assert_eq!(paths(&world).len(), 3);
            }
        }
    }
}

#[test]
fn nothing_is_logged_of_a_program_that_is_not_listed_or_where_no_log_is_wanted() {
    let world = World::new().unwrap();
    let mut unlisted = host(&world, "gpumon", &["--launches=50"]).start().unwrap();
    unlisted.go_on().unwrap();
    assert!(unlisted.finish().unwrap().status.success());
    let unwanted = host(&world, "off", &["--launches=50"]).start_listed("1").unwrap();
    assert!(unwanted.finish().unwrap().status.success());
    assert!(paths(&world).is_empty());
    assert_eq!(world.cupti_log().unwrap(), ["subscribe"]);
}

/// Windows patch kernels, which CUPTI does not do while it traces them.
#[test]
fn windows_and_traced_kernels_exclude_each_other_and_the_settings_decide() {
    for (activity, windows) in [("true", false), ("false", true)] {
        let world = World::new().unwrap();
        let mut running = host(&world, "gpumon", &["--seconds=60", "--rate=500"])
            .env("WARPGAUGE_EVENTS_ACTIVITY", activity)
            .env("WARPGAUGE_WINDOW_INTERVAL", "0.01")
            .env("WARPGAUGE_WINDOW_BUDGET_PERCENT", "50")
            .start_listed("0,1")
            .unwrap();
        let pid = running.pid();
        let health = eventually("the second report", || {
            let health = world.health_of(pid)?;
            Ok(health.filter(|health| health["launches_seen"].as_u64() > Some(700)))
        })
        .unwrap();
        assert_eq!(health["windows"].as_u64() > Some(0), windows, "{health}");
        assert_eq!(health["events_written"].as_u64() > Some(0), !windows, "{health}");
        let says = |what: &str| world.log().unwrap().iter().any(|line| line.contains(what));
        assert_eq!(says("are left out meanwhile"), !windows);
        assert!(running.is_running().unwrap());
        running.end().unwrap();
    }
}

#[test]
fn a_cupti_that_traces_nothing_leaves_a_log_without_kernels_and_goes_on_measuring() {
    for fault in ["activity-enable=14", "activity-register=1", "activity-copies=14"] {
        let world = World::new().unwrap();
        let host = host(&world, "gpumon", &["--launches=100"])
            .env("STANDIN_CUPTI_FAULT", fault)
            .env("WARPGAUGE_FLUSH_INTERVAL", "3600");
        let outcome = host.start_listed("1").unwrap().finish().unwrap();
        assert!(outcome.status.success() && outcome.errors.is_empty(), "{outcome:?}");
        assert_eq!(world.published_by(outcome.pid).unwrap().launches, 100);
        let told = told(&world, "gpumon");
        assert_eq!((told.findings.len(), told.kernels.len(), told.ends), (0, 0, 1));
        let says = |what: &str| world.log().unwrap().iter().any(|line| line.contains(what));
        assert!(says("events: without kernels and copies: cuptiActivity"), "{fault}");
        let switched_on = world.cupti_log().unwrap().iter().filter(|l| l.ends_with(" on")).count();
        let off = world.cupti_log().unwrap().iter().filter(|l| l.ends_with(" off")).count();
        assert_eq!(switched_on, off, "{fault}: what was switched on is off again");
    }
}

#[test]
fn a_cupti_without_activity_functions_is_named() {
    let world = World::new().unwrap();
    world.hide_from_cupti("cuptiActivityFlushAll").unwrap();
    let host = host(&world, "gpumon", &["--launches=10"]);
    assert!(host.start_listed("1").unwrap().finish().unwrap().status.success());
    let log = world.log().unwrap();
    assert!(log.iter().any(|line| line.contains("symbol cuptiActivityFlushAll")), "{log:?}");
}

#[test]
fn names_at_wrong_addresses_harm_nobody() {
    for kind in 1..=3 {
        let world = World::new().unwrap();
        let host = host(&world, "gpumon", &["--launches=100", "--pause-before=exit"])
            .env("STANDIN_CUPTI_FAULT", format!("activity-name={kind}"));
        run_to_the_end(&world, host, "gpumon", 100);
        let told = told(&world, "gpumon");
        assert_eq!((told.findings.len(), told.kernels.len()), (0, 100));
        assert!(told.kernels.iter().all(|kernel| kernel.name == "(name unknown)"));
        assert_eq!(last_line(&world)["unnamed"], 100);
    }
}

#[test]
fn records_that_are_cut_off_are_left_out_and_counted() {
    for kind in 1..=2 {
        let world = World::new().unwrap();
        let host = host(&world, "gpumon", &["--launches=6000", "--pause-before=exit"])
            .env("STANDIN_CUPTI_FAULT", format!("activity-cut={kind}"));
        // One buffer of 4,854 kernels and one of the rest; more where a flush comes between.
        run_to_the_end(&world, host, "gpumon", 5900);
        let told = told(&world, "gpumon");
        let last = last_line(&world);
        let cut = last["lost_by_reason"]["malformed"].as_u64().unwrap();
        assert_eq!(told.findings, []);
        assert_eq!(told.kernels.len() as u64 + cut, 6000, "{last}");
        assert!(cut >= 2, "{last}");
        assert!(world.log().unwrap().iter().any(|line| line.contains("not whole")));
    }
}

#[test]
fn kernels_without_times_are_counted_and_records_of_others_passed_over() {
    let world = World::new().unwrap();
    let arguments = ["--launches=100", "--pause-before=exit"];
    let timeless = host(&world, "gpumon", &arguments).env("STANDIN_CUPTI_FAULT", "activity-times");
    let mut running = timeless.start_listed("1").unwrap();
    running.wait_until_ready_after_report().unwrap();
    let pid = running.pid();
    eventually("the loss is told", || {
        let health = world.health_of(pid)?;
        Ok(health.filter(|health| health["events_lost"] == 100))
    })
    .unwrap();
    running.go_on().unwrap();
    assert!(running.finish().unwrap().status.success());
    let last = last_line(&world);
    assert_eq!(last["lost_by_reason"], serde_json::json!({"without_times": 100}));

    let world = World::new().unwrap();
    let host = host(&world, "gpumon", &arguments).env("STANDIN_CUPTI_FAULT", "activity-others");
    run_to_the_end(&world, host, "gpumon", 100);
    assert_eq!(last_line(&world)["lost"], 0);
}

#[test]
fn a_flush_that_fails_ends_the_tracing_alone() {
    let world = World::new().unwrap();
    let host = host(&world, "gpumon", &["--seconds=60", "--rate=200"])
        .env("STANDIN_CUPTI_FAULT", "activity-flush=999");
    let running = host.start_listed("1").unwrap();
    eventually("it is said", || {
        let log = world.log()?;
        Ok(log.iter().any(|line| line.contains("no more kernels and copies")).then_some(()))
    })
    .unwrap();
    let pid = running.pid();
    eventually("launches are published", || {
        Ok((world.published_by(pid)?.launches > 300).then_some(()))
    })
    .unwrap();
    running.end().unwrap();
}

/// CUPTI delivers full buffers at once and the rest when it is asked, which nobody does at an exit.
#[test]
fn an_exit_at_once_says_how_many_kernels_were_not_delivered() {
    for mode in ["plain", "exit-now"] {
        let world = World::new().unwrap();
        let mode = format!("--mode={mode}");
        let arguments = ["--launches=10000", &mode, "--exit-code=7"];
        let outcome =
            host(&world, "gpumon", &arguments).start_listed("1").unwrap().finish().unwrap();
        assert_eq!((outcome.status.code(), outcome.errors.as_str()), (Some(7), ""));
        let told = told(&world, "gpumon");
        assert_eq!((told.findings.len(), told.ends), (0, 1));
        let last = last_line(&world);
        let lost = last["lost"].as_u64().unwrap();
        assert_eq!(told.kernels.len() as u64 + lost, 10_000, "{last}");
        assert_eq!(last["lost_by_reason"]["undelivered"].as_u64().unwrap_or(0), lost);
    }
}

#[test]
fn a_forked_child_logs_nothing_and_its_parent_everything() {
    let world = World::new().unwrap();
    let host = host(&world, "gpumon", &["--launches=500", "--mode=fork", "--pause-before=exit"]);
    run_to_the_end(&world, host, "gpumon", 500);
    let told = told(&world, "gpumon");
    assert_eq!((told.findings.len(), told.kernels.len(), told.starts), (0, 500, 1));
    assert_eq!(paths(&world).len(), 1);
}

/// The new program has the old one's pid and makes the next file.
#[test]
fn a_program_that_replaces_itself_begins_a_log_of_its_own() {
    let world = World::new().unwrap();
    let arguments = ["--launches=100", "--mode=exec", "--pause-before=exit"];
    let mut running = host(&world, "gpumon", &arguments).start_listed("1").unwrap();
    running.wait_until_ready_after_report().unwrap();
    wait_for_kernels(&world, "gpumon", 50);
    running.go_on().unwrap();
    let outcome = running.finish().unwrap();
    assert!(outcome.status.success(), "{outcome:?}");
    assert_eq!(paths(&world).len(), 2);
    for path in paths(&world) {
        let first: Value = serde_json::from_slice(&lines(&path)[0]).unwrap();
        assert_eq!(first["type"], "init", "{}", path.display());
    }
}

fn launching(world: &World, format: &str) -> RunningHost {
    host(world, format, &["--seconds=60", "--rate=2000"]).start_listed("1").unwrap()
}

#[test]
fn a_killed_program_leaves_a_log_whose_last_line_alone_may_be_damaged() {
    for format in FORMATS {
        let world = World::new().unwrap();
        let running = launching(&world, format);
        wait_for_kernels(&world, format, 2000);
        running.end().unwrap();
        let told = told(&world, format);
        assert!(told.kernels.len() >= 2000);
        assert_eq!(told.ends, 0);
        assert_eq!(damage(&world, &told), []);
    }
}

#[test]
fn files_are_followed_by_the_next_and_the_oldest_gives_way() {
    for format in FORMATS {
        let world = World::new().unwrap();
        let host = host(&world, format, &["--seconds=60", "--rate=20000"])
            .env("WARPGAUGE_EVENTS_FILE_MIB", "1")
            .env("WARPGAUGE_EVENTS_FILES", "2");
        let running = host.start_listed("1").unwrap();
        let newest = |world: &World| {
            let names =
                paths(world).into_iter().filter_map(|p| p.file_name()?.to_str().map(str::to_owned));
            names.filter_map(|name| name.rsplit('.').nth(1)?.parse::<u32>().ok()).max()
        };
        eventually("the third file", || Ok((newest(&world) >= Some(2)).then_some(()))).unwrap();
        eventually("it is said", || {
            let log = world.log()?;
            Ok(log.iter().any(|line| line.contains("the oldest file")).then_some(()))
        })
        .unwrap();
        running.end().unwrap();
        let first = match format {
            "gpumon" => "gpumon_",
            _ => "warpgauge-host-",
        };
        let kept = paths(&world);
        let of_kernels = |path: &&PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(first) && !name.contains(".scope.") && !name.contains(".system.")
        };
        assert!(kept.iter().filter(of_kernels).count() <= 2, "{kept:?}");
        assert!(!told(&world, format).kernels.is_empty());
    }
}

#[test]
fn a_folder_that_cannot_be_written_costs_events_and_nothing_else() {
    for setup in ["missing", "file", "full"] {
        let world = World::new().unwrap();
        let folder = match setup {
            "missing" => world.path("nowhere"),
            "file" => world.runtime_config(),
            _ => events_of(&world),
        };
        let arguments = ["--launches=200", "--pause-before=exit", "--exit-code=3"];
        let mut host = host(&world, "gpumon", &arguments).env("WARPGAUGE_EVENTS_FOLDER", &folder);
        if setup == "full" {
            // Room for the first line alone: 512 bytes.
            host =
                host.after("ulimit -f 1").without("STANDIN_CUPTI_LOG").without("WARPGAUGE_LOGFILE");
        }
        let mut running = host.start_listed("1").unwrap();
        running.wait_until_ready_after_report().unwrap();
        let pid = running.pid();
        eventually("the loss is told", || {
            let health = world.health_of(pid)?;
            Ok(health.filter(|health| health["events_lost"] == 200))
        })
        .unwrap();
        running.go_on().unwrap();
        let outcome = running.finish().unwrap();
        assert_eq!((outcome.status.code(), outcome.errors.as_str()), (Some(3), ""), "{setup}");
        assert_eq!(world.published_by(outcome.pid).unwrap().launches, 200, "{setup}");
        if setup == "full" {
            let told = told(&world, "gpumon");
            assert_eq!((told.findings.len(), told.kernels.len()), (0, 0), "whole lines alone");
        } else {
            let log = world.log().unwrap();
            let said = log.iter().filter(|line| line.contains("what comes meanwhile is lost"));
            assert_eq!(said.count(), 1, "{log:?}");
        }
    }
}

#[test]
fn a_folder_that_is_removed_and_made_again_is_written_again() {
    for format in FORMATS {
        let world = World::new().unwrap();
        let running = launching(&world, format);
        wait_for_kernels(&world, format, 1000);
        let aside = world.path("aside");
        fs::rename(events_of(&world), &aside).unwrap();
        eventually("the loss is said", || {
            let log = world.log()?;
            Ok(log.iter().any(|line| line.contains("are lost")).then_some(()))
        })
        .unwrap();
        fs::create_dir(events_of(&world)).unwrap();
        wait_for_kernels(&world, format, 1000);
        running.end().unwrap();
        assert!(world.log().unwrap().iter().any(|line| line.contains("writing works again")));
    }
}

#[test]
fn a_program_that_is_listed_again_goes_on_in_the_same_log() {
    let world = World::new().unwrap();
    let mut running =
        host(&world, "gpumon", &["--launches=2000", "--rate=500", "--pause-before=exit"])
            .start_listed("1")
            .unwrap();
    let pid = running.pid();
    wait_for_kernels(&world, "gpumon", 100);
    world.list(&[]).unwrap();
    eventually("it is unlisted", || {
        let log = world.log()?;
        Ok(log.iter().any(|line| line.contains("no longer listed")).then_some(()))
    })
    .unwrap();
    let before = told(&world, "gpumon").kernels.len();
    world.list(&[(pid, "1")]).unwrap();
    wait_for_kernels(&world, "gpumon", before + 100);
    running.wait_until_ready_after_report().unwrap();
    running.go_on().unwrap();
    assert!(running.finish().unwrap().status.success());
    let told = told(&world, "gpumon");
    assert_eq!((told.findings.len(), told.starts, told.ends), (0, 1, 1));
    let log = world.cupti_log().unwrap();
    assert_eq!(log.iter().filter(|line| line.as_str() == "activity 10 on").count(), 2, "{log:?}");
}

#[test]
fn graphs_are_logged_node_by_node() {
    let world = World::new().unwrap();
    let arguments =
        ["--mode=graph", "--launches=40", "--kernel=saxpy=1:256", "--pause-before=exit"];
    let mut running = host(&world, "gpu-flight", &arguments).start_listed("1").unwrap();
    running.wait_until_ready_after_report().unwrap();
    let pid = running.pid();
    let seen = eventually("all nodes are counted and logged", || {
        let seen = world.published_by(pid)?.launches;
        let kernels = told(&world, "gpu-flight").kernels.len() as u64;
        Ok((seen > 0 && kernels == seen).then_some(seen))
    })
    .unwrap();
    assert!(seen >= 40);
    running.go_on().unwrap();
    assert!(running.finish().unwrap().status.success());
    assert_eq!(told(&world, "gpu-flight").findings, []);
}

#[test]
fn a_program_that_aborts_does_so_as_it_would_without_a_log() {
    for (end, code, signal) in [
        ("exit", Some(7), None),
        ("immediate", Some(7), None),
        ("abort", None, Some(libc::SIGABRT)),
    ] {
        let world = World::new().unwrap();
        let end = format!("--end={end}");
        let arguments = ["--mode=cut-short", "--exit-code=7", "--seconds=1", &end];
        let outcome =
            host(&world, "gpumon", &arguments).start_listed("1").unwrap().finish().unwrap();
        assert_eq!((outcome.status.code(), outcome.status.signal()), (code, signal), "{end}");
        assert_eq!(outcome.errors, "", "{end}");
        assert_eq!(damage(&world, &told(&world, "gpumon")), [], "{end}");
    }
}

#[test]
fn a_scope_is_logged_with_the_memory_that_was_in_use_inside() {
    for format in FORMATS {
        let world = World::new().unwrap();
        let arguments = ["--scope=epoch", "--launches=600", "--rate=500", "--pause-before=exit"];
        run_to_the_end(&world, host(&world, format, &arguments), format, 600);
        let told = told(&world, format);
        assert_eq!(told.findings, [], "{format}");
        let phases: Vec<_> = told.scopes.iter().map(|scope| scope.phase).collect();
        assert_eq!(phases, [Phase::Begin, Phase::End], "{format}");
        assert!(told.scopes.iter().all(|scope| scope.name == "epoch"));
        let duration = told.scopes[1].time.since(told.scopes[0].time).0;
        assert!(duration > 1_000_000_000, "{duration}");
        // Every 0.1 s while launches come, and a second of them: fewer on a busy machine.
        assert!((2..=60).contains(&told.memory), "{format}: {}", told.memory);
        // The kernels ran inside, by the same clock.
        let (first, last) = (told.scopes[0].time, told.scopes[1].time);
        let inside = |kernel: &&Kernel<'_>| kernel.start >= first && kernel.start <= last;
        assert_eq!(told.kernels.iter().filter(inside).count(), 600);
    }
}

#[test]
fn memory_is_not_read_where_the_settings_say_never() {
    let world = World::new().unwrap();
    let arguments = ["--scope=epoch", "--launches=100", "--pause-before=exit"];
    let host = host(&world, "gpumon", &arguments).env("WARPGAUGE_EVENTS_MEMORY_INTERVAL", "0");
    run_to_the_end(&world, host, "gpumon", 100);
    assert_eq!(told(&world, "gpumon").memory, 0);
}

/// As fast as a thread can: the ring fills up before anybody comes to empty it.
#[test]
fn scopes_that_find_no_room_are_counted() {
    let world = World::new().unwrap();
    let arguments = ["--scopes=200000", "--launches=1"];
    let outcome = host(&world, "gpu-flight", &arguments)
        .env("WARPGAUGE_EVENTS_ACTIVITY", "false")
        .start_listed("1")
        .unwrap()
        .finish()
        .unwrap();
    assert!(outcome.status.success() && outcome.errors.is_empty(), "{outcome:?}");
    let last = last_line(&world);
    let dropped = last["lost_by_reason"]["ring_full"].as_u64().unwrap();
    assert!(dropped > 0, "{last}");
    let told = told(&world, "gpu-flight");
    assert_eq!(told.scopes.len() as u64 + dropped, 400_000, "{last}");
}

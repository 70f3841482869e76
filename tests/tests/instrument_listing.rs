//! Being listed, and no longer being listed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use warpgauge_tests::{RunningHost, World, eventually};

/// A host program that launches until it is told to end.
const ENDLESS: [&str; 4] = ["--pause-before", "launch", "--seconds=600", "--rate=500"];

fn start_launching(world: &World) -> RunningHost {
    let mut host = world.host(&ENDLESS).start().unwrap();
    host.wait_until_ready().unwrap();
    host.go_on().unwrap();
    host
}

fn wait_for_files(world: &World, pid: u32, files: usize) {
    eventually("measurement files appear", || {
        Ok((world.published_by(pid)?.files >= files).then_some(()))
    })
    .unwrap();
}

fn wait_for_cupti(world: &World, calls: &[&str]) {
    let what = format!("CUPTI is asked to {calls:?}");
    eventually(&what, || Ok((world.cupti_log()? == calls).then_some(()))).unwrap();
}

#[test]
fn a_process_that_is_not_listed_does_not_even_load_cupti() {
    let world = World::new().unwrap();
    world.list(&[(1, "0,1,2,3")]).unwrap();
    let mut host = world
        .host(&["--launches=100", "--pause-before", "launch", "--pause-before", "exit"])
        .start()
        .unwrap();
    host.wait_until_ready().unwrap();
    host.go_on().unwrap();
    host.wait_until_ready_after_report().unwrap();
    assert!(host.has_mapped("libwarpgauge_instrument").unwrap());
    assert!(!host.has_mapped("libcupti").unwrap());
    let alone = ["--launches=100", "--pause-before=launch"];
    let mut alone = world.host(&alone).without("CUDA_INJECTION64_PATH").start().unwrap();
    alone.wait_until_ready().unwrap();
    let count = |host: &RunningHost, what: &str| {
        std::fs::read_dir(format!("/proc/{}/{what}", host.pid())).unwrap().count()
    };
    assert_eq!(count(&host, "fd"), count(&alone, "fd"));
    assert_eq!(count(&host, "task"), count(&alone, "task") + 1, "one thread is ours");
    alone.finish().unwrap();
    host.go_on().unwrap();
    let outcome = host.finish().unwrap();
    assert!(outcome.status.success());
    assert_eq!(world.published_by(outcome.pid).unwrap().files, 0);
    assert_eq!(world.cupti_log().unwrap(), [""; 0]);
    assert_eq!(world.log().unwrap(), [""; 0]);
}

#[test]
fn a_process_is_measured_as_soon_as_it_is_listed_and_gives_cupti_back_when_it_is_not() {
    let world = World::new().unwrap();
    let host = start_launching(&world);
    let pid = host.pid();
    world.list(&[(pid, "1")]).unwrap();
    wait_for_files(&world, pid, 2);
    assert!(host.has_mapped("libcupti").unwrap());
    world.list(&[]).unwrap();
    wait_for_cupti(&world, &["subscribe", "unsubscribe"]);
    world.list(&[(pid, "1")]).unwrap();
    wait_for_cupti(&world, &["subscribe", "unsubscribe", "subscribe"]);
    let so_far = world.published_by(pid).unwrap().files;
    wait_for_files(&world, pid, so_far + 1);
    host.end().unwrap();
}

#[test]
fn what_was_counted_is_published_when_a_process_is_taken_off_the_list() {
    let world = World::new().unwrap();
    let mut host = world
        .host(&["--launches=77", "--pause-before", "init", "--pause-before", "exit"])
        .env("WARPGAUGE_FLUSH_INTERVAL", "3600")
        .start_listed("1")
        .unwrap();
    host.wait_until_ready_after_report().unwrap();
    let pid = host.pid();
    assert_eq!(world.published_by(pid).unwrap().files, 0);
    world.write_runtime_config(b"").unwrap();
    wait_for_files(&world, pid, 1);
    assert_eq!(world.published_by(pid).unwrap().launches, 77);
    host.go_on().unwrap();
    host.finish().unwrap();
    assert_eq!(world.published_by(pid).unwrap().launches, 77);
}

#[test]
fn a_configuration_that_cannot_be_read_keeps_the_last_good_plan() {
    let world = World::new().unwrap();
    let host = start_launching(&world);
    let pid = host.pid();
    world.list(&[(pid, "1")]).unwrap();
    wait_for_files(&world, pid, 1);
    for (garbage, complaint) in [(&b"\xff\x00garbage"[..], ":1: expected"), (b"::\n", ":1: ")] {
        world.write_runtime_config(garbage).unwrap();
        eventually("the garbage is noticed", || {
            let log = world.log()?;
            Ok(log.last().is_some_and(|line| line.contains(complaint)).then_some(()))
        })
        .unwrap();
    }
    std::fs::remove_file(world.runtime_config()).unwrap();
    eventually("the missing file is noticed", || {
        Ok(world.log()?.iter().any(|line| line.contains("No such file")).then_some(()))
    })
    .unwrap();
    let so_far = world.published_by(pid).unwrap().files;
    wait_for_files(&world, pid, so_far + 2);
    assert_eq!(world.cupti_log().unwrap(), ["subscribe"]);
    host.end().unwrap();
}

/// Things that are no file: none of them holds the library up, and each is said once.
#[test]
fn whatever_stands_in_the_place_of_the_configuration_the_last_good_plan_holds() {
    let world = World::new().unwrap();
    let host = start_launching(&world);
    let pid = host.pid();
    world.list(&[(pid, "1")]).unwrap();
    wait_for_files(&world, pid, 1);
    let place = world.runtime_config();
    type Put = fn(&std::path::Path);
    let put: [(Put, &str); 4] = [
        (
            |place| nix::unistd::mkfifo(place, nix::sys::stat::Mode::S_IRWXU).unwrap(),
            "not a regular",
        ),
        (|place| std::os::unix::fs::symlink(place, place).unwrap(), "Too many levels"),
        (|place| std::fs::create_dir(place).unwrap(), "not a regular"),
        (|place| std::fs::File::create(place).unwrap().set_len(1 << 40).unwrap(), "larger than"),
    ];
    std::fs::remove_file(&place).unwrap();
    for (put, complaint) in put {
        put(&place);
        eventually("the thing is noticed", || {
            let log = world.log()?;
            Ok(log.last().is_some_and(|line| line.contains(complaint)).then_some(()))
        })
        .unwrap();
        std::fs::remove_file(&place).or_else(|_| std::fs::remove_dir(&place)).unwrap();
        eventually("the empty place is noticed", || {
            Ok(world.log()?.last().is_some_and(|line| line.contains("No such file")).then_some(()))
        })
        .unwrap();
    }
    let so_far = world.published_by(pid).unwrap().files;
    wait_for_files(&world, pid, so_far + 1);
    assert_eq!(world.cupti_log().unwrap(), ["subscribe"]);
    host.end().unwrap();
}

#[test]
fn functions_that_cannot_be_measured_are_said_once_and_nothing_is_published_for_them() {
    let world = World::new().unwrap();
    let host = world
        .host(&["--pause-before", "init", "--seconds=2", "--rate=100"])
        .env("STANDIN_CUPTI_FAULT", "unsupported");
    let outcome = host.start_listed("0,1,2,3,77").unwrap().finish().unwrap();
    let published = world.published_by(outcome.pid).unwrap();
    assert_eq!(published.launches, outcome.launches());
    assert_eq!(published.instructions, None);
    let log = world.log().unwrap();
    let said = |what: &str| log.iter().filter(|line| line.contains(what)).count();
    for function in ["instructions", "coalescence", "divergence"] {
        assert_eq!(said(&format!("{function} cannot be measured")), 1, "{log:?}");
    }
    assert_eq!(said("unknown function ids ignored: 77"), 1, "{log:?}");
}

#[test]
fn a_slot_that_another_tool_has_is_taken_when_it_is_free() {
    let world = World::new().unwrap();
    let busy = world.path("slot-is-taken");
    std::fs::File::create(&busy).unwrap();
    let host = world.host(&ENDLESS).env("STANDIN_CUPTI_OTHER_TOOL", &busy);
    let mut host = host.start().unwrap();
    host.wait_until_ready().unwrap();
    host.go_on().unwrap();
    let pid = host.pid();
    world.list(&[(pid, "1")]).unwrap();
    eventually("the slot is found taken twice", || {
        let health = world.health_of(pid)?;
        let waits = health.is_some_and(|health| {
            health["state"] == "armed"
                && health["reason"].as_str().is_some_and(|why| why.contains("another tool"))
        });
        Ok((waits && world.cupti_log()?.len() >= 2).then_some(()))
    })
    .unwrap();
    assert_eq!(world.published_by(pid).unwrap().files, 0);
    std::fs::remove_file(&busy).unwrap();
    wait_for_files(&world, pid, 1);
    let said = world.log().unwrap().iter().filter(|line| line.contains("another tool")).count();
    assert_eq!(said, 1);
    host.end().unwrap();
}

//! Containers with folders of their own: who is listed there, whose the measurements are, and what
//! a hostile container can do. The processes are those of a fake `/proc`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use nix::sys::stat::Mode;
use nix::unistd::{Uid, mkfifo};
use support::fake_proc::{FakeProc, FakeProcess};
use support::points::{of_process, sum, sum_for};
use support::world::{World, name_for, names_in, write};
use warpgauge::containers::MAX_CONTAINERS;
use warpgauge::measurements::quarantine;
use warpgauge::metrics::{INSTRUCTIONS, MEASUREMENTS_REFUSED, MEASUREMENTS_UNATTRIBUTED};
use warpgauge::pass::MAX_LINES_BY_HAND;
use warpgauge_wire::plan_for;

/// Two containers' ids.
const A: &str = "aaaa0c1b2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f90";
const B: &str = "bbbb0c1b2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c0d1e2f3a4b5c6d7e8f90";
const POD: &str = "0a1b2c3d-1111-2222-3333-444455556666";

struct Ship {
    world: World,
    proc: FakeProc,
}

impl Ship {
    fn new() -> Self {
        let (mut world, proc) = (World::new(), FakeProc::new());
        world.proc = proc.path("");
        Self { world, proc }
    }

    /// Makes a container's folder, as an orchestrator does.
    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.world.path("containers").join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A process of the group that runs in a container of this id, or on the host.
    fn sleeper(&self, container: Option<&str>) -> FakeProcess {
        let process = self.stranger(container);
        process.comm("sleep").exe("/usr/bin/sleep").arguments(&["sleep", &self.world.nap])
    }

    /// A process of no group.
    fn stranger(&self, container: Option<&str>) -> FakeProcess {
        let process = FakeProcess::new("stranger").uids([Uid::effective().as_raw(); 4]);
        match container {
            Some(id) => process.cgroup(&format!("/system.slice/docker-{id}.scope")),
            None => process,
        }
    }

    fn plan(&self, folder: Option<&str>, pid: u32) -> Option<String> {
        let path = match folder {
            Some(name) => self.folder(name).join("runtime.conf"),
            None => self.world.runtime_config(),
        };
        plan_for(&fs::read(path).unwrap(), pid).map(|entry| entry.to_string())
    }

    /// Publishes in a container's folder, as the library inside does.
    fn publish(&self, folder: &str, pid: u32, content: &str) -> PathBuf {
        let measurements = self.folder(folder).join("measurements");
        fs::create_dir_all(&measurements).unwrap();
        let name = name_for(pid);
        write(measurements.join(format!(".{name}")), content);
        fs::rename(measurements.join(format!(".{name}")), measurements.join(&name)).unwrap();
        measurements.join(name)
    }

    fn instructions_of(&self, pid: u32) -> u64 {
        sum(&of_process(&self.world.exported(), pid), INSTRUCTIONS.name)
    }

    fn left_in(&self, folder: &str) -> Vec<String> {
        names_in(&self.folder(folder).join("measurements"))
    }
}

#[test]
fn two_containers_and_the_host_have_one_pid_at_once_and_each_keeps_its_own() {
    let ship = Ship::new();
    ship.folder(A);
    ship.folder(&B[..12]);
    ship.sleeper(Some(A)).inside(&[7]).create(&ship.proc, 4_242);
    ship.sleeper(Some(B)).inside(&[7]).create(&ship.proc, 5_151);
    ship.sleeper(None).create(&ship.proc, 7);
    let pass = ship.world.pass_ends(0);
    assert_eq!((pass.report["listed"].as_u64(), pass.log.as_str()), (Some(3), ""));
    for folder in [Some(A), Some(&B[..12]), None] {
        assert_eq!(ship.plan(folder, 7).as_deref(), Some("7:1"), "{folder:?}");
        assert_eq!(ship.plan(folder, 4_242), None);
    }
    ship.publish(A, 7, "0:1\n");
    ship.publish(&B[..12], 7, "0:20\n");
    ship.world.publish(7, "0:300\n");
    let pass = ship.world.pass_ends(0);
    assert_eq!(pass.log, "");
    for (pid, instructions) in [(4_242, 1), (5_151, 20), (7, 300)] {
        assert_eq!(ship.instructions_of(pid), instructions, "{pid}");
    }
    let points = of_process(&ship.world.exported(), 4_242);
    assert_eq!(points[0].resource["container.id"], A);
    assert_eq!(ship.left_in(A), Vec::<String>::new());
    // Unchanged, nothing is written again.
    assert_eq!(pass.report["runtime_config_changed"], false);
}

#[test]
fn what_is_published_in_one_folder_is_nobody_elses() {
    let ship = Ship::new();
    ship.folder(A);
    ship.folder(B);
    ship.sleeper(Some(A)).inside(&[7]).create(&ship.proc, 4_242);
    ship.sleeper(Some(B)).inside(&[8]).create(&ship.proc, 5_151);
    ship.sleeper(None).create(&ship.proc, 9);
    ship.world.pass_ends(0);
    // The container pretends to be the other one's process, and the host's; the host to be its.
    for pid in [8, 5_151, 9] {
        ship.publish(A, pid, "0:1000000\n");
    }
    ship.world.publish(7, "0:1000000\n");
    ship.world.publish(8, "0:1000000\n");
    let pass = ship.world.pass_ends(0);
    assert_eq!(pass.report["unattributed"], 5);
    assert_eq!(sum(&ship.world.exported(), INSTRUCTIONS.name), 0);
    assert_eq!(sum(&ship.world.exported(), MEASUREMENTS_UNATTRIBUTED.name), 5);
    assert_eq!(ship.left_in(A), [quarantine::NAME]);
    assert_eq!(names_in(&ship.folder(A).join("measurements/.quarantine")).len(), 3);
}

#[test]
fn a_container_without_a_folder_is_served_by_the_top_one() {
    let ship = Ship::new();
    ship.folder(B);
    ship.sleeper(Some(A)).inside(&[7]).create(&ship.proc, 4_242);
    ship.world.pass_ends(0);
    assert_eq!(ship.plan(None, 7).as_deref(), Some("7:1"));
    assert_eq!(ship.plan(Some(B), 7), None);
    ship.world.publish(7, "0:7\n");
    ship.world.pass_ends(0);
    assert_eq!(ship.instructions_of(4_242), 7);
}

#[test]
fn a_pods_folder_serves_its_containers_and_a_container_s_own_goes_first() {
    let ship = Ship::new();
    ship.folder(POD);
    ship.folder(B);
    for (id, inside, pid) in [(A, 7, 4_242), (B, 8, 5_151)] {
        let cgroup = format!(
            "/kubepods.slice/kubepods-pod{}.slice/cri-containerd-{id}.scope",
            POD.replace('-', "_")
        );
        ship.sleeper(None).cgroup(&cgroup).inside(&[inside]).create(&ship.proc, pid);
    }
    ship.world.pass_ends(0);
    assert_eq!(ship.plan(Some(POD), 7).as_deref(), Some("7:1"));
    assert_eq!(ship.plan(Some(POD), 8), None);
    assert_eq!(ship.plan(Some(B), 8).as_deref(), Some("8:1"));
    ship.publish(POD, 7, "0:7\n");
    ship.world.pass_ends(0);
    let points = of_process(&ship.world.exported(), 4_242);
    assert_eq!(sum(&points, INSTRUCTIONS.name), 7);
    assert_eq!(points[0].resource["k8s.pod.uid"], POD);
}

#[test]
fn what_a_container_published_last_is_counted_after_its_end() {
    let ship = Ship::new();
    ship.folder(A);
    ship.sleeper(Some(A)).inside(&[1]).create(&ship.proc, 4_242);
    ship.world.pass_ends(0);
    ship.publish(A, 1, "0:7\n");
    fs::remove_dir_all(ship.proc.path("4242")).unwrap();
    ship.world.pass_ends(0);
    assert_eq!(ship.instructions_of(4_242), 7);
    assert_eq!(ship.plan(Some(A), 1), None);
    // And a folder that goes with its container is missed by nobody.
    fs::remove_dir_all(ship.folder(A)).unwrap();
    assert_eq!(ship.world.pass_ends(0).log, "");
}

#[test]
fn a_process_that_is_ending_and_in_no_control_group_any_more_keeps_its_folder() {
    let ship = Ship::new();
    ship.folder(A);
    ship.sleeper(Some(A)).inside(&[1]).create(&ship.proc, 4_242);
    ship.world.pass_ends(0);
    ship.publish(A, 1, "0:7\n");
    ship.proc.write("4242/cgroup", "1:name=systemd:/\n0::/\n");
    ship.world.pass_ends(0);
    let points = of_process(&ship.world.exported(), 4_242);
    assert_eq!(sum(&points, INSTRUCTIONS.name), 7);
    assert_eq!(points[0].resource["container.id"], A);
    assert_eq!(ship.plan(Some(A), 1).as_deref(), Some("1:1"));
}

#[test]
fn a_persons_line_in_a_container_means_the_process_inside() {
    let ship = Ship::new();
    for folder in [A, B] {
        write(ship.folder(folder).join("runtime.conf"), "# why\n7:0,2 # mine\n");
    }
    ship.stranger(Some(A)).inside(&[7]).create(&ship.proc, 4_242);
    // The host's 7 is not meant.
    ship.stranger(None).create(&ship.proc, 7);
    let pass = ship.world.pass_ends(0);
    assert_eq!(pass.report["listed"], 1);
    assert_eq!(pass.lines_with("1 lines by hand dropped").len(), 1, "{}", pass.log);
    assert_eq!(ship.plan(Some(A), 7).as_deref(), Some("7:0,2"));
    assert!(fs::read_to_string(ship.folder(A).join("runtime.conf")).unwrap().contains("# why\n"));
    assert_eq!(ship.plan(Some(B), 7), None);
    ship.publish(A, 7, "0:7\n");
    ship.world.pass_ends(0);
    assert_eq!(ship.instructions_of(4_242), 7);
    // A process that gets the number later does not inherit the line.
    fs::remove_dir_all(ship.proc.path("4242")).unwrap();
    ship.stranger(Some(A)).inside(&[7]).start_ticks(9_000).create(&ship.proc, 5_151);
    ship.world.pass_ends(0);
    assert_eq!(ship.plan(Some(A), 7), None);
}

#[test]
fn the_lines_by_hand_of_one_container_are_bounded() {
    let ship = Ship::new();
    let lines: String = (1..=MAX_LINES_BY_HAND + 5).map(|pid| format!("{pid}:0\n")).collect();
    write(ship.folder(A).join("runtime.conf"), lines + "nonsense\n");
    for pid in 1..=MAX_LINES_BY_HAND + 5 {
        let (inside, pid) = (u32::try_from(pid).unwrap(), u32::try_from(10_000 + pid).unwrap());
        ship.stranger(Some(A)).inside(&[inside]).create(&ship.proc, pid);
    }
    let pass = ship.world.pass_ends(0);
    assert_eq!(pass.report["listed"], MAX_LINES_BY_HAND);
    assert_eq!(pass.refused("container_too_many_lines"), 5);
    assert_eq!(pass.refused("container_malformed_line"), 1);
    assert_eq!(ship.world.pass_ends(0).refused("container_too_many_lines"), 0);
}

#[test]
fn a_container_that_puts_something_else_in_place_of_its_files_harms_nobody() {
    let ship = Ship::new();
    let elsewhere = ship.world.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    write(elsewhere.join("7-7-7"), "0:1000000\n");
    write(elsewhere.join("precious"), "7:0\n");
    let linked_conf = ship.folder("c1");
    symlink(elsewhere.join("precious"), linked_conf.join("runtime.conf")).unwrap();
    mkfifo(&ship.folder("c2").join("runtime.conf"), Mode::S_IRWXU).unwrap();
    fs::create_dir(ship.folder("c3").join("runtime.conf")).unwrap();
    fs::File::create(ship.folder("c4").join("runtime.conf")).unwrap().set_len(1 << 30).unwrap();
    symlink(&elsewhere, ship.folder("c5").join("measurements")).unwrap();
    mkfifo(&ship.folder("c6").join("measurements"), Mode::S_IRWXU).unwrap();
    fs::create_dir(ship.folder("c7").join(".runtime.conf.new")).unwrap();
    symlink(&elsewhere, ship.folder("c8").join(".measurements.new")).unwrap();
    symlink(&elsewhere, ship.world.path("containers").join("link")).unwrap();
    fs::create_dir(ship.world.path("containers").join("two words")).unwrap();
    ship.folder(A);
    ship.sleeper(Some(A)).inside(&[7]).create(&ship.proc, 4_242);
    ship.publish(A, 7, "0:7\n");
    for _ in 0..2 {
        let pass = ship.world.pass_ends(0);
        for (reason, times) in [
            ("container_runtime_config", 5),
            ("container_unusable", 3),
            ("container_not_a_folder", 1),
            ("container_name_does_not_fit", 1),
        ] {
            assert_eq!(pass.refused(reason), times, "{reason}: {pass:#?}");
            assert_eq!(pass.lines_with(&format!("x {reason},")).len(), 1, "{}", pass.log);
        }
        assert_eq!(ship.plan(Some(A), 7).as_deref(), Some("7:1"));
        assert_eq!(ship.instructions_of(4_242), 7);
    }
    assert_eq!(names_in(&elsewhere), ["7-7-7", "precious"]);
    assert_eq!(fs::read(elsewhere.join("precious")).unwrap(), b"7:0\n");
    let preview = ship.world.run(&["run", "--dry-run", "--json"]);
    assert_eq!(preview.refused("container_unusable"), 2, "{preview:#?}");
}

#[test]
fn what_is_refused_in_a_container_is_put_away_there() {
    let ship = Ship::new();
    ship.sleeper(Some(A)).inside(&[7]).create(&ship.proc, 4_242);
    let good = ship.publish(A, 7, "0:7\n0:-1\n");
    let measurements = good.parent().unwrap();
    write(measurements.join("junk"), "");
    symlink(&good, measurements.join(name_for(7))).unwrap();
    fs::create_dir(measurements.join(name_for(7))).unwrap();
    let pass = ship.world.pass_ends(0);
    for (reason, times) in [("name_does_not_fit", 1), ("not_a_regular_file", 2), ("negative", 1)] {
        assert_eq!(pass.refused(reason), times, "{pass:#?}");
    }
    let example = format!("containers/{A}/measurements/junk");
    assert_eq!(pass.lines_with(&example).len(), 1, "{}", pass.log);
    assert_eq!(sum_for(&ship.world.exported(), MEASUREMENTS_REFUSED.name, "negative"), 1);
    assert_eq!(ship.left_in(A), [quarantine::NAME]);
    assert_eq!(ship.instructions_of(4_242), 7);
}

#[test]
fn more_folders_than_a_pass_serves_are_counted_and_the_rest_is_served() {
    let ship = Ship::new();
    for number in 0..MAX_CONTAINERS + 3 {
        ship.folder(&format!("c{number}"));
    }
    let pass = ship.world.pass_ends(0);
    assert_eq!(pass.refused("too_many_containers"), 3);
    let served = names_in(&ship.world.path("containers"));
    let served =
        served.iter().filter(|name| ship.folder(name).join("runtime.conf").exists()).count();
    assert_eq!(served, MAX_CONTAINERS);
}

#[test]
fn a_container_that_floods_its_folder_keeps_no_other_one_waiting_and_loses_nothing() {
    const FILES: u32 = 10_005;
    let ship = Ship::new();
    for (id, inside, pid) in [(A, 7, 4_242), (B, 8, 5_151)] {
        ship.folder(id);
        ship.sleeper(Some(id)).inside(&[inside]).create(&ship.proc, pid);
    }
    for _ in 0..FILES {
        ship.publish(A, 7, "0:1\n");
    }
    ship.publish(B, 8, "0:7\n");
    let pass = ship.world.pass_ends(0);
    assert_eq!(ship.instructions_of(5_151), 7);
    assert!(!pass.lines_with("left for a later pass").is_empty(), "{}", pass.log);
    assert!(!ship.left_in(A).is_empty());
    // How many a pass reads in its second depends on the machine.
    while !ship.left_in(A).is_empty() {
        let before = ship.left_in(A).len();
        ship.world.pass_ends(0);
        assert!(ship.left_in(A).len() < before);
    }
    assert_eq!(ship.instructions_of(4_242), u64::from(FILES));
}

#[test]
fn a_preview_changes_nothing_in_a_container_either() {
    let ship = Ship::new();
    ship.folder(A);
    ship.sleeper(Some(A)).inside(&[7]).create(&ship.proc, 4_242);
    ship.publish(A, 7, "0:7\n");
    let preview = ship.world.run(&["run", "--dry-run", "--json"]);
    assert_eq!(preview.code(), Some(0), "{preview:#?}");
    assert_eq!(preview.report["listed"], 1);
    assert_eq!(preview.report["runtime_config_changed"], true);
    assert_eq!(preview.report["processes"][0]["instructions"], 7);
    assert_eq!(names_in(&ship.folder(A)), ["measurements"]);
    assert_eq!(ship.left_in(A).len(), 1);
}

#[test]
fn check_says_which_folders_have_no_container_and_which_containers_no_folder() {
    let ship = Ship::new();
    ship.folder(A);
    ship.folder("long-gone");
    ship.stranger(Some(A)).create(&ship.proc, 4_242);
    ship.sleeper(Some(B)).create(&ship.proc, 5_151);
    let about_containers = || -> Vec<String> {
        let check = ship.world.run(&["check", "--offline", "--json"]);
        let remarks = check.report.as_array().unwrap().iter();
        let about = remarks.filter(|remark| remark["about"] == "paths.containers");
        about.map(|remark| format!("{}: {}", remark["level"], remark["message"])).collect()
    };
    let said = about_containers();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("1 folders with a running container"), "{said:?}");
    assert!(said[1].contains("1 folders match no running container, long-gone"), "{said:?}");
    assert!(said[2].contains(&format!("process 5151 in {B} is one")), "{said:?}");

    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(ship.world.path("containers"), open).unwrap();
    assert!(about_containers()[0].contains("chmod 755"));
    fs::remove_dir_all(ship.world.path("containers")).unwrap();
    assert_eq!(about_containers(), [""; 0]);
}

#[test]
fn control_looks_a_containers_pids_up_inside() {
    let ship = Ship::new();
    ship.folder(A);
    ship.stranger(Some(A)).inside(&[7]).create(&ship.proc, 4_242);
    ship.world.pass_ends(0);
    let control = |words: &[&str]| {
        ship.world.run(&[&["control", "--json", "--container", A], words].concat())
    };
    assert_eq!(control(&["set", "7", "occupancy"]).code(), Some(0));
    assert_eq!(ship.plan(Some(A), 7).as_deref(), Some("7:1"));
    assert_eq!(ship.plan(None, 7), None);
    let shown = control(&["show"]).report;
    assert_eq!(shown["entries"][0]["running"], true, "{shown}");
    assert_eq!(control(&["lint"]).code(), Some(0));
    // Also what it publishes before the next pass.
    ship.publish(A, 7, "0:7\n");
    ship.world.pass_ends(0);
    assert_eq!(ship.instructions_of(4_242), 7);
    assert_eq!(control(&["unset", "7"]).code(), Some(0));
    assert_eq!(ship.plan(Some(A), 7), None);

    let refused = |words: &[&str], because: &str| {
        let refused = ship.world.run(&[&["control"], words].concat());
        assert_eq!(refused.code(), Some(2), "{refused:#?}");
        assert!(refused.log.contains(because), "{}", refused.log);
    };
    refused(&["--container", A, "set", "4242", "1"], "no process 4242 in the container");
    refused(&["--container", B, "set", "7", "1"], "holds no folder bbbb");
    refused(&["set", "4242", "1"], &format!("--container {A} set 7"));
}

//! Which processes belong to which group.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "support/fake_proc.rs"]
#[allow(dead_code, reason = "not every test file needs all of it")]
mod fake_proc;

use fake_proc::{BOOT_SECONDS, FakeProc, FakeProcess};
use warpgauge::config::process_group::{Conditions, ProcessGroup};
use warpgauge::groups::{Resolution, Rules};
use warpgauge::procfs::{ProcessId, Uids};

const OWN_PID: u32 = 99_999;
const CONTAINER: &str = "3f5ab9d1c0e84b77a1f6d2093e5c8b4a7d6e1f00aa55cc993388ee2211bb4466";

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn table(name: &str, all: Conditions) -> ProcessGroup {
    ProcessGroup { name: name.to_owned(), all, any: Vec::new() }
}

fn resolve(fake: &FakeProc, tables: &[ProcessGroup], monitored: &[&str]) -> Resolution {
    let monitored: Vec<String> = monitored.iter().map(|&name| name.to_owned()).collect();
    let rules = Rules::compile(tables, &monitored).unwrap();
    rules.resolve(&fake.open(), OWN_PID).unwrap()
}

fn pids(resolution: &Resolution, group: &str) -> Vec<u32> {
    let group = resolution.groups.iter().find(|found| found.name == group).unwrap();
    group.processes.iter().map(|process| process.id.pid).collect()
}

#[test]
fn a_monitored_name_without_a_table_is_a_process_name() {
    let fake = FakeProc::new();
    FakeProcess::new("trainer").create(&fake, 20);
    FakeProcess::new("trainer2").create(&fake, 21);
    FakeProcess::new("trainer").create(&fake, 7);
    let found = resolve(&fake, &[], &["trainer", "nobody"]);
    assert_eq!(pids(&found, "trainer"), [7, 20]);
    assert!(pids(&found, "nobody").is_empty());
    assert_eq!(found.listed, 4);
    assert_eq!((found.skipped, found.incomplete), (vec![], vec![]));
}

#[test]
fn a_name_longer_than_the_kernel_keeps_is_completed_from_elsewhere() {
    let fake = FakeProc::new();
    let name = "distributed-trainer";
    FakeProcess::new(name).create(&fake, 10);
    FakeProcess::new(name).exe("/opt/x").arguments(&["./distributed-trainer"]).create(&fake, 11);
    let script = ["/bin/bash", "-e", "/opt/distributed-trainer", "--fast"];
    FakeProcess::new(name).exe("/usr/bin/bash").arguments(&script).create(&fake, 12);
    // The same first 15 bytes, and another name.
    FakeProcess::new("distributed-trainee").create(&fake, 13);
    FakeProcess::new(name).exe("/opt/x").arguments(&["x", "a", "b", name]).create(&fake, 14);
    // The right executable under a name that the program gave itself.
    FakeProcess::new(name).comm("worker 3").create(&fake, 15);
    assert_eq!(pids(&resolve(&fake, &[], &[name]), name), [10, 11, 12]);
}

#[test]
fn a_name_of_fifteen_bytes_is_what_the_kernel_says() {
    let fake = FakeProc::new();
    FakeProcess::new("exactly-fifteen").exe("/opt/x").arguments(&["x"]).create(&fake, 10);
    FakeProcess::new("exactly-fifteen-and-more").create(&fake, 11);
    let found = resolve(&fake, &[], &["exactly-fifteen"]);
    assert_eq!(pids(&found, "exactly-fifteen"), [10, 11]);
}

#[test]
fn names_may_hold_parentheses_newlines_and_broken_text() {
    let fake = FakeProc::new();
    FakeProcess::new("a) S 1 (b").create(&fake, 10);
    FakeProcess::new("two\nlines").create(&fake, 11);
    FakeProcess::new("ends with\n").create(&fake, 12);
    FakeProcess::new(b"half \xe5\xad").create(&fake, 13);
    let names = ["a) S 1 (b", "two\nlines", "ends with\n", "half \u{fffd}"];
    let found = resolve(&fake, &[], &names);
    assert_eq!(pids(&found, names[0]), [10]);
    assert_eq!(pids(&found, names[1]), [11]);
    assert_eq!(pids(&found, names[2]), [12]);
    // Bytes that are no text equal no text; a rule over the arguments still finds them.
    assert!(pids(&found, names[3]).is_empty());
    let rule = Conditions { cmdline: text(r"^half (?-u:\xe5\xad)$"), ..Conditions::default() };
    let found = resolve(&fake, &[table("half", rule)], &["half"]);
    assert_eq!(pids(&found, "half"), [13]);
    assert_eq!(found.groups[0].processes[0].comm, "half \u{fffd}");
}

#[test]
fn each_condition_decides_on_its_own() {
    let fake = FakeProc::new();
    FakeProcess::new("python3")
        .exe("/opt/envs/torch/bin/python3.11")
        .arguments(&["python3", "train.py", "--out", "/data/run 7"])
        .environ(&["RANK=3", "DATA=/mnt/a/b", "EMPTY="])
        .uids([1000, 1001, 1002, 1003])
        .cgroup(&format!(r"/system.slice/trainer@run\x2d7.service/docker-{CONTAINER}.scope/init"))
        .maps("/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15")
        .create(&fake, 10);
    let none = Conditions::default;
    let env = |name: &str, value: &str| Conditions {
        env: [(name.to_owned(), value.to_owned())].into(),
        ..none()
    };
    let exe = |glob: &str| Conditions { exe: text(glob), ..none() };
    let cmdline = |regex: &str| Conditions { cmdline: text(regex), ..none() };
    let user = |user: &str| Conditions { user: text(user), ..none() };
    let unit = |glob: &str| Conditions { systemd_unit: text(glob), ..none() };
    let cgroup = |glob: &str| Conditions { cgroup: text(glob), ..none() };
    let container = |id: &str| Conditions { container: text(id), ..none() };
    let holding = [
        Conditions { process_name: text("python3"), ..none() },
        exe("/opt/envs/*/bin/python3*"),
        exe("/opt/**/python3.11"),
        exe("/opt/envs/{torch,jax}/bin/python3.1[0-9]"),
        cmdline(r"train\.py --out"),
        cmdline("^python3 train.py --out /data/run 7$"),
        user("1001"),
        unit(r"trainer@run\x2d7.service"),
        unit("trainer@*.service"),
        unit("docker-*.scope"),
        unit("system.slice"),
        cgroup("/system.slice/**"),
        cgroup("**/init"),
        container(CONTAINER),
        container(&CONTAINER[..12]),
        env("RANK", "3"),
        env("RANK", "[0-3]"),
        env("DATA", "/mnt/*"),
        env("EMPTY", ""),
        env("EMPTY", "*"),
        Conditions { gpu: Some(true), ..none() },
    ];
    let failing = [
        Conditions { process_name: text("python"), ..none() },
        exe("/opt/*/python3.11"),
        exe("python3.11"),
        cmdline("Train"),
        cmdline("^train"),
        user("1000"),
        unit("trainer@*.scope"),
        unit("other.service"),
        cgroup("/system.slice/*"),
        cgroup("/user.slice/**"),
        container("3f5ab9d1c0e9"),
        env("RANK", "4"),
        env("EMPTY", "?"),
        env("MISSING", "*"),
        Conditions { gpu: Some(false), ..none() },
    ];
    for (wanted, set) in [(true, &holding[..]), (false, &failing[..])] {
        for conditions in set {
            let found = resolve(&fake, &[table("g", conditions.clone())], &["g"]);
            assert_eq!(pids(&found, "g").contains(&10), wanted, "{conditions:?}");
            assert_eq!(found.skipped, [], "{conditions:?}");
        }
    }
}

#[test]
fn users_go_by_name_as_well() {
    let fake = FakeProc::new();
    FakeProcess::new("as-root").uids([1000, 0, 0, 0]).create(&fake, 10);
    FakeProcess::new("from-root").uids([0, 1000, 1000, 1000]).create(&fake, 11);
    let rule = Conditions { user: text("root"), ..Conditions::default() };
    let found = resolve(&fake, &[table("roots", rule)], &["roots"]);
    assert_eq!(pids(&found, "roots"), [1, 10]);
}

#[test]
fn all_conditions_of_a_table_must_hold_and_one_alternative() {
    let fake = FakeProc::new();
    let python = |rank: &str, script: &str| {
        FakeProcess::new("python3").arguments(&["python3", script]).environ(&[rank])
    };
    python("RANK=0", "train.py").create(&fake, 10);
    python("RANK=1", "train.py").create(&fake, 11);
    python("RANK=0", "serve.py").create(&fake, 12);
    FakeProcess::new("julia").arguments(&["julia", "train.py"]).create(&fake, 13);
    let name = Conditions { process_name: text("python3"), ..Conditions::default() };
    let script = Conditions { cmdline: text("serve"), ..Conditions::default() };
    let rank_1 = [("RANK".to_owned(), "1".to_owned())].into();
    let rank = Conditions { env: rank_1, cmdline: text("train"), ..Conditions::default() };
    let group = ProcessGroup { name: "g".into(), all: name, any: vec![script.clone(), rank] };
    assert_eq!(pids(&resolve(&fake, &[group], &["g"]), "g"), [11, 12]);
    let only_any = ProcessGroup {
        name: "g".into(),
        all: Conditions::default(),
        any: vec![script, Conditions { process_name: text("julia"), ..Conditions::default() }],
    };
    assert_eq!(pids(&resolve(&fake, &[only_any], &["g"]), "g"), [12, 13]);
}

#[test]
fn the_first_monitored_group_takes_a_process_that_several_match() {
    let fake = FakeProc::new();
    FakeProcess::new("python3").arguments(&["python3", "train.py"]).create(&fake, 10);
    FakeProcess::new("python3").arguments(&["python3", "serve.py"]).create(&fake, 11);
    let all = Conditions { process_name: text("python3"), ..Conditions::default() };
    let training = Conditions { cmdline: text("train"), ..Conditions::default() };
    let tables = [table("all", all), table("training", training)];
    let found = resolve(&fake, &tables, &["training", "all"]);
    assert_eq!((pids(&found, "training"), pids(&found, "all")), (vec![10], vec![11]));
    let found = resolve(&fake, &tables, &["all", "training", "all"]);
    assert_eq!((pids(&found, "all"), pids(&found, "training")), (vec![10, 11], vec![]));
    assert_eq!(found.groups.len(), 2, "a name given twice is one group");
}

#[test]
fn we_ourselves_kernel_threads_and_the_dead_are_never_matched() {
    let fake = FakeProc::new();
    FakeProcess::new("target").create(&fake, OWN_PID);
    FakeProcess::new("target").kernel_thread().create(&fake, 10);
    FakeProcess::new("target").zombie().create(&fake, 11);
    FakeProcess::new("target").zombie().threads(4).create(&fake, 12);
    let found = resolve(&fake, &[], &["target"]);
    assert_eq!(pids(&found, "target"), [12], "whose first thread has returned still runs");
    let everything = Conditions { cmdline: text("^|t"), ..Conditions::default() };
    let found = resolve(&fake, &[table("everything", everything)], &["everything"]);
    assert_eq!(pids(&found, "everything"), [1, 12]);
}

#[test]
fn a_process_tells_what_an_export_needs() {
    let fake = FakeProc::new();
    FakeProcess::new("python3")
        .exe("/opt/python3.11 (deleted)")
        .environ(&["OTEL_SERVICE_NAME=llm", "OTEL_RESOURCE_ATTRIBUTES=team=a,stage=b"])
        .uids([1000, 1001, 1002, 1003])
        .inside(&[70, 1])
        .start_ticks(12_345)
        .cgroup(&format!("/kubepods/burstable/pod8f3d2c1b-4a59-4e6d-9b7c-0123456789ab/{CONTAINER}"))
        .create(&fake, 4242);
    let found = resolve(&fake, &[], &["python3"]);
    let process = &found.groups[0].processes[0];
    assert_eq!(process.id, ProcessId { pid: 4242, start_ticks: 12_345 });
    assert_eq!(process.namespace_pid, 1);
    let uids = Uids { real: 1000, effective: 1001, saved: 1002, file_system: 1003 };
    assert_eq!(process.uids, uids);
    assert_eq!(process.comm, "python3");
    assert_eq!(process.executable_name.as_deref(), Some("python3.11"));
    assert_eq!(process.container_id.as_deref(), Some(CONTAINER));
    assert_eq!(process.pod_uid.as_deref(), Some("8f3d2c1b-4a59-4e6d-9b7c-0123456789ab"));
    assert_eq!(process.systemd_unit, None);
    assert_eq!(process.otel_service_name.as_deref(), Some("llm"));
    assert_eq!(process.otel_resource_attributes.as_deref(), Some("team=a,stage=b"));
    assert_eq!(process.created_unix_nanoseconds, BOOT_SECONDS * 1_000_000_000 + 123_450_000_000);
    assert_eq!(process.details, None);
}

#[test]
fn a_removed_executable_still_has_its_path() {
    let fake = FakeProc::new();
    FakeProcess::new("python3").exe("/opt/python3.11 (deleted)").create(&fake, 10);
    let rule = Conditions { exe: text("/opt/python3.11"), ..Conditions::default() };
    assert_eq!(pids(&resolve(&fake, &[table("g", rule)], &["g"]), "g"), [10]);
}

#[test]
fn details_are_read_on_request_and_only_of_the_same_process() {
    let fake = FakeProc::new();
    FakeProcess::new("a")
        .arguments(&["a", "b c"])
        .maps("/usr/lib/libcuda.so.1")
        .maps("/opt/libwarpgauge_instrument.so")
        .create(&fake, 10);
    FakeProcess::new("a").arguments(&[]).start_ticks(5).create(&fake, 11);
    FakeProcess::new("a").start_ticks(5).create(&fake, 12);
    let rules = Rules::compile(&[], &["a".to_owned()]).unwrap();
    let proc = fake.open();
    let mut found = rules.resolve(&proc, OWN_PID).unwrap();
    // Pid 12 goes to another process before the details are read.
    std::fs::remove_dir_all(fake.path("12")).unwrap();
    FakeProcess::new("a").start_ticks(6).create(&fake, 12);
    found.read_details(&proc);
    let details = found.groups[0].processes.iter().map(|process| process.details.clone());
    let details: Vec<_> = details.collect();
    let first = details[0].clone().unwrap();
    assert_eq!(first.command, "a b c");
    assert!(first.mapped.unwrap().cuda_driver && first.mapped.unwrap().module);
    let second = details[1].clone().unwrap();
    assert_eq!(second.command, "[a]");
    assert!(!second.mapped.unwrap().cuda_driver && !second.mapped.unwrap().module);
    assert_eq!(details[2], None);
}

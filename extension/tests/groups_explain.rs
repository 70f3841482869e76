//! Why a process belongs to a group or not.

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

use fake_proc::{FakeProc, FakeProcess};
use warpgauge::config::process_group::{Conditions, ProcessGroup};
use warpgauge::groups::{
    ConditionExplanation, ConditionKey, Explanation, GroupOutcome, Rules, Subject, Unreadable,
};
use warpgauge::procfs::{ProcFile, Unread};

const OWN_PID: u32 = 99_999;

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn table(name: &str, all: Conditions) -> ProcessGroup {
    ProcessGroup { name: name.to_owned(), all, any: Vec::new() }
}

fn explain(fake: &FakeProc, tables: &[ProcessGroup], monitored: &[&str], pid: u32) -> Explanation {
    let monitored: Vec<String> = monitored.iter().map(|&name| name.to_owned()).collect();
    let rules = Rules::compile(tables, &monitored).unwrap();
    rules.explain(&fake.open(), pid, OWN_PID).unwrap()
}

/// Key, wanted, found, holds.
fn row(condition: &ConditionExplanation) -> (String, &str, &str, bool) {
    let found = condition.found.as_ref().unwrap();
    (condition.key.to_string(), &condition.wanted, &found.text, found.holds)
}

#[test]
fn each_condition_says_what_it_wanted_and_what_it_found() {
    let fake = FakeProc::new();
    FakeProcess::new("python3")
        .arguments(&["python3", "serve.py"])
        .environ(&["RANK=3"])
        .uids([4_000_000_000; 4])
        .cgroup("/system.slice/serve.service")
        .create(&fake, 10);
    let conditions = Conditions {
        process_name: text("python3"),
        exe: text("/opt/**"),
        cmdline: text("train"),
        user: text("4000000000"),
        systemd_unit: text("serve.service"),
        cgroup: text("/user.slice/**"),
        container: text("3f5ab9d1c0e8"),
        env: [("RANK".to_owned(), "3".to_owned()), ("SIZE".to_owned(), "*".to_owned())].into(),
        gpu: Some(true),
    };
    let found = explain(&fake, &[table("trainer", conditions)], &["trainer"], 10);
    let Subject::Running(process) = &found.subject else { panic!("{:?}", found.subject) };
    assert_eq!(process.details.as_ref().unwrap().command, "python3 serve.py");
    let group = &found.groups[0];
    assert_eq!(group.outcome, GroupOutcome::DoesNotMatch);
    let rows: Vec<_> = group.own.iter().map(row).collect();
    let wanted = [
        ("process_name".into(), "python3", "python3", true),
        ("user".into(), "4000000000", "4000000000", true),
        ("exe".into(), "/opt/**", "/usr/bin/python3", false),
        ("systemd_unit".into(), "serve.service", "system.slice, serve.service", true),
        ("cgroup".into(), "/user.slice/**", "/system.slice/serve.service", false),
        ("container".into(), "3f5ab9d1c0e8", "none", false),
        ("cmdline".into(), "train", "python3 serve.py", false),
        ("env.RANK".into(), "3", "\"3\"", true),
        ("env.SIZE".into(), "*", "not set", false),
        ("gpu".into(), "true", "libcuda.so is not mapped", false),
    ];
    assert_eq!(rows, wanted);
}

#[test]
fn the_group_that_comes_first_takes_the_process_and_the_other_one_says_so() {
    let fake = FakeProc::new();
    FakeProcess::new("python3").create(&fake, 10);
    let everything = Conditions { cmdline: text("."), ..Conditions::default() };
    let tables = [table("everything", everything)];
    let found = explain(&fake, &tables, &["julia", "python3", "everything"], 10);
    let outcomes: Vec<_> = found.groups.iter().map(|group| &group.outcome).collect();
    let taken_by = GroupOutcome::TakenBy("python3".to_owned());
    assert_eq!(outcomes, [&GroupOutcome::DoesNotMatch, &GroupOutcome::Takes, &taken_by]);
}

#[test]
fn alternatives_are_explained_one_by_one() {
    let fake = FakeProc::new();
    FakeProcess::new("python3").arguments(&["python3", "train.py"]).create(&fake, 10);
    let cmdline = |regex: &str| Conditions { cmdline: text(regex), ..Conditions::default() };
    let group = ProcessGroup {
        name: "g".into(),
        all: Conditions { process_name: text("python3"), ..Conditions::default() },
        any: vec![cmdline("serve"), cmdline("train")],
    };
    let found = explain(&fake, &[group], &["g"], 10);
    assert_eq!(found.groups[0].outcome, GroupOutcome::Takes);
    let holds = |condition: &ConditionExplanation| row(condition).3;
    assert!(holds(&found.groups[0].own[0]));
    let ways: Vec<Vec<bool>> =
        found.groups[0].alternatives.iter().map(|way| way.iter().map(holds).collect()).collect();
    assert_eq!(ways, [[false], [true]]);
}

#[test]
fn what_could_not_be_read_is_neither_held_nor_failed() {
    let fake = FakeProc::new();
    FakeProcess::new("python3").create(&fake, 10);
    fake.write("10/cgroup", vec![b'x'; ProcFile::Cgroup.limit() + 1]);
    let conditions =
        Conditions { process_name: text("python3"), cgroup: text("/**"), ..Conditions::default() };
    let found = explain(&fake, &[table("g", conditions)], &["g"], 10);
    let cause = Unreadable { file: ProcFile::Cgroup, reason: Unread::TooLarge };
    assert_eq!(found.groups[0].outcome, GroupOutcome::Undecided(cause));
    assert_eq!(found.groups[0].own[1].key, ConditionKey::Cgroup);
    assert_eq!(found.groups[0].own[1].found, Err(cause));
}

#[test]
fn a_long_name_shows_everything_it_was_compared_with() {
    let fake = FakeProc::new();
    let script = ["/bin/bash", "/opt/distributed-evaluator"];
    let process = FakeProcess::new("distributed-evaluator").exe("/bin/bash").arguments(&script);
    process.create(&fake, 10);
    let found = explain(&fake, &[], &["distributed-evaporator"], 10);
    let (_, _, text, holds) = row(&found.groups[0].own[0]);
    assert_eq!((text, holds), ("distributed-eva, bash, distributed-evaluator", false));
}

#[test]
fn those_that_are_never_monitored_are_told_apart() {
    let fake = FakeProc::new();
    FakeProcess::new("target").create(&fake, OWN_PID);
    FakeProcess::new("target").kernel_thread().create(&fake, 10);
    FakeProcess::new("target").zombie().create(&fake, 11);
    let explained = |pid| explain(&fake, &[], &["target", "other"], pid);
    for (pid, subject) in
        [(OWN_PID, Subject::Ourselves), (10, Subject::KernelThread), (11, Subject::Ended)]
    {
        let found = explained(pid);
        assert_eq!(found.subject, subject);
        assert_eq!(found.groups[0].outcome, GroupOutcome::NeverMonitored);
        assert_eq!(found.groups[1].outcome, GroupOutcome::DoesNotMatch);
    }
    assert_eq!(explained(12), Explanation { pid: 12, subject: Subject::NotThere, groups: vec![] });
}

#[test]
fn a_process_without_its_necessary_files_says_which() {
    let fake = FakeProc::new();
    FakeProcess::new("a").create(&fake, 10);
    fake.write("10/status", "nonsense\n");
    let found = explain(&fake, &[], &["a"], 10);
    let cause = Unreadable { file: ProcFile::Status, reason: Unread::Malformed };
    assert_eq!(found.subject, Subject::Unreadable(cause));
    fake.remove("10/stat");
    assert_eq!(explain(&fake, &[], &["a"], 10).subject, Subject::NotThere);
}

#[test]
fn an_explanation_never_contradicts_the_resolution() {
    let fake = FakeProc::new();
    for pid in 10..30 {
        let name = ["python3", "julia", "python3-long-name"][pid as usize % 3];
        let process = FakeProcess::new(name).uids([pid % 4; 4]);
        let process = if pid % 5 == 0 { process.kernel_thread() } else { process };
        process.create(&fake, pid);
    }
    let user = |user: &str| Conditions { user: text(user), ..Conditions::default() };
    let tables = [table("twos", user("2")), table("threes", user("3"))];
    let monitored = ["twos", "julia", "threes", "python3-long-name"].map(str::to_owned);
    let rules = Rules::compile(&tables, &monitored).unwrap();
    let proc = fake.open();
    let resolved = rules.resolve(&proc, OWN_PID).unwrap();
    for pid in 10..30 {
        let found = rules.explain(&proc, pid, OWN_PID).unwrap();
        for (group, explained) in resolved.groups.iter().zip(&found.groups) {
            let belongs = group.processes.iter().any(|process| process.id.pid == pid);
            assert_eq!(belongs, explained.outcome == GroupOutcome::Takes, "{pid} {}", group.name);
        }
    }
}

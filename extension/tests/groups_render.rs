//! What people see of the groups: tables, columns and JSON.

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
use serde_json::{Value, json};
use warpgauge::cli::Screen;
use warpgauge::cli::groups::{Healths, render_explanation, render_groups};
use warpgauge::config::process_group::{Conditions, ProcessGroup};
use warpgauge::groups::{Resolution, Rules};

const OWN_PID: u32 = 99_999;
const CONTAINER: &str = "3f5ab9d1c0e84b77a1f6d2093e5c8b4a7d6e1f00aa55cc993388ee2211bb4466";

/// Three hours after the boot, into a pipe.
const PIPE: Screen = Screen {
    color: false,
    width: None,
    json: false,
    now_unix_nanoseconds: (BOOT_SECONDS + 3 * 3_600) * 1_000_000_000,
};

const JSON: Screen = Screen { json: true, ..PIPE };

fn terminal(width: u16) -> Screen {
    Screen { width: Some(width), ..PIPE }
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn rules(tables: &[ProcessGroup], monitored: &[&str]) -> Rules {
    let monitored: Vec<String> = monitored.iter().map(|&name| name.to_owned()).collect();
    Rules::compile(tables, &monitored).unwrap()
}

fn resolved(fake: &FakeProc, rules: &Rules) -> Resolution {
    let proc = fake.open();
    let mut resolution = rules.resolve(&proc, OWN_PID).unwrap();
    resolution.read_details(&proc);
    resolution
}

fn groups(fake: &FakeProc, monitored: &[&str], options: &Screen) -> String {
    let mut out = Vec::new();
    let resolution = resolved(fake, &rules(&[], monitored));
    render_groups(&mut out, &resolution, &Healths::default(), options).unwrap();
    String::from_utf8(out).unwrap()
}

fn explained(fake: &FakeProc, rules: &Rules, pid: u32, options: &Screen) -> String {
    let mut out = Vec::new();
    let explanation = rules.explain(&fake.open(), pid, OWN_PID).unwrap();
    render_explanation(&mut out, &explanation, options).unwrap();
    String::from_utf8(out).unwrap()
}

/// Two trainers of a user without a name on any machine, one of them ready to be measured.
fn trainers() -> FakeProc {
    let fake = FakeProc::new();
    let trainer = FakeProcess::new("trainer").uids([4_000_000_000; 4]);
    trainer
        .clone()
        .arguments(&["trainer", "--epochs=3", "--data", "/mnt/data/imagenet"])
        .maps("/usr/lib/libcuda.so.1")
        .maps("/opt/libwarpgauge_instrument.so")
        .start_ticks(360_000)
        .create(&fake, 20);
    trainer.arguments(&["trainer"]).start_ticks(1_079_500).create(&fake, 4242);
    FakeProcess::new("server").create(&fake, 30);
    fake
}

#[test]
fn a_pipe_gets_aligned_columns_in_full_length() {
    let shown = groups(&trainers(), &["trainer", "server"], &PIPE);
    let wanted = "\
GROUP     PID  USER        AGE     CUDA  MODULE  COMMAND
trainer    20  4000000000  2h 0m   yes   yes     trainer --epochs=3 --data /mnt/data/imagenet
trainer  4242  4000000000  5s      no    no      trainer
server     30  root        2h 59m  no    no      server
";
    assert_eq!(shown, wanted);
}

#[test]
fn a_terminal_gets_a_table_that_fits() {
    let fake = trainers();
    for width in [62, 80, 200] {
        let shown = groups(&fake, &["trainer"], &terminal(width));
        let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= usize::from(width), "{width}:\n{shown}");
        assert_eq!(shown.lines().count(), 4, "one line for each row:\n{shown}");
        assert!(!shown.contains('\u{1b}'), "no colour was asked for:\n{shown}");
    }
    let shown = groups(&fake, &["trainer"], &terminal(70));
    let wanted = "\
GROUP     PID  USER        AGE    CUDA  MODULE  COMMAND
──────────────────────────────────────────────────────────────────────
trainer    20  4000000000  2h 0m  yes   yes     trainer --epochs=3 --…
trainer  4242  4000000000  5s     no    no      trainer
";
    assert_eq!(shown, wanted);
    assert!(!groups(&fake, &["trainer"], &terminal(200)).contains('…'));
}

#[test]
fn colours_appear_only_when_asked_for() {
    let colored = Screen { color: true, ..terminal(100) };
    let shown = groups(&trainers(), &["trainer"], &colored);
    assert!(shown.contains("\u{1b}["), "{shown}");
}

#[test]
fn containers_add_their_columns() {
    let fake = FakeProc::new();
    FakeProcess::new("a").inside(&[7]).cgroup(&format!("/docker/{CONTAINER}")).create(&fake, 10);
    FakeProcess::new("a").create(&fake, 11);
    let shown = groups(&fake, &["a"], &PIPE);
    let wanted = "\
GROUP  PID  PID INSIDE  CONTAINER     USER  AGE     CUDA  MODULE  COMMAND
a       10           7  3f5ab9d1c0e8  root  2h 59m  no    no      a
a       11          11  -             root  2h 59m  no    no      a
";
    assert_eq!(shown, wanted);
}

#[test]
fn an_empty_result_says_what_to_do_next() {
    let fake = FakeProc::new();
    let shown = groups(&fake, &["trainer"], &PIPE);
    let wanted = "no process matches group trainer: 1 process was looked at; try `warpgauge groups \
                  --explain PID` with a process that should belong to it\n";
    assert_eq!(shown, wanted);
    let shown = groups(&fake, &[], &PIPE);
    assert!(shown.contains("`monitored_pg_names`"), "{shown}");
}

#[test]
fn what_was_left_out_is_said_once_with_its_reason() {
    let fake = FakeProc::new();
    for pid in 10..13 {
        FakeProcess::new("a").create(&fake, pid);
        fake.write(&format!("{pid}/stat"), "broken");
    }
    let shown = groups(&fake, &["a"], &PIPE);
    assert!(shown.contains("left out: 3 processes (pid 10 for one): stat: malformed"), "{shown}");
    let shown: Value = serde_json::from_str(&groups(&fake, &["a"], &JSON)).unwrap();
    assert_eq!(shown["left_out"][0]["processes"], 3);
    assert_eq!(shown["left_out"][0]["file"], "stat");
    assert_eq!(shown["left_out"][0]["reason"], "malformed");
}

#[test]
fn a_process_cannot_write_to_the_terminal_through_its_name() {
    let fake = FakeProc::new();
    let hostile = "a\u{1b}[2J\nb";
    let process = FakeProcess::new(hostile).arguments(&["x\u{1b}]0;title\u{7}", "\u{9b}31m\tq\r"]);
    process.environ(&["RANK=\u{1b}[1m"]).create(&fake, 10);
    let env = [("RANK".to_owned(), "*".to_owned())].into();
    let group = ProcessGroup {
        name: "g\u{1b}[7m".to_owned(),
        all: Conditions { env, process_name: text(hostile), ..Conditions::default() },
        any: Vec::new(),
    };
    let rules = rules(&[group], &["g\u{1b}[7m"]);
    for options in [PIPE, terminal(120)] {
        let mut out = Vec::new();
        render_groups(&mut out, &resolved(&fake, &rules), &Healths::default(), &options).unwrap();
        let shown = String::from_utf8(out).unwrap() + &explained(&fake, &rules, 10, &options);
        let control = |letter: char| letter.is_control() && letter != '\n';
        assert!(!shown.contains(control), "{shown:?}");
        assert!(shown.contains(r"x\u{1b}]0;title\u{7} \u{9b}31m\tq\r"), "{shown}");
        assert!(shown.contains(r"a\u{1b}[2J\nb"), "{shown}");
    }
}

#[test]
fn json_holds_everything_and_times_as_text() {
    let fake = FakeProc::new();
    FakeProcess::new("a")
        .arguments(&["a", "b"])
        .environ(&["OTEL_SERVICE_NAME=llm"])
        .inside(&[7])
        .uids([1, 2, 3, 4])
        .cgroup(&format!("/system.slice/docker-{CONTAINER}.scope"))
        .maps("/usr/lib/libcuda.so.1")
        .create(&fake, 10);
    let shown: Value = serde_json::from_str(&groups(&fake, &["a", "b"], &JSON)).unwrap();
    let wanted = json!({
        "groups": [
            {
                "name": "a",
                "processes": [{
                    "pid": 10,
                    "namespace_pid": 7,
                    "start_ticks": 1000,
                    "created_unix_nanoseconds": "1789550010000000000",
                    "uid": 2,
                    "comm": "a",
                    "executable_name": "a",
                    "command": "a b",
                    "container_id": CONTAINER,
                    "systemd_unit": format!("docker-{CONTAINER}.scope"),
                    "kubernetes_pod_uid": null,
                    "otel_service_name": "llm",
                    "cuda_driver_mapped": true,
                    "module_mapped": false,
            "health": null,
                }],
            },
            { "name": "b", "processes": [] },
        ],
        "processes_looked_at": 2,
        "other_users_hidden": false,
        "left_out": [],
        "incomplete": [],
    });
    assert_eq!(shown, wanted);
}

/// A table's own conditions, and alternatives of which the second holds.
fn two_ways() -> ProcessGroup {
    let cmdline = |regex: &str| Conditions { cmdline: text(regex), ..Conditions::default() };
    ProcessGroup {
        name: "training".to_owned(),
        all: Conditions { process_name: text("trainer"), ..Conditions::default() },
        any: vec![cmdline("serve"), cmdline("epochs")],
    }
}

#[test]
fn an_explanation_shows_every_condition_of_every_group() {
    let rules = rules(&[two_ways()], &["training", "trainer", "server"]);
    let wanted = "\
process 20: trainer, user 4000000000, started 2h 0m ago
command: trainer --epochs=3 --data /mnt/data/imagenet

group training: takes this process
  RESULT  CONDITION       WANTED   FOUND
  holds   process_name    trainer  trainer
  fails   any 1: cmdline  serve    trainer --epochs=3 --data /mnt/data/imagenet
  holds   any 2: cmdline  epochs   trainer --epochs=3 --data /mnt/data/imagenet

group trainer: matches, but group training comes first in `monitored_pg_names` and takes it, so \
that nothing is counted twice
  RESULT  CONDITION     WANTED   FOUND
  holds   process_name  trainer  trainer

group server: does not match
  RESULT  CONDITION     WANTED  FOUND
  fails   process_name  server  trainer
";
    assert_eq!(explained(&trainers(), &rules, 20, &PIPE), wanted);
}

#[test]
fn an_explanation_says_what_to_do_about_what_could_not_be_read() {
    let fake = FakeProc::new();
    FakeProcess::new("a").create(&fake, 10);
    fake.write("10/environ", vec![b'x'; (1 << 20) + 1]);
    let env = [("RANK".to_owned(), "0".to_owned())].into();
    let all = Conditions { env, ..Conditions::default() };
    let rules = rules(&[ProcessGroup { name: "g".into(), all, any: vec![] }], &["g"]);
    let shown = explained(&fake, &rules, 10, &PIPE);
    let cause = "environ: larger than what is read of it: use a condition that needs another file";
    assert!(shown.contains(&format!("group g: cannot be decided; {cause}\n")), "{shown}");
    assert!(shown.contains(&format!("unknown  env.RANK   0       {cause}\n")), "{shown}");
    let shown: Value = serde_json::from_str(&explained(&fake, &rules, 10, &JSON)).unwrap();
    assert_eq!(shown["groups"][0]["outcome"], "undecided");
    let condition = &shown["groups"][0]["conditions"][0];
    assert_eq!(condition["holds"], Value::Null);
    assert_eq!(condition["unreadable"]["file"], "environ");
}

#[test]
fn a_pid_that_nobody_has_is_said_plainly() {
    let fake = FakeProc::new();
    let rules = rules(&[], &["a"]);
    let shown = explained(&fake, &rules, 77, &PIPE);
    assert!(shown.starts_with("process 77: there is no such process"), "{shown}");
    let shown: Value = serde_json::from_str(&explained(&fake, &rules, 77, &JSON)).unwrap();
    assert_eq!((&shown["subject"], &shown["process"]), (&json!("not_there"), &Value::Null));
}

#[test]
fn an_explanation_in_json_names_who_took_the_process() {
    let rules = rules(&[two_ways()], &["training", "trainer"]);
    let shown = explained(&trainers(), &rules, 20, &JSON);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["subject"], "running");
    assert_eq!(shown["process"]["cuda_driver_mapped"], true);
    assert_eq!(shown["groups"][0]["outcome"], "takes");
    assert_eq!(shown["groups"][0]["any"][1][0]["holds"], true);
    assert_eq!(shown["groups"][1]["outcome"], "taken_by");
    assert_eq!(shown["groups"][1]["taken_by"], "training");
}

#[test]
fn an_explanation_fits_the_terminal() {
    let rules = rules(&[two_ways()], &["training"]);
    let shown = explained(&trainers(), &rules, 20, &terminal(60));
    for line in shown.lines().skip_while(|line| !line.contains("RESULT")) {
        assert!(line.chars().count() <= 60, "{shown}");
    }
    assert!(shown.contains('…'), "{shown}");
}

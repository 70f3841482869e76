//! `warpgauge check --pid`: each broken link of the chain is found and named, in a made-up world.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    dead_code,
    reason = "a test stops at the first surprise"
)]

#[path = "support/fake_proc.rs"]
mod fake_proc;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use fake_proc::{BOOT_SECONDS, FakeProc, FakeProcess};
use tempfile::TempDir;
use warpgauge::setup::Setup;
use warpgauge::unmeasured::findings::{findings, is_measured};
use warpgauge::unmeasured::{Finding, Link, Weight, gather};

const PID: u32 = 4242;
const LIBRARY: &str = "/opt/libwarpgauge_instrument.so";
/// An hour after the boot.
const NOW_NS: u64 = (BOOT_SECONDS + 3_600) * 1_000_000_000;

/// A machine on which everything is as it should be, until a test breaks it. The process sees the
/// folder `root` as its root, and there the extension's own files.
struct Machine {
    proc: FakeProc,
    place: TempDir,
    head: String,
}

impl Machine {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for folder in ["root/opt", "root/w/measurements", "state"] {
            fs::create_dir_all(place.path().join(folder)).unwrap();
        }
        let machine = Self {
            proc: FakeProc::new(),
            place,
            head: "monitored_pg_names = [\"trainer\"]\n".to_owned(),
        };
        let everybody = Permissions::from_mode(0o1777);
        fs::set_permissions(machine.path("root/w/measurements"), everybody).unwrap();
        machine.write("root/opt/libwarpgauge_instrument.so", "");
        machine.write("root/w/runtime.conf", "4242:1 #= trainer\n");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::File::create(self.path(name)).unwrap();
        std::io::Write::write_all(&mut fs::File::create(self.path(name)).unwrap(), text.as_ref())
            .unwrap();
    }

    fn run(&self, process: FakeProcess) {
        process.create(&self.proc, PID);
        let folder = self.proc.path(&PID.to_string());
        symlink(self.path("root"), folder.join("root")).unwrap();
        fs::create_dir(folder.join("fd")).unwrap();
        symlink("/dev/null", folder.join("fd/0")).unwrap();
    }

    fn say(&self, state: &str, reason: &str, updated_ns: u64) {
        let text = format!(
            r#"{{"version":1,"pid":{PID},"state":"{state}","reason":{reason},"since_ns":1,
            "updated_ns":{updated_ns},"functions":["occupancy"],"launches_seen":12345,
            "launches_measured_share":0.5,"windows":7}}"#
        );
        self.write("root/w/measurements/.4242.health", text);
    }

    fn examine(&self) -> Vec<Finding> {
        let (proc, place) = (self.proc.path("").display().to_string(), self.place.path().display());
        let text = format!(
            "{}\n[paths]\nruntime_config = \"{place}/root/w/runtime.conf\"\nmeasurements = \"{place}/root/w/measurements\"\nstate = \"{place}/state\"\nproc = \"{proc}\"\n",
            self.head
        );
        self.write("warpgauge.toml", text);
        let setup = Setup::load(&self.path("warpgauge.toml")).unwrap();
        findings(&gather::gather(&setup, PID, NOW_NS).unwrap())
    }

    /// The obstacles, of which there must be one at this link that says these words.
    #[track_caller]
    fn stands_in_the_way(&self, link: Link, words: &str) -> Finding {
        let found = self.examine();
        assert!(!is_measured(&found), "{found:#?}");
        let obstacle = found.iter().find(|finding| {
            finding.weight == Weight::Obstacle
                && finding.link == link
                && finding.what.contains(words)
        });
        let obstacle = obstacle.unwrap_or_else(|| panic!("{words}: {found:#?}")).clone();
        assert!(!obstacle.place.is_empty() && !obstacle.remedy.is_empty(), "{obstacle:#?}");
        obstacle
    }
}

fn environment() -> Vec<&'static str> {
    vec![
        "CUDA_INJECTION64_PATH=/opt/libwarpgauge_instrument.so",
        "WARPGAUGE_RUNTIME_CONFIG_PATH=/w/runtime.conf",
        "WARPGAUGE_MEASUREMENTS_OUTPUT_DIR=/w/measurements",
    ]
}

/// A trainer in which the library is loaded.
fn trainer() -> FakeProcess {
    unloaded().maps(LIBRARY)
}

/// One in which it is not.
fn unloaded() -> FakeProcess {
    FakeProcess::new("trainer").environ(&environment()).maps("/usr/lib/libcuda.so.1")
}

#[test]
fn a_measured_process_is_said_to_be_measured_with_its_numbers() {
    let machine = Machine::new();
    machine.run(trainer());
    machine.say("measuring", "null", NOW_NS - 3_000_000_000);
    let found = machine.examine();
    assert!(is_measured(&found), "{found:#?}");
    let last = &found.last().unwrap().what;
    for words in ["12345 launches", "50.0 %", "7 windows", "3 s ago", "occupancy"] {
        assert!(last.contains(words), "{last}");
    }
}

#[test]
fn a_pid_that_nobody_has_is_said_to_be_nobodys() {
    let machine = Machine::new();
    machine.stands_in_the_way(Link::Process, "there is no such process");
    machine.run(FakeProcess::new("trainer").zombie());
    machine.stands_in_the_way(Link::Process, "waits for its parent");
}

#[test]
fn a_process_that_was_listed_and_ended_is_told_from_one_that_never_was() {
    let machine = Machine::new();
    machine.write(
        "state/listed.json",
        r#"{"processes":[{"pid":4242,"own_pid":4242,"start_ticks":7,"created_ns":1,"uids":[0],"group":null,"executable":"x","service_name":null,"container_id":null}]}"#,
    );
    machine.stands_in_the_way(Link::Process, "it was listed and has ended");
    machine.run(trainer());
    machine.say("measuring", "null", NOW_NS);
    let found = machine.examine();
    assert!(found.iter().any(|finding| finding.what.contains("this is another one")), "{found:#?}");
    assert!(is_measured(&found));
}

#[test]
fn a_program_without_cuda_is_said_to_be_none() {
    let machine = Machine::new();
    machine.run(FakeProcess::new("trainer").environ(&environment()));
    machine.stands_in_the_way(Link::Cuda, "no libcuda.so is mapped");
    let device = machine.proc.path("4242/fd/5");
    symlink("/dev/nvidia0", device).unwrap();
    let found = machine.examine();
    let cuda = found.iter().find(|finding| finding.link == Link::Cuda).unwrap();
    assert_eq!(cuda.weight, Weight::Note, "{found:#?}");
}

#[test]
fn what_is_wrong_with_the_injection_variable_is_named() {
    let with = |variables: &[&str]| {
        let machine = Machine::new();
        machine.run(unloaded().environ(variables));
        machine
    };
    for (variable, words) in [
        ("A=b", "started without this variable"),
        ("CUDA_INJECTION64_PATH=/opt/nowhere/libwarpgauge_instrument.so", "no such file"),
        ("CUDA_INJECTION64_PATH=libwarpgauge_instrument.so", "a relative path"),
        ("CUDA_INJECTION64_PATH=/opt/nsys/libToolsInjection64.so", "Nsight Systems"),
        ("CUDA_INJECTION64_PATH=/home/me/opcode_hist.so", "an NVBit tool"),
        ("CUDA_INJECTION64_PATH=/home/me/mine.so", "another library"),
    ] {
        let machine = with(&[variable]);
        machine.stands_in_the_way(Link::Environment, words);
        machine.stands_in_the_way(Link::Library, "not loaded");
    }
    // As it should be, and still not there: the driver has the last word.
    with(&environment()).stands_in_the_way(Link::Library, "inside cuInit");
    let preloaded = with(&["LD_PRELOAD=/opt/libwarpgauge_instrument.so"]);
    assert!(preloaded.examine().iter().all(|finding| finding.link != Link::Environment));
}

#[test]
fn a_library_that_was_replaced_since_is_worth_a_note() {
    let machine = Machine::new();
    machine.run(unloaded().maps(&format!("{LIBRARY} (deleted)")));
    let found = machine.examine();
    let library = found.iter().find(|finding| finding.link == Link::Library).unwrap();
    assert_eq!(library.weight, Weight::Note);
    assert!(library.what.contains("old library"), "{library:?}");
}

#[test]
fn a_library_that_looks_elsewhere_is_the_classical_error() {
    let machine = Machine::new();
    machine.write("root/w/other.conf", "");
    fs::create_dir(machine.path("root/w/elsewhere")).unwrap();
    machine.write(
        "root/opt/settings",
        "runtime_config_path = /w/other.conf\nmeasurements_output_dir = /w/elsewhere\n",
    );
    machine.run(trainer().environ(&["WARPGAUGE_CONF_FILE=/opt/settings"]));
    let finding = machine.stands_in_the_way(Link::Settings, "the library looks at /w/other.conf");
    assert!(finding.place.contains("/opt/settings: runtime_config_path"), "{finding:?}");
    machine.stands_in_the_way(Link::Folder, "it writes to /w/elsewhere");
    fs::remove_file(machine.path("root/opt/settings")).unwrap();
    machine.stands_in_the_way(Link::Settings, "goes on with its defaults");
}

#[test]
fn a_link_in_a_container_leads_nowhere_outside_of_it() {
    let machine = Machine::new();
    fs::remove_file(machine.path("root/w/runtime.conf")).unwrap();
    machine.write("secret.conf", "4242:1\n");
    symlink(machine.path("secret.conf"), machine.path("root/w/runtime.conf")).unwrap();
    machine.run(trainer());
    machine.stands_in_the_way(Link::Settings, "no such file as the process sees it");
}

#[test]
fn who_is_not_listed_is_told_why() {
    let mut machine = Machine::new();
    machine.run(trainer());
    machine.write("root/w/runtime.conf", "# nobody\n");
    machine.stands_in_the_way(Link::Listing, "although a group takes it");
    machine.write("root/w/runtime.conf", "4242:77\n");
    machine.stands_in_the_way(Link::Listing, "no function that is known");
    machine.write("root/w/runtime.conf", "#off 4242:1\n");
    machine.stands_in_the_way(Link::Listing, "rests");
    machine.write("root/w/runtime.conf", "# nobody\n");
    machine.head = "monitored_pg_names = [\"renderer\"]\n".to_owned();
    let finding = machine.stands_in_the_way(Link::Listing, "no monitored group matches");
    assert!(finding.remedy.contains("groups --explain 4242"), "{finding:?}");
    machine.head = "monitored_pg_names = []\n".to_owned();
    machine.stands_in_the_way(Link::Listing, "names no group");
    machine.head += "instrumentation_enabled = false\n";
    machine.stands_in_the_way(Link::Listing, "instrumentation_enabled = false");
}

#[test]
fn a_persons_line_is_said_to_win() {
    let machine = Machine::new();
    machine.run(trainer());
    machine.write("root/w/runtime.conf", "4242:1 #= trainer\n4242:0\n");
    let found = machine.examine();
    let listed = found.iter().find(|finding| finding.link == Link::Listing).unwrap();
    assert!(listed.what.contains("instructions") || listed.what.contains('0'), "{listed:?}");
    assert!(listed.what.contains("a person's line, which wins"), "{listed:?}");
}

#[test]
fn a_folder_that_its_user_may_not_write_to_is_named_with_its_mode() {
    let machine = Machine::new();
    machine.run(trainer().uids([1234; 4]));
    fs::set_permissions(machine.path("root/w/measurements"), Permissions::from_mode(0o755))
        .unwrap();
    let finding = machine.stands_in_the_way(Link::Folder, "mode 755");
    assert!(finding.what.contains("user 1234") && finding.remedy.contains("chmod 1777"));
    fs::remove_dir(machine.path("root/w/measurements")).unwrap();
    machine.stands_in_the_way(Link::Folder, "no such folder");
    machine.write("root/w/measurements", "");
    machine.stands_in_the_way(Link::Folder, "is no folder");
}

#[test]
fn what_the_library_says_stands_in_the_way_is_told_with_what_to_do() {
    let machine = Machine::new();
    machine.run(trainer());
    for (state, reason, words, remedy) in [
        ("armed", "another tool has CUPTI's only slot in this process", "for now", "nsys"),
        ("disabled", "x has CUPTI API version 14; known are", "version 14", "CUDA 11.8"),
        ("disabled", "libcuda.so.1: symbol cuFoo is missing", "cuFoo", "too old"),
        ("disabled", "nobody knows", "nobody knows", "WARPGAUGE_LOGFILE"),
    ] {
        machine.say(state, &format!("\"{reason}\""), NOW_NS - 1);
        let finding = machine.stands_in_the_way(Link::Measuring, words);
        assert!(finding.remedy.contains(remedy), "{finding:?}");
    }
    machine.say("measuring", "null", NOW_NS - 600_000_000_000);
    machine.stands_in_the_way(Link::Measuring, "last wrote 600 s ago");
}

#[test]
fn a_report_that_somebody_else_wrote_forges_nothing() {
    let machine = Machine::new();
    machine.run(trainer().uids([1234; 4]));
    machine.say("measuring", "null", NOW_NS);
    let found = machine.examine();
    assert!(!is_measured(&found), "{found:#?}");
    assert!(found.last().unwrap().what.contains("not believed"), "{found:#?}");
}

#[test]
fn in_a_pid_namespace_of_its_own_its_inner_pid_is_looked_for() {
    let machine = Machine::new();
    machine.run(trainer().inside(&[7]));
    machine.write("root/w/runtime.conf", "4242:1\n");
    machine.stands_in_the_way(Link::Listing, "no line for process 7");
    machine.write("root/w/runtime.conf", "7:1\n");
    let found = machine.examine();
    assert!(found.iter().any(|finding| finding.what.contains("calls itself 7")), "{found:#?}");
    let obstacles = found.iter().filter(|finding| finding.weight == Weight::Obstacle);
    assert!(obstacles.clone().all(|finding| finding.link >= Link::Listing), "{found:#?}");
    assert!(
        Path::new(&found.last().unwrap().place).ends_with(".7.health") || obstacles.count() == 1
    );
}

//! A world of one's own: a configuration and its folders, real processes to be measured, and
//! passes of the real binary.
//!
//! ```text
//! warpgauge.toml        what the test configures
//! runtime.conf          \
//! measurements/          } as named in it
//! state/                /
//! metrics.otlp.jsonl    the export, unless the test names another
//! ```

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::points::{self, Point};

/// Far longer than anything here takes on a busy machine: only a hang meets it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The name of the only group.
pub(crate) const GROUP: &str = "sleepers";

static WORLDS: AtomicU64 = AtomicU64::new(0);
static FILES: AtomicU64 = AtomicU64::new(0);

pub(crate) struct World {
    root: TempDir,
    /// What its sleepers sleep: a number of seconds that no other process names.
    pub(crate) nap: String,
    /// The configuration before its first table.
    pub(crate) head: String,
    /// The tables `[export]` and those below it; without the protocol `file` and its path.
    pub(crate) export: Option<String>,
    /// The table `[devices]`: none are asked unless a test is about them, for machines differ.
    pub(crate) devices: String,
    /// More tables.
    pub(crate) tables: String,
    /// `paths.proc`
    pub(crate) proc: PathBuf,
    /// The whole configuration, in place of all of the above.
    pub(crate) whole: Option<String>,
}

/// One finished pass, or another command.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) status: ExitStatus,
    /// The JSON on standard output; `Null` when there was none.
    pub(crate) report: Value,
    /// Standard error.
    pub(crate) log: String,
}

impl World {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let number = WORLDS.fetch_add(1, Ordering::Relaxed);
        let nap = format!("600.{:07}{number:03}", std::process::id());
        let head = format!("monitored_pg_names = [\"{GROUP}\"]\n");
        let proc = "/proc".into();
        let (devices, tables) = ("enabled = false\n".to_owned(), String::new());
        let world = Self { root, nap, head, export: None, devices, tables, proc, whole: None };
        // The pass makes it as well; publishers may be there before the first pass.
        fs::create_dir(world.measurements()).unwrap();
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
        fs::set_permissions(world.measurements(), everybody).unwrap();
        world
    }

    /// A world that sends to an HTTP receiver.
    pub(crate) fn sending_to(url: &str) -> Self {
        let mut world = Self::new();
        world.export = Some(format!("protocol = \"http/protobuf\"\nendpoint = \"{url}\"\n"));
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn measurements(&self) -> PathBuf {
        self.path("measurements")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub(crate) fn runtime_config(&self) -> PathBuf {
        self.path("runtime.conf")
    }

    /// The configuration as text.
    pub(crate) fn config(&self) -> String {
        if let Some(whole) = &self.whole {
            return whole.clone();
        }
        let root = self.root.path().display();
        let export = self.export.clone().unwrap_or_else(|| {
            format!("protocol = \"file\"\npath = \"{root}/metrics.otlp.jsonl\"\n")
        });
        let Self { head, devices, tables, nap, proc, .. } = self;
        let proc = proc.display();
        format!(
            "{head}
[paths]
runtime_config = \"{root}/runtime.conf\"
measurements = \"{root}/measurements\"
containers = \"{root}/containers\"
state = \"{root}/state\"
proc = \"{proc}\"

[[process_group]]
name = \"{GROUP}\"
process_name = \"sleep\"
cmdline = '^sleep {nap}$'

[export]
{export}
[devices]
{devices}
{tables}"
        )
    }

    /// Starts a process of the group.
    pub(crate) fn sleeper(&self) -> Sleeper {
        self.sleeper_as(0)
    }

    /// Starts a process of the group as another user; 0 leaves the user as it is.
    pub(crate) fn sleeper_as(&self, uid: u32) -> Sleeper {
        Sleeper::start(&self.nap, uid)
    }

    /// Starts a process of no group.
    pub(crate) fn stranger(&self) -> Sleeper {
        Sleeper::start("599", 0)
    }

    /// Publishes a measurement file as the protocol says it: whole, by a rename.
    pub(crate) fn publish(&self, pid: u32, content: impl AsRef<[u8]>) -> PathBuf {
        let name = name_for(pid);
        let path = self.measurements().join(&name);
        let unfinished = self.measurements().join(format!(".{name}"));
        write(&unfinished, content);
        fs::rename(&unfinished, &path).unwrap();
        path
    }

    /// The real binary with the configuration as it is now, in an empty environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let path = self.path("warpgauge.toml");
        let config = self.config();
        if fs::read_to_string(&path).ok().as_ref() != Some(&config) {
            write(&path, config);
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpgauge"));
        command.env_clear().arg("--config").arg(path).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs one pass to its end.
    pub(crate) fn pass(&self) -> Pass {
        finish(self.command(&["run", "--json"]))
    }

    /// Runs one pass as another user.
    pub(crate) fn pass_as(&self, uid: u32) -> Pass {
        // The build may lie where only its owner can go.
        let binary = self.path("warpgauge");
        if !binary.exists() {
            fs::copy(env!("CARGO_BIN_EXE_warpgauge"), &binary).unwrap();
        }
        let as_root = self.command(&["run", "--json"]);
        let mut command = Command::new(binary);
        command.env_clear().args(as_root.get_args()).uid(uid).gid(uid);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(command)
    }

    /// Gives one of its folders to a user, `""` being all that is not another folder; what lies in
    /// it stays whose it is.
    pub(crate) fn give_to(&self, folder: &str, uid: u32) {
        std::os::unix::fs::chown(self.path(folder), Some(uid), Some(uid)).unwrap();
    }

    /// Runs one pass that is to end with this exit code.
    #[track_caller]
    pub(crate) fn pass_ends(&self, code: i32) -> Pass {
        let pass = self.pass();
        assert_eq!(pass.status.code(), Some(code), "{pass:#?}");
        pass
    }

    /// Runs another command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Pass {
        finish(self.command(arguments))
    }

    /// Everything in the exported file, request by request, checked strictly.
    pub(crate) fn exported_requests(&self) -> Vec<Vec<Point>> {
        let text = fs::read_to_string(self.path("metrics.otlp.jsonl")).unwrap_or_default();
        assert!(text.is_empty() || text.ends_with('\n'), "the last line is torn");
        let lines: Vec<_> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            assert!(!lines[..number].contains(line), "line {} came twice", number + 1);
        }
        lines.iter().map(|line| points::from_json(line)).collect()
    }

    /// Every exported point.
    pub(crate) fn exported(&self) -> Vec<Point> {
        self.exported_requests().into_iter().flatten().collect()
    }

    /// The names in the measurements folder.
    pub(crate) fn left_in_folder(&self) -> Vec<String> {
        names_in(&self.measurements())
    }

    /// The names in the quarantine.
    pub(crate) fn quarantined(&self) -> Vec<String> {
        names_in(&self.measurements().join(".quarantine"))
    }

    /// The names in the spool: windows of which something is left to do.
    pub(crate) fn spooled(&self) -> Vec<String> {
        names_in(&self.state().join("spool"))
    }
}

impl Pass {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The warnings that contain this.
    pub(crate) fn lines_with(&self, words: &str) -> Vec<&str> {
        self.log.lines().filter(|line| line.contains(words)).collect()
    }

    /// How often something was refused for this reason, as the report says it.
    pub(crate) fn refused(&self, reason: &str) -> u64 {
        let refused = self.report["refused"].as_array().unwrap();
        let entry = refused.iter().find(|entry| entry["reason"] == reason);
        entry.map_or(0, |entry| entry["count"].as_u64().unwrap())
    }
}

/// Runs a command to its end; one that hangs is ended, and fails the test.
pub(crate) fn finish(mut command: Command) -> Pass {
    let mut child = command.spawn().unwrap();
    let read = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            from.read_to_end(&mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        })
    };
    let out = read(Box::new(child.stdout.take().unwrap()));
    let log = read(Box::new(child.stderr.take().unwrap()));
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() >= deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it did not end; it said: {}", log.join().unwrap());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let report = serde_json::from_str(&out.join().unwrap()).unwrap_or_default();
    Pass { status, report, log: log.join().unwrap() }
}

/// Asks again and again until the answer is yes.
#[track_caller]
pub(crate) fn eventually(what: &str, mut question: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !question() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A name for a measurement file that was never used before.
pub(crate) fn name_for(pid: u32) -> String {
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    format!("{pid}-{pid}-{}{number:06}", std::process::id())
}

/// Every name in a folder, sorted; none where there is no folder.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

/// A real process that does nothing until it is dropped.
pub(crate) struct Sleeper {
    child: Child,
}

impl Sleeper {
    fn start(nap: &str, uid: u32) -> Self {
        let mut command = Command::new("sleep");
        command.arg(nap).stdin(Stdio::null()).stdout(Stdio::null());
        if uid != 0 {
            command.uid(uid).gid(uid);
        }
        let sleeper = Self { child: command.spawn().unwrap() };
        let cmdline = format!("/proc/{}/cmdline", sleeper.pid());
        // The arguments appear a moment after the process, when its memory is laid out.
        eventually("a process's arguments", || {
            fs::read(&cmdline).unwrap() == format!("sleep\0{nap}\0").as_bytes()
        });
        sleeper
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it, and waits until it is gone.
    pub(crate) fn end(self) {
        drop(self);
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Writes a file in one go, as a neighbour would.
pub(crate) fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let mut file = fs::File::create(path).unwrap();
    file.write_all(content.as_ref()).unwrap();
}

/// Whether this test runs as root, which some neighbours' tricks need.
pub(crate) fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

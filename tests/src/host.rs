//! Host programs: started, told to go on, and waited for.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use crate::container::Container;
use crate::wait::{PATIENCE, eventually};
use crate::world::World;

/// Words to put before every host program, such as `valgrind --error-exitcode=99`: a checker that
/// takes the program's pid and exits as the program does. `tests/memory/run.sh` sets it.
const RUN_UNDER: &str = "WARPGAUGE_TESTS_RUN_UNDER";

/// A host program that is not running yet.
#[derive(Debug)]
pub struct Host<'world> {
    world: &'world World,
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl<'world> Host<'world> {
    pub(crate) fn new(world: &'world World, arguments: &[&str]) -> Self {
        let artifacts = world.artifacts();
        let under = std::env::var(RUN_UNDER).unwrap_or_default();
        let mut words: Vec<OsString> = under.split_whitespace().map(OsString::from).collect();
        words.push(artifacts.host.clone().into_os_string());
        words.extend(arguments.iter().map(OsString::from));
        let host = Self { world, words, environment: Vec::new() };
        // Intervals as short as the instrument allows.
        host.env("LD_LIBRARY_PATH", world.libraries())
            .env("CUDA_INJECTION64_PATH", &artifacts.instrument)
            .env("WARPGAUGE_RUNTIME_CONFIG_PATH", world.runtime_config())
            .env("WARPGAUGE_RUNTIME_CONFIG_POLLING_INTERVAL", "1")
            .env("WARPGAUGE_MEASUREMENTS_OUTPUT_DIR", world.measurements())
            .env("WARPGAUGE_FLUSH_INTERVAL", "1")
            .env("WARPGAUGE_LOGFILE", world.path("instrument.log"))
            .env("STANDIN_CUPTI_LOG", world.path("cupti.log"))
    }

    /// Sets a variable. The program inherits none from the test.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.retain(|(known, _)| known.as_os_str() != name);
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Takes a variable away.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.environment.retain(|(known, _)| known.as_os_str() != name);
        self
    }

    /// Runs a shell command before the program takes the shell's place, such as `ulimit -f 0`.
    #[must_use]
    pub fn after(mut self, command: &str) -> Self {
        let script = format!("{command}; exec \"$0\" \"$@\"");
        let shell = ["/bin/sh", "-c", &script].map(OsString::from);
        self.words.splice(0..0, shell);
        self
    }

    /// Runs the program as process 1 of a pid namespace of its own, in a container's control group.
    /// [`RunningHost::pid`] is then that of its parent outside.
    #[must_use]
    pub fn in_container(mut self, container: &Container) -> Self {
        let shell = ["/bin/sh", "-c", &container.script()].map(OsString::from);
        self.words.splice(0..0, shell);
        self
    }

    /// Starts the program through another one that becomes it, such as `unshare --mount`.
    #[must_use]
    pub fn through(mut self, words: &[&str]) -> Self {
        self.words.splice(0..0, words.iter().map(OsString::from));
        self
    }

    /// Starts the program.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(self) -> Result<RunningHost> {
        let (program, arguments) = self.words.split_first().context("no program")?;
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(self.environment)
            .current_dir(self.world.path("."))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| program.display().to_string())?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("no standard output")?;
        let mut errors = child.stderr.take().context("no standard error")?;
        let (send, lines) = channel();
        let output = std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).map(|_| text)
        });
        Ok(RunningHost { child, input, lines, said: Vec::new(), output, errors })
    }

    /// Starts the program and waits for its end.
    ///
    /// # Errors
    /// What the system says, or that the program hangs.
    pub fn run(self) -> Result<Outcome> {
        self.start()?.finish()
    }

    /// Starts the program, which must pause before `cuInit`, lists it for these functions, and lets
    /// it go on.
    ///
    /// # Errors
    /// What the system says, or that the program hangs.
    pub fn start_listed(self, functions: &str) -> Result<RunningHost> {
        let world = self.world;
        let mut host = self.start()?;
        host.wait_until_ready()?;
        world.list(&[(host.pid(), functions)])?;
        host.go_on()?;
        Ok(host)
    }
}

/// A host program that runs.
#[derive(Debug)]
pub struct RunningHost {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Lines taken out while waiting for a pause.
    said: Vec<String>,
    output: JoinHandle<()>,
    errors: JoinHandle<std::io::Result<String>>,
}

impl RunningHost {
    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program pauses.
    ///
    /// # Errors
    /// That it does not, or that it said something else first.
    pub fn wait_until_ready(&mut self) -> Result<()> {
        let line = self.lines.recv_timeout(PATIENCE).context("the host program does not pause")?;
        ensure!(line == "ready", "the host program said {line:?} instead of pausing");
        Ok(())
    }

    /// Waits until the program has said what it launched and pauses.
    ///
    /// # Errors
    /// That it does not.
    pub fn wait_until_ready_after_report(&mut self) -> Result<()> {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).context("the host program is silent")?;
            if line == "ready" {
                return Ok(());
            }
            self.said.push(line);
        }
    }

    /// Whether the program has not ended yet.
    ///
    /// # Errors
    /// What the system says.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Ends a program that would go on for long.
    ///
    /// # Errors
    /// What the system says.
    pub fn end(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Ends a pause, whether the program has reached it yet or not.
    ///
    /// # Errors
    /// What the system says.
    pub fn go_on(&mut self) -> Result<()> {
        let input = self.input.as_mut().context("standard input is closed")?;
        input.write_all(b"\n")?;
        Ok(())
    }

    /// Whether a file whose name contains `name` is mapped into the process.
    ///
    /// # Errors
    /// What the system says.
    pub fn has_mapped(&self, name: &str) -> Result<bool> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid()))?;
        Ok(maps.contains(name))
    }

    /// Waits for the end of the program. One that hangs is ended.
    ///
    /// # Errors
    /// What the system says, or that the program hung.
    pub fn finish(mut self) -> Result<Outcome> {
        drop(self.input.take());
        let ended = eventually("the host program ends", || Ok(self.child.try_wait()?));
        if ended.is_err() {
            self.child.kill()?;
            self.child.wait()?;
        }
        let status = ended?;
        self.output.join().map_err(|_| anyhow!("the reader of standard output panicked"))?;
        let errors = self.errors.join().map_err(|_| anyhow!("the reader of errors panicked"))??;
        let mut lines = self.said;
        lines.extend(self.lines.try_iter().filter(|line| line != "ready"));
        Ok(Outcome { pid: self.child.id(), status, lines, errors })
    }
}

/// What became of a host program.
#[derive(Debug)]
pub struct Outcome {
    /// The process that was.
    pub pid: u32,
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output: one line of JSON for each report.
    pub lines: Vec<String>,
    /// Its standard error.
    pub errors: String,
}

impl Outcome {
    /// Launches that the driver accepted, of all its reports together.
    #[must_use]
    pub fn launches(&self) -> u64 {
        self.counts().map(|(_, count)| count).sum()
    }

    /// Launches of one kernel.
    #[must_use]
    pub fn launches_of(&self, kernel: &str) -> u64 {
        self.counts().filter(|(name, _)| name == kernel).map(|(_, count)| count).sum()
    }

    /// Instructions that the kernels executed, of the last report.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        let reported = self.reports().filter_map(|report| report.get("instructions")?.as_u64());
        reported.last().unwrap_or(0)
    }

    /// Launches that the driver refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.reports().filter_map(|report| report.get("refused")?.as_u64()).sum()
    }

    fn reports(&self) -> impl Iterator<Item = Value> {
        self.lines.iter().filter_map(|line| serde_json::from_str(line).ok())
    }

    /// Kernels and their launches; a kernel comes once for each of its shapes.
    fn counts(&self) -> impl Iterator<Item = (String, u64)> {
        self.reports()
            .filter_map(|report| report.get("launches")?.as_array().cloned())
            .flatten()
            .filter_map(|launch| {
                let kernel = launch.get("kernel")?.as_str()?.to_owned();
                Some((kernel, launch.get("count")?.as_u64()?))
            })
    }
}

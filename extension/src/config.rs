//! The configuration file: typed, unknown keys rejected, every fault reported at once with key and
//! line. `res/warpgauge.toml` is the commented example; a test reads it with this code.

pub mod devices;
pub mod document;
pub mod events;
pub mod export;
pub mod forward;
pub mod process_group;
pub mod quantity;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use warpgauge_wire::{Function, FunctionSet};

use self::devices::{Devices, Telemetry};
use self::document::{Document, Fault, KeyLines, Section};
use self::events::{DEFAULT_KERNELS, EventFormat, EventLog};
use self::export::Export;
use self::forward::Forward;
use self::process_group::{Conditions, ProcessGroup};
use self::quantity::{parse_duration, parse_size};

/// Everything a pass is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// `monitored_pg_names`: the groups to measure. A name without a `[[process_group]]` means
    /// the process name.
    pub monitored_pg_names: Vec<String>,
    /// `instrumentation_enabled`: `false` empties the runtime configuration.
    pub instrumentation_enabled: bool,
    /// `functions`: what to measure; occupancy alone unless more is asked for, since everything else
    /// opens measuring windows inside the program.
    pub functions: FunctionSet,
    /// `[paths]`
    pub paths: Paths,
    /// `[[process_group]]`
    pub process_groups: Vec<ProcessGroup>,
    /// `[[events]]`
    pub events: Vec<EventLog>,
    /// `[devices]`
    pub devices: Devices,
    /// `[telemetry]`
    pub telemetry: Telemetry,
    /// `[export]`
    pub export: Export,
    /// `[metrics]`
    pub metrics: Metrics,
    /// `[spool]`
    pub spool: SpoolLimits,
    /// `[forward]`
    pub forward: Forward,
    /// Where each key stands, for faults that are only found when a value is used.
    pub lines: KeyLines,
}

/// `[paths]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// `runtime_config`: the file that the instrument polls.
    pub runtime_config: PathBuf,
    /// `measurements`: the folder that the instrument writes to.
    pub measurements: PathBuf,
    /// `containers`: a folder for each container, `<name>/runtime.conf` and `<name>/measurements`;
    /// where it is missing, there are none.
    pub containers: PathBuf,
    /// `state`: lock, spool, what was listed, totals; belongs on a disk.
    pub state: PathBuf,
    /// `proc`: the process information; another path when the host's is mounted into a container.
    pub proc: PathBuf,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            runtime_config: "/var/lib/warpgauge/runtime.conf".into(),
            measurements: "/var/lib/warpgauge/measurements".into(),
            containers: "/var/lib/warpgauge/containers".into(),
            state: "/var/lib/warpgauge/state".into(),
            proc: "/proc".into(),
        }
    }
}

/// `[metrics]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metrics {
    /// `distributions`: histograms beside the means of occupancy, coalescence and divergence.
    pub distributions: Distributions,
    /// `per_process`: one resource for each process; `false` leaves the groups' roll-ups.
    pub per_process: bool,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { distributions: Distributions::Off, per_process: true }
    }
}

/// How the distribution of a percentage is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distributions {
    /// Not at all.
    Off,
    /// With fixed bucket bounds.
    Explicit,
    /// With exponential buckets.
    Exponential,
}

/// `[spool]`: bounds of what waits for its acknowledgement. The oldest goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpoolLimits {
    /// `max_size`, in bytes.
    pub max_bytes: u64,
    /// `max_age`
    pub max_age: Duration,
}

impl SpoolLimits {
    /// The smallest `max_size`: a spool that does not hold one request (`otlp::chunks::MAX_BYTES`)
    /// would drop it before it was ever sent again.
    pub const LEAST_BYTES: u64 = 4 << 20;
}

impl Default for SpoolLimits {
    fn default() -> Self {
        Self { max_bytes: 256 << 20, max_age: Duration::from_secs(24 * 3_600) }
    }
}

impl Config {
    /// Reads a configuration from its text: what could be read, with defaults for the rest, and
    /// every fault in it, in the order of the lines. Only without a fault is it to be used.
    #[must_use]
    pub fn parse(text: &str) -> (Self, Vec<Fault>) {
        let document = Document::new(text);
        let mut config = read(&mut document.root());
        let (faults, lines) = document.finish();
        config.lines = lines;
        (config, faults)
    }

    /// Gives a fault that was found later the line of its key, or of the nearest table above it.
    #[must_use]
    pub fn locate(&self, key: &str, message: String) -> Fault {
        let mut prefix = key;
        let line = loop {
            if let Some(line) = self.lines.get(prefix) {
                break Some(*line);
            }
            match prefix.rfind('.') {
                Some(dot) => prefix = prefix.get(..dot).unwrap_or_default(),
                None => break None,
            }
        };
        Fault { line, key: key.to_owned(), message }
    }
}

fn read(root: &mut Section<'_, '_>) -> Config {
    let monitored_pg_names =
        root.take_checked("monitored_pg_names", check_names).unwrap_or_default();
    let instrumentation_enabled = root.take("instrumentation_enabled").unwrap_or(true);
    let functions = root
        .take_checked("functions", check_functions)
        .unwrap_or_else(|| [Function::Occupancy].into_iter().collect());
    let paths = read_paths(&mut root.section("paths"));
    let process_groups = read_groups(root);
    let events = read_events(root);
    let devices = devices::read(&mut root.section("devices"));
    let telemetry = read_telemetry(&mut root.section("telemetry"), &devices, &paths);
    let export = read_export(&mut root.section("export"));
    let metrics = read_metrics(&mut root.section("metrics"));
    let spool = read_spool(&mut root.section("spool"));
    let forward = forward::read(&mut root.section("forward"));
    Config {
        monitored_pg_names,
        instrumentation_enabled,
        functions,
        paths,
        process_groups,
        events,
        devices,
        telemetry,
        export,
        metrics,
        spool,
        forward,
        lines: KeyLines::new(),
    }
}

fn check_names(names: Vec<String>) -> Result<Vec<String>, String> {
    let mut seen = BTreeSet::new();
    for name in &names {
        if name.trim().is_empty() {
            return Err("a group name is empty".to_owned());
        }
        if !seen.insert(name) {
            return Err(format!("`{name}` is named twice"));
        }
    }
    Ok(names)
}

fn check_functions(names: Vec<String>) -> Result<FunctionSet, String> {
    let known = Function::ALL.map(Function::name).join(", ");
    let functions = names
        .iter()
        .map(|name| {
            Function::from_name(name)
                .ok_or_else(|| format!("`{name}` is no function; there are: {known}"))
        })
        .collect::<Result<FunctionSet, _>>()?;
    if functions.is_empty() {
        return Err(format!(
            "names no function; choose from: {known}; or set instrumentation_enabled = false"
        ));
    }
    Ok(functions)
}

fn read_paths(section: &mut Section<'_, '_>) -> Paths {
    let absolute = |path: PathBuf| {
        if path.is_absolute() {
            Ok(path)
        } else {
            Err(format!(
                "`{}` is relative; a scheduled pass has no folder of its own: write the whole path",
                path.display()
            ))
        }
    };
    let default = Paths::default();
    let paths = Paths {
        runtime_config: section
            .take_checked("runtime_config", absolute)
            .unwrap_or(default.runtime_config),
        measurements: section
            .take_checked("measurements", absolute)
            .unwrap_or(default.measurements),
        containers: section.take_checked("containers", absolute).unwrap_or(default.containers),
        state: section.take_checked("state", absolute).unwrap_or(default.state),
        proc: section.take_checked("proc", absolute).unwrap_or(default.proc),
    };
    // Every user may write to the measurements folder: nothing that must be trusted may lie there.
    let Paths { runtime_config, measurements, containers, state, .. } = &paths;
    for (key, path) in
        [("state", state), ("runtime_config", runtime_config), ("containers", containers)]
    {
        if path.starts_with(measurements) {
            section.note(Some(key), "lies inside paths.measurements, which every monitored user may write to; choose another folder");
        }
    }
    // A container writes to what lies in its folder.
    for (key, path) in
        [("state", state), ("runtime_config", runtime_config), ("measurements", measurements)]
    {
        if path.starts_with(containers) {
            section.note(Some(key), "lies inside paths.containers, whose folders are the containers'; choose another folder");
        }
    }
    paths
}

/// Nobody else may decide what a pass appends to.
fn read_telemetry(section: &mut Section<'_, '_>, devices: &Devices, paths: &Paths) -> Telemetry {
    let telemetry = devices::read_telemetry(section, devices);
    for (key, others) in
        [("paths.measurements", &paths.measurements), ("paths.containers", &paths.containers)]
    {
        if telemetry.output.as_ref().is_some_and(|output| output.starts_with(others)) {
            section.note(
                Some("output"),
                format!("lies inside {key}, where others may write, too; choose another folder"),
            );
        }
    }
    telemetry
}

/// Names are checked together with the conditions, by `groups::Rules::compile`.
fn read_groups(root: &mut Section<'_, '_>) -> Vec<ProcessGroup> {
    let mut groups = Vec::new();
    for mut section in root.sections("process_group") {
        let name = section.take("name").unwrap_or_default();
        let any = section.sections("any").iter_mut().map(read_conditions).collect();
        let all = read_conditions(&mut section);
        groups.push(ProcessGroup { name, all, any });
    }
    groups
}

/// Patterns are compiled by `setup`. A table without one of the needed keys is left out, with a
/// fault.
fn read_events(root: &mut Section<'_, '_>) -> Vec<EventLog> {
    let in_bounds = |kernels: usize| match kernels {
        1..=1_000 => Ok(kernels),
        other => Err(format!("{other} is not between 1 and 1000")),
    };
    let not_blank = |name: String| match name.trim().is_empty() {
        true => Err("a group name is empty".to_owned()),
        false => Ok(name),
    };
    let mut logs = Vec::new();
    for mut section in root.sections("events") {
        for key in ["pattern", "format"] {
            if !section.has(key) {
                section.note(Some(key), "is missing");
            }
        }
        // Even without a pattern, so that `events[n]` stays the place in this list.
        let pattern = section.take("pattern").unwrap_or_default();
        let format = section.take("format").unwrap_or(EventFormat::Gpumon);
        let group = section.take_checked("group", not_blank);
        let kernels = section.take_checked("kernels", in_bounds).unwrap_or(DEFAULT_KERNELS);
        let start = section.take("start").unwrap_or_default();
        logs.push(EventLog { pattern, format, group, kernels, start });
    }
    logs
}

fn read_conditions(section: &mut Section<'_, '_>) -> Conditions {
    Conditions {
        process_name: section.take("process_name"),
        exe: section.take("exe"),
        cmdline: section.take("cmdline"),
        user: section.take("user"),
        systemd_unit: section.take("systemd_unit"),
        cgroup: section.take("cgroup"),
        container: section.take("container"),
        env: section.section("env").into_strings(),
        gpu: section.take("gpu"),
    }
}

fn read_export(section: &mut Section<'_, '_>) -> Export {
    let at_least_a_second = |text: String| {
        let duration = parse_duration(&text)?;
        if duration < Duration::from_millis(100) {
            Err(format!("`{text}` is too short to send anything; use at least \"100ms\""))
        } else {
            Ok(duration)
        }
    };
    Export {
        protocol: section.take("protocol"),
        path: section.take("path"),
        endpoint: section.take("endpoint"),
        temporality: section.take("temporality"),
        preset: section.take("preset"),
        compression: section.take("compression"),
        timeout: section.take_checked("timeout", at_least_a_second),
        budget: section.take_checked("budget", at_least_a_second),
        headers: section.section("headers").into_strings(),
        ca_file: section.take("ca_file"),
        client_certificate_file: section.take("client_certificate_file"),
        client_key_file: section.take("client_key_file"),
    }
}

fn read_metrics(section: &mut Section<'_, '_>) -> Metrics {
    let default = Metrics::default();
    Metrics {
        distributions: section.take("distributions").unwrap_or(default.distributions),
        per_process: section.take("per_process").unwrap_or(default.per_process),
    }
}

fn read_spool(section: &mut Section<'_, '_>) -> SpoolLimits {
    let default = SpoolLimits::default();
    let max_bytes = section.take_checked("max_size", |text: String| match parse_size(&text)? {
        bytes if bytes < SpoolLimits::LEAST_BYTES => {
            Err(format!("`{text}` does not hold one request, 3 MB; use at least \"4MiB\""))
        }
        bytes => Ok(bytes),
    });
    let max_age = section.take_checked("max_age", |text: String| match parse_duration(&text)? {
        age if age < Duration::from_secs(60) => {
            Err(format!("`{text}` is shorter than one pass; use at least \"1m\""))
        }
        age => Ok(age),
    });
    SpoolLimits {
        max_bytes: max_bytes.unwrap_or(default.max_bytes),
        max_age: max_age.unwrap_or(default.max_age),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_a_configuration_with_every_default() {
        let (config, faults) = Config::parse("");
        assert_eq!(faults, []);
        assert!(config.instrumentation_enabled);
        assert_eq!(config.functions.to_string(), "1");
        assert_eq!(config.paths, Paths::default());
    }

    #[test]
    fn every_fault_is_reported_in_one_go_with_key_and_line() {
        let text = r#"
monitored_pg_name = ["trainer"]
instrumentation_enabled = "yes"
functions = ["instructions", "occupation"]

[paths]
state = "state"
measurements = "/m"
runtime_config = "/m/runtime.conf"

[[process_group]]
name = "trainer"
comandline = "x"

[[process_group]]
name = "trainer"

[[process_group]]
exe = 7

[export]
protocol = "carrier pigeon"
timeout = "soon"

[export.headers]
Authorization = 5

[spool]
max_size = "10B"
"#;
        let (_, faults) = Config::parse(text);
        let found: Vec<_> =
            faults.iter().map(|fault| (fault.line.unwrap(), fault.key.as_str())).collect();
        assert_eq!(
            found,
            [
                (2, "monitored_pg_name"),
                (3, "instrumentation_enabled"),
                (4, "functions"),
                (7, "paths.state"),
                (9, "paths.runtime_config"),
                (13, "process_group[0].comandline"),
                (19, "process_group[2].exe"),
                (22, "export.protocol"),
                (23, "export.timeout"),
                (26, "export.headers.Authorization"),
                (29, "spool.max_size"),
            ]
        );
        assert!(faults[0].message.contains("did you mean `monitored_pg_names`?"));
    }

    #[test]
    fn what_is_no_toml_is_reported_with_its_line() {
        let (_, faults) = Config::parse("a = 1\nb = = 2\n");
        assert!(faults.iter().any(|fault| fault.line == Some(2) && fault.message.contains("TOML")));
    }

    #[test]
    fn a_later_fault_takes_the_line_of_its_key_or_of_the_table_above() {
        let (config, _) = Config::parse("[[process_group]]\nname = \"a\"\ncmdline = '('\n");
        assert_eq!(config.locate("process_group[0].cmdline", String::new()).line, Some(3));
        assert_eq!(config.locate("process_group[0].env.X", String::new()).line, Some(1));
    }
}

//! Start-up settings: a file named by `WARPGAUGE_CONF_FILE`, and the environment, which wins.
//!
//! ```text
//! # one setting per line, `key = value` or `key: value`; quotes around a value are optional
//! runtime_config_path = /var/lib/warpgauge/runtime.conf
//! flush_interval: 10
//! ```
//!
//! Every key can be given as `WARPGAUGE_<KEY>` in the environment. A setting that is unknown or
//! wrong is said once in the log and leaves the default in place: a typing error must not stop a
//! training run. `res/warpgauge-instrument.conf` is the commented example.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use warpgauge_wire::limits::{DEFAULT_POLLING_INTERVAL, MIN_POLLING_INTERVAL};
use warpgauge_wire::number::parse_float;

use crate::control::read_bounded;
use crate::events::settings::{EventSettings, Format};

/// More than any settings file needs.
const MAX_SETTINGS_BYTES: u64 = 64 << 10;

/// As many complaints are made; a file of nonsense must not fill the log.
const MAX_COMPLAINTS: usize = 20;

/// How the library was told to behave.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The library's log; none by default.
    pub logfile: Option<PathBuf>,
    /// The runtime configuration to poll.
    pub runtime_config_path: PathBuf,
    /// How often to poll it; at least a second.
    pub runtime_config_polling_interval: Duration,
    /// Where measurement files go.
    pub measurements_output_dir: PathBuf,
    /// How often they are written; at least a second.
    pub flush_interval: Duration,
    /// Log details too.
    pub verbose: bool,
    /// Log onto the host's standard error too.
    pub console_log_enabled: bool,
    /// Where libcupti is, if not at one of the usual places.
    pub cupti_path: Option<PathBuf>,
    /// Instructions are counted once per warp; otherwise once per thread (id 0).
    pub count_warp_level: bool,
    /// Instructions that the predicate switches off are not counted (id 0).
    pub exclude_pred_off: bool,
    /// The log names kernels as the linker sees them; otherwise demangled.
    pub mangled_names: bool,
    /// The part of wall time that windows may take, in percent; 0 for no windows.
    pub window_budget_percent: f64,
    /// The shortest time between two windows.
    pub window_interval: Duration,
    /// The event log.
    pub events: EventSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            logfile: None,
            runtime_config_path: "/var/lib/warpgauge/runtime.conf".into(),
            runtime_config_polling_interval: DEFAULT_POLLING_INTERVAL,
            measurements_output_dir: "/var/lib/warpgauge/measurements".into(),
            flush_interval: Duration::from_secs(10),
            verbose: false,
            console_log_enabled: false,
            cupti_path: None,
            count_warp_level: true,
            exclude_pred_off: false,
            mangled_names: false,
            window_budget_percent: 1.0,
            window_interval: Duration::from_secs(1),
            events: EventSettings::default(),
        }
    }
}

/// Every key, in the order of the example file.
pub const KEYS: [&str; 19] = [
    "logfile",
    "runtime_config_path",
    "runtime_config_polling_interval",
    "measurements_output_dir",
    "flush_interval",
    "verbose",
    "console_log_enabled",
    "cupti_path",
    "count_warp_level",
    "exclude_pred_off",
    "mangled_names",
    "window_budget_percent",
    "window_interval",
    "events",
    "events_folder",
    "events_activity",
    "events_memory_interval",
    "events_file_mib",
    "events_files",
];

/// What was wrong with the settings, ready for the log.
pub type Complaints = Vec<String>;

impl Settings {
    /// The settings of this process.
    #[must_use]
    pub fn of_this_process() -> (Self, Complaints) {
        let environment = |name: &str| std::env::var_os(name);
        let (mut settings, complaints) = match environment("WARPGAUGE_CONF_FILE") {
            None => Self::read(b"", "", environment),
            Some(path) => match read_bounded(Path::new(&path), MAX_SETTINGS_BYTES) {
                Ok(text) => Self::read(&text, &path.to_string_lossy(), environment),
                Err(error) => {
                    let (settings, mut complaints) = Self::read(b"", "", environment);
                    let path = path.display();
                    complaints.insert(0, format!("{path}: {error}; going on without this file"));
                    (settings, complaints)
                }
            },
        };
        settings.make_absolute();
        (settings, complaints)
    }

    /// Paths that hold wherever the program goes: relative ones are of the folder it is in now.
    fn make_absolute(&mut self) {
        let cupti = self.cupti_path.as_mut().filter(|path| path.components().count() > 1);
        let paths = [
            &mut self.runtime_config_path,
            &mut self.measurements_output_dir,
            &mut self.events.folder,
        ];
        for path in paths.into_iter().chain(self.logfile.as_mut()).chain(cupti) {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        }
    }

    /// Reads a settings file's text and the environment. `name` is the file's, for complaints.
    pub fn read(
        text: &[u8],
        name: &str,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> (Self, Complaints) {
        let mut settings = Self::default();
        let mut complaints = Vec::new();
        let text = String::from_utf8_lossy(text);
        for (index, line) in text.lines().enumerate() {
            let content = without_comment(line).trim();
            if content.is_empty() {
                continue;
            }
            let mut complain =
                |what: &dyn Display| complaints.push(format!("{name}:{}: {what}", index + 1));
            match content.split_once(['=', ':']) {
                None => complain(&format_args!("expected key = value, found {content:?}")),
                Some((key, value)) => {
                    if let Err(what) = settings.set(key.trim(), without_quotes(value.trim())) {
                        complain(&what);
                    }
                }
            }
        }
        for key in KEYS {
            let name = format!("WARPGAUGE_{}", key.to_ascii_uppercase());
            let Some(value) = environment(&name) else { continue };
            let set = match value.to_str() {
                Some(value) => settings.set(key, value.trim()),
                None => Err("expected UTF-8".to_owned()),
            };
            if let Err(what) = set {
                complaints.push(format!("{name}: {what}"));
            }
        }
        if settings.exclude_pred_off && settings.count_warp_level {
            complaints.push(
                "exclude_pred_off has no effect: predicates are of threads, and count_warp_level \
                 counts once per warp"
                    .to_owned(),
            );
        }
        let more = complaints.len().saturating_sub(MAX_COMPLAINTS);
        if more > 0 {
            complaints.truncate(MAX_COMPLAINTS);
            complaints.push(format!("and {more} more complaints about settings"));
        }
        (settings, complaints)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "logfile" => self.logfile = path(value),
            "runtime_config_path" => self.runtime_config_path = required_path(value)?,
            "runtime_config_polling_interval" => {
                self.runtime_config_polling_interval = interval(value)?;
            }
            "measurements_output_dir" => self.measurements_output_dir = required_path(value)?,
            "flush_interval" => self.flush_interval = interval(value)?,
            "verbose" => self.verbose = boolean(value)?,
            "console_log_enabled" => self.console_log_enabled = boolean(value)?,
            "cupti_path" => self.cupti_path = path(value),
            "count_warp_level" => self.count_warp_level = boolean(value)?,
            "exclude_pred_off" => self.exclude_pred_off = boolean(value)?,
            "mangled_names" => self.mangled_names = boolean(value)?,
            "window_budget_percent" => self.window_budget_percent = percent(value)?,
            "window_interval" => {
                self.window_interval = seconds_from(SHORTEST_WINDOW_INTERVAL, value)?;
            }
            "events" => self.events.format = Format::of_setting(value)?,
            "events_folder" => self.events.folder = required_path(value)?,
            "events_activity" => self.events.activity = boolean(value)?,
            "events_memory_interval" if value == "0" => {
                self.events.memory_interval = Duration::ZERO;
            }
            "events_memory_interval" => {
                self.events.memory_interval = seconds_from(SHORTEST_MEMORY_INTERVAL, value)?;
            }
            "events_file_mib" => {
                self.events.limits.file_bytes = u64::from(whole(MOST_MIB, value)?) << 20;
            }
            "events_files" => self.events.limits.files = whole(MOST_FILES, value)?,
            _ => return Err(format!("unknown setting {key:?}; known are {}", KEYS.join(", "))),
        }
        Ok(())
    }
}

/// A `#` starts a comment at the beginning of a line or after a blank; paths may contain one.
fn without_comment(line: &str) -> &str {
    let start = line.match_indices('#').map(|(at, _)| at).find(|at| {
        line.get(..*at).is_none_or(|before| before.is_empty() || before.ends_with([' ', '\t']))
    });
    start.and_then(|at| line.get(..at)).unwrap_or(line)
}

fn without_quotes(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}

/// A path; nothing stands for none.
fn path(value: &str) -> Option<PathBuf> {
    (!value.is_empty()).then(|| value.into())
}

fn required_path(value: &str) -> Result<PathBuf, String> {
    path(value).ok_or_else(|| "expected a path".to_owned())
}

/// Windows closer together are a trace, not a sample.
const SHORTEST_WINDOW_INTERVAL: Duration = Duration::from_millis(10);

/// A reading holds up a thread of the program's.
const SHORTEST_MEMORY_INTERVAL: Duration = Duration::from_millis(10);

/// The largest file of an event log, in MiB, and the most of them.
const MOST_MIB: u32 = 1 << 20;
const MOST_FILES: u32 = 1000;

/// A whole number from 1 on.
fn whole(most: u32, value: &str) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("expected a whole number from 1 to {most}, found {value:?}"))
}

fn interval(value: &str) -> Result<Duration, String> {
    seconds_from(MIN_POLLING_INTERVAL, value)
}

/// Seconds, with a fraction if wanted; a day at most, so that no sum overflows.
fn seconds_from(shortest: Duration, value: &str) -> Result<Duration, String> {
    const LONGEST: f64 = 86_400.0;
    let shortest = shortest.as_secs_f64();
    let seconds = parse_float(value.as_bytes()).filter(|seconds| seconds.is_finite());
    let wrong = || format!("expected seconds from {shortest} to 86400, found {value:?}");
    let seconds = seconds.ok_or_else(wrong)?;
    if seconds < shortest || seconds > LONGEST {
        return Err(wrong());
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn percent(value: &str) -> Result<f64, String> {
    parse_float(value.as_bytes())
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| format!("expected a percentage from 0 to 100, found {value:?}"))
}

fn boolean(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err(format!("expected true or false, found {value:?}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str, environment: &[(&str, &str)]) -> (Settings, Complaints) {
        Settings::read(text.as_bytes(), "conf", |name| {
            environment.iter().find(|entry| entry.0 == name).map(|entry| entry.1.into())
        })
    }

    #[test]
    fn a_file_is_read_loosely_and_the_environment_wins() {
        let text = "\
# comment
logfile = \"/tmp/a#b.log\"   # trailing
runtime_config_polling_interval: 1.5
verbose=YES

flush_interval = 3\r
";
        let (settings, complaints) =
            read(text, &[("WARPGAUGE_FLUSH_INTERVAL", "2"), ("WARPGAUGE_VERBOSE", "0")]);
        assert_eq!(complaints, Complaints::new());
        assert_eq!(settings.logfile, Some("/tmp/a#b.log".into()));
        assert_eq!(settings.runtime_config_polling_interval, Duration::from_millis(1500));
        assert_eq!(settings.flush_interval, Duration::from_secs(2));
        assert!(!settings.verbose);
    }

    #[test]
    fn every_fault_is_named_with_its_place_and_leaves_the_default() {
        let (settings, complaints) = read(
            "flush_intervall = 3\nflush_interval = 0.5\nverbose = maybe\nnonsense\n",
            &[("WARPGAUGE_RUNTIME_CONFIG_POLLING_INTERVAL", "inf")],
        );
        assert_eq!(settings, Settings::default());
        let places: Vec<&str> = complaints.iter().filter_map(|c| c.split(": ").next()).collect();
        assert_eq!(
            places,
            ["conf:1", "conf:2", "conf:3", "conf:4", "WARPGAUGE_RUNTIME_CONFIG_POLLING_INTERVAL"]
        );
    }

    #[test]
    fn a_file_of_nonsense_gives_few_complaints() {
        let (settings, complaints) = read(&"x\n".repeat(30_000), &[]);
        assert_eq!((settings, complaints.len()), (Settings::default(), MAX_COMPLAINTS + 1));
        assert_eq!(complaints.last().unwrap(), "and 29980 more complaints about settings");
    }

    #[test]
    fn predicates_without_threads_are_a_misunderstanding() {
        let (_, complaints) = read("exclude_pred_off = true", &[]);
        assert!(complaints[0].contains("count_warp_level"), "{complaints:?}");
        let both = "exclude_pred_off = true\ncount_warp_level = false";
        assert_eq!(read(both, &[]).1, Complaints::new());
    }

    #[test]
    fn every_key_changes_a_setting_of_its_own() {
        let changed: Vec<Settings> = KEYS
            .iter()
            .map(|key| {
                let mut settings = Settings::default();
                let value = match *key {
                    "count_warp_level" | "events_activity" => "false",
                    "events" => "gpumon",
                    "events_file_mib" | "events_files" => "7",
                    key if key.ends_with("interval") || key.ends_with("percent") => "7",
                    _ => "yes",
                };
                settings.set(key, value).unwrap();
                settings
            })
            .collect();
        for (index, settings) in changed.iter().enumerate() {
            assert_ne!(*settings, Settings::default(), "{}", KEYS[index]);
            assert!(!changed[..index].contains(settings), "{}", KEYS[index]);
        }
    }

    #[test]
    fn the_example_file_says_the_defaults() {
        let example = include_str!("../../res/warpgauge-instrument.conf");
        let (settings, complaints) = read(example, &[]);
        assert_eq!(complaints, Complaints::new());
        assert_eq!(settings, Settings::default());
        for key in KEYS {
            assert!(example.contains(&format!("{key} =")), "{key}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: Vec<u8>) {
            let _settings = Settings::read(&text, "conf", |_| None);
        }
    }
}

//! How a process was started: what loads the library into it, and what the library was told.
//!
//! The environment is the one that the program was started with; what it has set since for itself
//! cannot be seen from outside.

use std::path::{Path, PathBuf};
use std::time::Duration;

use warpgauge_wire::limits::{DEFAULT_POLLING_INTERVAL, MIN_POLLING_INTERVAL};
use warpgauge_wire::number::parse_float;

use crate::config::Paths;
use crate::procfs::nul_separated::variable;

/// The file name of our library.
pub const LIBRARY: &str = "libwarpgauge_instrument.so";

/// The variable that names the library which the CUDA driver loads inside `cuInit`.
pub const INJECTION: &str = "CUDA_INJECTION64_PATH";

/// How often the library writes its files unless told otherwise.
const DEFAULT_FLUSH_INTERVAL: Duration = Duration::from_secs(10);

/// The longest interval that the library takes.
const LONGEST_INTERVAL: Duration = Duration::from_secs(86_400);

/// The variables that matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Startup {
    /// `CUDA_INJECTION64_PATH`
    pub injection: Option<PathBuf>,
    /// The libraries of `LD_PRELOAD`.
    pub preloads: Vec<PathBuf>,
    /// `WARPGAUGE_CONF_FILE`: the library's settings file.
    pub settings_file: Option<PathBuf>,
    /// `WARPGAUGE_RUNTIME_CONFIG_PATH`
    runtime_config: Option<String>,
    /// `WARPGAUGE_MEASUREMENTS_OUTPUT_DIR`
    measurements: Option<String>,
    /// `WARPGAUGE_RUNTIME_CONFIG_POLLING_INTERVAL`
    polling_interval: Option<String>,
    /// `WARPGAUGE_FLUSH_INTERVAL`
    flush_interval: Option<String>,
    /// `WARPGAUGE_LOGFILE`
    logfile: Option<String>,
}

impl Startup {
    /// Takes an `environ` apart.
    #[must_use]
    pub fn parse(environ: &[u8]) -> Self {
        let text = |name: &str| {
            let value = variable(environ, name)?;
            (!value.is_empty()).then(|| String::from_utf8_lossy(value).into_owned())
        };
        let preloads = text("LD_PRELOAD").unwrap_or_default();
        Self {
            injection: text(INJECTION).map(PathBuf::from),
            // Separated by colons or blanks (ld.so(8)).
            preloads: preloads
                .split([':', ' '])
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
                .collect(),
            settings_file: text("WARPGAUGE_CONF_FILE").map(PathBuf::from),
            runtime_config: text("WARPGAUGE_RUNTIME_CONFIG_PATH"),
            measurements: text("WARPGAUGE_MEASUREMENTS_OUTPUT_DIR"),
            polling_interval: text("WARPGAUGE_RUNTIME_CONFIG_POLLING_INTERVAL"),
            flush_interval: text("WARPGAUGE_FLUSH_INTERVAL"),
            logfile: text("WARPGAUGE_LOGFILE"),
        }
    }

    /// Whether the library is preloaded, which does as well as the injection variable.
    #[must_use]
    pub fn preloads_library(&self) -> bool {
        self.preloads.iter().any(|path| path.file_name().is_some_and(|name| name == LIBRARY))
    }
}

/// The library's settings as far as they matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The runtime configuration that it polls.
    pub runtime_config: PathBuf,
    /// Who says so: a variable, a settings file, or nobody.
    pub runtime_config_by: Source,
    /// Where its measurement files go.
    pub measurements: PathBuf,
    /// As [`Self::runtime_config_by`].
    pub measurements_by: Source,
    /// How often it looks at the runtime configuration.
    pub polling_interval: Duration,
    /// How often it writes its files.
    pub flush_interval: Duration,
    /// Its log.
    pub logfile: Option<PathBuf>,
}

/// Who says where a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Nobody: the library's own default.
    Default,
    /// The settings file.
    File,
    /// The environment.
    Environment,
}

impl Settings {
    /// The settings of a process: its settings file's text, then its environment, which wins. What
    /// the library would not understand leaves the default in place, as it does there.
    #[must_use]
    pub fn of(startup: &Startup, file: &[u8]) -> Self {
        let defaults = Paths::default();
        let mut settings = Self {
            runtime_config: defaults.runtime_config,
            runtime_config_by: Source::Default,
            measurements: defaults.measurements,
            measurements_by: Source::Default,
            polling_interval: DEFAULT_POLLING_INTERVAL,
            flush_interval: DEFAULT_FLUSH_INTERVAL,
            logfile: None,
        };
        let file = String::from_utf8_lossy(file);
        for line in file.lines() {
            let Some((key, value)) = without_comment(line).split_once(['=', ':']) else { continue };
            settings.set(key.trim(), without_quotes(value.trim()), Source::File);
        }
        let variables = [
            ("runtime_config_path", &startup.runtime_config),
            ("measurements_output_dir", &startup.measurements),
            ("runtime_config_polling_interval", &startup.polling_interval),
            ("flush_interval", &startup.flush_interval),
            ("logfile", &startup.logfile),
        ];
        for (key, value) in variables {
            if let Some(value) = value {
                settings.set(key, value.trim(), Source::Environment);
            }
        }
        settings
    }

    fn set(&mut self, key: &str, value: &str, source: Source) {
        match key {
            "runtime_config_path" if !value.is_empty() => {
                (self.runtime_config, self.runtime_config_by) = (value.into(), source);
            }
            "measurements_output_dir" if !value.is_empty() => {
                (self.measurements, self.measurements_by) = (value.into(), source);
            }
            "runtime_config_polling_interval" => set_interval(&mut self.polling_interval, value),
            "flush_interval" => set_interval(&mut self.flush_interval, value),
            "logfile" => self.logfile = (!value.is_empty()).then(|| value.into()),
            _ => {}
        }
    }
}

/// Seconds; what is out of bounds is refused there too.
fn set_interval(interval: &mut Duration, value: &str) {
    let bounds = MIN_POLLING_INTERVAL.as_secs_f64()..=LONGEST_INTERVAL.as_secs_f64();
    if let Some(seconds) = parse_float(value.as_bytes()).filter(|seconds| bounds.contains(seconds))
    {
        *interval = Duration::from_secs_f64(seconds);
    }
}

/// A `#` starts a comment at the beginning of a line or after a blank; paths may contain one.
fn without_comment(line: &str) -> &str {
    let mut previous = ' ';
    for (at, letter) in line.char_indices() {
        if letter == '#' && matches!(previous, ' ' | '\t') {
            return line.get(..at).unwrap_or_default();
        }
        previous = letter;
    }
    line
}

fn without_quotes(value: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value)
}

/// Other tools that want the same place, by parts of their libraries' file names. NVBit tools are
/// called what their authors like; these are the ones that come with it.
const OTHER_TOOLS: [(&str, &str); 11] = [
    ("libtoolsinjection", "Nsight Systems (nsys)"),
    ("libcuda-injection", "Nsight Compute (ncu)"),
    ("libtreelauncher", "Nsight Compute (ncu)"),
    ("libsanitizer", "Compute Sanitizer"),
    ("nvbit", "an NVBit tool"),
    ("opcode_hist", "an NVBit tool"),
    ("instr_count", "an NVBit tool"),
    ("mem_trace", "an NVBit tool"),
    ("mov_replace", "an NVBit tool"),
    ("record_reg_vals", "an NVBit tool"),
    ("libparcagpu", "parcagpu"),
];

/// The tool that a library belongs to, told by its file name.
#[must_use]
pub fn other_tool(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    OTHER_TOOLS.iter().find(|(part, _)| name.contains(part)).map(|(_, tool)| *tool)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_environment_wins_over_the_settings_file() {
        let environ = b"A=1\0WARPGAUGE_RUNTIME_CONFIG_PATH=/e/runtime.conf\0LD_PRELOAD=/a.so:/b.so /x/libwarpgauge_instrument.so\0";
        let startup = Startup::parse(environ);
        assert!(startup.preloads_library());
        assert_eq!(startup.preloads.len(), 3);
        let file = b"# mine\nruntime_config_path = /f/runtime.conf\nmeasurements_output_dir: '/f/m#1' # here\nflush_interval = 2.5\nruntime_config_polling_interval = 0.1\n";
        let settings = Settings::of(&startup, file);
        assert_eq!(settings.runtime_config, Path::new("/e/runtime.conf"));
        assert_eq!(settings.runtime_config_by, Source::Environment);
        assert_eq!(settings.measurements, Path::new("/f/m#1"));
        assert_eq!(settings.measurements_by, Source::File);
        assert_eq!(settings.flush_interval, Duration::from_millis(2_500));
        assert_eq!(settings.polling_interval, DEFAULT_POLLING_INTERVAL, "too short: refused");
    }

    #[test]
    fn tools_are_told_by_their_libraries() {
        let tool = |path: &str| other_tool(Path::new(path));
        assert_eq!(tool("/opt/nsys/libToolsInjection64.so"), Some("Nsight Systems (nsys)"));
        assert_eq!(tool("/home/me/opcode_hist.so"), Some("an NVBit tool"));
        assert_eq!(tool("/lib/libwarpgauge_instrument.so"), None);
    }

    proptest! {
        /// The library is the judge of its own settings.
        #[test]
        fn a_settings_file_means_what_it_means_to_the_library(
            text in "((runtime_config_path|measurements_output_dir|flush_interval|runtime_config_polling_interval|logfile)[ \t]?[=:][ \"'/a-c0-9.# \t]{0,12}\r?\n){0,6}"
        ) {
            let (library, _) = warpgauge_instrument::settings::Settings::read(text.as_bytes(), "", |_| None);
            let ours = Settings::of(&Startup::default(), text.as_bytes());
            prop_assert_eq!(ours.runtime_config, library.runtime_config_path);
            prop_assert_eq!(ours.measurements, library.measurements_output_dir);
            prop_assert_eq!(ours.polling_interval, library.runtime_config_polling_interval);
            prop_assert_eq!(ours.flush_interval, library.flush_interval);
            prop_assert_eq!(ours.logfile, library.logfile);
        }
    }
}

//! From the configuration file and the environment to everything that a command works with; or to
//! all that is wrong with them, in one go.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::config::document::Fault;
use crate::config::events::EventStart;
use crate::follow;
use crate::forward;
use crate::groups::Rules;
use crate::otlp::attribute_list;
use crate::otlp::resource::Host;
use crate::otlp::settings::{Finding, Settings};
use crate::procfs::ProcFs;

/// Looks an environment variable up; a parameter, so that every test owns its world.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What every command works with.
#[derive(Debug)]
pub struct Setup {
    /// The file that was read.
    pub path: PathBuf,
    /// What it says.
    pub config: Config,
    /// Its process groups, compiled.
    pub rules: Rules,
    /// The patterns of its event logs, compiled, in the same order.
    pub event_rules: Vec<follow::Rule>,
    /// The processes of this machine.
    pub proc: ProcFs,
    /// Our own pid as that `/proc` numbers it: a pass never lists itself.
    pub own_pid: u32,
}

/// What a pass needs besides: the way out.
#[derive(Debug)]
pub struct Export {
    /// Where to and how.
    pub settings: Settings,
    /// Who speaks.
    pub host: Host,
    /// Where event logs go; `None` where they go nowhere.
    pub forward: Option<forward::settings::Settings>,
}

/// Why a command cannot start.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The file could not be read.
    #[error("{path}: {source}; name another file with --config, or start from res/warpgauge.toml")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The configuration says something impossible; all of it is listed, a line each.
    #[error("{}", listed(path, faults))]
    Faults {
        /// The file.
        path: PathBuf,
        /// What is wrong, in the order of the lines.
        faults: Vec<Fault>,
    },
}

fn listed(path: &Path, faults: &[Fault]) -> String {
    let lines: Vec<_> = faults.iter().map(|fault| shown(path, fault)).collect();
    lines.join("\n")
}

/// `file:line: key: what is wrong`, the form that editors and people jump to.
#[must_use]
pub fn shown(path: &Path, fault: &Fault) -> String {
    let line = fault.line.map_or_else(String::new, |line| format!("{line}:"));
    let words = Fault { line: None, ..fault.clone() };
    format!("{}:{line} {words}", path.display())
}

impl Setup {
    /// Reads the configuration for the commands that send nothing.
    ///
    /// # Errors
    /// [`SetupError`], with every fault of the file and of its process groups.
    pub fn load(path: &Path) -> Result<Self, SetupError> {
        let (config, mut faults) = parse(path)?;
        let event_rules = compile_events(&config, &mut faults);
        match compile(&config, &mut faults) {
            Some(rules) if faults.is_empty() => Ok(Self::new(path, config, rules, event_rules)),
            _ => Err(SetupError::Faults { path: path.to_owned(), faults: in_order(faults) }),
        }
    }

    /// Reads the configuration and the way out.
    ///
    /// # Errors
    /// [`SetupError`], with every fault of the file, of its process groups and of the export.
    pub fn load_with_export(
        path: &Path,
        environment: Environment<'_>,
    ) -> Result<(Self, Export), SetupError> {
        let (config, mut faults) = parse(path)?;
        let event_rules = compile_events(&config, &mut faults);
        let rules = compile(&config, &mut faults);
        let mut note = |findings: Vec<Finding>| {
            for finding in findings {
                let message = format!("{}; {}", finding.problem, finding.remedy);
                faults.push(config.locate(&finding.key, message));
            }
        };
        let settings = Settings::resolve(&config.export, environment).map_err(&mut note).ok();
        let forward = forward::settings::Settings::resolve(&config.forward).map_err(&mut note).ok();
        match (rules, settings, forward) {
            (Some(rules), Some(settings), Some(forward)) if faults.is_empty() => {
                let setup = Self::new(path, config, rules, event_rules);
                let host = host(&setup.proc, environment);
                Ok((setup, Export { settings, host, forward }))
            }
            _ => Err(SetupError::Faults { path: path.to_owned(), faults: in_order(faults) }),
        }
    }

    fn new(path: &Path, config: Config, rules: Rules, event_rules: Vec<follow::Rule>) -> Self {
        let proc = ProcFs::new(config.paths.proc.clone());
        let own_pid = proc.own_pid().unwrap_or_else(std::process::id);
        Self { path: path.to_owned(), config, rules, event_rules, proc, own_pid }
    }
}

fn parse(path: &Path) -> Result<(Config, Vec<Fault>), SetupError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| SetupError::Unreadable { path: path.to_owned(), source })?;
    Ok(Config::parse(&text))
}

fn compile(config: &Config, faults: &mut Vec<Fault>) -> Option<Rules> {
    match Rules::compile(&config.process_groups, &config.monitored_pg_names) {
        Ok(rules) => Some(rules),
        Err(found) => {
            for found in found {
                let fault = config.locate(&found.key(), found.problem.to_string());
                // A value of the wrong type reads as a missing one; it is said once.
                if faults.iter().all(|known| known.key != fault.key) {
                    faults.push(fault);
                }
            }
            None
        }
    }
}

fn compile_events(config: &Config, faults: &mut Vec<Fault>) -> Vec<follow::Rule> {
    let mut rules = Vec::new();
    for (index, log) in config.events.iter().enumerate() {
        match follow::Rule::new(&log.pattern) {
            Ok(rule) => rules.push(rule.starting(match log.start {
                EventStart::Start => follow::Start::Beginning,
                EventStart::End => follow::Start::End,
            })),
            Err(found) => {
                let fault = config.locate(&format!("events[{index}].pattern"), found.to_string());
                // A missing one is said already.
                if faults.iter().all(|known| known.key != fault.key) {
                    faults.push(fault);
                }
            }
        }
    }
    rules
}

fn in_order(mut faults: Vec<Fault>) -> Vec<Fault> {
    faults.sort_by_key(|fault| fault.line.unwrap_or(usize::MAX));
    faults
}

fn host(proc: &ProcFs, environment: Environment<'_>) -> Host {
    let name = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned());
    let attributes = environment("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let attributes = attribute_list::parse(&attributes).unwrap_or_else(|fault| {
        tracing::warn!("OTEL_RESOURCE_ATTRIBUTES: {fault}; it is not used");
        Vec::new()
    });
    Host {
        name: name.unwrap_or_else(|_| "unknown".to_owned()),
        // Without it two boots cannot be told apart, which start times nearly always do.
        boot_id: proc.boot_id().unwrap_or_default(),
        attributes,
    }
}

//! Which runtime configuration is meant: the machine's, or a container's with the pids inside.

use std::path::PathBuf;

use anyhow::bail;

use crate::containers::{Container, Containers, RUNTIME_CONFIG};
use crate::control::{RuntimeConfig, write_if_changed};
use crate::groups::Process;
use crate::pass::{place_of, process_in};
use crate::setup::Setup;

/// A runtime configuration to be shown or changed.
pub(super) struct Target<'s> {
    setup: &'s Setup,
    containers: Containers,
    container: Option<&'s str>,
}

/// Why there is not exactly one process of a pid.
pub(super) enum NoProcess {
    /// None runs under it.
    NotRunning,
    /// In words.
    Unknown(String),
}

impl<'s> Target<'s> {
    /// The container's of that name, or the machine's.
    pub(super) fn new(setup: &'s Setup, container: Option<&'s str>) -> Result<Self, String> {
        let containers = Containers::look(&setup.config.paths.containers);
        match container {
            Some(name) if !containers.names().contains(name) => {
                let names: Vec<_> =
                    containers.names().iter().take(10).map(String::as_str).collect();
                let path = containers.path().display();
                Err(match names.is_empty() {
                    true => format!("{path} holds no container's folder"),
                    false => {
                        format!("{path} holds no folder {name}; it holds {}", names.join(", "))
                    }
                })
            }
            _ => Ok(Self { setup, containers, container }),
        }
    }

    /// The container folder's name.
    pub(super) fn folder(&self) -> Option<&'s str> {
        self.container
    }

    /// The file, for people.
    pub(super) fn path(&self) -> PathBuf {
        match self.container {
            Some(name) => self.containers.path().join(name).join(RUNTIME_CONFIG),
            None => self.setup.config.paths.runtime_config.clone(),
        }
    }

    /// Reads it.
    pub(super) fn load(&self) -> anyhow::Result<(RuntimeConfig, Vec<u8>)> {
        let Some(name) = self.container else {
            return Ok(RuntimeConfig::load(&self.setup.config.paths.runtime_config)?);
        };
        let content = self.open(name)?.read_runtime_config()?.unwrap_or_default();
        Ok((RuntimeConfig::parse(&content), content))
    }

    /// Writes it, if there is anything new.
    pub(super) fn write(&self, old: &[u8], new: &[u8]) -> anyhow::Result<()> {
        match self.container {
            Some(_) if old == new => {}
            Some(name) => self.open(name)?.write_runtime_config(new)?,
            None => {
                write_if_changed(&self.setup.config.paths.runtime_config, old, new)?;
            }
        }
        Ok(())
    }

    /// The process that a pid means in this file.
    pub(super) fn look_up(&self, pid: u32) -> Result<Process, NoProcess> {
        let Some(name) = self.container else {
            return match Process::look_up(&self.setup.proc, pid) {
                Ok(Some(process)) => Ok(process),
                Ok(None) => Err(NoProcess::NotRunning),
                Err(cause) => Err(NoProcess::Unknown(cause.to_string())),
            };
        };
        process_in(self.setup, &self.containers, name, pid).map_err(|count| match count {
            0 => NoProcess::NotRunning,
            _ => NoProcess::Unknown(format!(
                "{count} processes have it, each in a pid namespace of its own"
            )),
        })
    }

    /// The container folder that a process is served by, where that is not this one.
    pub(super) fn elsewhere(&self, process: &Process) -> Option<&str> {
        let folder = self.containers.folder_of(&place_of(process))?;
        (Some(folder) != self.container).then_some(folder)
    }

    fn open(&self, name: &str) -> anyhow::Result<Container> {
        match self.containers.open(name)? {
            Some(container) => Ok(container),
            None => bail!("{} is gone", self.containers.path().join(name).display()),
        }
    }
}

//! A world for one test: its folders, its runtime configuration, its NVIDIA libraries.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::{NamedTempFile, TempDir};

use crate::artifacts::Artifacts;
use crate::host::Host;
use crate::published::Published;

/// A temporary folder.
///
/// ```text
/// runtime.conf          which processes are measured
/// measurements/         what the instrument publishes
/// instrument.log        what it says
/// cupti.log             what the stand-in CUPTI was asked
/// lib/libcuda.so.1      the stand-in driver
/// lib/libcupti.so.13    the stand-in CUPTI
/// ```
#[derive(Debug)]
pub struct World {
    folder: TempDir,
    artifacts: &'static Artifacts,
}

impl World {
    /// A world in which nothing is listed yet.
    ///
    /// # Errors
    /// What could not be built or created.
    pub fn new() -> Result<Self> {
        let artifacts = Artifacts::build()?;
        let world = Self { folder: tempfile::tempdir()?, artifacts };
        fs::create_dir(world.measurements())?;
        fs::create_dir(world.libraries())?;
        // Copies, not links: /proc/<pid>/maps says the name behind a link.
        fs::copy(&artifacts.standin_cuda, world.libraries().join("libcuda.so.1"))?;
        fs::copy(&artifacts.standin_cupti, world.libcupti())?;
        world.list(&[])?;
        Ok(world)
    }

    /// What is built.
    #[must_use]
    pub fn artifacts(&self) -> &'static Artifacts {
        self.artifacts
    }

    /// A file or folder of this world.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The runtime configuration.
    #[must_use]
    pub fn runtime_config(&self) -> PathBuf {
        self.path("runtime.conf")
    }

    /// The folder for measurement files.
    #[must_use]
    pub fn measurements(&self) -> PathBuf {
        self.path("measurements")
    }

    /// The folder in which programs find NVIDIA's libraries.
    #[must_use]
    pub fn libraries(&self) -> PathBuf {
        self.path("lib")
    }

    /// Where programs find CUPTI.
    #[must_use]
    pub fn libcupti(&self) -> PathBuf {
        self.libraries().join("libcupti.so.13")
    }

    /// Lists processes with their function ids, such as `"0,1"`, and no others; as the extension
    /// does it, in one rename.
    ///
    /// # Errors
    /// What the file system says.
    pub fn list(&self, plan: &[(u32, &str)]) -> Result<()> {
        let lines: String =
            plan.iter().map(|(pid, functions)| format!("{pid}:{functions}\n")).collect();
        self.write_runtime_config(lines.as_bytes())
    }

    /// Replaces the runtime configuration by any bytes.
    ///
    /// # Errors
    /// What the file system says.
    pub fn write_runtime_config(&self, bytes: &[u8]) -> Result<()> {
        let mut file = NamedTempFile::new_in(self.folder.path())?;
        file.write_all(bytes)?;
        file.persist(self.runtime_config())?;
        Ok(())
    }

    /// What the health file of a process says; `None` while there is none.
    ///
    /// # Errors
    /// What the file system says, or that it is no JSON object.
    pub fn health_of(&self, pid: u32) -> Result<Option<serde_json::Value>> {
        match fs::read(self.measurements().join(format!(".{pid}.health"))) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a script for the stand-in driver and gives its path.
    ///
    /// # Errors
    /// What the file system says.
    pub fn script(&self, text: &str) -> Result<PathBuf> {
        let path = self.path("device");
        fs::File::create(&path)?.write_all(text.as_bytes())?;
        Ok(path)
    }

    /// A host program in this world, with the instrument injected.
    #[must_use]
    pub fn host(&self, arguments: &[&str]) -> Host<'_> {
        Host::new(self, arguments)
    }

    /// What the instrument in a process has published so far.
    ///
    /// # Errors
    /// The first file or line that is against the contract.
    pub fn published_by(&self, pid: u32) -> Result<Published> {
        Published::read(&self.measurements(), pid)
    }

    /// The lines of the instrument's log, without time and pid; empty where there is none.
    ///
    /// # Errors
    /// What the file system says.
    pub fn log(&self) -> Result<Vec<String>> {
        let lines = lines_of(&self.path("instrument.log"))?;
        Ok(lines.iter().map(|line| line.splitn(3, ' ').skip(2).collect()).collect())
    }

    /// What the stand-in CUPTI was asked, in order.
    ///
    /// # Errors
    /// What the file system says.
    pub fn cupti_log(&self) -> Result<Vec<String>> {
        lines_of(&self.path("cupti.log"))
    }

    /// Makes one function of the stand-in CUPTI impossible to find, by renaming it in the file.
    ///
    /// # Errors
    /// If there is no such function.
    pub fn hide_from_cupti(&self, function: &str) -> Result<()> {
        let mut bytes = fs::read(self.libcupti())?;
        let name: Vec<u8> = function.bytes().chain([0]).collect();
        let places: Vec<usize> = bytes
            .windows(name.len())
            .enumerate()
            .filter(|(_, window)| *window == name)
            .map(|(place, _)| place)
            .collect();
        places.first().with_context(|| format!("the stand-in has no {function}"))?;
        for place in places {
            if let Some(first) = bytes.get_mut(place) {
                *first = b'_';
            }
        }
        let mut file = NamedTempFile::new_in(self.libraries())?;
        file.write_all(&bytes)?;
        file.persist(self.libcupti())?;
        Ok(())
    }
}

fn lines_of(path: &Path) -> Result<Vec<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

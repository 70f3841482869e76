//! What the workspace builds, by exact path.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

/// The built programs and libraries.
#[derive(Debug, Clone)]
pub struct Artifacts {
    /// The library to be injected.
    pub instrument: PathBuf,
    /// The stand-in for `libcuda.so.1`.
    pub standin_cuda: PathBuf,
    /// The stand-in for `libcupti.so.13`.
    pub standin_cupti: PathBuf,
    /// The program that launches kernels.
    pub host: PathBuf,
    /// The extension's program; none while the workspace has no such binary.
    pub warpgauge: Option<PathBuf>,
}

impl Artifacts {
    /// Builds the workspace, once in this process and in the profile of this process, and says
    /// where everything is.
    ///
    /// # Errors
    /// What the build says, or what it did not build.
    pub fn build() -> Result<&'static Self> {
        static BUILT: OnceLock<Result<Artifacts, String>> = OnceLock::new();
        BUILT
            .get_or_init(|| build_workspace().map_err(|error| format!("{error:#}")))
            .as_ref()
            .map_err(|error| anyhow!("{error}"))
    }
}

fn build_workspace() -> Result<Artifacts> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml");
    let mut command = Command::new(cargo);
    command.args(["build", "--workspace", "--message-format=json-render-diagnostics"]);
    command.arg("--manifest-path").arg(manifest);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command.stderr(Stdio::inherit()).output().context("cargo cannot be started")?;
    ensure!(output.status.success(), "cargo build --workspace failed: {}", output.status);
    let messages: Vec<Value> = output
        .stdout
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect();
    let required = |found: Option<PathBuf>, name: &str| {
        found.with_context(|| format!("cargo build --workspace built no {name}"))
    };
    Ok(Artifacts {
        instrument: required(library(&messages, "warpgauge_instrument"), "instrument")?,
        standin_cuda: required(library(&messages, "standin_cuda"), "stand-in for libcuda")?,
        standin_cupti: required(library(&messages, "standin_cupti"), "stand-in for libcupti")?,
        host: required(program(&messages, "warpgauge-host"), "host program")?,
        warpgauge: program(&messages, "warpgauge"),
    })
}

fn artifacts_named<'a>(messages: &'a [Value], name: &str) -> impl Iterator<Item = &'a Value> {
    let text = |message: &'a Value, pointer| message.pointer(pointer).and_then(Value::as_str);
    messages
        .iter()
        .filter(move |message| text(message, "/reason") == Some("compiler-artifact"))
        .filter(move |message| text(message, "/target/name") == Some(name))
}

/// The shared library of a crate.
fn library(messages: &[Value], name: &str) -> Option<PathBuf> {
    artifacts_named(messages, name)
        .filter_map(|message| message.get("filenames")?.as_array())
        .flatten()
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .find(|file| file.extension().is_some_and(|extension| extension == "so"))
}

/// The executable of a binary target.
fn program(messages: &[Value], name: &str) -> Option<PathBuf> {
    artifacts_named(messages, name)
        .find_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
}

//! Event logs for tests, and the real binary to work on them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A finished command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Each line of the output as JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The output as one JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

/// `warpgauge events` with these arguments.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpgauge"));
    command.arg("events").args(arguments);
    command
}

/// Runs `warpgauge events` to its end.
pub(crate) fn events(arguments: &[&str]) -> Ran {
    events_in(Path::new("."), arguments)
}

/// The same in a folder.
pub(crate) fn events_in(folder: &Path, arguments: &[&str]) -> Ran {
    ran(command(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap())
}

/// The same with something on standard input.
pub(crate) fn events_with_input(arguments: &[&str], input: &[u8]) -> Ran {
    let mut command = command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    ran(child.wait_with_output().unwrap())
}

fn ran(output: Output) -> Ran {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// A file of the project's fixtures.
pub(crate) fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name);
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

/// Writes a file and gives its path.
pub(crate) fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(content.as_ref()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The names in a folder, in order.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = folder.read_dir().unwrap().map(name).collect();
    names.sort();
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A gpumon log of nested scopes, of which every format can hold everything.
pub(crate) fn scopes_of_gpumon() -> String {
    let mut log = line(r#"{"type":"init","pid":7,"app":"trainer","ts_ns":1700000000000000000}"#);
    for step in 0..3_i64 {
        let at = |offset: i64| 1_700_000_000_000_000_000 + step * 1_000 + offset;
        for (kind, name, from, to) in [
            ("scope_begin", "step", 10, 10),
            ("scope_begin", "load", 20, 20),
            ("scope_end", "load", 20, 40),
            ("scope_end", "step", 10, 100),
        ] {
            let head = format!(r#"{{"type":"{kind}","pid":7,"app":"trainer","name":"{name}""#);
            let times = match kind {
                "scope_begin" => format!(r#""ts_ns":{}"#, at(from)),
                _ => format!(
                    r#""ts_start_ns":{},"ts_end_ns":{},"duration_ns":{}"#,
                    at(from),
                    at(to),
                    to - from
                ),
            };
            log += &line(&format!("{head},{times}}}"));
        }
    }
    log + &line(r#"{"type":"shutdown","pid":7,"app":"trainer","ts_ns":1700000000000009000}"#)
}

/// A gpumon log with memory and kernels.
pub(crate) fn kernels_of_gpumon() -> String {
    let kernel = |start: i64| {
        line(&format!(
            r#"{{"type":"kernel","pid":7,"app":"trainer","kernel":"gemm<int>","ts_start_ns":{start},"ts_end_ns":{},"duration_ns":5,"grid":[2,1,1],"block":[64,1,1],"shared_mem_bytes":0,"cuda_error":"cudaSuccess","tag":"t"}}"#,
            start + 5
        ))
    };
    let memory = r#"{"type":"scope_sample","pid":7,"app":"trainer","name":"step","ts_ns":30,"memory":[{"device":0,"used_mib":6,"free_mib":2,"total_mib":8}]}"#;
    line(r#"{"type":"scope_begin","pid":7,"app":"trainer","name":"step","ts_ns":1}"#)
        + &kernel(10)
        + &line(memory)
        + &kernel(40)
}

/// A session of GPU Flight's old form: kernels, copies, samples of the system.
pub(crate) fn fat_session(kernels: u32) -> String {
    let head = r#""pid":7,"app":"trainer","session_id":"s/1""#;
    let mut log = line(&format!(r#"{{"type":"init",{head},"ts_ns":1700000000000000000}}"#));
    for number in 0..i64::from(kernels) {
        let start = 1_700_000_000_000_000_100 + number * 100;
        log += &line(&format!(
            r#"{{"type":"kernel_event",{head},"name":"kernel_{}","has_details":true,"device_id":0,"stream_id":3,"start_ns":{start},"end_ns":{},"grid":"(2,1,1)","block":"(64,1,1)","dyn_shared_bytes":0,"num_regs":32,"corr_id":{number},"occupancy":0.5,"user_scope":"step|load"}}"#,
            number % 3,
            start + 10 + number % 3
        ));
    }
    log += &line(&format!(
        r#"{{"type":"memcpy_event",{head},"start_ns":1700000000000000500,"end_ns":1700000000000000600,"corr_id":9,"bytes":4096,"copy_kind":"HtoD"}}"#
    ));
    log += &line(&format!(
        r#"{{"type":"system_sample",{head},"ts_ns":1700000000000000700,"host":{{"cpu_pct":7.12,"ram_used_mib":1,"ram_total_mib":2}},"devices":[{{"id":0,"used_mib":5,"free_mib":3,"total_mib":8}}]}}"#
    ));
    log + &line(&format!(r#"{{"type":"shutdown",{head},"ts_ns":1700000000900000000}}"#))
}

fn line(text: &str) -> String {
    format!("{text}\n")
}

/// A folder of one's own.
pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}

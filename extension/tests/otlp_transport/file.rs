//! The destination `file`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use prost::Message;
use warpgauge::config::export::Export;
use warpgauge::otlp::sender::{self, Outcome};

use crate::requests::{assert_misconfigured, assert_refused, request, send, settings};

fn to(path: PathBuf) -> Export {
    Export { path: Some(path), ..Export::default() }
}

fn decode(line: &str) -> ExportMetricsServiceRequest {
    serde_json::from_str(line).unwrap()
}

#[test]
fn each_request_is_a_line_that_everyone_may_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.otlp.jsonl");
    let mut sender = sender::open(&settings(&to(path.clone()))).unwrap();
    let requests = [request(1), request(2)];
    for request in &requests {
        let outcome = sender.send(request, Instant::now() + Duration::from_secs(60));
        assert_eq!(outcome, Outcome::Accepted);
    }
    let content = fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = content.lines().map(|line| decode(line).encode_to_vec()).collect();
    assert_eq!(lines, requests);
    assert!(content.ends_with('\n'));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn a_line_is_spelled_as_the_collector_spells_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.otlp.jsonl");
    assert_eq!(send(&to(path.clone())), Outcome::Accepted);
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(
        json,
        serde_json::json!({ "resourceMetrics": [{ "scopeMetrics": [{ "metrics": [{
            "name": "gpu.kernel.instructions",
            "unit": "{instruction}",
            "sum": {
                "aggregationTemporality": 1,
                "isMonotonic": true,
                "dataPoints": [{
                    "startTimeUnixNano": "1700000000000000000",
                    "timeUnixNano": "1700000060000000000",
                    "asInt": "7",
                }],
            },
        }] }] }] })
    );
}

#[test]
fn a_missing_folder_is_named_with_the_command_that_makes_it() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("not/there");
    let outcome = send(&to(missing.join("metrics.otlp.jsonl")));
    assert_misconfigured(&outcome, &format!("mkdir -p {}", missing.display()));
    assert!(!missing.exists(), "nobody asked for it");
}

#[test]
fn what_is_no_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    assert_misconfigured(&send(&to(folder.path().to_owned())), "cannot be opened");
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_misconfigured(&send(&to(pipe)), "is not a regular file");
    assert_misconfigured(&send(&to("/dev/null".into())), "is not a regular file");
    assert_misconfigured(&send(&to("/dev/null/x".into())), "cannot be opened");
}

#[test]
fn a_file_that_somebody_else_wrote_is_left_alone() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let content = b"a letter to my mother, unfinished";
    fs::OpenOptions::new().write(true).open(file.path()).unwrap();
    std::io::Write::write_all(&mut file.as_file(), content).unwrap();
    assert_misconfigured(&send(&to(file.path().to_owned())), "did not write");
    assert_eq!(fs::read(file.path()).unwrap(), content);
}

#[test]
fn what_is_not_otlp_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.otlp.jsonl");
    let mut sender = sender::open(&settings(&to(path.clone()))).unwrap();
    assert_refused(&sender.send(&[0xff; 3], Instant::now() + Duration::from_secs(60)));
    assert!(!path.exists());
}

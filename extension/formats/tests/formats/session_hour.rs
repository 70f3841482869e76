//! A session of a few minutes in all its forms: each tells the same. `examples/session_report` does
//! it with a whole hour.

use std::path::{Path, PathBuf};
use std::process::Command;

use warpgauge_formats::gpu_flight::Details;

use crate::{forms, truth};

/// Makes a session of 2,000 kernels, in a folder of this test's own.
fn session(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/gpuflight/generate_session.py");
    let sizes = "--kernels 2000 --names 50 --samples 144 --scopes 200 --pcs 1000 --memcpy 40";
    let output = Command::new("python3")
        .arg(script)
        .arg("--out")
        .arg(&folder)
        .args(sizes.split(' '))
        .output();
    let output = output.expect("the session's generator needs python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

#[test]
fn a_session_tells_the_same_in_every_form() {
    let folder = session("session-in-every-form");
    let mut expected = truth::expected(&folder);
    for flavour in
        ["columnar", "columnar_250ms", "columnar_head", "columnar_nodetail", "columnar_alldetail"]
    {
        assert_eq!(forms::hashes(&forms::load(&folder.join(flavour))), expected, "{flavour}");
    }
    let fat = forms::load(&folder.join("fat"));
    let (first, losses) = forms::batches(&fat, Details::First);
    let (all, _) = forms::batches(&fat, Details::All);
    let tables = forms::parquet(&fat);
    // The wide form rounds the host's processor use to a tenth of a percent.
    expected.remove("host");
    let told = [forms::hashes(&first), forms::hashes(&all), forms::hashes_of_tables(&tables)];
    for (form, mut told) in ["first details", "all details", "tables"].into_iter().zip(told) {
        told.remove("host");
        assert_eq!(told, expected, "{form}");
    }
    assert_eq!(losses.get("kernel.details"), Some(&1950), "all but the first of 50 names");
    let bytes = |logs: &forms::Logs| logs.0.iter().map(Vec::len).sum::<usize>();
    assert!(bytes(&first) * 5 < bytes(&fat) && tables.bytes() * 2 < bytes(&first));
}

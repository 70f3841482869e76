//! Faults on request, and the log that a test reads.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::OnceLock;

/// The number behind `name=` in `STANDIN_CUPTI_FAULT`; 1 for a name alone.
pub(crate) fn fault(name: &str) -> Option<u32> {
    static WANTED: OnceLock<String> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| std::env::var("STANDIN_CUPTI_FAULT").unwrap_or_default());
    wanted.split(',').find_map(|word| match word.split_once('=') {
        Some((key, value)) if key == name => value.parse().ok(),
        None if word == name => Some(1),
        _ => None,
    })
}

/// Adds a line to the file named by `STANDIN_CUPTI_LOG`.
pub(crate) fn log(line: &str) {
    let Some(path) = std::env::var_os("STANDIN_CUPTI_LOG") else { return };
    let file = OpenOptions::new().append(true).create(true).open(path);
    // A log that cannot be written is seen by the test that waits for its lines.
    let _written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
}

/// Ends the process as the program itself might, in the midst of a call.
#[expect(clippy::disallowed_methods, reason = "a fault to be played")]
pub(crate) fn end_process(code: u32) -> ! {
    std::process::exit(code.cast_signed())
}

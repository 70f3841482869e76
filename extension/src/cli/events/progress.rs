//! How far a long reading is, on a terminal only.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Files that are smaller together are read before anybody could look.
const LONG: u64 = 16 << 20;

/// A bar that is advanced by the bytes of the files; hidden where standard error is no terminal, and
/// where the end cannot be told.
pub(super) fn bar(files: &[PathBuf]) -> ProgressBar {
    let size =
        |path: &PathBuf| path.metadata().ok().filter(|file| file.is_file()).map(|file| file.len());
    let total: u64 = files.iter().filter_map(size).sum();
    let is_endless = files.iter().any(|path| path == Path::new("-"));
    if total < LONG || is_endless || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5));
    let template = "{wide_bar} {percent:>3} % of {total_bytes}, {bytes_per_sec}, {eta} to go ";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

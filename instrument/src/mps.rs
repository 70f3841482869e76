//! Whether the process shares its GPU through NVIDIA's Multi-Process Service.
//!
//! Under MPS a context's kernels run beside those of other processes, and a fault of one is a fault
//! of all: windows stay closed. The daemon's control pipe tells, at the place that the client looks
//! for it (MPS documentation, `CUDA_MPS_PIPE_DIRECTORY`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where the daemon's control pipe is for this process. The environment is read when this is first
/// asked, which [`crate::worker::start`] does inside `cuInit`: later, a thread of ours would read it
/// while the program may be changing it.
pub fn pipe_of_this_process() -> &'static Path {
    static PIPE: OnceLock<PathBuf> = OnceLock::new();
    PIPE.get_or_init(|| control_pipe(std::env::var_os("CUDA_MPS_PIPE_DIRECTORY")))
}

/// Whether there is a daemon for this process.
#[must_use]
pub fn serves_this_process() -> bool {
    pipe_of_this_process().exists()
}

fn control_pipe(directory: Option<OsString>) -> PathBuf {
    directory.map_or_else(|| "/tmp/nvidia-mps".into(), PathBuf::from).join("control")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pipe_is_where_the_environment_says_or_at_the_usual_place() {
        assert_eq!(control_pipe(None), PathBuf::from("/tmp/nvidia-mps/control"));
        assert_eq!(control_pipe(Some("/run/mps".into())), PathBuf::from("/run/mps/control"));
    }
}

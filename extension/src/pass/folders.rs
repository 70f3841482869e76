//! The folders that a pass needs, made where they are missing.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;

use crate::config::{Config, Paths};
use crate::follow::Follower;

/// Spool and totals are nobody else's business.
const PRIVATE: u32 = 0o700;

/// Every monitored user writes here; the sticky bit keeps each from touching the others' files.
const EVERYBODYS: u32 = 0o1777;

/// Every monitored user passes through here and reads the runtime configuration.
const REACHABLE: u32 = 0o755;

/// Makes them, each with its mode; those that are there stay as they are.
///
/// # Errors
/// The first folder that cannot be made.
pub fn make(config: &Config) -> anyhow::Result<()> {
    let Paths { runtime_config, measurements, state, .. } = &config.paths;
    let of_runtime_config = runtime_config.parent().unwrap_or(Path::new("/"));
    let follows = !config.events.is_empty() || config.forward.backend_url.is_some();
    let cursors = follows.then(|| Follower::cursor_folder(state));
    let needed = [(of_runtime_config, REACHABLE), (measurements, EVERYBODYS), (state, PRIVATE)];
    for (folder, mode) in needed.into_iter().chain(cursors.as_deref().map(|at| (at, PRIVATE))) {
        make_folder(folder, mode)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    Ok(())
}

/// Makes a folder and those above it, unless it is there. It appears with its mode: whoever is
/// killed before leaves none that others cannot reach, whatever the umask.
fn make_folder(folder: &Path, mode: u32) -> io::Result<()> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { return Ok(()) };
    if folder.is_dir() {
        return Ok(());
    }
    make_folder(parent, REACHABLE)?;
    let mut unfinished = OsString::from(".");
    unfinished.push(name);
    unfinished.push(".new");
    let unfinished = parent.join(unfinished);
    match make_and_rename(&unfinished, folder, mode) {
        // Another pass was faster.
        Err(_) if folder.is_dir() => Ok(()),
        Err(fault) => {
            // What matters is why it could not be made.
            let _ = fs::remove_dir(&unfinished);
            Err(fault)
        }
        Ok(()) => Ok(()),
    }
}

fn make_and_rename(unfinished: &Path, folder: &Path, mode: u32) -> io::Result<()> {
    match fs::create_dir(unfinished) {
        Err(fault) if fault.kind() != io::ErrorKind::AlreadyExists => return Err(fault),
        _ => {}
    }
    fs::set_permissions(unfinished, Permissions::from_mode(mode))?;
    fs::rename(unfinished, folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode_of(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn everybody_reaches_what_everybody_needs_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("lib/warpgauge");
        let paths = Paths {
            runtime_config: base.join("runtime.conf"),
            measurements: base.join("measurements"),
            containers: base.join("containers"),
            state: base.join("private/state"),
            proc: "/proc".into(),
        };
        let (mut config, _) = Config::parse("[forward]\nbackend_url = \"http://127.0.0.1:1\"\n");
        config.paths = paths.clone();
        make(&config).unwrap();
        make(&config).unwrap();
        assert_eq!(mode_of(&root.path().join("lib")), 0o755);
        assert_eq!(mode_of(&base), 0o755);
        assert_eq!(mode_of(&base.join("private")), 0o755);
        assert_eq!(mode_of(&paths.measurements), 0o1777);
        assert_eq!(mode_of(&paths.state), 0o700);
        assert_eq!(mode_of(&paths.state.join("cursors")), 0o700);
    }

    #[test]
    fn a_folder_that_a_killed_pass_began_is_finished() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".m.new")).unwrap();
        make_folder(&root.path().join("m"), EVERYBODYS).unwrap();
        assert_eq!(mode_of(&root.path().join("m")), 0o1777);
        assert_eq!(root.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn where_a_file_stands_no_folder_is_made_and_none_is_left() {
        let root = tempfile::tempdir().unwrap();
        fs::File::create(root.path().join("m")).unwrap();
        assert!(make_folder(&root.path().join("m"), EVERYBODYS).is_err());
        assert!(make_folder(&root.path().join("m/below"), EVERYBODYS).is_err());
        assert_eq!(root.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_is_there_keeps_its_mode() {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o710)).unwrap();
        make_folder(root.path(), EVERYBODYS).unwrap();
        assert_eq!(mode_of(root.path()), 0o710);
    }
}

//! Containers as the kernel sees them: a control group named as Docker names it, and a pid
//! namespace of one's own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use anyhow::Result;

use crate::wait::eventually;

static CONTAINERS: AtomicU32 = AtomicU32::new(0);

/// A control group. Programs are started in it by [`crate::Host::in_container`], each in a pid
/// namespace of its own. Removed when dropped.
#[derive(Debug)]
pub struct Container {
    id: String,
    cgroup: PathBuf,
}

impl Container {
    /// Makes a container of an id that there never was; the reason where this machine or this user
    /// cannot, which takes root and a control group hierarchy that may be written to.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn create() -> Result<Self, String> {
        let mounts = fs::read_to_string("/proc/mounts").map_err(|fault| fault.to_string())?;
        let hierarchy = hierarchy(&mounts).ok_or("no control groups are mounted")?;
        let id = new_id();
        let cgroup = hierarchy.join(format!("docker-{id}.scope"));
        fs::create_dir(&cgroup).map_err(|fault| format!("{}: {fault}", cgroup.display()))?;
        let container = Self { id, cgroup };
        let mut probe = Command::new("/bin/sh");
        probe.args(["-c", &container.script(), "/bin/true"]).stdin(Stdio::null());
        let probe = probe.output().map_err(|fault| fault.to_string())?;
        if probe.status.success() {
            Ok(container)
        } else {
            Err(String::from_utf8_lossy(&probe.stderr).trim().to_owned())
        }
    }

    /// Its id: 64 hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Shell script that runs its arguments as process 1 of a new pid namespace in this control
    /// group. They end when the shell's process is killed.
    pub(crate) fn script(&self) -> String {
        let procs = self.cgroup.join("cgroup.procs");
        format!(
            "echo 0 > '{}' && exec unshare --pid --fork --kill-child --mount-proc \"$0\" \"$@\"",
            procs.display()
        )
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // A process that was killed leaves its control group a moment later.
        let removed =
            eventually("the control group is empty", || match fs::remove_dir(&self.cgroup) {
                Err(fault) if fault.kind() == io::ErrorKind::ResourceBusy => Ok(None),
                outcome => Ok(Some(outcome?)),
            });
        if let Err(fault) = removed {
            eprintln!("{}: {fault}", self.cgroup.display());
        }
    }
}

/// Where control groups are made: version 2, or a hierarchy of version 1 that controls nothing.
fn hierarchy(mounts: &str) -> Option<&Path> {
    let find = |kind: &str, option: &str| {
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ');
            let (_, path) = (fields.next()?, fields.next()?);
            let fits =
                fields.next()? == kind && fields.next()?.split(',').any(|o| o.starts_with(option));
            fits.then(|| Path::new(path))
        })
    };
    find("cgroup2", "rw").or_else(|| find("cgroup", "name="))
}

fn new_id() -> String {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let number = CONTAINERS.fetch_add(1, Ordering::Relaxed);
    // Odd, so different times give different digits; the first ones vary the most.
    let mixed = since_epoch.as_nanos().wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    format!("{mixed:032x}{:016x}{number:016x}", std::process::id())
}

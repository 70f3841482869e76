//! A `/proc` of one's own in a temporary folder.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use warpgauge::procfs::ProcFs;

/// When the machine of every fake `/proc` booted, in seconds since the epoch.
pub(crate) const BOOT_SECONDS: u64 = 1_789_550_000;

/// `PF_KTHREAD` of `include/linux/sched.h`.
const KERNEL_THREAD: u32 = 0x0020_0000;

/// A folder that looks like `/proc`. Process 1 is there from the beginning.
pub(crate) struct FakeProc {
    root: TempDir,
}

impl FakeProc {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        // Open to every user, as the real one is.
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        let fake = Self { root };
        fake.write("stat", format!("cpu  1 2 3\nintr 4\nbtime {BOOT_SECONDS}\nprocesses 5\n"));
        fs::create_dir_all(fake.path("sys/kernel/random")).unwrap();
        fake.write("sys/kernel/random/boot_id", "0d5b6e1c-7c6a-4a2b-9d53-2f1f4f3c8a11\n");
        FakeProcess::new("init").create(&fake, 1);
        fake
    }

    pub(crate) fn open(&self) -> ProcFs {
        ProcFs::new(self.root.path())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        write(&self.path(name), content.as_ref());
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }
}

/// A process that is about to be created.
#[derive(Clone)]
pub(crate) struct FakeProcess {
    comm: Vec<u8>,
    exe: Option<String>,
    arguments: Vec<u8>,
    environ: Vec<u8>,
    cgroup: String,
    maps: String,
    uids: [u32; 4],
    namespace_pids: Vec<u32>,
    state: char,
    flags: u32,
    threads: u32,
    start_ticks: u64,
}

impl FakeProcess {
    /// A process called `comm`, cut off after 15 bytes as the kernel does, running `/usr/bin/comm`.
    pub(crate) fn new(comm: impl AsRef<[u8]>) -> Self {
        let comm = comm.as_ref();
        let name = String::from_utf8_lossy(comm).into_owned();
        Self {
            comm: comm[..comm.len().min(15)].to_vec(),
            exe: Some(format!("/usr/bin/{name}")),
            arguments: [comm, b"\0"].concat(),
            environ: b"PATH=/usr/bin\0".to_vec(),
            cgroup: "0::/\n".to_owned(),
            maps: "55d0c2a00000-55d0c2a28000 r-xp 00000000 fd:01 99    /usr/bin/x\n".to_owned(),
            uids: [0; 4],
            namespace_pids: Vec::new(),
            state: 'S',
            flags: 0x0040_0000,
            threads: 1,
            start_ticks: 1_000,
        }
    }

    pub(crate) fn comm(mut self, comm: impl AsRef<[u8]>) -> Self {
        self.comm = comm.as_ref().to_vec();
        self
    }

    pub(crate) fn exe(mut self, path: &str) -> Self {
        self.exe = Some(path.to_owned());
        self
    }

    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments =
            arguments.iter().flat_map(|text| [text.as_bytes(), b"\0"].concat()).collect();
        self
    }

    pub(crate) fn environ(mut self, variables: &[&str]) -> Self {
        self.environ =
            variables.iter().flat_map(|text| [text.as_bytes(), b"\0"].concat()).collect();
        self
    }

    pub(crate) fn cgroup(mut self, path: &str) -> Self {
        self.cgroup = format!("0::{path}\n");
        self
    }

    /// Maps a file besides those that every process has.
    pub(crate) fn maps(mut self, path: &str) -> Self {
        self.maps += &format!("7f10c2a00000-7f10c2a28000 r-xp 00028000 fd:01 1835019    {path}\n");
        self
    }

    /// Real, effective, saved and file system user id.
    pub(crate) fn uids(mut self, uids: [u32; 4]) -> Self {
        self.uids = uids;
        self
    }

    /// Its pids in the namespaces below this one.
    pub(crate) fn inside(mut self, pids: &[u32]) -> Self {
        self.namespace_pids = pids.to_vec();
        self
    }

    pub(crate) fn start_ticks(mut self, ticks: u64) -> Self {
        self.start_ticks = ticks;
        self
    }

    pub(crate) fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }

    /// Over, but not yet noticed by its parent: no executable and no memory any more.
    pub(crate) fn zombie(mut self) -> Self {
        self.state = 'Z';
        self.without_program()
    }

    /// A thread of the kernel's.
    pub(crate) fn kernel_thread(mut self) -> Self {
        self.state = 'I';
        self.flags |= KERNEL_THREAD;
        self.without_program()
    }

    fn without_program(mut self) -> Self {
        self.exe = None;
        self.arguments.clear();
        self.environ.clear();
        self.maps.clear();
        self
    }

    pub(crate) fn create(&self, fake: &FakeProc, pid: u32) {
        let folder = fake.path(&pid.to_string());
        fs::create_dir(&folder).unwrap();
        let Self { state, flags, threads, start_ticks, .. } = self;
        let mut stat = format!("{pid} (").into_bytes();
        stat.extend_from_slice(&self.comm);
        writeln!(
            stat,
            ") {state} 1 {pid} {pid} 0 -1 {flags} 900 0 3 0 12 7 0 0 20 0 {threads} 0 \
             {start_ticks} 173031424 2952 18446744073709551615"
        )
        .unwrap();
        let [real, effective, saved, file_system] = self.uids;
        let mut status = format!(
            "Name:\tsomething\nState:\t{state}\nTgid:\t{pid}\nPid:\t{pid}\n\
             Uid:\t{real}\t{effective}\t{saved}\t{file_system}\nGroups:\t4 24\nNSpid:\t{pid}"
        );
        status.extend(self.namespace_pids.iter().map(|inside| format!("\t{inside}")));
        status += "\nVmPeak:\t 9 kB\n";
        write(&folder.join("comm"), &[&self.comm[..], b"\n"].concat());
        write(&folder.join("stat"), &stat);
        write(&folder.join("status"), status.as_bytes());
        write(&folder.join("cgroup"), self.cgroup.as_bytes());
        write(&folder.join("cmdline"), &self.arguments);
        write(&folder.join("environ"), &self.environ);
        write(&folder.join("maps"), self.maps.as_bytes());
        if let Some(exe) = &self.exe {
            symlink(exe, folder.join("exe")).unwrap();
        }
    }
}

fn write(path: &Path, content: &[u8]) {
    File::create(path).unwrap().write_all(content).unwrap();
}

//! What a program may do to itself, or to whoever lives in it, and still expect to work.
#![allow(unsafe_code, reason = "system calls and C functions that no safe interface has")]

use std::ffi::{CString, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::libc;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Uid, chdir, chroot, setuid};

use crate::arguments::Hardship;
use crate::modes::RunError;

/// A user without rights, on every system.
const NOBODY: Uid = Uid::from_raw(65534);

/// When a hardship begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    BeforeInit,
    BeforeLaunches,
}

impl Hardship {
    fn moment(self) -> Moment {
        match self {
            Self::ClosedStreams | Self::NoThreads => Moment::BeforeInit,
            _ => Moment::BeforeLaunches,
        }
    }
}

/// Hardships that go on until they are ended.
#[derive(Default)]
pub(crate) struct Hardships {
    /// A copy of standard output, while that is closed.
    output: Option<c_int>,
    threads: Vec<JoinHandle<u64>>,
}

static END: AtomicBool = AtomicBool::new(false);

impl Hardships {
    /// Begins those of a moment.
    pub(crate) fn begin(&mut self, wanted: &[Hardship], moment: Moment) -> Result<(), RunError> {
        for hardship in wanted.iter().filter(|hardship| hardship.moment() == moment) {
            match hardship {
                Hardship::ClosedStreams => self.close_streams(),
                Hardship::NoThreads => {
                    setuid(NOBODY)?;
                    setrlimit(Resource::RLIMIT_NPROC, 0, 0)?;
                }
                Hardship::Chdir => chdir("/")?,
                Hardship::Chroot => chroot("lib").and_then(|()| chdir("/"))?,
                Hardship::Setuid => setuid(NOBODY)?,
                // SAFETY: no other thread of the program's looks at the environment.
                Hardship::ClearEnvironment => drop(unsafe { libc::clearenv() }),
                Hardship::CloseFiles => self.threads.push(std::thread::spawn(close_files)),
                Hardship::NoFiles => setrlimit(Resource::RLIMIT_NOFILE, 0, 0)?,
                Hardship::NoFileSize => setrlimit(Resource::RLIMIT_FSIZE, 0, 0)?,
                Hardship::Unload => unload(),
                Hardship::Cancel => cancel_foreign_threads()?,
                Hardship::Sandbox => forbid_opening()?,
            }
        }
        Ok(())
    }

    /// Ends them. Says how many bytes went into a stream that was closed.
    pub(crate) fn end(&mut self) -> Result<u64, RunError> {
        END.store(true, Ordering::Release);
        let mut written = 0;
        for thread in self.threads.drain(..) {
            written += thread.join().map_err(|_| RunError::Thread)?;
        }
        if let Some(output) = self.output.take() {
            // SAFETY: a descriptor that was open before; nobody else has the number.
            unsafe { libc::dup2(output, 1) };
        }
        Ok(written)
    }

    fn close_streams(&mut self) {
        // SAFETY: duplicates an open descriptor.
        self.output = Some(unsafe { libc::fcntl(1, libc::F_DUPFD_CLOEXEC, 100) });
        for number in 0..=2 {
            // SAFETY: nothing reads or writes by these numbers any more.
            unsafe { libc::close(number) };
        }
        self.threads.push(std::thread::spawn(write_to_closed_streams));
    }
}

/// Prints as a program does that knows nothing of its closed streams. Gives the bytes that somebody
/// took.
fn write_to_closed_streams() -> u64 {
    let mut written = 0;
    while !END.load(Ordering::Acquire) {
        for number in 0..=2 {
            // SAFETY: one byte of a string.
            let outcome = unsafe { libc::write(number, c"x".as_ptr().cast(), 1) };
            written += u64::from(outcome > 0);
        }
    }
    written
}

/// Closes every descriptor again and again, as a daemon does once.
fn close_files() -> u64 {
    while !END.load(Ordering::Acquire) {
        // SAFETY: the program itself has nothing open but its streams.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
        std::thread::sleep(Duration::from_micros(200));
    }
    0
}

/// Closes the injected library as often as the loader lets it.
fn unload() {
    let Some(path) = std::env::var_os("CUDA_INJECTION64_PATH") else { return };
    let Ok(path) = CString::new(path.as_bytes()) else { return };
    let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
    // SAFETY: a C string; nothing is loaded that is not there already.
    let library = unsafe { libc::dlopen(path.as_ptr(), flags) };
    for _ in 0..10 {
        // SAFETY: the loader counts, and refuses when there is nothing left to close.
        if library.is_null() || unsafe { libc::dlclose(library) } != 0 {
            return;
        }
    }
}

/// Cancels every thread that the program did not start (pthread_cancel(3)).
fn cancel_foreign_threads() -> Result<(), RunError> {
    // The C library gets ready for cancelling when it is first asked for it.
    let mut own = 0;
    // SAFETY: the function takes null and never returns.
    unsafe { libc::pthread_create(&raw mut own, ptr::null(), wait_for_the_end, ptr::null_mut()) };
    // SAFETY: the thread was started above and is joined once.
    unsafe { libc::pthread_cancel(own) };
    // SAFETY: as above.
    unsafe { libc::pthread_join(own, ptr::null_mut()) };
    for task in fs::read_dir("/proc/self/task")?.flatten() {
        let name = fs::read_to_string(task.path().join("comm"))?;
        let number: Option<i32> = task.file_name().to_str().and_then(|n| n.parse().ok());
        if let (Some(number), "warpgauge") = (number, name.trim()) {
            let handle = handle_of(number)?;
            // SAFETY: the handle of a thread that is alive: it never ends before the program.
            unsafe { libc::pthread_cancel(handle) };
        }
    }
    Ok(())
}

extern "C" fn wait_for_the_end(_: *mut c_void) -> *mut c_void {
    loop {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    }
}

/// The handle of a thread by its number: the address of its control block, which begins with
/// pointers to itself and holds the number (glibc, `tcbhead_t` and `struct pthread`).
fn handle_of(number: i32) -> Result<libc::pthread_t, RunError> {
    const BLOCK_BYTES: usize = 1024;
    for line in fs::read_to_string("/proc/self/maps")?.lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some("rw-p")) = (words.next(), words.next()) else { continue };
        let range = range.split_once('-').and_then(|(begin, end)| {
            let address = |text| usize::from_str_radix(text, 16).ok();
            Some((address(begin)?, address(end)?))
        });
        let Some((begin, end)) = range else { continue };
        for block in (begin..end.saturating_sub(BLOCK_BYTES)).step_by(64) {
            // SAFETY: within a mapping that may be read.
            let [itself, _, itself_again] = unsafe { (block as *const [usize; 3]).read() };
            if (itself, itself_again) != (block, block) {
                continue;
            }
            // SAFETY: as above.
            let words = unsafe { (block as *const [i32; BLOCK_BYTES / 4]).read() };
            if words.contains(&number) {
                return Ok(block as libc::pthread_t);
            }
        }
    }
    Err(RunError::NoHandle)
}

/// Forbids every thread to open a file, as sandboxes do (seccomp(2)).
fn forbid_opening() -> Result<(), RunError> {
    let load_number = libc::sock_filter {
        code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        jt: 0,
        jf: 0,
        k: 0,
    };
    let skip_unless_openat = libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf: 1,
        k: libc::SYS_openat as u32,
    };
    let give =
        |k| libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k };
    let refused = libc::SECCOMP_RET_ERRNO | libc::EACCES as u32;
    let mut filter =
        [load_number, skip_unless_openat, give(refused), give(libc::SECCOMP_RET_ALLOW)];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: plain numbers.
    unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program outlives the call and is as long as it says.
    let code = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        )
    };
    nix::errno::Errno::result(code)?;
    Ok(())
}

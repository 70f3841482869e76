//! Listing and unlisting again and again: the library's session in this process, with the stand-ins
//! loaded beside it, and a clock that runs as fast as it is told.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![allow(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use warpgauge_instrument::dynamic_library::DynamicLibrary;
use warpgauge_instrument::lifecycle::{LIFECYCLE, State};
use warpgauge_instrument::log::Log;
use warpgauge_instrument::session::{Moment, Session};
use warpgauge_instrument::settings::Settings;
use warpgauge_tests::World;

const TIMES: usize = 1000;
const WARM_UP: usize = 100;

fn load(path: &Path) -> DynamicLibrary {
    DynamicLibrary::load(&CString::new(path.as_os_str().as_bytes()).unwrap()).unwrap()
}

type Launch = unsafe extern "C" fn(
    *mut c_void,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> i32;

/// A context of the stand-in driver, current on this thread, and a kernel in it.
struct Kernel {
    launch: Launch,
    function: *mut c_void,
}

impl Kernel {
    fn new(driver: DynamicLibrary) -> Self {
        macro_rules! call {
            ($name:literal as $type:ty, $($argument:expr),*) => {{
                // SAFETY: the type is that of cuda.h.
                let function: $type = unsafe { driver.function($name) }.unwrap();
                // SAFETY: every pointer may be read or written as cuda.h says.
                let code = unsafe { function($($argument),*) };
                assert_eq!(code, 0, "{:?}", $name);
            }};
        }
        type Pointer = *mut c_void;
        let (mut context, mut module, mut function) = (null_mut(), null_mut(), null_mut());
        call!(c"cuInit" as unsafe extern "C" fn(u32) -> i32, 0);
        call!(
            c"cuDevicePrimaryCtxRetain" as unsafe extern "C" fn(*mut Pointer, i32) -> i32,
            &raw mut context,
            0
        );
        call!(c"cuCtxSetCurrent" as unsafe extern "C" fn(Pointer) -> i32, context);
        call!(
            c"cuModuleLoadData" as unsafe extern "C" fn(*mut Pointer, *const c_char) -> i32,
            &raw mut module,
            c"".as_ptr()
        );
        call!(
            c"cuModuleGetFunction"
                as unsafe extern "C" fn(*mut Pointer, Pointer, *const c_char) -> i32,
            &raw mut function,
            module,
            c"saxpy".as_ptr()
        );
        // SAFETY: the type is that of cuda.h.
        let launch = unsafe { driver.function(c"cuLaunchKernel") }.unwrap();
        Self { launch, function }
    }

    fn launch(&self) {
        let (stream, none) = (null_mut(), null_mut());
        // SAFETY: the function is alive and takes no arguments.
        let code =
            unsafe { (self.launch)(self.function, 1, 1, 1, 256, 1, 1, 0, stream, none, none) };
        assert_eq!(code, 0);
    }
}

/// What this process holds.
#[derive(Debug)]
struct Resources {
    descriptors: usize,
    threads: usize,
    mappings: usize,
    resident_kib: u64,
    /// Bytes in use of the allocator's.
    heap: usize,
}

fn resources() -> Resources {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    // SAFETY: takes nothing and gives numbers.
    let heap = unsafe { nix::libc::mallinfo2() };
    Resources {
        descriptors: count("fd"),
        threads: count("task"),
        mappings: maps.lines().count(),
        resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
        heap: heap.uordblks + heap.hblkhd,
    }
}

#[test]
fn listing_and_unlisting_a_thousand_times_leaks_nothing() {
    let world = World::new().unwrap();
    let kernel = Kernel::new(load(&world.libraries().join("libcuda.so.1")));
    load(&world.libcupti());
    let settings = Settings {
        runtime_config_path: world.runtime_config(),
        measurements_output_dir: world.measurements(),
        window_interval: Duration::from_millis(10),
        window_budget_percent: 100.0,
        ..Settings::default()
    };
    let mut now = Instant::now();
    let mut session = Session::new(settings, Log::default(), now);
    session.cuda_begins(now);
    assert!(LIFECYCLE.change(State::Off, State::Armed));
    let mut before = resources();
    let (mut launches, mut instructions) = (0, 0);
    let pid = std::process::id();
    for time in 0..TIMES {
        if time == WARM_UP {
            before = resources();
        }
        world.list(&[(pid, "0,1,2,3")]).unwrap();
        for _ in 0..3 {
            now += Duration::from_secs(10);
            session.step(Moment::OwnThread, now);
            assert_eq!(LIFECYCLE.state(), State::Measuring);
            kernel.launch();
        }
        world.list(&[]).unwrap();
        now += Duration::from_secs(10);
        session.step(Moment::OwnThread, now);
        assert_eq!(LIFECYCLE.state(), State::Armed, "the slot is given back");
        kernel.launch();
        let published = world.published_by(pid).unwrap();
        launches += published.launches;
        instructions += published.instructions.unwrap();
        for file in std::fs::read_dir(world.measurements()).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
    }
    let after = resources();
    assert_eq!((launches, instructions), (3 * TIMES as u64, 3 * 96 * TIMES as u64));
    assert_eq!(after.descriptors, before.descriptors);
    assert_eq!(after.threads, before.threads);
    // The allocator may map one more piece for the heap that it has.
    assert!(after.mappings <= before.mappings + 1, "{before:?} {after:?}");
    let grown = after.resident_kib.saturating_sub(before.resident_kib);
    assert!(grown < 1024, "{grown} KiB more");
    // Less than 8 bytes for each time: there is no smaller block.
    let grown = after.heap.saturating_sub(before.heap);
    assert!(grown < 8 * (TIMES - WARM_UP), "{grown} bytes more: {before:?} {after:?}");
    LIFECYCLE.switch_off();
}

//! A listed process publishes every launch, with the occupancy that the calculator gives.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeMap;
use std::io::Write;

use warpgauge_tests::{Outcome, Published, World};

/// Runs a host program that is listed before its first launch.
fn run_listed(arguments: &[&str]) -> (Outcome, Published) {
    let world = World::new().unwrap();
    let arguments = [&["--pause-before", "init"], arguments].concat();
    let outcome = world.host(&arguments).start_listed("1").unwrap().finish().unwrap();
    assert!(outcome.status.success(), "{outcome:?}");
    assert_eq!(outcome.errors, "");
    let published = world.published_by(outcome.pid).unwrap();
    (outcome, published)
}

#[test]
fn a_listed_process_publishes_every_launch_with_its_occupancy() {
    let (outcome, published) = run_listed(&[
        "--kernel=saxpy=108:256",
        "--kernel=register_heavy=7:16x16",
        "--kernel=tiled=4x4:128:16384",
        "--launches=300",
    ]);
    assert_eq!(outcome.launches(), 300);
    assert_eq!(published.launches, 300);
    // Of 64 warps on a multiprocessor of compute capability 9.0: 8 blocks of 8 warps; 64 registers
    // leave room for 32 warps; 33 KiB of shared memory a block leave room for 6 blocks of 4 warps.
    let expected = BTreeMap::from([("100", 100), ("50", 100), ("37.5", 100)]);
    assert_eq!(published.rounded(), expected);
}

/// The number that the older module gets wrong: it says 25.
#[test]
fn blocks_of_256_threads_with_32_registers_fill_compute_capability_9_0() {
    let (_, published) = run_listed(&["--kernel=saxpy=4:256", "--launches=1"]);
    assert_eq!(published.rounded(), BTreeMap::from([("100", 1)]));
}

#[test]
fn every_function_that_launches_is_seen() {
    for api in ["launch", "launch-ptsz", "cooperative", "cooperative-ptsz", "ex", "ex-ptsz"] {
        let (_, published) = run_listed(&["--launches=20", "--api", api]);
        assert_eq!(published.rounded(), BTreeMap::from([("100", 20)]), "{api}");
    }
}

#[test]
fn a_launch_in_clusters_counts_whole_clusters_on_the_whole_device() {
    let (_, published) =
        run_listed(&["--kernel=saxpy=10:256", "--api=ex", "--cluster=5", "--launches=3"]);
    // 132 multiprocessors hold 1,056 blocks, hence 211 clusters of 5, and 64 warps each.
    let expected = 100.0 * f64::from(211 * 5 * 8) / f64::from(132 * 64);
    assert_eq!(published.rounded(), BTreeMap::from([(expected.to_string().as_str(), 3)]));
}

#[test]
fn many_threads_lose_no_launch() {
    let (outcome, published) = run_listed(&[
        "--mode=threads",
        "--threads=8",
        "--launches=5000",
        "--kernel=saxpy=1:256",
        "--kernel=saxpy=2:256",
        "--kernel=tiny=1:32",
    ]);
    assert_eq!(outcome.launches(), 40_000);
    assert_eq!(published.launches, 40_000);
    assert!(published.most_occupancy_lines <= 1000, "{published:?}");
}

#[test]
fn a_launch_that_the_driver_refuses_is_none() {
    let (outcome, published) =
        run_listed(&["--kernel=saxpy=1:256", "--kernel=saxpy=1:2048", "--launches=10"]);
    assert_eq!((outcome.launches(), outcome.refused()), (5, 5));
    assert_eq!(published.rounded(), BTreeMap::from([("100", 5)]));
}

/// The stand-in gives a new function the handle that another had before, as allocators do. Each
/// round has two kernels of 100 and one of 50 percent, and exchanges their handles.
#[test]
fn a_kernel_that_gets_the_handle_of_an_unloaded_one_has_its_own_occupancy() {
    let (outcome, published) = run_listed(&[
        "--kernel=saxpy=1:256",
        "--kernel=saxpy=1:256",
        "--kernel=register_heavy=1:256",
        "--launches=60",
        "--reload",
    ]);
    let expected = [outcome.launches_of("saxpy"), outcome.launches_of("register_heavy")];
    assert_eq!(expected, [40, 20]);
    assert_eq!(published.rounded(), BTreeMap::from([("100", 40), ("50", 20)]));
}

#[test]
fn more_shapes_than_the_ledger_holds_still_count_as_launches() {
    let shapes: Vec<String> = (1..=9000).map(|grid| format!("--kernel=saxpy={grid}:256")).collect();
    let shapes: Vec<&str> = shapes.iter().map(String::as_str).collect();
    let (_, published) = run_listed(&[&shapes[..], &["--launches=9000"]].concat());
    assert_eq!(published.rounded(), BTreeMap::from([("100", 9000)]));
}

/// 48 warps on a multiprocessor, as on compute capability 8.6.
#[test]
fn occupancy_is_of_the_device_that_the_kernel_runs_on() {
    let world = World::new().unwrap();
    let script = world.path("device");
    let device = "device warps=48 blocks=16 shared=102400\nkernel saxpy registers=32\n";
    std::fs::File::create(&script).unwrap().write_all(device.as_bytes()).unwrap();
    let host = world
        .host(&[
            "--pause-before=init",
            "--kernel=saxpy=1:768",
            "--kernel=saxpy=1:32",
            "--launches=8",
        ])
        .env("STANDIN_CUDA_SCRIPT", &script);
    let outcome = host.start_listed("1").unwrap().finish().unwrap();
    let published = world.published_by(outcome.pid).unwrap();
    let sixteen_of_48 = (100.0 / 3.0).to_string();
    let expected = BTreeMap::from([("100", 4), (sixteen_of_48.as_str(), 4)]);
    assert_eq!(published.rounded(), expected);
}

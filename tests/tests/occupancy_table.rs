//! Occupancy as published equals a table that was computed from NVIDIA's published limits alone
//! (tests/fixtures/occupancy), through the whole path: driver, callback, ledger, measurement file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use warpgauge_tests::World;

const TABLE: &str = include_str!("../fixtures/occupancy/table.csv");

/// A launch of the table.
struct Row {
    compute_capability: &'static str,
    /// The words of the stand-in's script after `device`.
    device: String,
    registers: &'static str,
    threads: &'static str,
    static_shared: &'static str,
    dynamic_shared: &'static str,
    percent: f64,
}

fn rows() -> Vec<Row> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let [capability, warps, blocks, shared, registers, threads, fixed, dynamic, _, percent] =
                cells[..]
            else {
                panic!("{line:?} does not have ten cells");
            };
            Row {
                compute_capability: capability,
                device: format!(
                    "compute_capability={capability} warps={warps} blocks={blocks} shared={shared}"
                ),
                registers,
                threads,
                static_shared: fixed,
                dynamic_shared: dynamic,
                percent: percent.parse().unwrap(),
            }
        })
        .collect()
}

/// Launches the n-th of these rows n times, so that each occupancy has a number of launches that
/// shows which row is wrong; and returns the occupancies with their launches: published, expected.
fn publish(rows: &[Row]) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let world = World::new().unwrap();
    let mut script = format!("device {}\n", rows[0].device);
    let mut arguments = vec!["--pause-before=init".to_owned()];
    let mut expected = BTreeMap::new();
    let mut launches = 0;
    for (number, row) in (1_u64..).zip(rows) {
        let Row { registers, threads, static_shared, dynamic_shared, percent, .. } = row;
        writeln!(script, "kernel k{number} registers={registers} shared={static_shared}").unwrap();
        for _ in 0..number {
            arguments.push(format!("--kernel=k{number}=1:{threads}:{dynamic_shared}"));
        }
        *expected.entry(percent.to_string()).or_default() += number;
        launches += number;
    }
    arguments.push(format!("--launches={launches}"));
    let mut device = fs::File::create_new(world.path("device")).unwrap();
    device.write_all(script.as_bytes()).unwrap();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let host = world.host(&arguments).env("STANDIN_CUDA_SCRIPT", world.path("device"));
    let outcome = host.start_listed("1").unwrap().finish().unwrap();
    assert!(outcome.status.success(), "{outcome:?}");
    assert_eq!((outcome.launches(), outcome.refused()), (launches, 0));
    let published = world.published_by(outcome.pid).unwrap();
    let published: BTreeMap<String, u64> = published
        .rounded()
        .into_iter()
        .map(|(percent, count)| (percent.to_owned(), count))
        .collect();
    (published, expected)
}

#[test]
fn the_table_has_every_architecture_and_more_than_two_hundred_launches() {
    let rows = rows();
    assert!(rows.len() >= 200, "{}", rows.len());
    let capabilities: Vec<&str> = rows
        .chunk_by(|one, next| one.compute_capability == next.compute_capability)
        .map(|chunk| chunk[0].compute_capability)
        .collect();
    assert_eq!(capabilities, ["7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"]);
}

/// A file has at most 1,000 lines of occupancy, each standing for one launch while there are no
/// more launches than that: 40 rows are 820 launches.
#[test]
fn published_occupancy_equals_the_table_on_every_architecture() {
    let rows = rows();
    for device in rows.chunk_by(|one, next| one.device == next.device) {
        for batch in device.chunks(40) {
            let (published, expected) = publish(batch);
            assert_eq!(published, expected, "compute capability {}", batch[0].compute_capability);
        }
    }
}

//! Kernels that are launched by graphs count like others.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeMap;

use warpgauge_tests::{Outcome, Published, World};

const KERNELS: [&str; 3] =
    ["--kernel=saxpy=108:256", "--kernel=register_heavy=7:256", "--launches=50"];

fn run_listed(arguments: &[&str]) -> (Outcome, Published, Vec<String>) {
    let world = World::new().unwrap();
    let arguments = [&["--pause-before", "init"], &KERNELS[..], arguments].concat();
    let outcome = world.host(&arguments).start_listed("1").unwrap().finish().unwrap();
    assert!(outcome.status.success() && outcome.errors.is_empty(), "{outcome:?}");
    let published = world.published_by(outcome.pid).unwrap();
    (outcome, published, world.log().unwrap())
}

#[test]
fn every_kernel_of_a_graph_and_of_its_child_graphs_counts_at_each_launch() {
    let (outcome, published, log) = run_listed(&["--mode=graph"]);
    assert_eq!(outcome.launches(), 200);
    assert_eq!(published.rounded(), BTreeMap::from([("100", 100), ("50", 100)]));
    let said = log.iter().filter(|line| !line.starts_with("kernels: "));
    assert_eq!(said.count(), 1, "no kernel goes unseen: {log:?}");
}

/// While a stream is captured its launches do not run; the graph does.
#[test]
fn a_captured_launch_counts_when_its_graph_is_launched_and_not_before() {
    let (outcome, published, _) = run_listed(&["--mode=capture"]);
    assert_eq!(outcome.launches(), 100);
    assert_eq!(published.rounded(), BTreeMap::from([("100", 50), ("50", 50)]));
}

#[test]
fn what_a_conditional_node_runs_is_said_to_be_unseen() {
    let (_, published, log) = run_listed(&["--mode=graph", "--conditional"]);
    assert_eq!(published.launches, 200, "the other nodes count");
    let said = log.iter().filter(|line| line.contains("conditional node")).count();
    assert_eq!(said, 1, "{log:?}");
}

#[test]
fn a_capture_is_not_spoilt_by_a_window() {
    let world = World::new().unwrap();
    let arguments = [&["--pause-before", "init", "--mode=capture"], &KERNELS[..]].concat();
    let host = world.host(&arguments).env("WARPGAUGE_WINDOW_INTERVAL", "0.01");
    let outcome = host.start_listed("0,1,2,3").unwrap().finish().unwrap();
    assert!(outcome.status.success() && outcome.errors.is_empty(), "{outcome:?}");
    assert_eq!(world.published_by(outcome.pid).unwrap().launches, 100);
}

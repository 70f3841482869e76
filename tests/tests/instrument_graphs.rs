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

/// A host that launches graphs for two seconds, and what became of it.
fn run_measured(script: &str, arguments: &[&str]) -> (World, Outcome, Published) {
    let world = World::new().unwrap();
    let arguments = [
        &["--pause-before", "init", "--pause-before", "exit", "--mode=graph"][..],
        &["--seconds=2", "--rate=500"],
        arguments,
    ]
    .concat();
    let mut host = world
        .host(&arguments)
        .env("STANDIN_CUDA_SCRIPT", world.script(script).unwrap())
        .env("WARPGAUGE_WINDOW_INTERVAL", "0.01")
        .env("WARPGAUGE_WINDOW_BUDGET_PERCENT", "50")
        .start_listed("0,2,3")
        .unwrap();
    host.wait_until_ready_after_report().unwrap();
    host.go_on().unwrap();
    let outcome = host.finish().unwrap();
    assert!(outcome.status.success() && outcome.errors.is_empty(), "{outcome:?}");
    assert_eq!(world.cupti_log().unwrap(), ["subscribe"], "no call is out of order");
    let published = world.published_by(outcome.pid).unwrap();
    (world, outcome, published)
}

const SCRIPT: &str = "device\n\
    kernel saxpy instructions=12 global=3 lines=12 branches=4 divergent=1\n\
    kernel tiny instructions=7\n";

/// No launch of these shapes is a plain one.
#[test]
fn kernels_that_only_graphs_launch_are_measured_by_the_names_of_their_functions() {
    let (world, outcome, published) =
        run_measured(SCRIPT, &["--kernel=saxpy=108:256", "--kernel=tiny=3:33"]);
    let log = world.log().unwrap();
    assert_eq!(published.instructions, Some(outcome.instructions()), "{log:?}");
    assert_eq!(published.coalescence.get(), Some(25.0));
    assert_eq!(published.divergence.get(), Some(25.0));
    assert_eq!(published.launches, outcome.launches());
}

/// Records name a function and no launch: of its shapes only the sum is known, which is what counts.
#[test]
fn shapes_of_one_function_in_a_graph_add_up_to_what_they_did_together() {
    let (_, outcome, published) =
        run_measured(SCRIPT, &["--kernel=saxpy=1:32", "--kernel=saxpy=100:256"]);
    assert_eq!(published.instructions, Some(outcome.instructions()));
}

#[test]
fn a_graph_that_runs_more_than_its_kernels_is_not_measured() {
    for arguments in [&["--conditional"][..], &["--kernel=ncclDevKernel_AllReduce_Sum=4:64"]] {
        let script = [SCRIPT, "kernel ncclDevKernel_AllReduce_Sum instructions=9\n"].concat();
        let arguments = [&["--kernel=saxpy=1:32"], arguments].concat();
        let (_, outcome, published) = run_measured(&script, &arguments);
        assert_eq!(published.instructions, None, "{arguments:?}");
        assert_eq!(published.launches, outcome.launches());
    }
}

#[test]
fn a_kernel_that_is_changed_inside_a_graph_is_said_to_be_unseen_and_its_graph_not_measured() {
    let (world, outcome, published) = run_measured(SCRIPT, &["--kernel=saxpy=108:256", "--change"]);
    assert_eq!(published.launches, outcome.launches());
    assert_eq!(published.instructions, None);
    let log = world.log().unwrap();
    let said = log.iter().filter(|line| line.contains("changed inside a graph")).count();
    assert_eq!(said, 1, "{log:?}");
}

//! The library as the loader sees it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::process::Command;

use warpgauge_tests::Artifacts;

fn output_of(program: &str, arguments: &[&str]) -> String {
    let library = &Artifacts::build().unwrap().instrument;
    let output = Command::new(program).args(arguments).arg(library).output().unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn it_exports_its_entry_points_and_nothing_else() {
    let symbols = output_of("nm", &["-D", "--defined-only"]);
    let names: Vec<&str> =
        symbols.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(names, ["InitializeInjection"]);
}

#[test]
fn it_is_never_unmapped() {
    let sections = output_of("readelf", &["--dynamic", "--wide"]);
    assert!(sections.contains("NODELETE"), "{sections}");
}

/// Programs bring their own CUDA; a library that asks the loader for one would break those without.
#[test]
fn it_needs_nothing_of_nvidias_to_be_loaded() {
    let sections = output_of("readelf", &["--dynamic", "--wide"]);
    let needed: Vec<&str> = sections.lines().filter(|line| line.contains("(NEEDED)")).collect();
    assert!(!needed.is_empty());
    assert!(needed.iter().all(|line| !line.contains("cu")), "{needed:?}");
}

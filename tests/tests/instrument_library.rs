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
    let entries = [
        "InitializeInjection",
        "InitializeInjectionNvtx2",
        "warpgauge_attach",
        "warpgauge_mark",
        "warpgauge_range_begin",
        "warpgauge_range_end",
        "warpgauge_scope_begin",
        "warpgauge_scope_end",
    ];
    assert_eq!(names, entries);
}

/// By this name the functions for programs find it, wherever it was loaded from.
#[test]
fn it_says_its_name() {
    let sections = output_of("readelf", &["--dynamic", "--wide"]);
    assert!(sections.contains("[libwarpgauge_instrument.so]"), "{sections}");
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

/// A test build carries symbols; what counts is what is loaded into memory. Tables that begin as
/// zeros are not: they take what is touched of them.
#[test]
fn its_loaded_parts_are_small() {
    const MOST_BYTES_OF_A_RELEASE: u64 = 1_500_000;
    // An unoptimised build is larger; tests/library/check_release.sh checks the one that is shipped.
    let limit = if cfg!(debug_assertions) { 4 } else { 1 } * MOST_BYTES_OF_A_RELEASE;
    let segments = output_of("readelf", &["--segments", "--wide"]);
    let loaded: u64 = segments
        .lines()
        .filter(|line| line.trim_start().starts_with("LOAD"))
        .map(|line| {
            let size = line.split_whitespace().nth(4).unwrap();
            u64::from_str_radix(size.trim_start_matches("0x"), 16).unwrap()
        })
        .sum();
    assert!(loaded > 0 && loaded < limit, "{loaded} bytes");
}

//! What the log says about the kernels of a process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use warpgauge_tests::{World, eventually};

const GEMM: &str = "_Z4gemmIfLi4EEvPKT_S2_PS0_i";

#[test]
fn the_log_names_kernels_with_what_was_measured_when_the_process_exits() {
    for (mangled, name) in
        [("false", "void gemm<float, 4>(float const*, float const*, float*, int)"), ("true", GEMM)]
    {
        let world = World::new().unwrap();
        let script = format!(
            "device\nkernel {GEMM} registers=32 instructions=12 global=3 lines=12 branches=4 divergent=1\n"
        );
        let gemm = format!("--kernel={GEMM}=4:256");
        let host = world
            .host(&["--pause-before=init", "--launches=600", "--rate=500", &gemm])
            .env("STANDIN_CUDA_SCRIPT", world.script(&script).unwrap())
            .env("WARPGAUGE_WINDOW_INTERVAL", "0.01")
            .env("WARPGAUGE_MANGLED_NAMES", mangled);
        host.start_listed("0,1,2,3").unwrap().finish().unwrap();
        let log = world.log().unwrap();
        let kernels: Vec<&String> = log.iter().filter(|line| line.contains("kernels: ")).collect();
        assert_eq!(kernels.len(), 2, "{log:?}");
        assert!(kernels[0].starts_with("kernels: 600 launches of 1 kernels; "), "{log:?}");
        assert!(kernels[0].ends_with(" % of them of a shape that was measured"), "{log:?}");
        let measured = "occupancy 100.0 %, 384 instructions, coalescence 25.0 %, divergence 25.0 %";
        let expected = format!("kernels: 1. 600 launches (100.0 %), {measured}: {name}");
        assert_eq!(*kernels[1], expected);
    }
}

#[test]
fn the_log_names_kernels_when_the_process_is_taken_off_the_list() {
    let world = World::new().unwrap();
    let arguments = ["--pause-before=init", "--launches=50", "--pause-before=exit"];
    let mut host = world.host(&arguments).start_listed("1").unwrap();
    host.wait_until_ready_after_report().unwrap();
    world.list(&[]).unwrap();
    eventually("the kernel is named", || {
        Ok(world.log()?.iter().any(|line| line.ends_with(": saxpy")).then_some(()))
    })
    .unwrap();
    host.go_on().unwrap();
    host.finish().unwrap();
    let log = world.log().unwrap();
    assert_eq!(log.iter().filter(|line| line.contains("kernels: ")).count(), 2, "{log:?}");
}

/// Many kernels, names of a hundred thousand characters and names that a terminal would obey.
#[test]
fn the_log_stays_short_and_printable_whatever_kernels_are_called() {
    let world = World::new().unwrap();
    let mut names: Vec<String> = (0..30).map(|number| format!("kernel{number}")).collect();
    names.push("x".repeat(100_000));
    names.push("\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}".to_owned());
    // Those two are launched most.
    names.extend(names[30..].to_vec());
    let kernels: Vec<String> = names.iter().map(|name| format!("--kernel={name}=1:32")).collect();
    let mut arguments = vec!["--pause-before=init", "--launches=340"];
    arguments.extend(kernels.iter().map(String::as_str));
    let script: String = names.iter().map(|name| format!("kernel {name}\n")).collect();
    let script = world.script(&format!("device\n{script}")).unwrap();
    let host = world.host(&arguments).env("STANDIN_CUDA_SCRIPT", script);
    let outcome = host.start_listed("1").unwrap().finish().unwrap();
    assert!(outcome.status.success() && outcome.errors.is_empty(), "{}", outcome.errors);
    let text = std::fs::read_to_string(world.path("instrument.log")).unwrap();
    assert!(text.chars().all(|c| c == '\n' || !(c.is_control() || c == '\u{202e}')), "{text:?}");
    assert!(text.lines().all(|line| line.len() < 500), "{text:?}");
    let log = world.log().unwrap();
    let kernels: Vec<&String> = log.iter().filter(|line| line.contains("kernels: ")).collect();
    assert_eq!(kernels.len(), 12, "{log:?}");
    assert!(kernels.iter().any(|line| line.contains("xxx...")), "{kernels:?}");
    assert!(kernels.iter().any(|line| line.contains(r"\u{1b}[2J")), "{kernels:?}");
    assert!(kernels[11].contains("launches of others"), "{kernels:?}");
}

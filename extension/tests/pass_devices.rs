//! Passes ask the stand-in for NVML, and what it says arrives at the receiver.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod support;

use support::nvml::Machine;

#[test]
fn what_a_device_says_arrives_under_the_names_of_the_conventions() {
    let machine = Machine::new(
        "device uuid=GPU-1 name=H100 total=1000 reserved=100 used=300 gpu=50 memory=20 temperature=60 power=300500 throttling=4\n",
    );
    let pass = machine.pass(0);
    assert_eq!(
        machine.shown("GPU-1"),
        [
            "hw.gpu.memory.limit 1000",
            "hw.gpu.memory.usage 300",
            "hw.gpu.utilization 0.5",
            "hw.power 300.5",
            "hw.temperature 60",
            "warpgauge.device.memory.activity 0.2",
            "warpgauge.device.memory.reserved 100",
            "warpgauge.device.throttling 1 sw_power_cap",
        ]
    );
    assert_eq!(pass.report["devices"]["gpus"], 1);
    assert_eq!(pass.log, "");
}

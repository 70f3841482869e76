//! Whatever a neighbour writes where a health file belongs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpgauge::instrument_health::HealthReport;

fuzz_target!(|text: &[u8]| {
    if let Ok(report) = HealthReport::parse(text) {
        assert!(report.launches_measured_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
});

//! Whatever people write into the runtime configuration: a rewrite keeps their entries, is stable,
//! and says to every reader what the file said before.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpgauge::control::RuntimeConfig;
use warpgauge_wire::plan_for;

fuzz_target!(|file: &[u8]| {
    let config = RuntimeConfig::parse(file);
    let own: Vec<_> = config.own_lines().collect();
    let written = config.render(&own, true);
    let again = RuntimeConfig::parse(&written);
    let own_again: Vec<_> = again.own_lines().collect();
    assert_eq!(again.render(&own_again, true), written);
    for line in &config.manual {
        let last = config.manual.iter().rfind(|other| other.entry.pid == line.entry.pid);
        assert_eq!(plan_for(&written, line.entry.pid), last.map(|line| line.entry.clone()));
    }
    assert_eq!(again.manual.len(), config.manual.len());
    assert_eq!(again.malformed.len(), config.malformed.len());
    let off = config.render(&own, false);
    assert_eq!(RuntimeConfig::parse(&off).render(&own, false), off);
    assert_eq!(RuntimeConfig::parse(&off).render(&own, true), written);
    for line in &config.manual {
        assert_eq!(plan_for(&off, line.entry.pid), None);
    }
});

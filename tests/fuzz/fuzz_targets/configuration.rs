//! Whatever the configuration file and the environment's lists hold: faults, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpgauge::config::Config;
use warpgauge::groups::Rules;
use warpgauge::otlp::attribute_list;

fuzz_target!(|text: &str| {
    let (config, faults) = Config::parse(text);
    let lines = text.lines().count() + 1;
    assert!(faults.iter().all(|fault| fault.line.is_none_or(|line| line <= lines)));
    // A user's name would be looked up in the machine's data base.
    let mut groups = config.process_groups;
    for group in &mut groups {
        group.all.user = None;
        group.any.iter_mut().for_each(|conditions| conditions.user = None);
    }
    let _verdict = Rules::compile(&groups, &config.monitored_pg_names);
    let _attributes = attribute_list::parse(text);
});

//! Dependencies between the modules of the extension run one way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Which modules each module may use. A module stands below all that it uses, so the table has no
/// circle. Those that may see everything come last.
const LAYERS: [(&str, &[&str]); 25] = [
    // The model, and what needs nothing of ours.
    ("aggregate", &[]),
    ("atomic_file", &[]),
    ("config", &[]),
    // Files in the formats of the formats crate: a world of its own.
    ("events", &[]),
    ("traces", &["events"]),
    ("lock", &[]),
    ("metrics", &[]),
    ("procfs", &[]),
    ("skips", &[]),
    ("listing", &["atomic_file"]),
    // Sources: what there is to be measured, and what was measured.
    ("groups", &["config", "procfs"]),
    ("measurements", &["aggregate", "listing", "skips"]),
    ("instrument_health", &["listing", "measurements", "procfs"]),
    ("containers", &["atomic_file", "measurements", "skips"]),
    ("devices", &["config", "skips"]),
    ("follow", &["atomic_file", "skips"]),
    ("event_metrics", &[]),
    ("event_logs", &["config", "event_metrics", "skips"]),
    // Sinks: what the instrument is told, and the way out.
    ("control", &["atomic_file"]),
    ("otlp", &["aggregate", "config", "devices", "event_metrics", "listing", "metrics"]),
    ("spool", &["atomic_file", "config", "otlp"]),
    ("forward", &["atomic_file", "config", "follow", "otlp", "skips"]),
    ("carried", &["atomic_file", "forward", "otlp"]),
    ("health", &["carried", "metrics", "otlp", "skips"]),
    ("report", &["aggregate", "control", "forward", "listing", "skips"]),
];

/// They put the others together, and nobody below may use them.
const ABOVE_ALL: [&str; 6] = ["setup", "unmeasured", "pass", "cli", "lib", "main"];

/// The modules that the code of a module names by `crate::`.
fn uses(code: &str) -> BTreeSet<String> {
    let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.flat_map(|line| [line, "\n"]).collect();
    let names = code.match_indices("crate::").map(|(at, path)| {
        let rest = &code[at + path.len()..];
        let end = rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
        rest[..end.unwrap_or(rest.len())].to_owned()
    });
    names.collect()
}

/// What each module of the extension uses, its submodules' uses included.
fn graph() -> BTreeMap<String, BTreeSet<String>> {
    let mut graph = BTreeMap::<_, BTreeSet<String>>::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let module = path.strip_prefix(&src).unwrap().components().next().unwrap();
            let module = Path::new(&module).file_stem().unwrap().to_str().unwrap().to_owned();
            let mut uses = uses(&fs::read_to_string(&path).unwrap());
            uses.remove(&module);
            graph.entry(module).or_default().extend(uses);
        }
    }
    graph
}

#[test]
fn every_module_uses_only_what_stands_below_it() {
    let graph = graph();
    let known = LAYERS.iter().map(|(module, _)| *module).chain(ABOVE_ALL);
    let known: BTreeSet<_> = known.map(str::to_owned).collect();
    assert_eq!(graph.keys().cloned().collect::<BTreeSet<_>>(), known, "a module has no layer");
    for (module, allowed) in LAYERS {
        let allowed: BTreeSet<_> = allowed.iter().copied().map(str::to_owned).collect();
        assert_eq!(graph[module], allowed, "what {module} uses (left) and may use (right)");
    }
}

#[test]
fn the_table_has_no_circle() {
    for (position, (module, allowed)) in LAYERS.iter().enumerate() {
        let below: Vec<_> = LAYERS[..position].iter().map(|(module, _)| *module).collect();
        let above = allowed.iter().find(|used| !below.contains(used));
        assert_eq!(above, None, "{module} uses what does not stand below it");
    }
}

#[test]
fn a_use_is_found_however_it_is_written() {
    let code = "//! [`crate::spool`]\nuse crate::config::{A, B};\nuse crate::otlp;\nlet x = crate::skips::y();\n";
    let found: Vec<_> = uses(code).into_iter().collect();
    assert_eq!(found, ["config", "otlp", "skips"]);
}

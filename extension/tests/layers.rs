//! Dependencies between the modules run one way: the model imports nothing of ours, sources and
//! sinks know the model and not each other, and only the pass and the command line see everything.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Each top-level module, from the bottom up, and the modules that it may use.
const LAYERS: &[(&str, &[&str])] = &[
    // tools without knowledge of the product
    ("atomic_file", &[]),
    ("lock", &[]),
    ("skips", &[]),
    // the model
    ("config", &[]),
    ("aggregate", &[]),
    ("metrics", &[]),
    ("listing", &["atomic_file"]),
    // sources
    ("procfs", &[]),
    ("groups", &["config", "procfs"]),
    ("measurements", &["aggregate", "listing", "skips"]),
    // both ways
    ("control", &["atomic_file"]),
    // sinks
    ("otlp", &["aggregate", "config", "listing", "metrics"]),
    ("carried", &["atomic_file", "otlp"]),
    // the spool commits the manifest of the files together with the requests
    ("spool", &["atomic_file", "config", "measurements", "otlp"]),
    ("health", &["carried", "measurements", "metrics", "otlp", "skips"]),
    // those that see everything
    ("setup", &["config", "groups", "otlp", "procfs"]),
    ("report", &["aggregate", "control", "listing", "measurements"]),
    (
        "pass",
        &[
            "aggregate",
            "atomic_file",
            "carried",
            "config",
            "control",
            "groups",
            "health",
            "listing",
            "lock",
            "measurements",
            "otlp",
            "report",
            "setup",
            "skips",
            "spool",
        ],
    ),
    (
        "cli",
        &[
            "atomic_file",
            "config",
            "control",
            "groups",
            "listing",
            "lock",
            "otlp",
            "pass",
            "procfs",
            "report",
            "setup",
            "spool",
        ],
    ),
];

#[test]
fn dependencies_between_modules_run_one_way() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let allowed: BTreeMap<_, BTreeSet<_>> =
        LAYERS.iter().map(|(module, uses)| (*module, uses.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    visit(&source, &mut |path| {
        let relative = path.strip_prefix(&source).unwrap();
        let first = relative.components().next().unwrap().as_os_str().to_str().unwrap();
        let module = first.trim_end_matches(".rs").to_owned();
        if matches!(module.as_str(), "lib" | "main") {
            return;
        }
        let Some(allowed) = allowed.get(module.as_str()) else {
            wrong.push(format!("{}: module `{module}` is in no layer", relative.display()));
            return;
        };
        for used in uses(&fs::read_to_string(path).unwrap()) {
            if used != module && !allowed.contains(used.as_str()) {
                wrong.push(format!("{}: may not use `{used}`", relative.display()));
            }
        }
        seen.insert(module);
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen.len(), LAYERS.len(), "a layer without a module");
}

#[test]
fn the_table_itself_has_no_way_back_up() {
    let mut below = BTreeSet::new();
    for (module, uses) in LAYERS {
        for used in *uses {
            assert!(below.contains(used), "`{module}` uses `{used}`, which stands above it");
        }
        below.insert(*module);
    }
}

/// The modules named by `crate::NAME` outside of comments and tests.
fn uses(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for part in code.split("crate::").skip(1) {
        let names = part.strip_prefix('{').and_then(|list| list.split('}').next());
        let names = names.unwrap_or(part);
        for name in names.split(',').take(if part.starts_with('{') { usize::MAX } else { 1 }) {
            let name: String = name
                .trim()
                .chars()
                .take_while(|letter| letter.is_ascii_lowercase() || *letter == '_')
                .collect();
            if !name.is_empty() {
                found.insert(name);
            }
        }
    }
    found
}

fn visit(folder: &Path, each: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, each);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            each(&path);
        }
    }
}

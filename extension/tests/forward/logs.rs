//! Logs to be forwarded, and what became of their lines.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use crate::backend::Backend;
use crate::support::world::World;

/// A world that forwards its logs, `logs/*.log`, to a backend. `more` are further keys.
pub(crate) fn world(backend: &Backend, more: &str) -> World {
    world_for(&backend.url(), more)
}

pub(crate) fn world_for(url: &str, more: &str) -> World {
    let mut world = World::new();
    std::fs::create_dir(world.path("logs")).unwrap();
    let logs = world.path("logs").join("*.log");
    world.tables =
        format!("[forward]\nbackend_url = \"{url}\"\nlogs = [\"{}\"]\n{more}\n", logs.display());
    world
}

/// A line as the columnar format has them.
pub(crate) fn event(kind: &str, number: usize) -> String {
    format!(
        r#"{{"type":"{kind}","session_id":"s","batch_id":{number},"name":"a\u00e9\"{number}"}}"#
    )
}

/// Appends to a log.
pub(crate) fn append(world: &World, name: &str, content: impl AsRef<[u8]>) {
    append_to(&world.path("logs").join(name), content);
}

pub(crate) fn append_to(path: &Path, content: impl AsRef<[u8]>) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(content.as_ref()).unwrap();
}

/// Appends whole lines to a log.
pub(crate) fn append_lines(world: &World, name: &str, lines: &[String]) {
    append(world, name, lines.iter().map(|line| format!("{line}\n")).collect::<String>());
}

/// Events of one type with the numbers of a range.
pub(crate) fn events(kind: &str, numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| event(kind, number)).collect()
}

/// What was set aside, the oldest first.
pub(crate) fn dead_letters(world: &World) -> Vec<Value> {
    let path = world.state().join("dead-letters/forward.ndjson");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

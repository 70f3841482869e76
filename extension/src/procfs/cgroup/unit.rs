//! The name of a systemd unit in one part of a control group path.

/// The kinds of unit that have a control group (systemd.unit(5), systemd.resource-control(5)).
const KINDS: [&str; 6] = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];

/// systemd's limit for a unit's name, `UNIT_NAME_MAX`.
const LONGEST_NAME: usize = 255;

/// The unit that `part` is the control group of, if it is one of systemd's.
pub(super) fn name(part: &str) -> Option<&str> {
    // A name that the kernel could take for a file of its own, such as `cpu.foo.service`, gets a
    // `_` in front (systemd's CONTROL_GROUP_INTERFACE, "escaped").
    let name = part.strip_prefix('_').unwrap_or(part);
    let stem = KINDS.iter().find_map(|kind| name.strip_suffix(kind))?;
    let valid = !stem.is_empty() && !stem.starts_with('@') && name.len() <= LONGEST_NAME;
    (valid && stem.bytes().all(is_allowed)).then_some(name)
}

/// Letters, digits and `:-_.\@` (systemd.unit(5), "String escaping for inclusion in unit names").
fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte)
}

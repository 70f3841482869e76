//! How rotation decorates names.
//!
//! ```text
//! train.log                                   the file that is being written
//! train.log.1, train.log.2.gz                 renamed or copied: the higher, the older
//! train.log-20261121, train.log-20261121.gz   dated
//! train.1.log, train.kernel.0.log             numbered inside: rising or falling
//! ```
//!
//! All of them are one family, `train.log` (`train.kernel.log` for the last).

/// A name taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RotatedName {
    /// The name without any decoration.
    pub(super) family: String,
    /// The names that a pattern may mean, from the whole name to the undecorated one.
    pub(super) readings: Vec<String>,
    /// Whether the content is compressed.
    pub(super) is_packed: bool,
    /// What stood in the decoration.
    pub(super) turn: Turn,
}

/// What a decoration says of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing decorates the name: nothing of the family is newer.
    Current,
    /// A number or a date behind the name.
    Behind(u64),
    /// A number before the extension.
    Inside(u64),
}

impl RotatedName {
    pub(super) fn parse(name: &str) -> Self {
        let mut readings = vec![name.to_owned()];
        let mut rest = name;
        let unpacked = rest.strip_suffix(".gz").filter(|rest| !rest.is_empty());
        if let Some(unpacked) = unpacked {
            rest = unpacked;
            readings.push(rest.to_owned());
        }
        let mut turn = Turn::Current;
        if let Some((stem, number)) = behind(rest) {
            (rest, turn) = (stem, Turn::Behind(number));
            readings.push(rest.to_owned());
        }
        let mut family = rest.to_owned();
        if let Some((stem, number, extension)) = inside(rest) {
            family = format!("{stem}.{extension}");
            if turn == Turn::Current {
                turn = Turn::Inside(number);
            }
            readings.push(family.clone());
        }
        Self { family, readings, is_packed: unpacked.is_some(), turn }
    }
}

/// `train.log.1`, `train.log-20261121`
fn behind(name: &str) -> Option<(&str, u64)> {
    let (stem, number) = name.rsplit_once(['.', '-'])?;
    let separator = name.as_bytes().get(stem.len())?;
    let number = whole_number(number)?;
    // `job-7` is a name, `train.log-20261121` has a date behind it.
    let is_decoration = *separator == b'.' || (number.to_string().len() == 8 && stem.contains('.'));
    (is_decoration && !stem.is_empty()).then_some((stem, number))
}

/// `train.1.log`
fn inside(name: &str) -> Option<(&str, u64, &str)> {
    let (rest, extension) = name.rsplit_once('.')?;
    let (stem, number) = rest.rsplit_once('.')?;
    let number = whole_number(number)?;
    (!stem.is_empty() && !extension.is_empty()).then_some((stem, number, extension))
}

fn whole_number(digits: &str) -> Option<u64> {
    digits.parse().ok().filter(|_: &u64| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decoration_is_taken_off() {
        for (name, family, is_packed, turn) in [
            ("train.log", "train.log", false, Turn::Current),
            ("train.log.1", "train.log", false, Turn::Behind(1)),
            ("train.log.12.gz", "train.log", true, Turn::Behind(12)),
            ("train.log.gz", "train.log", true, Turn::Current),
            ("train.log-20261121", "train.log", false, Turn::Behind(20_261_121)),
            ("train.log-20261121.gz", "train.log", true, Turn::Behind(20_261_121)),
            ("train.3.log", "train.log", false, Turn::Inside(3)),
            ("train.kernel.0.log.gz", "train.kernel.log", true, Turn::Inside(0)),
            ("gpumon_job-7_4242.log", "gpumon_job-7_4242.log", false, Turn::Current),
            ("job-7", "job-7", false, Turn::Current),
            (".gz", ".gz", false, Turn::Current),
            (".7", ".7", false, Turn::Current),
            ("a..log", "a..log", false, Turn::Current),
        ] {
            let parsed = RotatedName::parse(name);
            let got = (parsed.family.as_str(), parsed.is_packed, parsed.turn);
            assert_eq!(got, (family, is_packed, turn), "{name}");
            assert_eq!(parsed.readings.first().map(String::as_str), Some(name));
        }
    }
}

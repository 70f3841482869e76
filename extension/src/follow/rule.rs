//! Which files are followed: one glob pattern over absolute paths.

use std::path::PathBuf;

use globset::{GlobBuilder, GlobMatcher};

use super::names::RotatedName;

/// A pattern such as `/var/log/gpu/*/gpumon_*.log`. `*`, `?`, `[...]` and `{a,b}` stay within one
/// part of the path. A rotated file need not match itself: it belongs to the pattern that its
/// undecorated name matches.
#[derive(Debug, Clone)]
pub struct Rule {
    pattern: String,
    /// The folders before the first wildcard; links among them are the administrator's and followed.
    pub(super) root: PathBuf,
    /// The folders behind it; none of them may be a link.
    pub(super) folders: Vec<GlobMatcher>,
    name: GlobMatcher,
    /// Where following begins.
    pub(super) start: Start,
}

/// Where following begins in the files that stand there at the first look for a pattern. Files that
/// come later are read from their beginning, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// At their beginning.
    #[default]
    Beginning,
    /// At their end. The lines that stand there are handed on all the same, as past
    /// ([`FileId::is_past`](super::FileId::is_past)): later ones may use what they say.
    End,
}

/// Why a pattern is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` {fault}")]
pub struct RuleFault {
    pattern: String,
    fault: String,
}

impl Rule {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`RuleFault`], in words for the person who wrote it.
    pub fn new(pattern: &str) -> Result<Self, RuleFault> {
        let refuse =
            |fault: &str| RuleFault { pattern: pattern.to_owned(), fault: fault.to_owned() };
        let Some(parts) = pattern.strip_prefix('/') else {
            return Err(refuse(
                "is relative; a scheduled pass has no folder of its own: write the whole path",
            ));
        };
        let mut parts: Vec<_> = parts.split('/').collect();
        let name = parts.pop().filter(|name| !name.is_empty());
        let name =
            name.ok_or_else(|| refuse("names a folder; name the files in it, such as `*.log`"))?;
        for part in &parts {
            match *part {
                "" | "." | ".." => {
                    return Err(refuse("has an empty part, `.` or `..`; write the plain path"));
                }
                "**" => return Err(refuse("has `**`; name the depth, such as `/logs/*/*.log`")),
                _ => {}
            }
        }
        let compile = |part: &str| {
            let mut glob = GlobBuilder::new(part);
            let glob = glob.literal_separator(true).backslash_escape(true).build();
            glob.map(|glob| glob.compile_matcher())
                .map_err(|fault| refuse(&format!("is no pattern: {}", fault.kind())))
        };
        let is_plain = |part: &&&str| !part.contains(['*', '?', '[', '{', '\\']);
        let fixed = parts.iter().take_while(is_plain).count();
        let (fixed, open) = parts.split_at(fixed);
        let mut root = PathBuf::from("/");
        root.extend(fixed);
        let folders = open.iter().map(|part| compile(part)).collect::<Result<_, _>>()?;
        let (pattern, name) = (pattern.to_owned(), compile(name)?);
        Ok(Self { pattern, root, folders, name, start: Start::Beginning })
    }

    /// The same, beginning elsewhere.
    #[must_use]
    pub fn starting(self, start: Start) -> Self {
        Self { start, ..self }
    }

    /// As it was written.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Whether a name, or what it was before its rotation, is meant.
    pub(super) fn means(&self, name: &RotatedName) -> bool {
        name.readings.iter().any(|reading| self.name.is_match(reading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_its_files_and_what_rotation_makes_of_them() {
        let rule = Rule::new("/var/log/*/gpumon_*.log").unwrap();
        assert_eq!(rule.root, PathBuf::from("/var/log"));
        for (name, is_meant) in [
            ("gpumon_a_7.log", true),
            ("gpumon_a_7.log.1", true),
            ("gpumon_a_7.log.3.gz", true),
            ("gpumon_a_7.2.log", true),
            ("gpumon_a_7.log.bak", false),
            ("other.log", false),
        ] {
            assert_eq!(rule.means(&RotatedName::parse(name)), is_meant, "{name}");
        }
    }

    #[test]
    fn a_wrong_pattern_is_refused_in_words() {
        for (pattern, words) in [
            ("logs/*.log", "relative"),
            ("/logs/", "names a folder"),
            ("/logs/**/a.log", "`**`"),
            ("/logs/../a.log", "`..`"),
            ("/logs/[a.log", "no pattern"),
        ] {
            let fault = Rule::new(pattern).unwrap_err().to_string();
            assert!(fault.contains(words), "{fault}");
        }
    }
}

//! The name of a measurement file: `<pid>-<tid>-<timestamp>`.
//!
//! ```text
//! 4242-4250-1789550000123456789      ours: kernel thread id, nanoseconds since the epoch
//! 4242-7f3a5c0de700-14:03:59         the older module's: pthread_self in hex, wall time
//! .4242-4250-1789550000123456789     being written: a leading dot, not looked at
//! ```

use std::fmt;

/// A name, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasurementFileName<'a> {
    /// The process that was measured, by its own pid namespace's number.
    pub pid: u32,
    /// The thread that wrote: decimal, or hexadecimal from the older module.
    pub tid: &'a str,
    /// Whatever makes the name unique; printable ASCII without `-`.
    pub timestamp: &'a str,
}

/// Why a name is none of a measurement file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameFault {
    /// It begins with a dot: somebody is writing it, or it is no business of the reader's.
    Hidden,
    /// It does not fit `<pid>-<tid>-<timestamp>`.
    DoesNotFit,
}

impl<'a> MeasurementFileName<'a> {
    /// Takes a name apart.
    ///
    /// # Errors
    /// [`NameFault::Hidden`] for a leading dot, [`NameFault::DoesNotFit`] for everything else that
    /// is not a measurement file's name.
    pub fn parse(name: &'a [u8]) -> Result<Self, NameFault> {
        if name.first() == Some(&b'.') {
            return Err(NameFault::Hidden);
        }
        Self::take_apart(name).ok_or(NameFault::DoesNotFit)
    }

    fn take_apart(name: &'a [u8]) -> Option<Self> {
        // Control characters and bytes beyond ASCII would end up in logs and manifests.
        if !name.iter().all(u8::is_ascii_graphic) {
            return None;
        }
        let mut parts = std::str::from_utf8(name).ok()?.split('-');
        let (pid, tid, timestamp) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || timestamp.is_empty() || timestamp.contains('/') {
            return None;
        }
        // A pid is written by the kernel's rules: no sign, no leading zero, never 0.
        if pid.starts_with('0') || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = tid.strip_prefix("0x").unwrap_or(tid);
        if digits.is_empty()
            || digits.len() > 16
            || !digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return None;
        }
        Some(Self { pid: pid.parse().ok()?, tid, timestamp })
    }

    /// Whether the writer appends to the file in place under a name that changes once a second,
    /// as the older module does (`HH:MM:SS`); such a file is only complete when it has been quiet
    /// for a while. Ours appear whole, by a rename.
    #[must_use]
    pub fn is_appended_in_place(&self) -> bool {
        self.timestamp.contains(':')
    }
}

impl fmt::Display for MeasurementFileName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.pid, self.tid, self.timestamp)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_both_modules_are_taken_apart() {
        let ours = MeasurementFileName::parse(b"4242-4250-1789550000123456789").unwrap();
        assert_eq!((ours.pid, ours.tid, ours.timestamp), (4242, "4250", "1789550000123456789"));
        assert!(!ours.is_appended_in_place());
        let older = MeasurementFileName::parse(b"4242-0x7f3a5c0de700-14:03:59").unwrap();
        assert_eq!(older.pid, 4242);
        assert!(older.is_appended_in_place());
    }

    #[test]
    fn whatever_does_not_fit_is_told_from_what_is_being_written() {
        assert_eq!(MeasurementFileName::parse(b".4242-1-2"), Err(NameFault::Hidden));
        for name in [
            &b""[..],
            b"4242",
            b"4242-1",
            b"4242-1-",
            b"4242--2",
            b"4242-1-2-3",
            b"-1-2",
            b"0-1-2",
            b"042-1-2",
            b"+42-1-2",
            b"4294967296-1-2",
            b"42-xyz-2",
            b"42-1-2\n",
            b"42-1-\xff",
            b"42-1-2/3",
            b"42-1- 2",
        ] {
            assert_eq!(MeasurementFileName::parse(name), Err(NameFault::DoesNotFit), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(pid in 1_u32.., tid: u32, timestamp: u64) {
            let (tid, timestamp) = (tid.to_string(), timestamp.to_string());
            let name = MeasurementFileName { pid, tid: &tid, timestamp: &timestamp };
            let written = name.to_string();
            prop_assert_eq!(MeasurementFileName::parse(written.as_bytes()), Ok(name));
        }

        #[test]
        fn no_name_panics_and_what_fits_reads_back_the_same(name: Vec<u8>) {
            if let Ok(parsed) = MeasurementFileName::parse(&name) {
                prop_assert_eq!(parsed.to_string().into_bytes(), name);
            }
        }
    }
}

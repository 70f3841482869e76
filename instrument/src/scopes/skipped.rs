//! What could not be recorded as the program said it, by reason.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Reason {
    /// A scope or range ended that had not begun, or that began before anybody recorded.
    EndWithoutBegin,
    /// More scopes were open on a thread than are kept; those within are not recorded.
    TooDeep,
    /// More ranges were open in the process than are kept; the new ones are not recorded.
    TooManyRanges,
    /// More names than are kept; the event is recorded without its own.
    TooManyNames,
    /// More categories or threads were named than are kept.
    TooManyLabels,
    /// The name was cut.
    LongName,
    /// The attributes or the message were missing or of an unknown kind; recorded without a name.
    Malformed,
    /// The number attached to an event was of an unknown kind; recorded without it.
    UnknownPayload,
    /// A program was compiled with a version of NVTX that is not known; nothing of it is recorded.
    UnknownVersion,
    /// A signal handler said something while its thread was at it; not recorded.
    Interrupted,
}

impl Reason {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::EndWithoutBegin,
        Self::TooDeep,
        Self::TooManyRanges,
        Self::TooManyNames,
        Self::TooManyLabels,
        Self::LongName,
        Self::Malformed,
        Self::UnknownPayload,
        Self::UnknownVersion,
        Self::Interrupted,
    ];

    /// As people and machines read it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EndWithoutBegin => "end_without_begin",
            Self::TooDeep => "too_deep",
            Self::TooManyRanges => "too_many_ranges",
            Self::TooManyNames => "too_many_names",
            Self::TooManyLabels => "too_many_labels",
            Self::LongName => "long_name",
            Self::Malformed => "malformed",
            Self::UnknownPayload => "unknown_payload",
            Self::UnknownVersion => "unknown_version",
            Self::Interrupted => "interrupted",
        }
    }
}

static COUNTS: [AtomicU64; Reason::ALL.len()] = [const { AtomicU64::new(0) }; Reason::ALL.len()];

/// Counts one.
pub(crate) fn count(reason: Reason) {
    if let Some(count) = COUNTS.get(reason as usize) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// How often each reason came up since the process began.
pub fn counts() -> impl Iterator<Item = (Reason, u64)> {
    Reason::ALL.into_iter().zip(COUNTS.iter().map(|count| count.load(Ordering::Relaxed)))
}

/// What came up, for people: each reason and its count. `None` where nothing did.
#[must_use]
pub fn summary() -> Option<String> {
    let all: Vec<String> = counts()
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| format!("{} {count}", reason.name()))
        .collect();
    (!all.is_empty()).then(|| all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_number_and_a_name_of_its_own() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            assert!(Reason::ALL[..index].iter().all(|other| other.name() != reason.name()));
        }
    }
}

//! What did not get into the log, by reason.

use std::fmt::Write;

/// Why an event is not in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The ring was full.
    RingFull,
    /// CUPTI had no buffer for the record of a kernel or a copy.
    BufferShortage,
    /// CUPTI had no times for a kernel or a copy.
    WithoutTimes,
    /// A buffer ended in the middle of a record, or its record could not be read.
    Malformed,
    /// The file system refused the lines.
    Unwritten,
    /// The file that had them was removed for newer ones.
    Removed,
    /// CUPTI had not delivered the record of a launch when the program exited.
    Undelivered,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::RingFull,
        Self::BufferShortage,
        Self::WithoutTimes,
        Self::Malformed,
        Self::Unwritten,
        Self::Removed,
        Self::Undelivered,
    ];

    /// The name in the last line of a log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RingFull => "ring_full",
            Self::BufferShortage => "buffer_shortage",
            Self::WithoutTimes => "without_times",
            Self::Malformed => "malformed",
            Self::Unwritten => "unwritten",
            Self::Removed => "removed",
            Self::Undelivered => "undelivered",
        }
    }

    /// What it means, for people.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::RingFull => "more scopes than the ring holds: some are not in the event log",
            Self::BufferShortage => {
                "more kernels than CUPTI has buffers for: some are not in the event log"
            }
            Self::WithoutTimes => "CUPTI gave kernels or copies without times: they are left out",
            Self::Malformed => "CUPTI gave records that are not whole: they are left out",
            Self::Unwritten => "events that could not be written are lost",
            Self::Removed => "the oldest file of the event log gave way to the newest",
            Self::Undelivered => "CUPTI had not delivered the last kernels when the program exited",
        }
    }
}

/// Counts by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses([u64; Reason::ALL.len()]);

impl Losses {
    /// Adds to a reason's count.
    pub fn add(&mut self, reason: Reason, count: u64) {
        if let Some(known) = self.0.get_mut(reason as usize) {
            *known = known.saturating_add(count);
        }
    }

    /// Replaces a reason's count by one that is kept elsewhere.
    pub fn set(&mut self, reason: Reason, count: u64) {
        if let Some(known) = self.0.get_mut(reason as usize) {
            *known = count;
        }
    }

    /// A reason's count.
    #[must_use]
    pub fn of(&self, reason: Reason) -> u64 {
        self.0.get(reason as usize).copied().unwrap_or_default()
    }

    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Adds the members of a JSON object, each behind a comma, to the end of a line:
    /// `,"lost":3,"lost_by_reason":{"ring_full":3}`. Reasons without a count are left out.
    pub fn write(&self, line: &mut String) {
        // Writing to a string does not fail.
        let _written = write!(line, ",\"lost\":{}", self.total());
        let mut before = ",\"lost_by_reason\":{";
        for reason in Reason::ALL.into_iter().filter(|reason| self.of(*reason) > 0) {
            let _written = write!(line, "{before}\"{}\":{}", reason.name(), self.of(reason));
            before = ",";
        }
        if self.total() > 0 {
            line.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_end_a_line_and_reasons_without_one_are_left_out() {
        let mut losses = Losses::default();
        let mut line = String::new();
        losses.write(&mut line);
        assert_eq!(line, r#","lost":0"#);
        losses.add(Reason::RingFull, 3);
        losses.set(Reason::Undelivered, 4);
        line.clear();
        losses.write(&mut line);
        assert_eq!(line, r#","lost":7,"lost_by_reason":{"ring_full":3,"undelivered":4}"#);
    }
}

//! Instants and spans: whole nanoseconds, never a float.

/// Nanoseconds since the zero of the log's clock: the Unix epoch where the producer reads the wall
/// clock, some moment before the machine's start where it reads a monotonic one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

/// A length of time in nanoseconds; negative where a producer's clock ran backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub i64);

impl Timestamp {
    /// 2000-01-01T00:00:00Z in nanoseconds since the Unix epoch. Clocks since boot stay below it for
    /// thirty years.
    pub const EARLIEST_WALL_CLOCK: Self = Self(946_684_800_000_000_000);

    /// The instant that lies `span` later; the end of the range where there is none.
    #[must_use]
    pub fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// How long after `earlier` this instant lies.
    #[must_use]
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Whether this can be a reading of the wall clock rather than of one that starts with the
    /// machine.
    #[must_use]
    pub fn is_wall_clock(self) -> bool {
        self >= Self::EARLIEST_WALL_CLOCK
    }
}

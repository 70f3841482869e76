//! What the numbers of an event say together.

use super::TelemetryEvent;

impl TelemetryEvent<'_> {
    /// Bytes of the device that are used beyond what the allocator holds: of other processes, of the
    /// context, of libraries. Negative where the producer's figures contradict each other.
    ///
    /// The trackers of the format's producers set `device_used_bytes` to the larger of allocated and
    /// reserved, so that their gap is 0 by construction. Only a figure of the device itself gives a
    /// real one.
    #[must_use]
    pub fn gap_bytes(&self) -> i128 {
        self.device_used_bytes.saturating_sub(self.allocator_reserved_bytes)
    }

    /// The share of the reserved bytes in which no tensor is: (reserved - allocated) / reserved.
    /// `None` where nothing is reserved; negative where the producer says that more is allocated
    /// than reserved.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share has no more than 53 bits anyway")]
    pub fn fragmentation(&self) -> Option<f64> {
        let reserved = self.allocator_reserved_bytes;
        let unused = reserved.saturating_sub(self.allocator_allocated_bytes);
        (reserved > 0).then(|| unused as f64 / reserved as f64)
    }

    /// Whether the event tells that memory ran out: an `error` whose metadata names the reason.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        let reason = self.metadata.get("oom_reason");
        self.event_type == "error" && reason.is_some_and(|reason| reason != "null")
    }
}

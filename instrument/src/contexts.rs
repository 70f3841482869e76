//! Which device a context belongs to.
//!
//! Noted on the host's threads when a launch shape is new, asked by the worker. A context that was
//! destroyed stays noted until another one gets its handle.

use std::sync::atomic::{AtomicU64, Ordering};

/// More contexts than a process has at once; the devices of others are not known.
const CONTEXTS: usize = 64;

/// The contexts that were seen, each with its device.
#[derive(Debug)]
pub struct Contexts {
    /// Handle, and device plus one: 0 while that is being written.
    places: [(AtomicU64, AtomicU64); CONTEXTS],
}

impl Contexts {
    /// Nothing seen.
    #[must_use]
    pub const fn new() -> Self {
        Self { places: [const { (AtomicU64::new(0), AtomicU64::new(0)) }; CONTEXTS] }
    }

    /// Notes the device of a context.
    pub fn note(&self, context: u64, device: u32) {
        let device = u64::from(device) + 1;
        for (handle, place) in &self.places {
            let claimed = handle.compare_exchange(0, context, Ordering::AcqRel, Ordering::Acquire);
            if claimed.is_ok() || claimed == Err(context) {
                place.store(device, Ordering::Release);
                return;
            }
        }
    }

    /// The device of a context, if it was noted.
    #[must_use]
    pub fn device_of(&self, context: u64) -> Option<u32> {
        let (_, place) =
            self.places.iter().find(|(handle, _)| handle.load(Ordering::Acquire) == context)?;
        u32::try_from(place.load(Ordering::Acquire).checked_sub(1)?).ok()
    }
}

impl Default for Contexts {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_changes_hands_has_the_device_of_the_new_context() {
        let contexts = Contexts::new();
        contexts.note(16, 0);
        contexts.note(32, 1);
        assert_eq!(contexts.device_of(16), Some(0));
        contexts.note(16, 3);
        assert_eq!((contexts.device_of(16), contexts.device_of(32)), (Some(3), Some(1)));
        assert_eq!(contexts.device_of(48), None);
    }

    #[test]
    fn contexts_that_find_no_room_have_no_device() {
        let contexts = Contexts::new();
        for handle in 1..=CONTEXTS as u64 + 1 {
            contexts.note(handle, 7);
        }
        assert_eq!(contexts.device_of(CONTEXTS as u64 + 1), None);
    }
}

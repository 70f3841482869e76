//! Tells contents apart by the bytes at their beginning and before a cursor.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// How many bytes a fingerprint covers at most.
pub(super) const LENGTH: usize = 1_024;

/// Length and hash of a stretch of bytes. The hash is SHA-1, by way of a UUID of version 5
/// (RFC 9562, section 5.5), so that it is the same in every later version of warpgauge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    length: usize,
    hash: String,
}

impl Fingerprint {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let hash = Uuid::new_v5(&Uuid::NAMESPACE_OID, bytes).simple().to_string();
        Self { length: bytes.len(), hash }
    }

    /// How many bytes it covers.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Whether these bytes begin with what it was taken of.
    pub(super) fn begins(&self, bytes: &[u8]) -> bool {
        bytes.get(..self.length).is_some_and(|bytes| Self::of(bytes) == *self)
    }
}

/// The first and the last bytes of what has been taken from a file.
#[derive(Debug, Default)]
pub(super) struct Ends {
    pub(super) head: Vec<u8>,
    pub(super) tail: Vec<u8>,
}

impl Ends {
    /// Takes in what follows.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        let missing = LENGTH.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(bytes.get(..missing).unwrap_or_default());
        let last = bytes.get(bytes.len().saturating_sub(LENGTH)..).unwrap_or_default();
        let surplus = (self.tail.len() + last.len()).saturating_sub(LENGTH);
        self.tail.drain(..surplus.min(self.tail.len()));
        self.tail.extend_from_slice(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_ends_are_those_of_the_whole(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 0..8)) {
            let mut ends = Ends::default();
            parts.iter().for_each(|part| ends.extend(part));
            let whole = parts.concat();
            prop_assert_eq!(&ends.head[..], &whole[..whole.len().min(LENGTH)]);
            prop_assert_eq!(&ends.tail[..], &whole[whole.len().saturating_sub(LENGTH)..]);
        }
    }

    #[test]
    fn other_bytes_and_fewer_bytes_do_not_begin_the_same() {
        let fingerprint = Fingerprint::of(b"abc");
        assert!(fingerprint.begins(b"abcd"));
        assert!(!fingerprint.begins(b"abd") && !fingerprint.begins(b"ab"));
    }
}

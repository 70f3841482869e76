//! What goes through the ring, as words.
//!
//! ```text
//! scope    0  time               memory   0  time
//!          1  instance                    1  bytes in use
//!          2  payload                     2  bytes that there are
//!          3  name | domain << 32         3  device
//!          4  thread | category << 32     4  thread
//!          5  kind | phase << 8 | kind of payload << 16 | flags << 24 | depth << 32
//!          6  when it began, of an end; else the colour
//! flags    1  it spans threads   2  it has a colour
//! ```

use crate::events::ring::Words;
use crate::names::NameId;
use crate::scopes::{Payload, Phase, ScopeRecord};

/// A record of the ring.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Record {
    /// Something happened to a scope.
    Scope(ScopeRecord),
    /// The memory of a device was read.
    Memory(MemoryRecord),
}

/// The memory of a device at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRecord {
    /// When: nanoseconds since the epoch, `CLOCK_REALTIME`.
    pub time_ns: i64,
    /// The kernel's id of the thread that launched then.
    pub thread: u32,
    /// CUDA ordinal of the device.
    pub device: u32,
    /// Bytes in use, of all processes together.
    pub used_bytes: u64,
    /// Bytes that there are.
    pub total_bytes: u64,
}

const SCOPE: u64 = 1;
const MEMORY: u64 = 2;

impl Record {
    /// The words of a record.
    #[must_use]
    pub fn to_words(self) -> Words {
        match self {
            Self::Scope(scope) => {
                let (payload_kind, payload) = match scope.payload {
                    Payload::None => (0, 0),
                    Payload::Unsigned(number) => (1, number),
                    Payload::Signed(number) => (2, number.cast_unsigned()),
                    Payload::Float(number) => (3, number.to_bits()),
                };
                [
                    scope.time_ns.cast_unsigned(),
                    scope.instance,
                    payload,
                    pair(scope.name.number(), scope.domain.number()),
                    pair(scope.thread, scope.category),
                    SCOPE
                        | (scope.phase as u64) << 8
                        | payload_kind << 16
                        | u64::from(scope.spans_threads) << 24
                        | u64::from(scope.color.is_some()) << 25
                        | u64::from(scope.depth) << 32,
                    match scope.phase {
                        Phase::End => scope.begun_ns.cast_unsigned(),
                        Phase::Begin | Phase::Mark => scope.color.unwrap_or(0).into(),
                    },
                ]
            }
            Self::Memory(memory) => [
                memory.time_ns.cast_unsigned(),
                memory.used_bytes,
                memory.total_bytes,
                memory.device.into(),
                memory.thread.into(),
                MEMORY,
                0,
            ],
        }
    }

    /// The record of these words; `None` where they are none.
    #[must_use]
    pub fn from_words(words: &Words) -> Option<Self> {
        let [time, first, second, third, fourth, kind, last] = *words;
        let time_ns = time.cast_signed();
        let phase = match kind >> 8 & 0xff {
            0 => Phase::Begin,
            1 => Phase::End,
            _ => Phase::Mark,
        };
        match kind & 0xff {
            SCOPE => Some(Self::Scope(ScopeRecord {
                time_ns,
                thread: low(fourth),
                phase,
                begun_ns: if phase == Phase::End { last.cast_signed() } else { time_ns },
                spans_threads: kind >> 24 & 1 != 0,
                color: (kind >> 25 & 1 != 0).then_some(low(last)),
                instance: first,
                name: NameId::from_number(low(third)),
                domain: NameId::from_number(high(third)),
                category: high(fourth),
                depth: (kind >> 32 & 0xffff) as u16,
                payload: match kind >> 16 & 0xff {
                    0 => Payload::None,
                    1 => Payload::Unsigned(second),
                    2 => Payload::Signed(second.cast_signed()),
                    _ => Payload::Float(f64::from_bits(second)),
                },
            })),
            MEMORY => Some(Self::Memory(MemoryRecord {
                time_ns,
                thread: low(fourth),
                device: low(third),
                used_bytes: first,
                total_bytes: second,
            })),
            _ => None,
        }
    }
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn low(word: u64) -> u32 {
    (word & 0xffff_ffff) as u32
}

fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn payload() -> impl Strategy<Value = Payload> {
        prop_oneof![
            Just(Payload::None),
            any::<u64>().prop_map(Payload::Unsigned),
            any::<i64>().prop_map(Payload::Signed),
            proptest::num::f64::NORMAL.prop_map(Payload::Float),
        ]
    }

    fn phase() -> impl Strategy<Value = Phase> {
        prop_oneof![Just(Phase::Begin), Just(Phase::End), Just(Phase::Mark)]
    }

    proptest! {
        #[test]
        fn a_scope_comes_back_from_its_words(
            (time_ns, thread, phase, instance, name) in
                (any::<i64>(), any::<u32>(), phase(), any::<u64>(), any::<u32>()),
            (domain, category, depth, payload) in
                (any::<u32>(), any::<u32>(), any::<u16>(), payload()),
            (began, color, spans_threads) in
                (any::<i64>(), any::<Option<u32>>(), any::<bool>()),
        ) {
            let (name, domain) = (NameId::from_number(name), NameId::from_number(domain));
            let ends = phase == Phase::End;
            let begun_ns = if ends { began } else { time_ns };
            let color = color.filter(|_| !ends);
            let record = Record::Scope(ScopeRecord {
                time_ns, begun_ns, thread, phase, instance, name, domain, category, depth, payload,
                color, spans_threads,
            });
            prop_assert_eq!(Record::from_words(&record.to_words()), Some(record));
        }

        #[test]
        fn a_memory_sample_comes_back_from_its_words(
            time_ns: i64, thread: u32, device: u32, used_bytes: u64, total_bytes: u64,
        ) {
            let record =
                Record::Memory(MemoryRecord { time_ns, thread, device, used_bytes, total_bytes });
            prop_assert_eq!(Record::from_words(&record.to_words()), Some(record));
        }
    }

    #[test]
    fn words_of_no_record_are_none() {
        assert_eq!(Record::from_words(&[0; 7]), None);
    }
}

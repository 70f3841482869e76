//! The packets that a trace is made of.

use super::wire;

/// `TYPE_...` of `TrackEvent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

/// All packets are of one sequence.
const SEQUENCE: u64 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED` and `SEQ_NEEDS_INCREMENTAL_STATE` of `TracePacket`.
const CLEARED: u64 = 1;
const NEEDED: u64 = 2;

/// Numbers of `BuiltinClock`.
const REALTIME: u64 = 1;
const BOOTTIME: u64 = 6;

/// The first packet: from here on, texts are numbered.
pub(super) fn beginning(out: &mut Vec<u8>) {
    packet(out, CLEARED, |_| ());
}

/// Numbers for texts, as the body of an `InternedData`.
pub(super) fn interned(out: &mut Vec<u8>, body: &[u8]) {
    packet(out, NEEDED, |packet| wire::bytes(packet, 12, body));
}

/// A track, as the body of a `TrackDescriptor`.
pub(super) fn descriptor(out: &mut Vec<u8>, body: &[u8]) {
    packet(out, NEEDED, |packet| wire::bytes(packet, 60, body));
}

/// An event, with the body of its `TrackEvent` but for kind and track.
pub(super) fn event(out: &mut Vec<u8>, time: u64, kind: Kind, track: u64, body: &[u8]) {
    packet(out, NEEDED, |packet| {
        wire::unsigned(packet, 8, time);
        wire::message(packet, 11, |event| {
            wire::unsigned(event, 9, kind as u64);
            wire::unsigned(event, 11, track);
            event.extend_from_slice(body);
        });
    });
}

/// What the wall clock read at the zero of the trace's times.
pub(super) fn base_time(out: &mut Vec<u8>, nanoseconds: u64) {
    packet(out, NEEDED, |packet| {
        wire::message(packet, 6, |snapshot| {
            for (clock, reading) in [(BOOTTIME, 0), (REALTIME, nanoseconds)] {
                wire::message(snapshot, 1, |body| {
                    wire::unsigned(body, 1, clock);
                    wire::unsigned(body, 2, reading);
                });
            }
            wire::unsigned(snapshot, 2, BOOTTIME);
        });
    });
}

fn packet(out: &mut Vec<u8>, flags: u64, write: impl FnOnce(&mut Vec<u8>)) {
    wire::message(out, 1, |packet| {
        write(packet);
        wire::unsigned(packet, 10, SEQUENCE);
        wire::unsigned(packet, 13, flags);
    });
}

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

/// An event, with the body of its `TrackEvent` but for kind and track, in two parts. There are more
/// of these than of all others, so that their lengths are reckoned before they are written.
pub(super) fn event(out: &mut Vec<u8>, time: u64, kind: Kind, track: u64, body: [&[u8]; 2]) {
    let inner = 3 + wire::size(track) + body.map(<[u8]>::len).iter().sum::<usize>();
    let ends = 4;
    wire::head(out, 1, 1 + wire::size(time) + 1 + wire::size(inner as u64) + inner + ends);
    wire::unsigned(out, 8, time);
    wire::head(out, 11, inner);
    wire::unsigned(out, 9, kind as u64);
    wire::unsigned(out, 11, track);
    body.into_iter().for_each(|part| out.extend_from_slice(part));
    end(out, NEEDED);
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

/// What is said of the trace as a whole: a `ChromeMetadata` with a JSON text in a `ChromeEventBundle`,
/// the one place of the form for words of any kind.
pub(super) fn metadata(out: &mut Vec<u8>, name: &str, json: &str) {
    packet(out, NEEDED, |packet| {
        wire::unsigned(packet, 8, 0);
        wire::message(packet, 5, |bundle| {
            wire::message(bundle, 2, |metadata| {
                wire::text(metadata, 1, name);
                wire::text(metadata, 5, json);
            });
        });
    });
}

fn packet(out: &mut Vec<u8>, flags: u64, write: impl FnOnce(&mut Vec<u8>)) {
    wire::message(out, 1, |packet| {
        write(packet);
        end(packet, flags);
    });
}

/// What every packet ends with: four bytes.
fn end(packet: &mut Vec<u8>, flags: u64) {
    wire::unsigned(packet, 10, SEQUENCE);
    wire::unsigned(packet, 13, flags);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_lengths_that_were_reckoned() {
        for (time, track, length) in
            [(0, 1, 0), (127, 128, 110), (128, 300, 120), (u64::MAX, u64::MAX, 20_000)]
        {
            let (name, arrows) = (vec![b'n'; length], [b'a'; 10]);
            let (mut reckoned, mut measured) = (vec![], vec![]);
            event(&mut reckoned, time, Kind::Begin, track, [&name, &arrows]);
            packet(&mut measured, NEEDED, |packet| {
                wire::unsigned(packet, 8, time);
                wire::message(packet, 11, |event| {
                    wire::unsigned(event, 9, Kind::Begin as u64);
                    wire::unsigned(event, 11, track);
                    event.extend_from_slice(&name);
                    event.extend_from_slice(&arrows);
                });
            });
            assert_eq!(reckoned, measured);
        }
    }
}

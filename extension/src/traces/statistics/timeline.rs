//! The devices of one trace and what ran on them, in bounded memory.

use std::collections::BTreeMap;

use warpgauge_formats::trace::{TraceEvent, Track};

use super::device::{Device, Stream};
use super::intervals::Interval;
use super::launches::{Call, Joined, Launches, Link, Piece};
use super::role::{Role, Work};

/// How much is remembered.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Stretches of time in which a stream was busy: 24 bytes each, up to twice that while they are
    /// sorted.
    pub intervals: usize,
    /// Calls of the host, and as many pieces of work whose call has not come: about 60 bytes each.
    pub launches: usize,
    /// Devices and streams together.
    pub streams: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { intervals: 1 << 21, launches: 1 << 19, streams: 4_096 }
    }
}

/// A stream, by the places of its device and of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    device: usize,
    stream: usize,
}

/// The devices of one trace.
///
/// Beyond the limit of intervals the earlier half is summed up and forgotten. Work of that time
/// that comes later cannot be told apart from what has been summed up: it counts as
/// [`Device::late`] and in no time of the device's or the stream's.
#[derive(Debug)]
pub(super) struct Timeline {
    limits: Limits,
    places: BTreeMap<Track<'static>, Place>,
    pub(super) devices: Vec<Device>,
    launches: Launches,
    held: usize,
    /// Pieces of work on streams beyond the limit.
    pub(super) left_out: u64,
}

impl Timeline {
    pub(super) fn new(limits: Limits) -> Self {
        let launches = Launches::with_limit(limits.launches);
        let (places, devices) = (BTreeMap::new(), vec![]);
        Self { limits, places, devices, launches, held: 0, left_out: 0 }
    }

    /// Calls that were forgotten before any work of theirs had come.
    pub(super) fn forgotten_calls(&self) -> u64 {
        self.launches.forgotten
    }

    pub(super) fn note(&mut self, event: &TraceEvent<'_>, role: Role) {
        let start = event.timestamp.0;
        // A span below zero is a finding of the reader's; here it takes no time.
        let end = event.end().0.max(start);
        match role {
            Role::Work(work) => {
                let Some(place) = self.place(event) else {
                    self.left_out += 1;
                    return;
                };
                let piece = Piece { place, work, start, end };
                if work.is_busy() {
                    let joined = self.launches.piece(Link::of(event), piece);
                    joined.into_iter().for_each(|joined| self.joined(joined));
                } else {
                    self.hold(piece, Interval { start, asked: Interval::UNASKED, end });
                }
            }
            Role::Call => {
                let Some(link) = Link::of(event) else { return };
                let call = Call { begin: start, end };
                self.launches.call(link, call).into_iter().for_each(|joined| self.joined(joined));
            }
            Role::Other => return,
        }
        // Only now: what had waited for the call has its place in time.
        if self.held > self.limits.intervals {
            self.make_room();
        }
    }

    /// Sums up all.
    pub(super) fn end(&mut self) {
        for joined in self.launches.end() {
            self.joined(joined);
        }
        self.devices.iter_mut().for_each(|device| device.settle(i64::MAX));
    }

    fn place(&mut self, event: &TraceEvent<'_>) -> Option<Place> {
        if let Some(place) = self.places.get(&event.track) {
            return Some(*place);
        }
        if self.places.len() >= self.limits.streams {
            return None;
        }
        let track = event.track.clone().into_owned();
        let known = self.devices.iter().position(|device| device.process == track.process);
        let place = known.unwrap_or(self.devices.len());
        if known.is_none() {
            self.devices.push(Device::new(track.process.clone(), event.device));
        }
        let device = self.devices.get_mut(place)?;
        device.streams.push(Stream::new(track.row.clone()));
        let place = Place { device: place, stream: device.streams.len() - 1 };
        self.places.insert(track, place);
        Some(place)
    }

    fn joined(&mut self, joined: Joined) {
        let piece = joined.piece;
        if let Some(device) = self.devices.get_mut(piece.place.device) {
            joined.note(&mut device.delays);
        }
        if !joined.again {
            self.hold(piece, joined.interval());
        }
    }

    fn hold(&mut self, Piece { place, work, .. }: Piece, interval: Interval) {
        let Some(device) = self.devices.get_mut(place.device) else { return };
        if let Some(stream) = device.streams.get_mut(place.stream) {
            stream.pieces += u64::from(work.is_busy());
        }
        self.held += usize::from(device.insert(place.stream, work, interval));
    }

    fn make_room(&mut self) {
        self.held = self.devices.iter_mut().map(Device::compact).sum();
        if self.held <= self.limits.intervals / 4 * 3 {
            return;
        }
        // What waits for its call has its place in time, too.
        for piece in self.launches.hand_out() {
            let Piece { start, end, .. } = piece;
            self.hold(piece, Interval { start, asked: Interval::UNASKED, end });
        }
        let mut starts: Vec<_> = self.devices.iter().flat_map(Device::starts).collect();
        let half = starts.len() / 2;
        let (_, until, _) = starts.select_nth_unstable(half);
        let until = *until;
        self.devices.iter_mut().for_each(|device| device.settle(until));
        self.held = self.devices.iter_mut().map(Device::compact).sum();
    }
}

/// The kind of work that names are summed up for.
pub(super) fn is_kernel(role: Role) -> bool {
    matches!(role, Role::Work(Work::Compute | Work::Communication))
}

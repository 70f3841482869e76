//! Records that wait, as text, until it is known which of them overlap.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::kineto::drawn::LANE_OF;
use crate::time::Timestamp;
use crate::trace::Track;
use crate::trace::json::Members;
use crate::trace::lanes::Lanes;

/// Bytes of records that wait, as long as nobody wants another number.
pub const DEFAULT_WINDOW: usize = 20 << 20;

/// How many slices that begin earlier are asked whether an arrow is fastened to them.
const MOST_ASKED: usize = 64;

/// A record that may be drawn on a lane: its text has a gap where the row stands.
#[derive(Debug)]
struct Movable {
    /// Where in the text the row belongs.
    gap: usize,
    row: usize,
    start: u64,
    /// When a slice ends; none of an arrow's end.
    end: Option<u64>,
    /// The lane, from 0.
    lane: usize,
}

/// A row, and its lanes.
#[derive(Debug)]
struct Row {
    track: Track<'static>,
    lanes: Lanes,
}

/// What waits.
#[derive(Debug)]
pub(super) struct Window {
    /// The records, with all that stands between them.
    pub(super) text: Vec<u8>,
    movable: Vec<Movable>,
    rows: Vec<Row>,
    places: HashMap<Track<'static>, usize>,
    limit: usize,
}

impl Window {
    pub(super) fn new(limit: usize) -> Self {
        Self { text: vec![], movable: vec![], rows: vec![], places: HashMap::new(), limit }
    }

    /// Notes that the record which is being written has its row at `gap`.
    pub(super) fn slice(
        &mut self,
        gap: usize,
        track: &Track<'_>,
        start: Timestamp,
        end: Timestamp,
    ) {
        let end = Some(ordered(end.max(start)));
        self.movable(gap, track, start, end);
    }

    /// The same of an arrow's end, which goes with its slice.
    pub(super) fn arrow(&mut self, gap: usize, track: &Track<'_>, time: Timestamp) {
        self.movable(gap, track, time, None);
    }

    fn movable(&mut self, gap: usize, track: &Track<'_>, start: Timestamp, end: Option<u64>) {
        let row = self.row(track);
        self.movable.push(Movable { gap, row, start: ordered(start), end, lane: 0 });
    }

    fn row(&mut self, track: &Track<'_>) -> usize {
        // The map is shared, so that it may be asked with a key of a shorter life.
        let places: &HashMap<Track<'_>, usize> = &self.places;
        if let Some(place) = places.get(track) {
            return *place;
        }
        let track = track.clone().into_owned();
        let place = self.rows.len();
        self.rows.push(Row { track: track.clone(), lanes: Lanes::default() });
        self.places.insert(track, place);
        place
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() + self.movable.len() * size_of::<Movable>() > self.limit
    }

    /// Writes all that waits, each record with its lane.
    pub(super) fn release(&mut self, out: &mut Vec<u8>) {
        self.place_slices();
        self.fasten_arrows();
        self.movable.sort_unstable_by_key(|record| record.gap);
        out.reserve(self.text.len());
        let mut written = 0;
        for record in &self.movable {
            out.extend_from_slice(self.text.get(written..record.gap).unwrap_or_default());
            written = record.gap;
            if let Some(row) = self.rows.get(record.row) {
                write_row(&row.track, record.lane, out);
            }
        }
        out.extend_from_slice(self.text.get(written..).unwrap_or_default());
        self.text.clear();
        self.movable.clear();
    }

    /// Gives each slice its lane, in the order of their times.
    fn place_slices(&mut self) {
        // Arrows stand behind all slices; of slices that begin together, the longest is the outer.
        self.movable.sort_by_key(|record| {
            (record.end.is_none(), record.row, record.start, Reverse(record.end), record.gap)
        });
        let mut ended = vec![];
        for record in &mut self.movable {
            let (Some(end), Some(row)) = (record.end, self.rows.get_mut(record.row)) else { break };
            record.lane = row.lanes.place(record.start, end, &mut ended);
            ended.clear();
        }
    }

    /// Moves each arrow's end to the lane of the innermost slice at its time.
    fn fasten_arrows(&mut self) {
        let slices = self.movable.partition_point(|record| record.end.is_some());
        let (slices, arrows) = self.movable.split_at_mut(slices);
        for arrow in arrows {
            let behind = slices
                .partition_point(|slice| (slice.row, slice.start) <= (arrow.row, arrow.start));
            let before = slices.get(..behind).unwrap_or_default();
            let near = before.iter().rev().take(MOST_ASKED);
            let slice = near
                .take_while(|slice| slice.row == arrow.row)
                .find(|slice| slice.end >= Some(arrow.start));
            arrow.lane = slice.map_or(0, |slice| slice.lane);
        }
    }
}

/// A time as a number without a sign, in the same order.
fn ordered(time: Timestamp) -> u64 {
    time.0.cast_unsigned() ^ (1 << 63)
}

/// Writes `tid`, and where it is a lane's, the row that the lane is of.
fn write_row(track: &Track<'_>, lane: usize, out: &mut Vec<u8>) {
    let mut members = Members::following(out);
    if lane == 0 {
        members.id("tid", &track.row);
    } else {
        write_lane(track, &format!("lane {}", lane + 1), &mut members);
    }
}

/// Writes the row beside a row that has that name.
pub(super) fn write_lane(track: &Track<'_>, name: &str, members: &mut Members<'_>) {
    members.text("tid", format!("{} ({name})", track.row).trim_start());
    match &track.row {
        crate::trace::Id::None => members.key(LANE_OF).extend_from_slice(b"null"),
        row => {
            members.id(LANE_OF, row);
        }
    }
}

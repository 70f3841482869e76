//! Slices that wait for their order, and the arrows that are fastened to them.
//!
//! ```text
//! rows     [start, end, piece ...]  [...]     the slices of each row, thirty-two bytes each
//! arrows   (row, time, flow, piece) ...
//! bodies   body body body ...                 what the pieces name, one behind the other
//! ```
//!
//! The buffers are kept, so that the window needs the memory that it counts, and nothing is allocated
//! for a slice. Slices mostly come in the order of their times within a row, and then no sort is
//! needed.

use std::cmp::Reverse;

/// Bytes of slices that wait, as long as nobody wants another number. What is let go at once is half
/// of it, so that a conversion stays well within 64 MB, and most of this within a processor's cache.
pub const DEFAULT_WINDOW: usize = 16 << 20;

/// How many slices that begin earlier are asked whether an arrow is fastened to them.
const MOST_ASKED: usize = 64;

/// A place in the window's bodies.
#[derive(Debug)]
struct Piece {
    at: usize,
    length: usize,
}

#[derive(Debug)]
struct Slice {
    start: u64,
    end: u64,
    /// Body of its `TrackEvent`.
    body: Piece,
}

#[derive(Debug)]
struct Arrow<F> {
    row: usize,
    time: u64,
    flow: F,
    /// Body of the instant that it becomes where there is no slice at its time.
    body: Piece,
}

/// What waits. `F` is what is written of an arrow.
#[derive(Debug)]
pub(super) struct Window<F> {
    rows: Vec<Vec<Slice>>,
    /// How many slices all rows have.
    slices: usize,
    arrows: Vec<Arrow<F>>,
    bodies: Vec<u8>,
    limit: usize,
}

/// An arrow that has found its slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fastened<F> {
    /// Row and place of the slice.
    to: (usize, usize),
    pub(super) flow: F,
}

/// What has waited long enough: slices by row, then by start, the longest first, and behind them the
/// arrows at whose time there is none.
#[derive(Debug)]
pub(super) struct Due<'w, F> {
    pub(super) row: usize,
    pub(super) start: u64,
    /// None of an arrow.
    pub(super) end: Option<u64>,
    pub(super) body: &'w [u8],
    /// The arrows that are fastened to it.
    pub(super) arrows: &'w [Fastened<F>],
}

impl<F: Copy> Window<F> {
    pub(super) fn new(limit: usize) -> Self {
        Self { rows: vec![], slices: 0, arrows: vec![], bodies: vec![], limit }
    }

    pub(super) fn slice(&mut self, row: usize, start: u64, end: u64, body: &[u8]) {
        let body = self.keep(body);
        if row >= self.rows.len() {
            self.rows.resize_with(row + 1, Vec::new);
        }
        if let Some(slices) = self.rows.get_mut(row) {
            slices.push(Slice { start, end, body });
            self.slices += 1;
        }
    }

    pub(super) fn arrow(&mut self, row: usize, time: u64, flow: F, body: &[u8]) {
        let body = self.keep(body);
        self.arrows.push(Arrow { row, time, flow, body });
    }

    fn keep(&mut self, body: &[u8]) -> Piece {
        let piece = Piece { at: self.bodies.len(), length: body.len() };
        self.bodies.extend_from_slice(body);
        piece
    }

    /// Bytes that wait.
    fn bytes(&self) -> usize {
        let (slices, arrows) = (size_of::<Slice>(), size_of::<Arrow<F>>());
        self.slices * slices + self.arrows.len() * arrows + self.bodies.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes() > self.limit
    }

    /// Hands on the earlier half of what waits.
    pub(super) fn release_half(&mut self, take: impl FnMut(Due<'_, F>)) {
        let slices = self.rows.iter().flatten().map(|slice| slice.start);
        let mut times: Vec<_> = slices.chain(self.arrows.iter().map(|arrow| arrow.time)).collect();
        let middle = times.len() / 2;
        if !times.is_empty() {
            let (_, median, _) = times.select_nth_unstable(middle);
            self.release(*median, take);
        }
    }

    /// Hands on all that waits.
    pub(super) fn release_all(&mut self, take: impl FnMut(Due<'_, F>)) {
        self.release(u64::MAX, take);
    }

    /// Hands on what begins up to the time `horizon`.
    fn release(&mut self, horizon: u64, mut take: impl FnMut(Due<'_, F>)) {
        for slices in &mut self.rows {
            // Equal ones stay in the order in which they came.
            slices.sort_by_key(|slice| (slice.start, Reverse(slice.end)));
        }
        let (fastened, alone) = self.fasten(horizon);
        let mut rest = fastened.as_slice();
        for (row, slices) in self.rows.iter_mut().enumerate() {
            let due = slices.partition_point(|slice| slice.start <= horizon);
            for (place, slice) in slices.drain(..due).enumerate() {
                let count = rest.iter().take_while(|it| it.to == (row, place)).count();
                take(Due {
                    row,
                    start: slice.start,
                    end: Some(slice.end),
                    body: body(&self.bodies, &slice.body),
                    arrows: rest.split_off(..count).unwrap_or_default(),
                });
            }
            self.slices -= due;
            // A row that has gone quiet gives its memory back.
            if slices.capacity() > 4 * slices.len() {
                slices.shrink_to(2 * slices.len());
            }
        }
        for arrow in alone {
            take(Due {
                row: arrow.row,
                start: arrow.time,
                end: None,
                body: body(&self.bodies, &arrow.body),
                arrows: &[Fastened { to: (0, 0), flow: arrow.flow }],
            });
        }
        self.close_gaps();
    }

    /// Takes the arrows up to the time `horizon`: those for which there is a slice, fastened to the
    /// innermost one at their time, in the slices' order; and those that find none.
    fn fasten(&mut self, horizon: u64) -> (Vec<Fastened<F>>, Vec<Arrow<F>>) {
        let (mut fastened, mut alone) = (vec![], vec![]);
        for arrow in self.arrows.extract_if(.., |arrow| arrow.time <= horizon) {
            let slices = self.rows.get(arrow.row).map(Vec::as_slice).unwrap_or_default();
            let behind = slices.partition_point(|slice| slice.start <= arrow.time);
            let before = slices.get(..behind).unwrap_or_default();
            let mut asked = before.iter().enumerate().rev().take(MOST_ASKED);
            match asked.find(|(_, slice)| slice.end >= arrow.time) {
                Some((place, _)) => {
                    fastened.push(Fastened { to: (arrow.row, place), flow: arrow.flow });
                }
                None => alone.push(arrow),
            }
        }
        fastened.sort_by_key(|arrow| arrow.to);
        (fastened, alone)
    }

    /// Moves the bodies of what still waits together.
    fn close_gaps(&mut self) {
        let slices = self.rows.iter_mut().flatten().map(|slice| &mut slice.body);
        let arrows = self.arrows.iter_mut().map(|arrow| &mut arrow.body);
        let mut pieces: Vec<_> = slices.chain(arrows).collect();
        pieces.sort_unstable_by_key(|piece| piece.at);
        let mut end = 0;
        for piece in pieces {
            self.bodies.copy_within(piece.at..piece.at + piece.length, end);
            piece.at = end;
            end += piece.length;
        }
        self.bodies.truncate(end);
    }
}

fn body<'w>(bodies: &'w [u8], piece: &Piece) -> &'w [u8] {
    bodies.get(piece.at..piece.at + piece.length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Row, start, length, bytes of the body; an arrow where there is no length.
    fn given() -> impl Strategy<Value = Vec<(usize, u64, Option<u64>, usize)>> {
        let one = (0..3_usize, 0..50_u64, prop::option::of(0..10_u64), 0..40_usize);
        prop::collection::vec(one, 0..80)
    }

    /// The body of the thing at that place, which no other has.
    fn body(place: usize, length: usize) -> Vec<u8> {
        [&place.to_le_bytes()[..], &vec![b'x'; length]].concat()
    }

    proptest! {
        #[test]
        fn everything_is_handed_on_once_with_its_own_body(given in given(), limit in 0..3000_usize) {
            let mut window = Window::new(limit);
            let (mut slices, mut arrows) = (vec![], vec![]);
            let mut take = |due: Due<'_, usize>| {
                let times = due.start..=due.end.unwrap_or(due.start);
                arrows.extend(due.arrows.iter().map(|arrow| (arrow.flow, due.row, times.clone())));
                match due.end {
                    Some(end) => slices.push((due.row, due.start, end, due.body.to_vec())),
                    None => assert_eq!(&due.body[..8], due.arrows[0].flow.to_le_bytes()),
                }
            };
            for (place, (row, start, length, bytes)) in given.iter().copied().enumerate() {
                match length {
                    Some(length) => window.slice(row, start, start + length, &body(place, bytes)),
                    None => window.arrow(row, start, place, &body(place, bytes)),
                }
                if window.is_full() {
                    window.release_half(&mut take);
                }
            }
            window.release_all(&mut take);
            let mut expected = vec![];
            for (place, (row, start, length, bytes)) in given.into_iter().enumerate() {
                match length {
                    Some(length) => expected.push((row, start, start + length, body(place, bytes))),
                    None => {
                        let found = arrows.iter().position(|(arrow, ..)| *arrow == place).unwrap();
                        let (_, on, times) = arrows.swap_remove(found);
                        prop_assert!(on == row && times.contains(&start));
                    }
                }
            }
            prop_assert_eq!(arrows, []);
            slices.sort();
            expected.sort();
            prop_assert_eq!(slices, expected);
            prop_assert_eq!(window.bytes(), 0);
        }
    }

    #[test]
    fn the_window_needs_the_memory_that_it_counts() {
        const LIMIT: usize = 100_000;
        // One row for all slices, and many rows one behind the other.
        for slices_of_a_row in [100_000, 1_000] {
            let mut window = Window::<u8>::new(LIMIT);
            for place in 0..100_000_usize {
                let start = place as u64;
                window.slice(place / slices_of_a_row, start, start + 1, &[b'x'; 100]);
                if window.is_full() {
                    window.release_half(|_| ());
                }
                assert!(window.bytes() <= LIMIT);
            }
            let slices: usize = window.rows.iter().map(Vec::capacity).sum();
            // A buffer that grows, or has been emptied, is larger than what is in it.
            assert!(window.bodies.capacity() + slices * size_of::<Slice>() <= 2 * LIMIT);
        }
    }
}

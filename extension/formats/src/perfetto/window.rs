//! Slices that wait for their order, and the arrows that are fastened to them.

/// Bytes of slices that wait, as long as nobody wants another number.
pub const DEFAULT_WINDOW: usize = 64 << 20;

/// How many slices that begin earlier are asked whether an arrow is fastened to them.
const MOST_ASKED: usize = 64;

/// A slice that waits.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) row: usize,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Body of its `TrackEvent`, to which arrows are added.
    pub(super) body: Vec<u8>,
}

/// An arrow's end that waits.
#[derive(Debug)]
pub(super) struct Arrow {
    pub(super) row: usize,
    pub(super) time: u64,
    /// The field of `TrackEvent` that it is.
    pub(super) field: Vec<u8>,
    /// The rest of the body of the instant that it becomes where there is no slice at its time.
    pub(super) name: Vec<u8>,
}

/// What waits.
#[derive(Debug)]
pub(super) struct Window {
    slices: Vec<Slice>,
    arrows: Vec<Arrow>,
    bytes: usize,
    limit: usize,
}

/// What has waited long enough.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// By row, then by start, the longest first.
    pub(super) slices: Vec<Slice>,
    /// Arrows at whose time no slice was found.
    pub(super) arrows: Vec<Arrow>,
}

impl Window {
    pub(super) fn new(limit: usize) -> Self {
        Self { slices: vec![], arrows: vec![], bytes: 0, limit }
    }

    pub(super) fn slice(&mut self, slice: Slice) {
        self.bytes += size_of::<Slice>() + slice.body.len();
        self.slices.push(slice);
    }

    pub(super) fn arrow(&mut self, arrow: Arrow) {
        self.bytes += size_of::<Arrow>() + arrow.field.len() + arrow.name.len();
        self.arrows.push(arrow);
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes > self.limit
    }

    /// The earlier half of what waits.
    pub(super) fn release_half(&mut self) -> Released {
        let slices = self.slices.iter().map(|slice| slice.start);
        let mut times: Vec<_> = slices.chain(self.arrows.iter().map(|arrow| arrow.time)).collect();
        let middle = times.len() / 2;
        if times.is_empty() {
            return Released::default();
        }
        let (_, median, _) = times.select_nth_unstable(middle);
        let horizon = *median;
        self.release(|time| time <= horizon)
    }

    /// All that waits.
    pub(super) fn release_all(&mut self) -> Released {
        self.release(|_| true)
    }

    fn release(&mut self, is_due: impl Fn(u64) -> bool) -> Released {
        self.slices.sort_by_key(|slice| (slice.row, slice.start, std::cmp::Reverse(slice.end)));
        let (due, waiting) =
            std::mem::take(&mut self.arrows).into_iter().partition(|arrow| is_due(arrow.time));
        self.arrows = waiting;
        let arrows = self.fasten(due);
        let (slices, waiting) =
            std::mem::take(&mut self.slices).into_iter().partition(|slice| is_due(slice.start));
        self.slices = waiting;
        let slice_bytes = self.slices.iter().map(|slice| size_of::<Slice>() + slice.body.len());
        let arrow_bytes = self
            .arrows
            .iter()
            .map(|arrow| size_of::<Arrow>() + arrow.field.len() + arrow.name.len());
        self.bytes = slice_bytes.chain(arrow_bytes).sum();
        Released { slices, arrows }
    }

    /// Adds each arrow to the innermost slice at its time; gives back those that find none.
    fn fasten(&mut self, arrows: Vec<Arrow>) -> Vec<Arrow> {
        let mut alone = vec![];
        for arrow in arrows {
            let behind = self
                .slices
                .partition_point(|slice| (slice.row, slice.start) <= (arrow.row, arrow.time));
            let before = self.slices.get_mut(..behind).unwrap_or_default();
            let slice = before
                .iter_mut()
                .rev()
                .take(MOST_ASKED)
                .take_while(|slice| slice.row == arrow.row)
                .find(|slice| slice.end >= arrow.time);
            match slice {
                Some(slice) => slice.body.extend_from_slice(&arrow.field),
                None => alone.push(arrow),
            }
        }
        alone
    }
}

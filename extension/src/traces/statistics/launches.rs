//! Joins work on devices with the calls of the host that asked for it.

use std::collections::BTreeMap;

use warpgauge_formats::trace::{FlowType, TraceEvent};

use super::distribution::Distribution;
use super::intervals::Interval;
use super::role::Work;
use super::timeline::Place;

/// From calls to the starts of what they asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delays {
    /// From the beginning of the call.
    pub from_call: Distribution,
    /// From the end of the call; none where the work began while the call still ran.
    pub from_return: Distribution,
    /// Pieces of work that name no call, or whose call is not in the trace.
    pub without_call: u64,
    /// Pieces that began before their call did. They count as no delay.
    pub before_call: u64,
}

impl Delays {
    fn note(&mut self, call: Call, start: i64) {
        self.before_call += u64::from(start < call.begin);
        self.from_call.note(start.saturating_sub(call.begin));
        self.from_return.note(start.saturating_sub(call.end));
    }
}

/// A call of the host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    pub(super) begin: i64,
    pub(super) end: i64,
}

/// A piece of work on a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) place: Place,
    pub(super) work: Work,
    pub(super) start: i64,
    pub(super) end: i64,
}

/// A piece of work whose call is known, or will not become known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joined {
    pub(super) piece: Piece,
    pub(super) call: Option<Call>,
    /// Whether the piece has been handed out before, without a call.
    pub(super) again: bool,
}

impl Joined {
    /// The piece's time with that of its call.
    pub(super) fn interval(&self) -> Interval {
        let asked = self.call.map_or(Interval::UNASKED, |call| call.begin);
        Interval { start: self.piece.start, asked, end: self.piece.end }
    }

    /// Counts the delay.
    pub(super) fn note(&self, delays: &mut Delays) {
        match self.call {
            Some(call) => delays.note(call, self.piece.start),
            None => delays.without_call += 1,
        }
    }
}

/// What joins a call and its work: the arrow between them where both ends are fastened to the events,
/// for correlation ids count within a process, and else the correlation id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Link {
    /// The id of an arrow.
    Arrow(i64),
    /// A correlation id.
    Correlation(i64),
}

impl Link {
    /// The link of an event. Producers write 0 and -1 where they know no correlation id.
    pub(super) fn of(event: &TraceEvent<'_>) -> Option<Self> {
        let arrow = event.flow.filter(|flow| flow.flow_type == FlowType::AsyncCpuToGpu);
        let correlation = event.correlation.filter(|id| *id > 0).map(Self::Correlation);
        arrow.map(|flow| Self::Arrow(flow.id)).or(correlation)
    }
}

/// Calls and work by link. Of each no more than `limit` are remembered: the lowest ids,
/// which are the oldest, are forgotten first. A call stays after its work has come: a graph's
/// launch asks for many pieces.
#[derive(Debug)]
pub(super) struct Launches {
    limit: usize,
    calls: BTreeMap<Link, (Call, bool)>,
    /// By link and number. With whether the piece has been handed out.
    waiting: BTreeMap<(Link, u64), (Piece, bool)>,
    next: u64,
    /// Calls that were forgotten before any work of theirs had come.
    pub(super) forgotten: u64,
}

impl Launches {
    pub(super) fn with_limit(limit: usize) -> Self {
        let (calls, waiting) = (BTreeMap::new(), BTreeMap::new());
        Self { limit, calls, waiting, next: 0, forgotten: 0 }
    }

    /// A call, and what it asked for of the work that has come.
    pub(super) fn call(&mut self, id: Link, call: Call) -> Vec<Joined> {
        let mut asked = vec![];
        while let Some(entry) = self.waiting.range((id, 0)..=(id, u64::MAX)).next() {
            let key = *entry.0;
            if let Some((piece, again)) = self.waiting.remove(&key) {
                asked.push(Joined { piece, call: Some(call), again });
            }
        }
        // Of two calls with one id the first counts.
        let remembered = self.calls.entry(id).or_insert((call, false));
        remembered.1 |= !asked.is_empty();
        if self.calls.len() > self.limit {
            let oldest = self.calls.pop_first();
            self.forgotten += u64::from(oldest.is_some_and(|(_, (_, has_work))| !has_work));
        }
        asked
    }

    /// A piece of work: itself where its call is known, else the oldest of those that wait where
    /// there are too many.
    pub(super) fn piece(&mut self, id: Option<Link>, piece: Piece) -> Option<Joined> {
        let Some(id) = id else {
            return Some(Joined { piece, call: None, again: false });
        };
        if let Some((call, has_work)) = self.calls.get_mut(&id) {
            *has_work = true;
            return Some(Joined { piece, call: Some(*call), again: false });
        }
        self.waiting.insert((id, self.next), (piece, false));
        self.next += 1;
        if self.waiting.len() <= self.limit {
            return None;
        }
        let (_, (piece, again)) = self.waiting.pop_first()?;
        Some(Joined { piece, call: None, again })
    }

    /// The pieces that wait and have not been handed out. They go on waiting for their delays.
    pub(super) fn hand_out(&mut self) -> Vec<Piece> {
        let waiting = self.waiting.values_mut();
        let new =
            waiting.filter_map(|(piece, out)| (!std::mem::replace(out, true)).then_some(*piece));
        new.collect()
    }

    /// All that waits: its calls will not come.
    pub(super) fn end(&mut self) -> Vec<Joined> {
        let waiting = std::mem::take(&mut self.waiting).into_values();
        waiting.map(|(piece, again)| Joined { piece, call: None, again }).collect()
    }
}

//! The calls that ask for work on a device.

use std::collections::HashMap;

use super::Timeline;
use super::processes::Place;
use crate::event::Text;
use crate::time::Timestamp;
use crate::trace::{EventType, Flow, FlowType, Record, TraceEvent};

/// The last call of each session, so that the nodes of a graph, which share one, draw it once.
#[derive(Debug, Default)]
pub(super) struct LastCalls {
    last: HashMap<Place, (Option<i64>, Timestamp)>,
}

/// A call as the event of its work tells it.
pub(super) struct Call<'e> {
    pub(super) event_type: EventType,
    pub(super) name: Text<'e>,
    pub(super) start: Option<Timestamp>,
    pub(super) end: Option<Timestamp>,
    pub(super) correlation: Option<i64>,
}

impl Timeline<'_> {
    /// Draws the call if the log tells when it was made. Gives the arrow's end at the work.
    pub(super) fn call(&mut self, line: u64, source: Place, call: Call<'_>) -> Option<Flow> {
        let (Some(start), Some(end)) = (call.start, call.end) else {
            self.losses.count_some("call.start_without_end", call.start.as_ref());
            self.losses.count_some("call.end_without_start", call.end.as_ref());
            return None;
        };
        let arrow = |start| {
            let id = source.arrow(call.correlation?);
            Some(Flow { id, flow_type: FlowType::AsyncCpuToGpu, start })
        };
        let this = (call.correlation, start);
        let last = self.calls.last.insert(source, this);
        if last != Some(this) || call.correlation.is_none() {
            let (track, thread) = self.processes.host(source);
            let timestamp = self.time(line, start);
            let event = TraceEvent {
                event_type: call.event_type,
                category: Some("cuda_runtime".into()),
                name: call.name,
                timestamp,
                duration: Some(end.since(start)),
                resource: track.row.number(),
                track,
                thread,
                correlation: call.correlation,
                flow: arrow(true),
                ..TraceEvent::default()
            };
            self.record(line, &Record::Event(event));
        }
        arrow(false)
    }
}

//! What a record's members mean together.

use super::members::{Members, Wrong};
use super::{args, drawn, unsaid};
use crate::json::Number;
use crate::time::{Span, Timestamp};
use crate::trace::{
    CounterEvent, Flow, FlowPoint, FlowType, Label, Labelled, MemoryEvent, Metadata, Record,
    TraceEvent, Track, Value,
};

/// Why a record stays the JSON that it is.
#[derive(Debug)]
pub(super) enum Unclear {
    /// A member is not what it has to be.
    Wrong(Wrong),
    /// A kind of record, or a member of one, that the model does not know.
    Unknown(String),
    /// It only draws what another record says.
    Derived,
}

type Understood<'a> = Result<Record<'a>, Unclear>;

/// Understands a record. What is odd about one that is understood goes to `odd`.
pub(super) fn record<'a>(mut members: Members<'a>, odd: &mut Vec<Wrong>) -> Understood<'a> {
    if let Some(wrong) = members.wrong {
        return Err(Unclear::Wrong(wrong));
    }
    drawn::back_from_lane(&mut members);
    match members.phase.as_deref() {
        Some("X") => slice(members, odd),
        Some("s") => flow(members, true, odd),
        Some("f") => flow(members, false, odd),
        Some("M") => label(members, odd),
        Some("C") => counter(members, odd),
        Some("i") => instant(members, odd),
        Some("B" | "E") => event(members, odd),
        Some(phase) => Err(Unclear::Unknown(format!("ph {phase}"))),
        None => Err(missing("ph", "a string")),
    }
}

fn missing(field: &'static str, expected: &'static str) -> Unclear {
    Unclear::Wrong(Wrong { field, expected, found: "nothing" })
}

/// A member that no field takes.
fn left_over(phase: &str, members: &Members<'_>) -> Result<(), Unclear> {
    let extra = members.extra.first().map(|(name, _)| &**name);
    let id = members.id.as_ref().map(|_| "id");
    match extra.or(id) {
        Some(name) => Err(Unclear::Unknown(format!("ph {phase}.{name}"))),
        None => Ok(()),
    }
}

fn slice<'a>(mut members: Members<'a>, odd: &mut Vec<Wrong>) -> Understood<'a> {
    let Some(duration) = members.duration.take() else {
        return Err(missing("dur", "the microseconds that it took"));
    };
    let duration = nanoseconds("dur", duration, odd)?;
    if duration < 0 {
        odd.push(Wrong { field: "dur", expected: "0 or more", found: "a negative number" });
    }
    let mut record = event(members, odd)?;
    if let Record::Event(event) = &mut record {
        event.duration = Some(Span(duration));
    }
    Ok(record)
}

/// An event without a duration.
fn event<'a>(members: Members<'a>, odd: &mut Vec<Wrong>) -> Understood<'a> {
    if members.duration.is_some() {
        return Err(Unclear::Unknown("dur of what is no slice".into()));
    }
    if members.id.is_some() {
        return Err(Unclear::Unknown("id of an event".into()));
    }
    // The end of a range need not say whose it is.
    let name = match members.name {
        None if members.phase.as_deref() != Some("E") => return Err(missing("name", "a string")),
        name => name.unwrap_or_default(),
    };
    let phase = members.phase.as_deref().unwrap_or_default();
    let track = Track { process: members.process, row: members.row };
    let assumed = unsaid::assumed(phase, members.category.as_deref(), &name, &track);
    let mut event = TraceEvent {
        event_type: assumed.event_type,
        name,
        timestamp: time(members.time, odd)?,
        category: members.category,
        thread: assumed.thread,
        resource: assumed.resource,
        track,
        extra: members.extra,
        ..TraceEvent::default()
    };
    args::take(&mut event, members.args);
    drawn::forget_arrow(&mut event);
    Ok(Record::Event(event))
}

fn instant<'a>(members: Members<'a>, odd: &mut Vec<Wrong>) -> Understood<'a> {
    let is_memory = members.name.as_deref() == Some("[memory]")
        && members.category.as_deref() == Some("cpu_instant_event")
        && members.id.is_none()
        && members.duration.is_none()
        && matches!(&*members.extra, [(key, Value::Text(scope))] if key == "s" && scope == "t");
    if !is_memory {
        return event(members, odd);
    }
    let mut memory = MemoryEvent {
        timestamp: time(members.time, odd)?,
        thread: members.row.number(),
        track: Track { process: members.process.clone(), row: members.row.clone() },
        ..MemoryEvent::default()
    };
    match args::take_memory(&mut memory, members.args) {
        Ok(()) => Ok(Record::Memory(memory)),
        Err(args) => event(Members { args, ..members }, odd),
    }
}

fn flow<'a>(mut members: Members<'a>, start: bool, odd: &mut Vec<Wrong>) -> Understood<'a> {
    let Some(Value::Integer(id)) = members.id.take() else {
        return Err(missing("id", "a whole number"));
    };
    let enclosing = take_text(&mut members.extra, "bp", "e");
    if !members.args.is_empty() || members.duration.is_some() {
        return Err(Unclear::Unknown("args or dur of a flow".into()));
    }
    let Some(name) = members.name else { return Err(missing("name", "a string")) };
    let category = members.category.unwrap_or_default();
    Ok(Record::Flow(FlowPoint {
        flow: Flow { id, flow_type: FlowType::of_category(&category), start },
        timestamp: time(members.time, odd)?,
        track: Track { process: members.process, row: members.row },
        category,
        name,
        enclosing,
        extra: members.extra,
    }))
}

/// Takes a member that has just that text.
fn take_text(extra: &mut Metadata<'_>, name: &str, text: &str) -> bool {
    let place = extra.iter().position(
        |(key, value)| matches!(value, Value::Text(found) if key == name && found == text),
    );
    place.map(|place| extra.remove(place)).is_some()
}

fn counter<'a>(mut members: Members<'a>, odd: &mut Vec<Wrong>) -> Understood<'a> {
    if drawn::is_of_memory(&members) {
        return Err(Unclear::Derived);
    }
    let drawn::Measure { device, unit } = drawn::take_measure(&mut members);
    left_over("C", &members)?;
    let Some(name) = members.name else { return Err(missing("name", "a string")) };
    let track = Track { process: members.process, row: members.row };
    Ok(Record::Counter(CounterEvent {
        timestamp: time(members.time, odd)?,
        track,
        device,
        category: members.category,
        name,
        values: members.args,
        unit,
    }))
}

fn label<'a>(members: Members<'a>, odd: &mut Vec<Wrong>) -> Understood<'a> {
    left_over("M", &members)?;
    if members.category.is_some() || members.duration.is_some() {
        return Err(Unclear::Unknown("cat or dur of a label".into()));
    }
    let Some(name) = members.name else { return Err(missing("name", "a string")) };
    let timestamp = match members.time {
        Some(time) => Some(Timestamp(nanoseconds("ts", time, odd)?)),
        None => None,
    };
    let only = match <[_; 1]>::try_from(members.args) {
        Ok([(key, value)]) => Ok((key, value)),
        Err(args) => Err(args),
    };
    let says = match only {
        Ok((key, value)) => match (&*name, &*key, value) {
            ("process_name", "name", Value::Text(name)) => Labelled::ProcessName(name),
            ("process_labels", "labels", Value::Text(labels)) => Labelled::ProcessLabels(labels),
            ("process_sort_index", "sort_index", Value::Integer(index)) => {
                Labelled::ProcessSortIndex(index)
            }
            ("thread_name", "name", Value::Text(name)) => Labelled::ThreadName(name),
            ("thread_sort_index", "sort_index", Value::Integer(index)) => {
                Labelled::ThreadSortIndex(index)
            }
            (_, _, value) => Labelled::Other { name, metadata: vec![(key, value)] },
        },
        Err(metadata) => Labelled::Other { name, metadata },
    };
    let track = Track { process: members.process, row: members.row };
    Ok(Record::Label(Label { timestamp, track, says }))
}

fn time(number: Option<Number<'_>>, odd: &mut Vec<Wrong>) -> Result<Timestamp, Unclear> {
    let Some(number) = number else {
        return Err(missing("ts", "microseconds"));
    };
    nanoseconds("ts", number, odd).map(Timestamp)
}

/// Decimal microseconds as nanoseconds. Digits beyond them come from a producer's doubles; they are
/// rounded away, and said to be odd.
fn nanoseconds(
    field: &'static str,
    number: Number<'_>,
    odd: &mut Vec<Wrong>,
) -> Result<i64, Unclear> {
    const BEYOND: u32 = 18;
    let exact = number.scaled(3);
    let value = exact.or_else(|| {
        odd.push(Wrong { field, expected: "at most three decimals", found: "more" });
        let (finer, unit) = (number.scaled(3 + i64::from(BEYOND))?, 10_i128.pow(BEYOND));
        Some((finer + finer.signum() * (unit / 2)) / unit)
    });
    value.and_then(|value| i64::try_from(value).ok()).ok_or(Unclear::Wrong(Wrong {
        field,
        expected: "microseconds whose nanoseconds fit 64 bits",
        found: "another number",
    }))
}

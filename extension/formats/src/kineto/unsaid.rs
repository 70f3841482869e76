//! What a record of Kineto's form does not say by itself, as arguments that PyTorch does not write.
//!
//! ```text
//! "thread_id":12          the thread, where it is not the one that the row stands for; null for none
//! "resource_id":7         what it ran on, where that is not the row; null for none
//! "event_type":"NCCLStart"  what it was, where category and name mean something else
//! "call_stack":["a;b"]    the calling functions, where one of them has the `;` that parts them
//! "flow_id":9,"flow_type":"ac2g","flow_start":true   the end of an arrow that is fastened to it
//! ```

use super::category::{event_type, is_device};
use crate::event::Text;
use crate::trace::json::{Members, value};
use crate::trace::{EventType, Flow, FlowType, Metadata, TraceEvent, Track, Value};

/// What a record is taken for, when it says nothing else.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Assumed {
    pub(super) event_type: EventType,
    pub(super) thread: Option<i64>,
    pub(super) resource: Option<i64>,
}

/// What a record of that phase (`X`, `i`, `B`, `E`) is taken for.
pub(super) fn assumed(
    phase: &str,
    category: Option<&str>,
    name: &str,
    track: &Track<'_>,
) -> Assumed {
    let row = track.row.number();
    Assumed {
        event_type: match phase {
            "X" => event_type(category.unwrap_or_default(), name),
            "B" => EventType::RangeStart,
            "E" => EventType::RangeEnd,
            _ => EventType::Marker,
        },
        thread: row.filter(|_| !category.is_some_and(is_device)),
        resource: row,
    }
}

/// Writes what the record, written in that category, would otherwise not say.
pub(crate) fn put(args: &mut Members<'_>, event: &TraceEvent<'_>, category: Option<&str>) {
    let phase = super::write::phase(event);
    let assumed = assumed(phase, category, &event.name, &event.track);
    number_or_null(args, "thread_id", event.thread, assumed.thread);
    number_or_null(args, "resource_id", event.resource, assumed.resource);
    if event.event_type != assumed.event_type {
        args.text("event_type", event.event_type.name());
    }
    if !is_joinable(&event.call_stack) {
        let frames = event.call_stack.iter().map(|frame| Value::Text((&**frame).into()));
        value(args.key("call_stack"), &Value::List(frames.collect()));
    }
}

pub(super) fn number_or_null(
    args: &mut Members<'_>,
    name: &str,
    number: Option<i64>,
    assumed: Option<i64>,
) {
    match number {
        _ if number == assumed => {}
        Some(number) => {
            args.integer(name, number);
        }
        None => args.key(name).extend_from_slice(b"null"),
    }
}

/// Writes the end of an arrow.
pub(crate) fn put_flow(args: &mut Members<'_>, flow: Flow) {
    args.integer("flow_id", flow.id).text("flow_type", flow.flow_type.name());
    value(args.key("flow_start"), &Value::Boolean(flow.start));
}

/// Whether the frames can be told apart when `;` stands between them.
pub(super) fn is_joinable(frames: &[Text<'_>]) -> bool {
    frames.iter().all(|frame| !frame.contains(';'))
}

/// Takes out what is said so. An argument of such a name that holds something else stays.
pub(super) fn take(event: &mut TraceEvent<'_>, args: &mut Metadata<'_>) {
    let is_ours = |key: &str| matches!(key, "thread_id" | "resource_id" | "event_type" | "flow_id");
    // One look at what most events do not have.
    if !args.iter().any(|(key, _)| is_ours(key)) {
        return;
    }
    if let Some(thread) = remove(args, "thread_id", number) {
        event.thread = thread;
    }
    if let Some(resource) = remove(args, "resource_id", number) {
        event.resource = resource;
    }
    let of_type = |item: &Value<'_>| EventType::named(text(item)?);
    if let Some(event_type) = remove(args, "event_type", of_type) {
        event.event_type = event_type;
    }
    take_flow(event, args);
}

/// Takes an arrow's end where all three of its arguments are there.
fn take_flow(event: &mut TraceEvent<'_>, args: &mut Metadata<'_>) {
    let id = find(args, "flow_id", |item| item.as_i64());
    let flow_type = find(args, "flow_type", |item| FlowType::named(text(item)?));
    let start = find(args, "flow_start", |item| match item {
        Value::Boolean(start) => Some(*start),
        _ => None,
    });
    if let (Some((_, id)), Some((_, flow_type)), Some((_, start))) = (id, flow_type, start) {
        event.flow = Some(Flow { id, flow_type, start });
        args.retain(|(name, _)| !matches!(&**name, "flow_id" | "flow_type" | "flow_start"));
    }
}

/// A whole number, or the word that there is none.
pub(super) fn number(item: &Value<'_>) -> Option<Option<i64>> {
    match item {
        Value::Integer(number) => Some(Some(*number)),
        Value::Json(json) if json == "null" => Some(None),
        _ => None,
    }
}

fn text<'v>(item: &'v Value<'_>) -> Option<&'v str> {
    match item {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// The first argument of a name, where it holds what is looked for.
fn find<T>(
    args: &Metadata<'_>,
    name: &str,
    read: impl Fn(&Value<'_>) -> Option<T>,
) -> Option<(usize, T)> {
    let (place, (_, item)) = args.iter().enumerate().find(|(_, (key, _))| key == name)?;
    Some((place, read(item)?))
}

fn remove<T>(
    args: &mut Metadata<'_>,
    name: &str,
    read: impl Fn(&Value<'_>) -> Option<T>,
) -> Option<T> {
    let (place, value) = find(args, name, read)?;
    args.remove(place);
    Some(value)
}

//! What a record says a second time, so that viewers of Chrome's form draw it. The reader takes these
//! members back, so that a trace in that form is read as it was.
//!
//! ```text
//! "name":"power [W]","id":"device 0","device":0,"unit":"W"    a counter's unit and device
//! "tid":"7 (lane 2)","lane_of":7                             a row of its own for what overlaps
//! "bind_id":"0x9c","flow_out":true                           an arrow's end that args tell, too
//! "derived_from":"[memory]"                                  a counter of what an instant tells
//! ```

use super::members::Members;
use crate::event::Text;
use crate::trace::{Flow, Id, Metadata, TraceEvent, Value};

/// The member that names the row of which a lane is.
pub(crate) const LANE_OF: &str = "lane_of";

/// The member that says that a record only repeats others.
pub(crate) const DERIVED_FROM: &str = "derived_from";

/// Of what, and in what unit, a counter's values are.
#[derive(Debug, Default)]
pub(super) struct Measure<'a> {
    pub(super) device: Option<i64>,
    pub(super) unit: Option<Text<'a>>,
}

/// How a counter's device is drawn.
pub(crate) fn device_id(device: i64) -> String {
    format!("device {device}")
}

/// How a counter's unit is drawn behind its name.
pub(crate) fn unit_suffix(unit: &str) -> String {
    format!(" [{unit}]")
}

/// How the arrow's end is drawn: the id that joins it with the other, and the way that it goes.
pub(crate) fn arrow(flow: Flow) -> (String, &'static str) {
    let way = if flow.start { "flow_out" } else { "flow_in" };
    (format!("{:#x}", flow.number(flow.flow_type.category())), way)
}

/// Takes a counter's device and unit out of its members, where they are what its name and id draw.
pub(super) fn take_measure<'a>(members: &mut Members<'a>) -> Measure<'a> {
    let mut measure = Measure::default();
    let device = member(&members.extra, "device").and_then(Value::as_i64);
    let drawn = device.map(|device| Value::Text(device_id(device).into()));
    if device.is_some() && drawn == members.id {
        measure.device = device;
        members.id = None;
        remove(&mut members.extra, "device");
    }
    let Some(Value::Text(unit)) = member(&members.extra, "unit") else { return measure };
    let name = members.name.as_deref().and_then(|name| name.strip_suffix(&unit_suffix(unit)));
    if let Some(length) = name.map(str::len) {
        measure.unit = Some(unit.clone());
        members.name = members.name.take().map(|name| cut(name, length));
        remove(&mut members.extra, "unit");
    }
    measure
}

fn cut(text: Text<'_>, length: usize) -> Text<'_> {
    match text {
        Text::Borrowed(text) => Text::Borrowed(text.get(..length).unwrap_or(text)),
        Text::Owned(mut text) => {
            text.truncate(length);
            Text::Owned(text)
        }
    }
}

/// Gives a record that is drawn on a lane the row that it belongs to.
pub(super) fn back_from_lane(members: &mut Members<'_>) {
    let row = match member(&members.extra, LANE_OF) {
        Some(Value::Integer(row)) => Id::Number(*row),
        Some(Value::Text(row)) => Id::Text(row.clone()),
        Some(Value::Json(json)) if json == "null" => Id::None,
        _ => return,
    };
    members.row = row;
    remove(&mut members.extra, LANE_OF);
}

/// Takes the drawn end of an arrow from an event whose arguments tell it.
pub(super) fn forget_arrow(event: &mut TraceEvent<'_>) {
    let Some(flow) = event.flow else { return };
    let (id, way) = arrow(flow);
    let is_drawn = member(&event.extra, "bind_id") == Some(&Value::Text(id.into()))
        && member(&event.extra, way) == Some(&Value::Boolean(true));
    if is_drawn {
        remove(&mut event.extra, "bind_id");
        remove(&mut event.extra, way);
    }
}

/// Whether a counter only repeats what an instant says of memory.
pub(super) fn is_of_memory(members: &Members<'_>) -> bool {
    let source = member(&members.extra, DERIVED_FROM);
    matches!(source, Some(Value::Text(source)) if source == "[memory]")
}

fn member<'m, 'a>(members: &'m Metadata<'a>, name: &str) -> Option<&'m Value<'a>> {
    members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

fn remove(members: &mut Metadata<'_>, name: &str) {
    if let Some(place) = members.iter().position(|(key, _)| key == name) {
        members.remove(place);
    }
}

//! Records as Chrome's viewers draw them, where that is more than Kineto's form.

use super::window::{Window, write_lane};
use crate::kineto::drawn::{self, DERIVED_FROM};
use crate::kineto::{args, unsaid, write::phase};
use crate::time::Timestamp;
use crate::trace::json::Members;
use crate::trace::{CounterEvent, FlowPoint, MemoryEvent, TraceEvent};

pub(super) fn event(event: &TraceEvent<'_>, window: &mut Window) {
    let phase = phase(event);
    let mut members = Members::open(&mut window.text);
    members.text("ph", phase);
    let category = event.category.as_deref();
    if let Some(category) = category {
        members.text("cat", category);
    }
    members.text("name", &event.name).id("pid", &event.track.process);
    let gap = members.position();
    match phase {
        "X" => {}
        // Their ends belong to the last that began on the row, whatever else is drawn there.
        "B" | "E" => write_lane(&event.track, "ranges", &mut members),
        _ => {
            members.id("tid", &event.track.row);
        }
    }
    members.time("ts", event.timestamp);
    if let Some(duration) = event.duration {
        members.time("dur", Timestamp(duration.0));
    }
    if let Some(flow) = event.flow.filter(|_| phase != "i") {
        let (id, way) = drawn::arrow(flow);
        members.text("bind_id", &id).boolean(way, true);
    }
    members.all(&event.extra).object("args", |members| {
        args::put(members, event);
        unsaid::put(members, event, category);
        if let Some(flow) = event.flow {
            unsaid::put_flow(members, flow);
        }
    });
    members.close();
    if phase == "X" {
        window.slice(gap, &event.track, event.timestamp, event.end());
    }
}

pub(super) fn flow(point: &FlowPoint<'_>, window: &mut Window) {
    let mut members = Members::open(&mut window.text);
    members.text("ph", if point.flow.start { "s" } else { "f" }).integer("id", point.flow.id);
    members.id("pid", &point.track.process);
    let gap = members.position();
    members.time("ts", point.timestamp);
    if !point.category.is_empty() {
        members.text("cat", &point.category);
    }
    members.text("name", &point.name);
    if point.enclosing {
        members.text("bp", "e");
    }
    members.all(&point.extra);
    members.close();
    window.arrow(gap, &point.track, point.timestamp);
}

pub(super) fn counter(event: &CounterEvent<'_>, out: &mut Vec<u8>) {
    let mut members = Members::open(out);
    members.text("ph", "C");
    if let Some(category) = &event.category {
        members.text("cat", category);
    }
    match &event.unit {
        Some(unit) => members
            .text("name", &format!("{}{}", event.name, drawn::unit_suffix(unit)))
            .text("unit", unit),
        None => members.text("name", &event.name),
    };
    if let Some(device) = event.device {
        members.text("id", &drawn::device_id(device)).integer("device", device);
    }
    members.track(&event.track).time("ts", event.timestamp);
    members.object("args", |members| {
        members.all(&event.values);
    });
    members.close();
}

/// What an allocation or a free says of the device's memory, as a counter.
pub(super) fn memory_total(event: &MemoryEvent<'_>, what: &str, total: i64, out: &mut Vec<u8>) {
    let device = event.device.filter(|device| *device >= 0).map(drawn::device_id);
    let device = device.as_deref().unwrap_or("host");
    let mut members = Members::open(out);
    members.text("ph", "C").text("name", &format!("memory {what} ({device})"));
    members.id("pid", &event.track.process).time("ts", event.timestamp);
    members.text(DERIVED_FROM, "[memory]").object("args", |members| {
        members.integer("bytes", total);
    });
    members.close();
}

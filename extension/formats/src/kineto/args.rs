//! The arguments that are fields of the model. Reading takes them out of the others, writing puts
//! them back: an argument is a field where its value has the field's type, and stays what it is
//! where it has not (ROCm writes `"stream":"0x0"`).

use super::unsaid::{self, is_joinable};
use crate::event::{Dim3, Text};
use crate::trace::json::{Members, float, value};
use crate::trace::{MemoryCategory, MemoryEvent, MemoryOperation, Metadata, TraceEvent, Value};

/// Puts arguments into their fields, and the rest into the metadata.
pub(super) fn take<'a>(event: &mut TraceEvent<'a>, mut args: Metadata<'a>) {
    unsaid::take(event, &mut args);
    args.retain(|(key, item)| !field(event, key, item));
    event.metadata.append(&mut args);
}

/// Takes an argument where it is a field that is still free.
fn field<'a>(event: &mut TraceEvent<'a>, key: &str, item: &Value<'a>) -> bool {
    let number = item.as_i64();
    match key {
        "device" => fill(&mut event.device, number),
        "stream" => fill(&mut event.stream, number),
        "correlation" => fill(&mut event.correlation, number),
        "External id" => fill(&mut event.linked, number),
        "grid" => fill(&mut event.kernel.grid, extents(item)),
        "block" => fill(&mut event.kernel.block, extents(item)),
        "shared memory" => fill(&mut event.kernel.shared_bytes, number),
        "registers per thread" => fill(&mut event.kernel.registers, number),
        "bytes" => fill(&mut event.transfer.bytes, number),
        "memory bandwidth (GB/s)" => match item {
            Value::Float(bandwidth) => fill(&mut event.transfer.bandwidth, Some(*bandwidth)),
            _ => false,
        },
        "Call stack" => match item {
            Value::Text(stack) if event.call_stack.is_empty() => {
                event.call_stack = frames(stack);
                true
            }
            _ => false,
        },
        "call_stack" => match item {
            Value::List(items) if event.call_stack.is_empty() && !items.is_empty() => {
                let frames: Option<Vec<_>> = items.iter().map(frame).collect();
                let is_stack = frames.is_some();
                event.call_stack = frames.unwrap_or_default();
                is_stack
            }
            _ => false,
        },
        _ => false,
    }
}

fn fill<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    let free = slot.is_none() && value.is_some();
    if free {
        *slot = value;
    }
    free
}

fn extents(item: &Value<'_>) -> Option<Dim3> {
    match item {
        Value::List(items) => match items.as_slice() {
            [Value::Integer(x), Value::Integer(y), Value::Integer(z)] => Some([*x, *y, *z]),
            _ => None,
        },
        _ => None,
    }
}

/// The calling functions, between which Kineto writes `;`.
fn frames<'a>(stack: &Text<'a>) -> Vec<Text<'a>> {
    match stack {
        Text::Borrowed(stack) => stack.split(';').map(Text::Borrowed).collect(),
        Text::Owned(stack) => stack.split(';').map(|frame| Text::Owned(frame.into())).collect(),
    }
}

fn frame<'a>(item: &Value<'a>) -> Option<Text<'a>> {
    match item {
        Value::Text(frame) => Some(frame.clone()),
        _ => None,
    }
}

/// Writes an event's fields and metadata as arguments.
pub(crate) fn put(args: &mut Members<'_>, event: &TraceEvent<'_>) {
    let TraceEvent { device, stream, correlation, linked, kernel, transfer, .. } = event;
    args.integer_if("External id", *linked).integer_if("device", *device);
    args.integer_if("stream", *stream).integer_if("correlation", *correlation);
    args.extents("grid", kernel.grid).extents("block", kernel.block);
    args.integer_if("registers per thread", kernel.registers);
    args.integer_if("shared memory", kernel.shared_bytes).integer_if("bytes", transfer.bytes);
    if let Some(bandwidth) = transfer.bandwidth {
        float(args.key("memory bandwidth (GB/s)"), bandwidth);
    }
    if !event.call_stack.is_empty() && is_joinable(&event.call_stack) {
        args.text("Call stack", &event.call_stack.join(";"));
    }
    args.all(&event.metadata);
}

/// The arguments of a memory event; gives them back where its bytes are missing.
pub(super) fn take_memory<'a>(
    event: &mut MemoryEvent<'a>,
    args: Metadata<'a>,
) -> Result<(), Metadata<'a>> {
    let bytes = args.iter().find(|(key, _)| key == "Bytes").and_then(|(_, item)| item.as_i64());
    let Some(bytes) = bytes else { return Err(args) };
    event.bytes = bytes.unsigned_abs();
    event.operation = if bytes < 0 { MemoryOperation::Free } else { MemoryOperation::Allocation };
    let row = event.track.row.number();
    let (mut bytes_taken, mut category) = (false, None);
    for (key, item) in args {
        let number = item.as_i64();
        let taken = match &*key {
            "Bytes" => !std::mem::replace(&mut bytes_taken, true),
            "Addr" => fill(&mut event.address, address(&item)),
            "Total Allocated" => fill(&mut event.total_allocated, number),
            "Total Reserved" => fill(&mut event.total_reserved, number),
            "Device Type" => fill(&mut event.device_type, number),
            "Device Id" => fill(&mut event.device, number),
            "thread_id" => match unsaid::number(&item) {
                Some(thread) if event.thread == row => {
                    event.thread = thread;
                    true
                }
                _ => false,
            },
            // Of no bytes no sign tells.
            "operation" if bytes == 0 && is_free(&item) => {
                event.operation = MemoryOperation::Free;
                true
            }
            "Allocator" => match &item {
                Value::Text(name) => fill(&mut event.allocator, Some(name.clone())),
                _ => false,
            },
            "Category" => match &item {
                Value::Text(name) => fill(&mut category, written_category(name)),
                _ => false,
            },
            _ => false,
        };
        if !taken {
            event.metadata.push((key, item));
        }
    }
    event.category = category.unwrap_or_default();
    Ok(())
}

fn is_free(item: &Value<'_>) -> bool {
    matches!(item, Value::Text(operation) if operation == "free")
}

/// A category that is written when it is known.
fn written_category(name: &str) -> Option<MemoryCategory> {
    MemoryCategory::named(name).filter(|category| *category != MemoryCategory::Unknown)
}

fn address(item: &Value<'_>) -> Option<u64> {
    match item {
        Value::Integer(address) => u64::try_from(*address).ok(),
        Value::Unsigned(address) => Some(*address),
        _ => None,
    }
}

/// Writes a memory event's fields and metadata as arguments.
pub(super) fn put_memory(args: &mut Members<'_>, event: &MemoryEvent<'_>) {
    args.integer_if("Total Reserved", event.total_reserved);
    args.integer_if("Total Allocated", event.total_allocated);
    let bytes = i128::from(event.bytes);
    args.integer("Bytes", if event.operation == MemoryOperation::Free { -bytes } else { bytes });
    args.integer_if("Device Id", event.device).integer_if("Device Type", event.device_type);
    args.integer_if("Addr", event.address);
    if let Some(allocator) = &event.allocator {
        args.text("Allocator", allocator);
    }
    if event.category != MemoryCategory::Unknown {
        value(args.key("Category"), &Value::Text(event.category.as_str().into()));
    }
    if event.operation == MemoryOperation::Free && event.bytes == 0 {
        args.text("operation", "free");
    }
    unsaid::number_or_null(args, "thread_id", event.thread, event.track.row.number());
    args.all(&event.metadata);
}

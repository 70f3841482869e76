//! The sums for machines: times are whole nanoseconds from the trace's base time.

use serde_json::{Value, json};
use warpgauge_formats::trace::Id;

use super::Summed;
use super::remarks::remarks;
use crate::events::statistics::KernelTotals;
use crate::traces::statistics::{Delays, Device, Distribution, Stream, Trace};

/// All sums, of kernels the `top` first.
pub(super) fn document(summed: &Summed, top: usize) -> Value {
    let statistics = &summed.statistics;
    let (kernels, others) = statistics.kernels.by_time(top);
    let kernels = kernels.iter().map(|(name, totals)| kernel(Some(name), *totals));
    let copies = statistics.copies.by_bytes();
    let copies = copies.iter().map(|(kind, totals)| {
        json!({
            "kind": kind,
            "count": totals.count,
            "time_ns": number(totals.time),
            "bytes": number(totals.bytes),
            "with_bytes": {
                "count": totals.sized,
                "time_ns": number(totals.sized_time),
                "union_ns": number(totals.sized_union),
                "late": totals.late,
            },
            "gigabytes_per_second": totals.rate(),
            "gigabytes_per_second_together": totals.rate_together(),
        })
    });
    json!({
        "format": "kineto",
        "categories": statistics.categories,
        "traces": statistics.traces.iter().map(trace).collect::<Vec<_>>(),
        "kernel_names": statistics.kernels.names(),
        "all_kernels": kernel(None, statistics.kernels.all),
        "kernels": kernels.collect::<Vec<_>>(),
        "other_kernels": kernel(None, others),
        "copies": copies.collect::<Vec<_>>(),
        "refused": statistics.refused,
        "suspect": statistics.suspect,
        "faults": summed.faults,
        "remarks": remarks(summed),
    })
}

fn kernel(name: Option<&str>, totals: KernelTotals) -> Value {
    json!({
        "name": name,
        "count": totals.count,
        "time_ns": number(totals.time),
        "mean_ns": (totals.count > 0).then(|| number(totals.mean())),
        "shortest_ns": totals.ends.map(|(shortest, _)| shortest),
        "longest_ns": totals.ends.map(|(_, longest)| longest),
    })
}

fn trace(trace: &Trace) -> Value {
    let memory = trace.memory.iter().map(|(kind, ordinal, totals)| {
        json!({
            "device_type": kind,
            "device": ordinal,
            "allocations": totals.allocations,
            "frees": totals.frees,
            "allocated_bytes": unsigned(totals.allocated),
            "freed_bytes": unsigned(totals.freed),
            "peak_allocated_bytes": totals.peak_allocated.map(|(bytes, _)| bytes),
            "peak_allocated_at_ns": totals.peak_allocated.map(|(_, at)| at.0),
            "peak_reserved_bytes": totals.peak_reserved.map(|(bytes, _)| bytes),
            "peak_reserved_at_ns": totals.peak_reserved.map(|(_, at)| at.0),
        })
    });
    let counters = trace.counters.iter().map(|(track, name, series, range)| {
        let (highest, at) = range.highest;
        json!({
            "process": id(&track.process),
            "row": id(&track.row),
            "counter": name,
            "series": series,
            "unit": range.unit,
            "count": range.count,
            "lowest": range.lowest,
            "highest": highest,
            "highest_at_ns": at.0,
        })
    });
    json!({
        "file": trace.name,
        "rank": trace.said.rank,
        "world_size": trace.said.world_size,
        "base_time_ns": trace.base,
        "first_ns": trace.span.map(|(first, _)| first.0),
        "last_ns": trace.span.map(|(_, last)| last.0),
        "devices": devices(trace).collect::<Vec<_>>(),
        "memory": memory.collect::<Vec<_>>(),
        "counters": counters.collect::<Vec<_>>(),
        "pieces_left_out": trace.left_out,
        "calls_forgotten": trace.forgotten_calls,
    })
}

/// The devices of a trace.
pub(in crate::cli::events) fn devices(trace: &Trace) -> impl Iterator<Item = Value> {
    trace.devices.iter().map(device)
}

fn device(device: &Device) -> Value {
    let (late, late_time) = device.late;
    json!({
        "process": id(&device.process),
        "rank": device.rank,
        "ordinal": device.ordinal,
        "name": device.name,
        "label": device.label,
        "first_ns": device.span.map(|(first, _)| first.0),
        "last_ns": device.span.map(|(_, last)| last.0),
        "span_ns": number(device.length()),
        "busy_ns": number(device.busy()),
        "compute_ns": number(device.compute()),
        "memory_ns": number(device.memory()),
        "waiting_ns": number(device.waiting()),
        "idle_ns": number(device.idle()),
        "non_compute_ns": number(device.non_compute()),
        "communication": device.communication().map(|told| json!({
            "time_ns": number(told.time),
            "hidden_ns": number(told.hidden),
            "exposed_ns": number(told.time - told.hidden),
            "from": if told.from_annotations { "annotations" } else { "kernels" },
        })),
        "launch_to_start": delays(&device.delays),
        "late_pieces": late,
        "late_ns": number(late_time),
        "streams": device.streams.iter().map(stream).collect::<Vec<_>>(),
    })
}

fn stream(stream: &Stream) -> Value {
    json!({
        "row": id(&stream.row),
        "pieces": stream.pieces,
        "busy_ns": number(stream.busy),
        "idle_ns": number(stream.idle.total()),
        "host_wait_ns": number(stream.idle.host_wait),
        "kernel_wait_ns": number(stream.idle.kernel_wait),
        "other_idle_ns": number(stream.idle.other),
    })
}

fn delays(delays: &Delays) -> Value {
    json!({
        "from_call": distribution(&delays.from_call),
        "from_return": distribution(&delays.from_return),
        "relative_error_of_quantiles": Distribution::RELATIVE_ERROR,
        "without_call": delays.without_call,
        "before_call": delays.before_call,
    })
}

fn distribution(distribution: &Distribution) -> Value {
    json!({
        "count": distribution.count(),
        "min_ns": distribution.ends().map(|(smallest, _)| smallest),
        "mean_ns": distribution.mean().map(number),
        "p50_ns": distribution.percentile(50),
        "p90_ns": distribution.percentile(90),
        "p99_ns": distribution.percentile(99),
        "max_ns": distribution.ends().map(|(_, largest)| largest),
    })
}

/// A number stays a number, a text a text.
fn id(id: &Id<'_>) -> Value {
    match id {
        Id::None => Value::Null,
        Id::Number(number) => (*number).into(),
        Id::Text(text) => text.as_ref().into(),
    }
}

/// A sum as a number where it has 64 bits; else as text.
fn number(sum: i128) -> Value {
    i64::try_from(sum).map_or_else(|_| sum.to_string().into(), Value::from)
}

fn unsigned(sum: u128) -> Value {
    u64::try_from(sum).map_or_else(|_| sum.to_string().into(), Value::from)
}

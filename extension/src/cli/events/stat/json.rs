//! The sums for machines: spans and instants are whole nanoseconds.

use serde_json::{Value, json};

use super::super::trace_stat;
use super::{kind_name, remarks};
use crate::events::format::Format;
use crate::events::statistics::{KernelTotals, Node, Statistics};
use crate::traces;

/// Deeper scopes are left out.
const DEEPEST: usize = 32;

/// All sums, of kernels the `top` first.
pub(super) fn document(
    statistics: &Statistics,
    work: &traces::statistics::Statistics,
    format: Option<Format>,
    top: usize,
) -> Value {
    let sources = statistics.sources.by_events();
    let sources = sources.iter().map(|totals| {
        let span = totals.clock.span;
        json!({
            "session": totals.source.session,
            "pid": totals.source.pid,
            "app": totals.source.app,
            "events": totals.events,
            "first_ns": span.map(|(first, _)| first.0),
            "last_ns": span.map(|(_, last)| last.0),
        })
    });
    let kernels = &statistics.kernels;
    let outermost = statistics.scopes.outermost();
    let copies = statistics.copies.by_bytes();
    let copies = copies.iter().map(|(kind, totals)| {
        json!({
            "kind": kind_name(*kind),
            "copies": totals.count,
            "bytes": number(totals.bytes),
            "time_ns": number(totals.time),
        })
    });
    let devices = statistics.devices.iter().map(|(index, peak)| {
        json!({
            "index": index,
            "name": peak.name,
            "samples": peak.samples,
            "peak_used_mib": peak.used_mib.map(|(used, _)| used),
            "peak_at_ns": peak.used_mib.map(|(_, at)| at.0),
            "total_mib": peak.total_mib,
            "peak_gpu_percent": peak.gpu_percent,
            "peak_power_milliwatts": peak.power_milliwatts,
        })
    });
    let span = statistics.clock.span;
    json!({
        "format": format.map(|format| format.to_string()),
        "first_ns": span.map(|(first, _)| first.0),
        "last_ns": span.map(|(_, last)| last.0),
        "is_wall_clock": span.map(|_| !statistics.clock.is_monotonic()),
        "events": statistics.events,
        "sources": sources.collect::<Vec<_>>(),
        "kernel_names": kernels.names(),
        "all_kernels": kernel(None, kernels.all),
        "kernels": kernels.by_time(top).0.iter().map(|(name, totals)| kernel(Some(name), *totals)).collect::<Vec<_>>(),
        "kernels_beyond_the_limit": kernel(None, kernels.beyond),
        "scopes": outermost.iter().map(|node| scope(statistics, node, 0)).collect::<Vec<_>>(),
        "copies": copies.collect::<Vec<_>>(),
        "devices": devices.collect::<Vec<_>>(),
        "refused": statistics.refused,
        "suspect": statistics.suspect,
        "work": work.traces.iter().flat_map(trace_stat::json::devices).collect::<Vec<_>>(),
        "remarks": remarks(statistics, work),
    })
}

fn kernel(name: Option<&str>, totals: KernelTotals) -> Value {
    let mut value = json!({
        "launches": totals.count,
        "time_ns": number(totals.time),
        "mean_ns": number(totals.mean()),
        "longest_ns": totals.longest(),
    });
    if let (Some(name), Some(object)) = (name, value.as_object_mut()) {
        object.insert("name".to_owned(), name.into());
    }
    value
}

fn scope(statistics: &Statistics, node: &Node, depth: usize) -> Value {
    let within = if depth < DEEPEST { statistics.scopes.within(node) } else { vec![] };
    json!({
        "name": node.name,
        "count": node.count,
        "ended": node.ended,
        "time_ns": number(node.time),
        "scopes": within.iter().map(|node| scope(statistics, node, depth + 1)).collect::<Vec<_>>(),
    })
}

/// A sum as a number where it has 64 bits, which no log of this century exceeds; else as text.
fn number(sum: i128) -> Value {
    i64::try_from(sum).map_or_else(|_| sum.to_string().into(), Value::from)
}

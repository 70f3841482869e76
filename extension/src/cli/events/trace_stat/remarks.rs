//! What the sums do not hold.

use super::Summed;
use crate::cli::events::units::{count, time};
use crate::events::reader::message;
use crate::traces::statistics::{Device, Statistics, Trace};

/// In the order in which it matters.
pub(super) fn remarks(summed: &Summed) -> Vec<String> {
    let Summed { statistics, faults, mended } = summed;
    let broken =
        faults.iter().map(|fault| format!("{fault}; the sums are those of what stands before"));
    let mended = mended.iter().map(|(name, quotes)| {
        format!(
            "{name}: {} {} mended",
            count(*quotes, "quote"),
            if *quotes == 1 { "was" } else { "were" }
        )
    });
    let mut remarks: Vec<_> = broken.chain(mended).collect();
    if let Some((file, finding)) = &statistics.first_refused {
        remarks.push(format!(
            "{} could not be read, the first: {file}:{}: {}; `warpgauge events validate --format kineto` shows all",
            count(statistics.refused, "thing"),
            finding.line,
            message(finding)
        ));
    }
    if statistics.suspect > 0 {
        let suspect = count(statistics.suspect, "thing");
        remarks.push(format!(
            "{suspect} cannot be right: `warpgauge events validate --format kineto` shows them"
        ));
    }
    for (name, seen) in statistics.unknown.iter() {
        remarks.push(format!("{name} is unknown, {}", count(seen.count, "time")));
    }
    for trace in &statistics.traces {
        of_trace(trace, &mut remarks);
    }
    of_copies(statistics, &mut remarks);
    remarks
}

/// Of one trace; of an event log as the trace that it is drawn as, which has no name.
pub(in crate::cli::events) fn of_trace(trace: &Trace, remarks: &mut Vec<String>) {
    let name = match trace.name.as_str() {
        "" => String::new(),
        name => format!("{name}: "),
    };
    for key in &trace.said.not_understood {
        remarks.push(format!("{name}{key} is not what it should be and was not used"));
    }
    for (number, what) in [
        (trace.left_out, "piece of work on streams beyond 4,096, not counted"),
        (trace.forgotten_calls, "call too old to be remembered: its work counts as without a call"),
        (trace.memory.left_out, "memory event of devices beyond 1,024, not counted"),
        (trace.counters.left_out, "value of counters beyond 1,024, not counted"),
        (trace.counters.no_numbers, "value of counters that is no number"),
    ] {
        if number > 0 {
            remarks.push(format!("{name}{number} x {what}"));
        }
    }
    for Device { process, late: (pieces, nanoseconds), delays, .. } in &trace.devices {
        if *pieces > 0 {
            remarks.push(format!(
                "{name}device {process}: {pieces} x piece of work that came too late for the memory there is; {} of work may be missing from the busy times",
                time(*nanoseconds)
            ));
        }
        if delays.before_call > 0 {
            remarks.push(format!(
                "{name}device {process}: {} x piece of work that began before its call did: its delay counts as 0",
                delays.before_call
            ));
        }
    }
}

fn of_copies(statistics: &Statistics, remarks: &mut Vec<String>) {
    for (kind, totals) in statistics.copies.by_bytes() {
        if totals.late > 0 {
            remarks.push(format!("{kind}: {} x copy that came too late for the memory there is; its time is missing from the joint rate", totals.late));
        }
    }
}

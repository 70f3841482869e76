//! The published schema (draft-07), rule for rule.
//!
//! `integer` is any number without a fraction, however it is spelled and however large. Objects may
//! have further keys, but for the entries of `memory`.

use super::TYPES;
use super::line::{GpumonLine, MemoryEntry};
use crate::event::Text;
use crate::finding::Finding;
use crate::record::{Extents, Field, Slot, Whole};

/// Everything about a line that the schema does not allow; nothing where the line is valid.
pub(super) fn refusals(number: u64, line: &GpumonLine<'_>) -> Vec<Finding> {
    let mut check = Check { number, refusals: vec![] };
    match &line.kind {
        Slot::Is(kind) => check.event(kind, line),
        Slot::Wrong(found) => check.refuse("type", TYPES, found),
        Slot::Absent => check.refuse("type", TYPES, NOTHING),
    }
    check.refusals
}

const NOTHING: &str = "nothing";
const NOT_NEGATIVE: &str = "an integer >= 0";
const NOT_EMPTY: &str = "a string that is not empty";

struct Check {
    number: u64,
    refusals: Vec<Finding>,
}

impl Check {
    fn event(&mut self, kind: &str, line: &GpumonLine<'_>) {
        if !["init", "scope_begin", "scope_sample", "scope_end", "kernel", "shutdown"]
            .contains(&kind)
        {
            return self.refuse("type", TYPES, kind);
        }
        self.whole("pid", &line.pid);
        self.not_empty("app", &line.app);
        match kind {
            "init" => {
                self.whole("ts_ns", &line.time);
                self.optional("logPath", &line.log_path);
            }
            "scope_begin" | "scope_sample" => {
                self.scope(line);
                self.whole("ts_ns", &line.time);
            }
            "scope_end" => {
                self.scope(line);
                self.span(line);
            }
            "kernel" => self.kernel(line),
            _ => self.whole("ts_ns", &line.time),
        }
    }

    fn scope(&mut self, line: &GpumonLine<'_>) {
        self.not_empty("name", &line.name);
        self.optional("tag", &line.tag);
        match &line.memory {
            Slot::Absent => {}
            Slot::Wrong(found) => self.refuse("memory", <Vec<MemoryEntry<'_>>>::EXPECTED, found),
            Slot::Is(entries) => entries.iter().enumerate().for_each(|entry| self.memory(entry)),
        }
    }

    fn memory(&mut self, (position, entry): (usize, &MemoryEntry<'_>)) {
        let at = |key: &str| format!("memory[{position}].{key}");
        self.whole(&at("device"), &entry.device);
        self.whole(&at("used_mib"), &entry.used);
        self.whole(&at("free_mib"), &entry.free);
        self.whole(&at("total_mib"), &entry.total);
        for key in &entry.unknown {
            self.refuse(&at(key), "no further keys", key);
        }
    }

    fn span(&mut self, line: &GpumonLine<'_>) {
        self.whole("ts_start_ns", &line.start);
        self.whole("ts_end_ns", &line.end);
        self.whole("duration_ns", &line.duration);
    }

    fn kernel(&mut self, line: &GpumonLine<'_>) {
        self.not_empty("kernel", &line.kernel);
        self.span(line);
        self.extents("grid", &line.grid);
        self.extents("block", &line.block);
        self.whole("shared_mem_bytes", &line.shared_bytes);
        self.required("cuda_error", &line.error);
        self.optional("tag", &line.tag);
    }

    fn whole(&mut self, field: &str, slot: &Slot<'_, Whole<'_>>) {
        match slot {
            Slot::Is(value) if !value.is_negative() => {}
            Slot::Is(_) => self.refuse(field, NOT_NEGATIVE, "a negative number"),
            Slot::Wrong(found) => self.refuse(field, NOT_NEGATIVE, found),
            Slot::Absent => self.refuse(field, NOT_NEGATIVE, NOTHING),
        }
    }

    fn not_empty(&mut self, field: &str, slot: &Slot<'_, Text<'_>>) {
        match slot {
            Slot::Is(text) if !text.is_empty() => {}
            Slot::Is(_) => self.refuse(field, NOT_EMPTY, "\"\""),
            Slot::Wrong(found) => self.refuse(field, NOT_EMPTY, found),
            Slot::Absent => self.refuse(field, NOT_EMPTY, NOTHING),
        }
    }

    fn extents(&mut self, field: &str, slot: &Slot<'_, Extents>) {
        match slot {
            Slot::Is(Extents::List(_) | Extents::Beyond) => {}
            Slot::Is(Extents::Text(_)) => {
                self.refuse(field, "an array of three integers >= 0", "a string")
            }
            Slot::Wrong(found) => self.refuse(field, "an array of three integers >= 0", found),
            Slot::Absent => self.refuse(field, "an array of three integers >= 0", NOTHING),
        }
    }

    fn required(&mut self, field: &str, slot: &Slot<'_, Text<'_>>) {
        if !slot.is_there() {
            self.refuse(field, Text::EXPECTED, NOTHING);
        }
        self.optional(field, slot);
    }

    fn optional(&mut self, field: &str, slot: &Slot<'_, Text<'_>>) {
        if let Slot::Wrong(found) = slot {
            self.refuse(field, Text::EXPECTED, found);
        }
    }

    fn refuse(&mut self, field: &str, expected: &'static str, found: &str) {
        self.refusals.push(Finding::refused(self.number, field, expected, found));
    }
}

//! Events become lines of their own, as the log was before it had batches.

use std::collections::HashMap;

use super::Channel;
use super::columnar::Channels;
use super::columnar_session::Scopes;
use super::fat::SAMPLE_KINDS;
use super::session_lines::{self as lines, open, some_extents, state};
use crate::event::{Copy, Event, Kernel, Phase, Profile, Scope, Source, System, What};
use crate::json::write::Object;
use crate::loss::Losses;
use crate::time::{Span, Timestamp};

/// Writes one line per event.
#[derive(Debug, Default)]
pub struct Fat {
    losses: Losses,
    /// By session.
    scopes: HashMap<String, Scopes>,
    out: Vec<u8>,
}

impl Fat {
    /// A writer that has written nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What could not be written so far.
    #[must_use]
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Writes one event.
    pub fn write(&mut self, event: &Event<'_>, channels: &mut dyn Channels) {
        self.out.clear();
        let (out, source) = (&mut self.out, &event.source);
        let channel = match &event.what {
            What::Start(start) => {
                lines::start(out, "init", source, start);
                None
            }
            What::End(time) => {
                lines::end(out, source, *time);
                None
            }
            What::Kernel(one) => {
                kernel(out, source, one, &mut self.losses);
                Some(Channel::Device)
            }
            What::KernelDetails(_) => return self.losses.count("kernel_detail without its kernel"),
            What::Copy(one) => {
                copy(out, source, one, &mut self.losses);
                Some(Channel::Device)
            }
            What::Scope(one) => match scope(out, source, one, &mut self.scopes, &mut self.losses) {
                Ok(()) => Some(Channel::Scope),
                Err(name) => return self.losses.count(name),
            },
            What::Profile(one) => {
                profile(out, source, one, &mut self.losses);
                Some(Channel::Scope)
            }
            What::System(one) => {
                system(out, source, one);
                Some(Channel::System)
            }
            What::Sampling(one) => {
                lines::sampling(out, source, one);
                Some(Channel::System)
            }
        };
        match channel {
            Some(channel) => channels.write(channel, &self.out),
            None => Channel::ALL.into_iter().for_each(|channel| channels.write(channel, &self.out)),
        }
    }
}

fn some_flag(line: &mut Object<'_>, key: &str, value: Option<bool>) {
    if let Some(value) = value {
        line.boolean(key, value);
    }
}

/// When what began at `start` was over.
fn end(start: Timestamp, duration: Span, losses: &mut Losses) -> i64 {
    if start.0.checked_add(duration.0).is_none() {
        losses.count("end_ns beyond 64 bits");
    }
    start.after(duration).0
}

fn kernel(out: &mut Vec<u8>, source: &Source<'_>, kernel: &Kernel<'_>, losses: &mut Losses) {
    let details = kernel.details.as_ref();
    let mut line = open(out, "kernel_event", source);
    line.text("name", &kernel.name);
    line.some_text("platform", kernel.platform.as_deref());
    some_flag(&mut line, "has_details", kernel.has_details);
    line.some_integer("device_id", kernel.device);
    line.some_integer("stream_id", kernel.stream);
    line.integer("start_ns", kernel.start.0);
    line.integer("end_ns", end(kernel.start, kernel.duration, losses));
    line.some_integer("api_start_ns", kernel.call_start.map(|time| time.0));
    line.some_integer("api_exit_ns", kernel.call_end.map(|time| time.0));
    some_extents(&mut line, "grid", kernel.grid.or(details.and_then(|details| details.grid)));
    some_extents(&mut line, "block", kernel.block.or(details.and_then(|details| details.block)));
    line.some_integer("dyn_shared_bytes", kernel.dynamic_shared_bytes);
    line.some_integer("num_regs", kernel.registers);
    line.some_integer("corr_id", kernel.correlation);
    if let Some(details) = details {
        lines::details(&mut line, details, "static_shared_bytes", losses);
    }
    line.close_line();
    losses.count_some("kernel.cuda_error", kernel.error.as_ref());
    losses.count_some("kernel.tag", kernel.tag.as_ref());
    losses.count_some(
        "kernel.external_kind",
        kernel.external_kind.filter(|kind| *kind != 0).as_ref(),
    );
    losses.count_some("kernel.external_id", kernel.external.filter(|id| *id != 0).as_ref());
}

fn copy(out: &mut Vec<u8>, source: &Source<'_>, copy: &Copy<'_>, losses: &mut Losses) {
    let mut line = open(out, "memcpy_event", source);
    line.some_text("name", copy.name.as_deref());
    line.some_text("platform", copy.platform.as_deref());
    line.some_integer("device_id", copy.device);
    line.some_integer("stream_id", copy.stream);
    line.some_text("stack_trace", copy.stack.as_deref());
    line.some_text("user_scope", copy.scope_path.as_deref());
    line.some_integer("scope_depth", copy.scope_depth);
    line.integer("start_ns", copy.start.0);
    line.integer("end_ns", end(copy.start, copy.duration, losses));
    line.some_integer("api_start_ns", copy.call_start.map(|time| time.0));
    line.some_integer("api_exit_ns", copy.call_end.map(|time| time.0));
    line.some_integer("corr_id", copy.correlation);
    line.integer("bytes", copy.bytes);
    line.text("copy_kind", copy.kind.name().unwrap_or("Unknown"));
    line.some_text("src_kind", copy.source.as_deref());
    line.some_text("dst_kind", copy.destination.as_deref());
    line.close_line();
    if copy.kind.name().is_none() {
        losses.count("memcpy.copy_kind without a name");
    }
}

fn scope(
    out: &mut Vec<u8>,
    source: &Source<'_>,
    scope: &Scope<'_>,
    scopes: &mut HashMap<String, Scopes>,
    losses: &mut Losses,
) -> Result<(), &'static str> {
    let kind = match scope.phase {
        Phase::Begin => "scope_begin",
        Phase::End => "scope_end",
        Phase::Sample => return Err("scope_sample"),
        Phase::Continue | Phase::Suspend => return Err("scope continuation"),
    };
    let mut line = open(out, kind, source);
    line.text("name", &scope.name);
    line.some_text("tag", scope.tag.as_deref());
    line.integer("ts_ns", scope.time.0);
    line.some_text("user_scope", scope.path.as_deref());
    line.some_integer("scope_depth", scope.depth);
    line.some_integer("scope_instance_id", scope.instance);
    state(&mut line, scope.host, &scope.devices);
    line.close_line();
    // The lines of its begin and its end tell both.
    let began =
        scopes.entry(lines::session_id(source).into_owned()).or_default().place(scope).began;
    losses.count_some("scope.ts_start_ns", scope.began.filter(|_| scope.began != began).as_ref());
    let told = scope.began.map(|began| scope.time.since(began));
    losses.count_some(
        "scope.duration_ns",
        scope.duration.filter(|_| scope.duration != told).as_ref(),
    );
    losses.count_some("scope.original_start_ns", scope.original_start.as_ref());
    losses.count_some("scope.repeat", scope.repeat.filter(|count| *count != 0).as_ref());
    losses.count_some("scope.warmup", scope.warmup.filter(|count| *count != 0).as_ref());
    Ok(())
}

fn profile(out: &mut Vec<u8>, source: &Source<'_>, sample: &Profile<'_>, losses: &mut Losses) {
    let mut line = open(out, "profile_sample", source);
    line.integer("ts_ns", sample.time.0);
    line.some_integer("device_id", sample.device);
    line.some_integer("corr_id", sample.correlation);
    let kind = SAMPLE_KINDS.iter().find(|(number, _)| Some(*number) == sample.kind);
    line.some_text("sample_kind", kind.map(|(_, name)| *name));
    line.some_text("metric_name", sample.metric.as_deref());
    let value = if sample.metric.is_some() { "metric_value" } else { "sample_count" };
    line.some_integer(value, sample.value);
    line.some_integer("stall_reason", sample.stall_reason);
    line.some_text("reason_name", sample.stall_name.as_deref());
    match sample.pc_offset {
        Some(offset) if offset >= 0 => drop(line.text("pc_offset", &format!("{offset:#x}"))),
        offset => drop(line.some_integer("pc_offset", offset)),
    }
    line.some_text("source_file", sample.source_file.as_deref());
    line.some_text("function_name", sample.function.as_deref());
    line.some_integer("source_line", sample.source_line);
    line.some_text("scope_name", sample.scope.as_deref());
    line.close_line();
    if kind.is_none() && sample.kind.is_some() {
        losses.count("profile_sample.sample_kind without a name");
    }
}

fn system(out: &mut Vec<u8>, source: &Source<'_>, system: &System<'_>) {
    let mut line = open(out, "system_sample", source);
    line.some_text("name", system.name.as_deref());
    line.integer("ts_ns", system.time.0);
    state(&mut line, system.host, &system.devices);
    line.close_line();
}

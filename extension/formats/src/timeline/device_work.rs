//! Kernels and copies: slices on the rows of their streams.

use super::Timeline;
use super::calls::Call;
use super::processes::Place;
use crate::event::{Copy, CopyKind, Kernel, KernelDetails, Text};
use crate::trace::{
    EventType, Id, KernelParameters, Metadata, Record, TraceEvent, Track, TransferParameters, Value,
};

impl Timeline<'_> {
    pub(super) fn kernel(&mut self, line: u64, source: Place, kernel: &Kernel<'_>) {
        let hip = kernel.platform.as_deref() == Some("HIP");
        let call = Call {
            event_type: EventType::KernelLaunch,
            name: if hip { "hipLaunchKernel" } else { "cudaLaunchKernel" }.into(),
            start: kernel.call_start,
            end: kernel.call_end,
            correlation: kernel.correlation,
        };
        let flow = self.call(line, source, call);
        let track = self.stream(line, source, kernel.device, kernel.stream);
        let timestamp = self.time(line, kernel.start);
        let is_collective = kernel.name.starts_with("nccl");
        let event = TraceEvent {
            event_type: if is_collective {
                EventType::NcclComplete
            } else {
                EventType::KernelComplete
            },
            category: Some("kernel".into()),
            name: Text::Borrowed(&kernel.name),
            timestamp,
            duration: Some(kernel.duration),
            track,
            device: kernel.device,
            stream: kernel.stream,
            resource: kernel.stream,
            correlation: kernel.correlation,
            linked: kernel.external,
            flow,
            call_stack: frames(kernel.details.as_ref().and_then(|details| details.stack.as_ref())),
            kernel: parameters(kernel),
            metadata: kernel_metadata(kernel),
            ..TraceEvent::default()
        };
        self.record(line, &Record::Event(event));
    }

    pub(super) fn copy(&mut self, line: u64, source: Place, copy: &Copy<'_>) {
        let call = Call {
            event_type: EventType::Custom,
            name: copy.name.as_deref().unwrap_or("cudaMemcpy").into(),
            start: copy.call_start,
            end: copy.call_end,
            correlation: copy.correlation,
        };
        let flow = self.call(line, source, call);
        let track = self.stream(line, source, copy.device, copy.stream);
        let timestamp = self.time(line, copy.start);
        let mut metadata = Metadata::new();
        if copy.kind.name().is_none() {
            metadata.push(("copy kind".into(), Value::Integer(copy.kind.0)));
        }
        text(&mut metadata, "operation", copy.name.as_ref());
        text(&mut metadata, "source", copy.source.as_ref());
        text(&mut metadata, "destination", copy.destination.as_ref());
        text(&mut metadata, "platform", copy.platform.as_ref());
        text(&mut metadata, "scope path", copy.scope_path.as_ref());
        integer(&mut metadata, "scope depth", copy.scope_depth);
        let event = TraceEvent {
            event_type: copy_type(copy.kind),
            category: Some("gpu_memcpy".into()),
            name: copy_name(copy).into(),
            timestamp,
            duration: Some(copy.duration),
            track,
            device: copy.device,
            stream: copy.stream,
            resource: copy.stream,
            correlation: copy.correlation,
            flow,
            call_stack: frames(copy.stack.as_ref()),
            transfer: TransferParameters {
                bytes: Some(copy.bytes),
                bandwidth: bandwidth(copy.bytes, copy.duration.0),
            },
            metadata,
            ..TraceEvent::default()
        };
        self.record(line, &Record::Event(event));
    }

    /// The row of a stream; where the log names no stream, one for all work of the device.
    fn stream(
        &mut self,
        line: u64,
        source: Place,
        device: Option<i64>,
        stream: Option<i64>,
    ) -> Track<'static> {
        let process = self.processes.device(source, device, line, self.next);
        Track { process, row: stream.map_or(Id::Text("work".into()), Id::Number) }
    }
}

/// Bytes a nanosecond, where it took any time.
#[expect(clippy::cast_precision_loss, reason = "a rate, for people")]
fn bandwidth(bytes: i64, nanoseconds: i64) -> Option<f64> {
    (nanoseconds > 0).then(|| bytes as f64 / nanoseconds as f64)
}

fn parameters(kernel: &Kernel<'_>) -> KernelParameters {
    let details = kernel.details.as_ref();
    let fixed = details.and_then(|details| details.static_shared_bytes);
    let dynamic = kernel.dynamic_shared_bytes;
    KernelParameters {
        grid: kernel.grid.or(details.and_then(|details| details.grid)),
        block: kernel.block.or(details.and_then(|details| details.block)),
        // Kineto's is the sum of what the kernel declares and what the launch asks for.
        shared_bytes: match (fixed, dynamic) {
            (Some(fixed), Some(dynamic)) => fixed.checked_add(dynamic),
            (fixed, dynamic) => dynamic.or(fixed),
        },
        registers: kernel.registers,
    }
}

fn kernel_metadata<'e>(kernel: &'e Kernel<'_>) -> Metadata<'e> {
    let mut metadata = Metadata::new();
    integer(&mut metadata, "dynamic shared memory", kernel.dynamic_shared_bytes);
    integer(&mut metadata, "external kind", kernel.external_kind.filter(|kind| *kind != 0));
    text(&mut metadata, "platform", kernel.platform.as_ref());
    text(&mut metadata, "error", kernel.error.as_ref());
    text(&mut metadata, "tag", kernel.tag.as_ref());
    if let Some(details) = &kernel.details {
        details_metadata(&mut metadata, details);
    }
    metadata
}

fn details_metadata<'e>(metadata: &mut Metadata<'e>, details: &'e KernelDetails<'_>) {
    integer(metadata, "static shared memory", details.static_shared_bytes);
    integer(metadata, "shared memory executed", details.shared_executed_bytes);
    integer(metadata, "local memory", details.local_bytes);
    integer(metadata, "local memory total", details.local_total_bytes);
    integer(metadata, "local memory per thread", details.local_bytes_per_thread);
    integer(metadata, "constant memory", details.const_bytes);
    let shares = [
        ("occupancy", details.occupancy),
        ("occupancy by registers", details.register_occupancy),
        ("occupancy by shared memory", details.shared_memory_occupancy),
        ("occupancy by warps", details.warp_occupancy),
        ("occupancy by blocks", details.block_occupancy),
    ];
    for (name, share) in shares {
        if let Some(share) = share.filter(|share| share.is_finite()) {
            metadata.push((name.into(), Value::Float(share)));
        }
    }
    text(metadata, "limiting resource", details.limiting_resource.as_ref());
    integer(metadata, "max active blocks", details.max_active_blocks);
    integer(metadata, "cache config requested", details.cache_config_requested);
    integer(metadata, "cache config executed", details.cache_config_executed);
    text(metadata, "scope path", details.scope_path.as_ref());
}

/// As Kineto names it: `Memcpy HtoD (Pinned -> Device)`.
fn copy_name(copy: &Copy<'_>) -> String {
    let kind = copy.kind.name().unwrap_or("Unknown");
    match (&copy.source, &copy.destination) {
        (Some(source), Some(destination)) => format!("Memcpy {kind} ({source} -> {destination})"),
        _ => format!("Memcpy {kind}"),
    }
}

fn copy_type(kind: CopyKind) -> EventType {
    match kind.name() {
        Some("HtoD") => EventType::MemcpyH2D,
        Some("DtoH") => EventType::MemcpyD2H,
        Some("DtoD" | "PtoP") => EventType::MemcpyD2D,
        _ => EventType::Custom,
    }
}

/// The calling functions, between which a log writes `|`.
fn frames<'e>(stack: Option<&'e Text<'_>>) -> Vec<Text<'e>> {
    let stack = stack.filter(|stack| !stack.is_empty());
    stack.map(|stack| stack.split('|').map(Text::Borrowed).collect()).unwrap_or_default()
}

/// Adds a text that may be absent.
pub(super) fn text<'e>(
    metadata: &mut Metadata<'e>,
    name: &'static str,
    item: Option<&'e Text<'_>>,
) {
    if let Some(item) = item {
        metadata.push((name.into(), Value::Text(Text::Borrowed(item))));
    }
}

/// Adds a number that may be absent.
pub(super) fn integer(metadata: &mut Metadata<'_>, name: &'static str, item: Option<i64>) {
    if let Some(item) = item {
        metadata.push((name.into(), Value::Integer(item)));
    }
}

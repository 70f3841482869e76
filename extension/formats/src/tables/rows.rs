//! Events as rows of their tables, and back.

use super::cells::{Cell, Row};
use super::columns::{
    COPY, COPY_DEPTH, Column, DEVICE, HOST, KERNEL, PLACE, PROFILE, SCOPE, SESSION, SHAPE, SOURCE,
    STATIC_DEVICE, SYSTEM, TELEMETRY,
};
use crate::event::{
    Copy, CopyKind, Device, Host, Kernel, KernelDetails, Phase, Profile, Scope, Source,
    StaticDevice, Text,
};
use crate::time::{Span, Timestamp};

/// The tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the tables' names")]
pub enum Table {
    Sessions,
    SessionDevices,
    StaticDevices,
    Scopes,
    ScopeDevices,
    KernelShapes,
    Kernels,
    KernelDetails,
    Copies,
    ProfileSamples,
    SystemSamples,
    DeviceSamples,
    Telemetry,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Sessions,
        Self::SessionDevices,
        Self::StaticDevices,
        Self::Scopes,
        Self::ScopeDevices,
        Self::KernelShapes,
        Self::Kernels,
        Self::KernelDetails,
        Self::Copies,
        Self::ProfileSamples,
        Self::SystemSamples,
        Self::DeviceSamples,
        Self::Telemetry,
    ];

    /// The table's name; its file is `<name>.parquet`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::SessionDevices => "session_devices",
            Self::StaticDevices => "static_devices",
            Self::Scopes => "scopes",
            Self::ScopeDevices => "scope_devices",
            Self::KernelShapes => "kernel_shapes",
            Self::Kernels => "kernels",
            Self::KernelDetails => "kernel_details",
            Self::Copies => "copies",
            Self::ProfileSamples => "profile_samples",
            Self::SystemSamples => "system_samples",
            Self::DeviceSamples => "device_samples",
            Self::Telemetry => "telemetry",
        }
    }

    /// The table's columns, in the order of a row's cells.
    pub(super) fn columns(self) -> Vec<Column> {
        let groups: &[&[Column]] = match self {
            Self::Sessions => &[&SOURCE, &SESSION, &HOST],
            Self::Scopes => &[&SOURCE, &SCOPE, &HOST],
            Self::Kernels => &[&SOURCE, &KERNEL, &PLACE],
            Self::KernelShapes => &[&SHAPE],
            Self::KernelDetails => &[&SOURCE, &[CORRELATION], &SHAPE, &PLACE],
            Self::Copies => &[&SOURCE, &COPY, &COPY_DEPTH],
            Self::ProfileSamples => &[&SOURCE, &PROFILE],
            Self::SystemSamples => &[&SOURCE, &SYSTEM, &HOST],
            Self::StaticDevices => &[&STATIC_DEVICE],
            Self::SessionDevices | Self::ScopeDevices | Self::DeviceSamples => &[&DEVICE],
            Self::Telemetry => &[&TELEMETRY],
        };
        groups.concat()
    }
}

const CORRELATION: Column = ("corr_id", super::columns::Kind::Number);

/// Cells of a row that is being put together.
pub(super) type Cells<'a> = Vec<Cell<'a>>;

macro_rules! push {
    ($cells:ident, $($value:expr),* $(,)?) => { $cells.extend([$(Cell::from($value)),*]) };
}
pub(super) use push;

pub(super) fn source<'a>(cells: &mut Cells<'a>, source: &'a Source<'_>) {
    push!(cells, &source.session, source.pid, &source.app);
}

pub(super) fn source_of<'a>(row: &mut Row<'a, '_>) -> Source<'a> {
    Source { session: row.text(), pid: row.whole(), app: row.text() }
}

pub(super) fn host(cells: &mut Cells<'_>, host: Option<Host>) {
    let host = host.unwrap_or_default();
    push!(cells, host.cpu_centipercent, host.ram_used_mib, host.ram_total_mib);
}

pub(super) fn host_of(row: &mut Row<'_, '_>) -> Option<Host> {
    let host = Host {
        cpu_centipercent: row.whole(),
        ram_used_mib: row.whole(),
        ram_total_mib: row.whole(),
    };
    (host != Host::default()).then_some(host)
}

pub(super) fn kernel<'a>(cells: &mut Cells<'a>, shape: i64, kernel: &'a Kernel<'_>) {
    let before = |time: Option<Timestamp>| time.map(|time| kernel.start.0.wrapping_sub(time.0));
    push!(
        cells,
        kernel.start.0,
        kernel.duration.0,
        kernel.name.as_ref(),
        kernel.device,
        kernel.stream,
        kernel.correlation,
        shape,
        kernel.has_details.map(i64::from),
        before(kernel.call_start),
        before(kernel.call_end),
        kernel.external_kind,
        kernel.external,
        &kernel.platform,
        &kernel.error,
        &kernel.tag,
    );
    match &kernel.details {
        Some(details) => push!(cells, &details.scope_path, &details.stack),
        None => push!(cells, None::<i64>, None::<i64>),
    }
}

/// The kernel without its shape, and the shape's place.
pub(super) fn kernel_of<'a>(row: &mut Row<'a, '_>) -> (Kernel<'a>, Option<i64>) {
    let start = Timestamp(row.whole().unwrap_or_default());
    let before = |span: Option<i64>| span.map(|span| Timestamp(start.0.wrapping_sub(span)));
    let mut kernel = Kernel {
        start,
        duration: Span(row.whole().unwrap_or_default()),
        name: row.text().unwrap_or_default(),
        device: row.whole(),
        stream: row.whole(),
        correlation: row.whole(),
        ..Kernel::default()
    };
    let shape = row.whole();
    kernel.has_details = row.whole().map(|flag| flag != 0);
    kernel.call_start = before(row.whole());
    kernel.call_end = before(row.whole());
    kernel.external_kind = row.whole();
    kernel.external = row.whole();
    kernel.platform = row.text();
    kernel.error = row.text();
    kernel.tag = row.text();
    let (scope_path, stack) = (row.text(), row.text());
    if scope_path.is_some() || stack.is_some() {
        let correlation = kernel.correlation;
        kernel.details =
            Some(KernelDetails { correlation, scope_path, stack, ..KernelDetails::default() });
    }
    (kernel, shape)
}

/// The shape of a kernel.
pub(super) fn shape_of_kernel<'a>(cells: &mut Cells<'a>, kernel: &'a Kernel<'_>) {
    let none = const { &KernelDetails::NONE };
    let details = kernel.details.as_ref().unwrap_or(none);
    push!(cells, kernel.dynamic_shared_bytes, kernel.registers);
    extents(cells, kernel.grid.or(details.grid));
    extents(cells, kernel.block.or(details.block));
    resources(cells, details);
}

/// Puts the shape that a row tells into a kernel that tells nothing else.
pub(super) fn add_shape<'a>(row: &mut Row<'a, '_>, shape: &mut Kernel<'a>) {
    shape.dynamic_shared_bytes = row.whole();
    shape.registers = row.whole();
    let details = resources_of(row);
    (shape.grid, shape.block) = (details.grid, details.block);
    let dimensions =
        KernelDetails { grid: details.grid, block: details.block, ..KernelDetails::NONE };
    shape.details = (details != dimensions).then_some(details);
}

/// Gives a kernel its shape.
pub(super) fn wear<'a>(kernel: &mut Kernel<'a>, shape: &Kernel<'static>) {
    kernel.dynamic_shared_bytes = shape.dynamic_shared_bytes;
    kernel.registers = shape.registers;
    (kernel.grid, kernel.block) = (shape.grid, shape.block);
    if shape.details.is_none() && kernel.details.is_none() {
        return;
    }
    let place = kernel.details.take().unwrap_or_default();
    let resources = shape.details.clone().unwrap_or_default();
    kernel.details = Some(KernelDetails {
        correlation: kernel.correlation,
        grid: shape.grid,
        block: shape.block,
        scope_path: place.scope_path,
        stack: place.stack,
        ..resources
    });
}

/// Details that stand alone.
pub(super) fn kernel_details<'a>(cells: &mut Cells<'a>, details: &'a KernelDetails<'_>) {
    push!(cells, details.correlation, None::<i64>, None::<i64>);
    extents(cells, details.grid);
    extents(cells, details.block);
    resources(cells, details);
    push!(cells, &details.scope_path, &details.stack);
}

pub(super) fn kernel_details_of<'a>(row: &mut Row<'a, '_>) -> KernelDetails<'a> {
    let correlation = row.whole();
    let _not_told_here = (row.whole(), row.whole());
    let details = resources_of(row);
    KernelDetails { correlation, scope_path: row.text(), stack: row.text(), ..details }
}

fn extents(cells: &mut Cells<'_>, extents: Option<crate::event::Dim3>) {
    match extents {
        Some(extents) => cells.extend(extents.map(Cell::Whole)),
        None => cells.extend([Cell::None; 3]),
    }
}

fn resources<'a>(cells: &mut Cells<'a>, details: &'a KernelDetails<'_>) {
    push!(
        cells,
        details.static_shared_bytes,
        details.local_bytes,
        details.const_bytes,
        details.occupancy,
        details.register_occupancy,
        details.shared_memory_occupancy,
        details.warp_occupancy,
        details.block_occupancy,
        &details.limiting_resource,
        details.max_active_blocks,
        details.local_total_bytes,
        details.local_bytes_per_thread,
        details.cache_config_requested,
        details.cache_config_executed,
        details.shared_executed_bytes,
    );
}

fn resources_of<'a>(row: &mut Row<'a, '_>) -> KernelDetails<'a> {
    KernelDetails {
        correlation: None,
        grid: row.extents(),
        block: row.extents(),
        static_shared_bytes: row.whole(),
        local_bytes: row.whole(),
        const_bytes: row.whole(),
        occupancy: row.share(),
        register_occupancy: row.share(),
        shared_memory_occupancy: row.share(),
        warp_occupancy: row.share(),
        block_occupancy: row.share(),
        limiting_resource: row.text(),
        max_active_blocks: row.whole(),
        local_total_bytes: row.whole(),
        local_bytes_per_thread: row.whole(),
        cache_config_requested: row.whole(),
        cache_config_executed: row.whole(),
        shared_executed_bytes: row.whole(),
        scope_path: None,
        stack: None,
    }
}

pub(super) fn copy<'a>(cells: &mut Cells<'a>, copy: &'a Copy<'_>) {
    let before = |time: Option<Timestamp>| time.map(|time| copy.start.0.wrapping_sub(time.0));
    push!(
        cells,
        copy.start.0,
        copy.duration.0,
        copy.bytes,
        copy.kind.0,
        copy.stream,
        copy.correlation,
        copy.device,
        before(copy.call_start),
        before(copy.call_end),
        &copy.platform,
        &copy.name,
        &copy.source,
        &copy.destination,
        &copy.scope_path,
        &copy.stack,
        copy.scope_depth,
    );
}

pub(super) fn copy_of<'a>(row: &mut Row<'a, '_>) -> Copy<'a> {
    let start = Timestamp(row.whole().unwrap_or_default());
    let before = |span: Option<i64>| span.map(|span| Timestamp(start.0.wrapping_sub(span)));
    Copy {
        start,
        duration: Span(row.whole().unwrap_or_default()),
        bytes: row.whole().unwrap_or_default(),
        kind: CopyKind(row.whole().unwrap_or_default()),
        stream: row.whole(),
        correlation: row.whole(),
        device: row.whole(),
        call_start: before(row.whole()),
        call_end: before(row.whole()),
        platform: row.text(),
        name: row.text(),
        source: row.text(),
        destination: row.text(),
        scope_path: row.text(),
        stack: row.text(),
        scope_depth: row.whole(),
    }
}

/// Phases and their names.
const PHASES: [(Phase, &str); 5] = [
    (Phase::Begin, "begin"),
    (Phase::End, "end"),
    (Phase::Continue, "continue"),
    (Phase::Suspend, "suspend"),
    (Phase::Sample, "sample"),
];

pub(super) fn scope<'a>(cells: &mut Cells<'a>, scope: &'a Scope<'_>) {
    let phase = PHASES.iter().find(|(phase, _)| *phase == scope.phase);
    push!(
        cells,
        scope.time.0,
        phase.map_or("begin", |(_, name)| *name),
        scope.instance,
        scope.name.as_ref(),
        scope.depth,
        scope.began.map(|time| time.0),
        scope.duration.map(|span| span.0),
        &scope.tag,
        &scope.path,
        scope.repeat,
        scope.warmup,
        scope.original_start.map(|time| time.0),
    );
    host(cells, scope.host);
}

pub(super) fn scope_of<'a>(row: &mut Row<'a, '_>) -> Scope<'a> {
    let time = Timestamp(row.whole().unwrap_or_default());
    let phase: Option<Text<'_>> = row.text();
    let phase = PHASES.iter().find(|(_, name)| phase.as_deref() == Some(name));
    Scope {
        time,
        phase: phase.map_or(Phase::Begin, |(phase, _)| *phase),
        instance: row.whole(),
        name: row.text().unwrap_or_default(),
        depth: row.whole(),
        began: row.whole().map(Timestamp),
        duration: row.whole().map(Span),
        tag: row.text(),
        path: row.text(),
        repeat: row.whole(),
        warmup: row.whole(),
        original_start: row.whole().map(Timestamp),
        host: host_of(row),
        devices: vec![],
    }
}

pub(super) fn profile<'a>(cells: &mut Cells<'a>, sample: &'a Profile<'_>) {
    push!(
        cells,
        sample.time.0,
        sample.correlation,
        sample.device,
        &sample.function,
        sample.pc_offset,
        &sample.metric,
        sample.value,
        sample.stall_reason,
        &sample.stall_name,
        sample.kind,
        &sample.scope,
        i64::from(sample.scope_ended),
        sample
            .source_file
            .as_deref()
            .filter(|file| !sample.is_in_function(file))
            .map_or(Cell::None, Cell::Text),
        sample.source_line,
    );
}

pub(super) fn profile_of<'a>(row: &mut Row<'a, '_>) -> Profile<'a> {
    Profile {
        time: Timestamp(row.whole().unwrap_or_default()),
        correlation: row.whole(),
        device: row.whole(),
        function: row.text(),
        pc_offset: row.whole(),
        metric: row.text(),
        value: row.whole(),
        stall_reason: row.whole(),
        stall_name: row.text(),
        kind: row.whole(),
        scope: row.text(),
        scope_ended: row.whole().is_some_and(|flag| flag != 0),
        source_file: row.text(),
        source_line: row.whole(),
    }
}

pub(super) fn device<'a>(cells: &mut Cells<'a>, event: i64, device: &'a Device<'_>) {
    push!(
        cells,
        event,
        device.index,
        &device.name,
        &device.uuid,
        &device.vendor,
        device.pci_bus,
        device.used_mib,
        device.free_mib,
        device.total_mib,
        device.gpu_percent,
        device.memory_percent,
        device.temperature_celsius,
        device.power_milliwatts,
        device.graphics_mhz,
        device.multiprocessor_mhz,
        device.memory_mhz,
        device.throttled_by_power,
        device.throttled_by_heat,
        device.pcie_received_bytes_per_second,
        device.pcie_sent_bytes_per_second,
    );
}

/// The event that the device belongs to, and its state.
pub(super) fn device_of<'a>(row: &mut Row<'a, '_>) -> (i64, Device<'a>) {
    let event = row.whole().unwrap_or(-1);
    let device = Device {
        index: row.whole().unwrap_or_default(),
        name: row.text(),
        uuid: row.text(),
        vendor: row.text(),
        pci_bus: row.whole(),
        used_mib: row.whole(),
        free_mib: row.whole(),
        total_mib: row.whole(),
        gpu_percent: row.whole(),
        memory_percent: row.whole(),
        temperature_celsius: row.whole(),
        power_milliwatts: row.whole(),
        graphics_mhz: row.whole(),
        multiprocessor_mhz: row.whole(),
        memory_mhz: row.whole(),
        throttled_by_power: row.whole(),
        throttled_by_heat: row.whole(),
        pcie_received_bytes_per_second: row.whole(),
        pcie_sent_bytes_per_second: row.whole(),
    };
    (event, device)
}

pub(super) fn static_device<'a>(cells: &mut Cells<'a>, event: i64, device: &'a StaticDevice<'_>) {
    push!(
        cells,
        event,
        device.index,
        &device.name,
        &device.uuid,
        &device.vendor,
        device.compute_major,
        device.compute_minor,
        device.l2_cache_bytes,
        device.shared_bytes_per_block,
        device.registers_per_block,
        device.multiprocessors,
        device.warp_size,
    );
}

pub(super) fn static_device_of<'a>(row: &mut Row<'a, '_>) -> (i64, StaticDevice<'a>) {
    let event = row.whole().unwrap_or(-1);
    let device = StaticDevice {
        index: row.whole().unwrap_or_default(),
        name: row.text(),
        uuid: row.text(),
        vendor: row.text(),
        compute_major: row.whole(),
        compute_minor: row.whole(),
        l2_cache_bytes: row.whole(),
        shared_bytes_per_block: row.whole(),
        registers_per_block: row.whole(),
        multiprocessors: row.whole(),
        warp_size: row.whole(),
    };
    (event, device)
}

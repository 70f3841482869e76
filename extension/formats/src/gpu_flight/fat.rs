//! Lines that hold one event each become events of the model.

use super::entries::{DeviceLine, SessionLine, StaticEntry};
use crate::event::{
    Copy, CopyKind, Device, Kernel, KernelDetails, Phase, Profile, Sampling, Scope, Source, Start,
    StaticDevice, System, Text, What,
};
use crate::record::{Extents, Slot, Unknown};
use crate::time::Timestamp;

/// Types that [`DeviceLine`] reads.
pub(super) const DEVICE_TYPES: [&str; 4] =
    ["kernel_event", "kernel_detail", "memcpy_event", "profile_sample"];

/// Types that [`SessionLine`] reads.
pub(super) const SESSION_TYPES: [&str; 8] = [
    "job_start",
    "init",
    "shutdown",
    "scope_begin",
    "scope_end",
    "system_sample",
    "system_start",
    "system_stop",
];

/// A field that an event cannot do without and that is not there, or is of another type.
#[derive(Debug)]
pub(super) struct Missing {
    pub(super) field: &'static str,
    pub(super) expected: &'static str,
}

type Taken<T> = Result<T, Missing>;

fn need<T>(slot: &mut Slot<'_, T>, field: &'static str, expected: &'static str) -> Taken<T> {
    slot.take().ok_or(Missing { field, expected })
}

fn need_number(slot: &mut Slot<'_, i64>, field: &'static str) -> Taken<i64> {
    need(slot, field, "an integer of 64 bits")
}

fn need_time(slot: &mut Slot<'_, i64>, field: &'static str) -> Taken<Timestamp> {
    need_number(slot, field).map(Timestamp)
}

fn need_text<'a>(slot: &mut Slot<'a, Text<'a>>, field: &'static str) -> Taken<Text<'a>> {
    need(slot, field, "a string")
}

impl<'a> DeviceLine<'a> {
    /// What the line tells, whose it is, and the keys that nobody knows.
    pub(super) fn event(mut self, kind: &str) -> Taken<(Source<'a>, What<'a>, Unknown<'a>)> {
        let session = need_text(&mut self.session, "session_id")?;
        let source = Source { session: Some(session), pid: self.pid.take(), app: self.app.take() };
        let what = match kind {
            "kernel_event" => What::Kernel(self.kernel()?),
            "kernel_detail" => What::KernelDetails(self.kernel_detail()?),
            "memcpy_event" => What::Copy(self.copy()?),
            _ => What::Profile(self.profile()?),
        };
        Ok((source, what, self.unknown))
    }

    fn kernel(&mut self) -> Taken<Kernel<'a>> {
        let start = need_time(&mut self.start, "start_ns")?;
        let end = need_time(&mut self.end, "end_ns")?;
        let has_details = self.has_details.take();
        let correlation = self.correlation.take();
        let details = KernelDetails { correlation, ..self.details() };
        let nothing = KernelDetails { correlation, ..KernelDetails::default() };
        Ok(Kernel {
            start,
            duration: end.since(start),
            name: need_text(&mut self.name, "name")?,
            device: self.device.take().map(|number| number.0),
            stream: self.stream.take().map(|number| number.0),
            correlation,
            dynamic_shared_bytes: self.dynamic_shared.take(),
            registers: self.registers.take(),
            grid: details.grid,
            block: details.block,
            has_details,
            details: (details != nothing).then_some(details),
            call_start: self.call_start.take().map(Timestamp),
            call_end: self.call_end.take().map(Timestamp),
            platform: self.platform.take(),
            ..Kernel::default()
        })
    }

    fn kernel_detail(&mut self) -> Taken<KernelDetails<'a>> {
        let correlation = Some(need_number(&mut self.correlation, "corr_id")?);
        Ok(KernelDetails { correlation, ..self.details() })
    }

    fn details(&mut self) -> KernelDetails<'a> {
        KernelDetails {
            correlation: None,
            grid: self.grid.take().and_then(Extents::fits),
            block: self.block.take().and_then(Extents::fits),
            static_shared_bytes: self.static_shared.take(),
            local_bytes: self.local.take(),
            const_bytes: self.constant.take(),
            occupancy: self.occupancy.take(),
            register_occupancy: self.register_occupancy.take(),
            shared_memory_occupancy: self.shared_memory_occupancy.take(),
            warp_occupancy: self.warp_occupancy.take(),
            block_occupancy: self.block_occupancy.take(),
            limiting_resource: self.limiting_resource.take(),
            max_active_blocks: self.max_active_blocks.take(),
            local_total_bytes: self.local_total.take(),
            local_bytes_per_thread: self.local_per_thread.take(),
            cache_config_requested: self.cache_requested.take(),
            cache_config_executed: self.cache_executed.take(),
            shared_executed_bytes: self.shared_executed.take(),
            scope_path: self.scope_path.take(),
            stack: self.stack.take(),
        }
    }

    fn copy(&mut self) -> Taken<Copy<'a>> {
        let start = need_time(&mut self.start, "start_ns")?;
        let end = need_time(&mut self.end, "end_ns")?;
        let kind = need_text(&mut self.copy_kind, "copy_kind")?;
        let expected = "a kind of copy, such as HtoD";
        Ok(Copy {
            start,
            duration: end.since(start),
            bytes: need_number(&mut self.bytes, "bytes")?,
            kind: CopyKind::named(&kind).ok_or(Missing { field: "copy_kind", expected })?,
            stream: self.stream.take().map(|number| number.0),
            correlation: self.correlation.take(),
            device: self.device.take().map(|number| number.0),
            call_start: self.call_start.take().map(Timestamp),
            call_end: self.call_end.take().map(Timestamp),
            platform: self.platform.take(),
            name: self.name.take(),
            source: self.source.take(),
            destination: self.destination.take(),
            scope_path: self.scope_path.take(),
            scope_depth: self.scope_depth.take(),
            stack: self.stack.take(),
        })
    }

    fn profile(&mut self) -> Taken<Profile<'a>> {
        let kind = self.sample_kind.take();
        Ok(Profile {
            time: need_time(&mut self.time, "ts_ns")?,
            correlation: self.correlation.take(),
            device: self.device.take().map(|number| number.0),
            function: self.function.take(),
            pc_offset: self.pc_offset.take().map(|number| number.0),
            metric: self.metric.take(),
            value: self.sample_count.take().or(self.metric_value.take()),
            stall_reason: self.stall_reason.take(),
            stall_name: self.stall_name.take(),
            kind: kind.as_deref().and_then(sample_kind),
            scope: self.scope_name.take(),
            scope_ended: false,
            source_file: self.source_file.take(),
            source_line: self.source_line.take(),
        })
    }
}

/// The names of the kinds of samples, by their numbers in a batch.
pub(super) const SAMPLE_KINDS: [(i64, &str); 2] = [(0, "pc_sampling"), (1, "sass_metric")];

fn sample_kind(name: &str) -> Option<i64> {
    SAMPLE_KINDS.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
}

impl<'a> SessionLine<'a> {
    /// What the line tells, whose it is, and the keys that nobody knows.
    pub(super) fn event(mut self, kind: &str) -> Taken<(Source<'a>, What<'a>, Unknown<'a>)> {
        let session = need_text(&mut self.session, "session_id")?;
        let source = Source { session: Some(session), pid: self.pid.take(), app: self.app.take() };
        let time = need_time(&mut self.time, "ts_ns")?;
        let host = self.host.take().map(|mut entry| entry.state());
        let entries = self.devices.take().unwrap_or_default();
        let devices: Vec<Device<'a>> = entries.into_iter().map(|mut entry| entry.state()).collect();
        let name = self.name.take();
        let what = match kind {
            "job_start" | "init" => What::Start(Start {
                time,
                log_path: self.log_path.take(),
                scope_rate_ms: self.scope_rate_ms.take(),
                system_rate_ms: self.system_rate_ms.take(),
                host,
                devices,
                static_devices: self.static_devices(),
            }),
            "shutdown" => What::End(time),
            "system_start" | "system_stop" => What::Sampling(Sampling {
                time,
                began: kind == "system_start",
                name,
                host,
                devices,
            }),
            "system_sample" => What::System(System { time, name, host, devices }),
            _ => What::Scope(Scope {
                phase: if kind == "scope_begin" { Phase::Begin } else { Phase::End },
                time,
                name: name.ok_or(Missing { field: "name", expected: "a string" })?,
                instance: self.instance.take(),
                depth: self.depth.take(),
                tag: self.tag.take(),
                path: self.scope_path.take(),
                host,
                devices,
                ..Scope::default()
            }),
        };
        Ok((source, what, self.unknown))
    }

    fn static_devices(&mut self) -> Vec<StaticDevice<'a>> {
        let entries = self.static_devices.take().unwrap_or_default();
        entries.into_iter().map(static_device).collect()
    }
}

fn static_device(mut entry: StaticEntry<'_>) -> StaticDevice<'_> {
    StaticDevice {
        index: entry.index.take().unwrap_or_default(),
        name: entry.name.take(),
        uuid: entry.uuid.take(),
        vendor: entry.vendor.take(),
        compute_major: entry.compute_major.take(),
        compute_minor: entry.compute_minor.take(),
        l2_cache_bytes: entry.l2_cache.take(),
        shared_bytes_per_block: entry.shared.take(),
        registers_per_block: entry.registers.take(),
        multiprocessors: entry.multiprocessors.take(),
        warp_size: entry.warp_size.take(),
    }
}

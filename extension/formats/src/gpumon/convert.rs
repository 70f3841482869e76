//! A line becomes an event of the model.

use super::line::{DeviceEntry, GpumonLine, HostEntry, MemoryEntry};
use super::{Mode, TYPES};
use crate::event::{
    Device, Dim3, Event, Host, Kernel, Phase, Sampling, Scope, Source, Start, System, Text, What,
};
use crate::finding::{Finding, Sink};
use crate::json::Number;
use crate::record::{Extents, Field, Slot, Whole};
use crate::time::{Span, Timestamp};

/// The event that a line tells, or `None` where it tells none; the sink then knows why.
pub(super) fn event<'a>(
    number: u64,
    mode: Mode,
    line: &mut GpumonLine<'a>,
    sink: &mut dyn Sink,
) -> Option<Event<'a>> {
    let kind = match std::mem::take(&mut line.kind) {
        Slot::Is(kind) => kind,
        Slot::Wrong(found) => return refuse(number, sink, "type", TYPES, found),
        Slot::Absent => return refuse(number, sink, "type", TYPES, "nothing"),
    };
    let mut take = Take { number, mode, kind: &kind, sink, refused: false };
    let needs_pid = !kind.starts_with("system_");
    let what = match kind.as_ref() {
        "init" => What::Start(start(line, &mut take)),
        "shutdown" => What::End(take.time("ts_ns", &line.time)),
        "system_start" | "system_stop" => {
            What::Sampling(sampling(kind == "system_start", line, &mut take))
        }
        "system_sample" => What::System(system(line, &mut take)),
        "scope_begin" => What::Scope(scope(Phase::Begin, line, &mut take)),
        "scope_sample" => What::Scope(scope(Phase::Sample, line, &mut take)),
        "scope_end" => What::Scope(scope(Phase::End, line, &mut take)),
        "kernel" => What::Kernel(kernel(line, &mut take)),
        _ => {
            take.sink.unknown(number, &kind);
            return None;
        }
    };
    let source = source(needs_pid, line, &mut take);
    let refused = take.refused;
    line.unknown.drain(..).for_each(|key| sink.unknown(number, &format!("{kind}.{key}")));
    (!refused).then_some(Event { source, what })
}

fn refuse<T>(
    number: u64,
    sink: &mut dyn Sink,
    field: &str,
    expected: &'static str,
    found: &str,
) -> Option<T> {
    sink.finding(Finding::refused(number, field, expected, found));
    None
}

fn source<'a>(needs_pid: bool, line: &mut GpumonLine<'a>, take: &mut Take<'_>) -> Source<'a> {
    let pid = match needs_pid {
        true => Some(take.whole("pid", &line.pid)),
        false => take.optional_whole("pid", &line.pid),
    };
    Source { session: None, pid, app: Some(take.not_empty("app", &mut line.app)) }
}

fn start<'a>(line: &mut GpumonLine<'a>, take: &mut Take<'_>) -> Start<'a> {
    Start {
        time: take.time("ts_ns", &line.time),
        log_path: take.optional("logPath", &mut line.log_path),
        scope_rate_ms: take.optional_whole("scope_rate_ms", &line.scope_rate_ms),
        system_rate_ms: take.optional_whole("system_rate_ms", &line.system_rate_ms),
        host: host(&mut line.host, take),
        devices: devices(line, take),
        static_devices: vec![],
    }
}

fn sampling<'a>(began: bool, line: &mut GpumonLine<'a>, take: &mut Take<'_>) -> Sampling<'a> {
    Sampling {
        time: take.time("ts_ns", &line.time),
        began,
        name: take.optional("name", &mut line.name),
        host: host(&mut line.host, take),
        devices: devices(line, take),
    }
}

fn system<'a>(line: &mut GpumonLine<'a>, take: &mut Take<'_>) -> System<'a> {
    System {
        time: take.time("ts_ns", &line.time),
        name: take.optional("name", &mut line.name),
        host: host(&mut line.host, take),
        devices: devices(line, take),
    }
}

fn scope<'a>(phase: Phase, line: &mut GpumonLine<'a>, take: &mut Take<'_>) -> Scope<'a> {
    let mut scope = Scope {
        phase,
        name: take.not_empty("name", &mut line.name),
        tag: take.optional("tag", &mut line.tag),
        host: host(&mut line.host, take),
        devices: devices(line, take),
        ..Scope::default()
    };
    // Later producers write `ts_ns` alone, and the begin tells the rest.
    if phase == Phase::End && (line.end.is_there() || !line.time.is_there()) {
        scope.time = take.time("ts_end_ns", &line.end);
        scope.began = Some(take.time("ts_start_ns", &line.start));
        scope.duration = Some(Span(take.whole("duration_ns", &line.duration)));
    } else {
        scope.time = take.time("ts_ns", &line.time);
    }
    scope
}

fn kernel<'a>(line: &mut GpumonLine<'a>, take: &mut Take<'_>) -> Kernel<'a> {
    let later = !line.kernel.is_there();
    let start = take.time("ts_start_ns", &line.start);
    let end = take.time("ts_end_ns", &line.end);
    let duration = Span(take.whole("duration_ns", &line.duration));
    if duration != end.since(start) {
        take.suspect("duration_ns", "ts_end_ns - ts_start_ns", &duration.0.to_string());
    }
    Kernel {
        start,
        duration,
        name: match later {
            true => take.not_empty("name", &mut line.name),
            false => take.not_empty("kernel", &mut line.kernel),
        },
        dynamic_shared_bytes: Some(match line.shared_bytes.is_there() {
            true => take.whole("shared_mem_bytes", &line.shared_bytes),
            false => take.whole("dyn_shared_bytes", &line.dynamic_shared_bytes),
        }),
        registers: take.optional_whole("num_regs", &line.registers),
        grid: Some(take.extents("grid", &line.grid)),
        block: Some(take.extents("block", &line.block)),
        error: Some(take.text("cuda_error", &mut line.error)),
        tag: take.optional("tag", &mut line.tag),
        ..Kernel::default()
    }
}

fn devices<'a>(line: &mut GpumonLine<'a>, take: &mut Take<'_>) -> Vec<Device<'a>> {
    let memory = take.entries("memory", &mut line.memory);
    let devices = take.entries("devices", &mut line.devices);
    let memory =
        memory.into_iter().enumerate().map(|(position, entry)| memory_of(position, entry, take));
    let mut states: Vec<_> = memory.collect();
    for (position, entry) in devices.into_iter().enumerate() {
        states.push(device(position, entry, take));
    }
    states
}

fn memory_of(position: usize, entry: MemoryEntry<'_>, take: &mut Take<'_>) -> Device<'static> {
    let at = |key: &str| format!("memory[{position}].{key}");
    entry.unknown.iter().for_each(|key| take.unknown(&format!("memory.{key}")));
    let state = Device {
        index: take.whole(&at("device"), &entry.device),
        used_mib: Some(take.whole(&at("used_mib"), &entry.used)),
        free_mib: Some(take.whole(&at("free_mib"), &entry.free)),
        total_mib: Some(take.whole(&at("total_mib"), &entry.total)),
        ..Device::default()
    };
    take.adds_up(&at("total_mib"), &state);
    state
}

/// The state that an entry of `devices` tells.
fn device<'a>(position: usize, mut entry: DeviceEntry<'a>, take: &mut Take<'_>) -> Device<'a> {
    let at = |key: &str| format!("devices[{position}].{key}");
    entry.unknown.iter().for_each(|key| take.unknown(&format!("devices.{key}")));
    if entry.index.get().is_none() {
        take.refuse(&at("id"), "an integer >= 0", "nothing");
    }
    let state = entry.state();
    take.adds_up(&at("total_mib"), &state);
    state
}

impl<'a> DeviceEntry<'a> {
    /// The state that the entry tells, index 0 where it has none.
    pub(crate) fn state(&mut self) -> Device<'a> {
        Device {
            index: self.index.take().unwrap_or_default(),
            name: self.name.take(),
            uuid: self.uuid.take(),
            vendor: self.vendor.take(),
            pci_bus: self.pci_bus.take(),
            used_mib: self.used.take(),
            free_mib: self.free.take(),
            total_mib: self.total.take(),
            gpu_percent: self.gpu_percent.take(),
            memory_percent: self.memory_percent.take(),
            temperature_celsius: self.temperature.take(),
            power_milliwatts: self.power.take(),
            graphics_mhz: self.graphics.take(),
            multiprocessor_mhz: self.multiprocessor.take(),
            memory_mhz: self.memory.take(),
            throttled_by_power: self.throttled_by_power.take(),
            throttled_by_heat: self.throttled_by_heat.take(),
            pcie_received_bytes_per_second: self.received.take(),
            pcie_sent_bytes_per_second: self.sent.take(),
        }
    }
}

impl HostEntry<'_> {
    /// The state that the entry tells; processor use is rounded to a hundredth of a percent.
    pub(crate) fn state(&mut self) -> Host {
        let hundredths = |percent: Number<'_>| match percent.scaled(2) {
            Some(exact) => i64::try_from(exact).ok(),
            None => rounded(percent.as_f64() * 100.0),
        };
        Host {
            cpu_centipercent: self.cpu_percent.take().and_then(hundredths),
            ram_used_mib: self.ram_used.take(),
            ram_total_mib: self.ram_total.take(),
        }
    }
}

/// The nearest whole number, where the double is small enough to tell it.
fn rounded(value: f64) -> Option<i64> {
    let value = value.round();
    #[expect(clippy::cast_possible_truncation, reason = "bounded just before")]
    (value.abs() < 1e15).then_some(value as i64)
}

fn host(slot: &mut Slot<'_, HostEntry<'_>>, take: &mut Take<'_>) -> Option<Host> {
    if let Slot::Wrong(found) = slot {
        take.suspect("host", "an object", found);
    }
    let mut entry = slot.take()?;
    entry.unknown.iter().for_each(|key| take.unknown(&format!("host.{key}")));
    Some(entry.state())
}

/// Takes values out of slots and says what is wrong with them. A value that is needed and not
/// there refuses the line; the value that is then returned is never used.
struct Take<'s> {
    number: u64,
    mode: Mode,
    kind: &'s str,
    sink: &'s mut dyn Sink,
    refused: bool,
}

impl Take<'_> {
    fn refuse(&mut self, field: &str, expected: &'static str, found: &str) {
        self.refused = true;
        self.sink.finding(Finding::refused(self.number, field, expected, found));
    }

    /// A number that no event can hold. The schema allows it.
    fn beyond(&mut self, field: &str, found: &str) {
        const EXPECTED: &str = "less than 2^63";
        match self.mode {
            Mode::Tolerant => self.refuse(field, EXPECTED, found),
            Mode::Strict => {
                self.refused = true;
                self.suspect(field, EXPECTED, found);
            }
        }
    }

    fn suspect(&mut self, field: &str, expected: &'static str, found: &str) {
        self.sink.finding(Finding::suspect(self.number, field, expected, found));
    }

    fn unknown(&mut self, key: &str) {
        self.sink.unknown(self.number, &format!("{}.{key}", self.kind));
    }

    fn whole(&mut self, field: &str, slot: &Slot<'_, Whole<'_>>) -> i64 {
        const EXPECTED: &str = "an integer >= 0";
        match slot {
            Slot::Is(value) if value.is_negative() => {
                self.refuse(field, EXPECTED, "a negative number")
            }
            Slot::Is(Whole::Fits(value)) => return *value,
            Slot::Is(Whole::Beyond(number)) => self.beyond(field, number.as_str()),
            Slot::Wrong(found) => self.refuse(field, EXPECTED, found),
            Slot::Absent => self.refuse(field, EXPECTED, "nothing"),
        }
        0
    }

    fn time(&mut self, field: &str, slot: &Slot<'_, Whole<'_>>) -> Timestamp {
        Timestamp(self.whole(field, slot))
    }

    fn optional_whole(&mut self, field: &str, slot: &Slot<'_, Whole<'_>>) -> Option<i64> {
        match slot {
            Slot::Absent => None,
            Slot::Is(Whole::Fits(value)) if *value >= 0 => Some(*value),
            Slot::Is(_) => {
                self.suspect(field, "an integer >= 0", "a number out of range");
                None
            }
            Slot::Wrong(found) => {
                self.suspect(field, "an integer >= 0", found);
                None
            }
        }
    }

    fn text<'a>(&mut self, field: &str, slot: &mut Slot<'a, Text<'a>>) -> Text<'a> {
        match slot {
            Slot::Wrong(found) => self.refuse(field, Text::EXPECTED, found),
            Slot::Absent => self.refuse(field, Text::EXPECTED, "nothing"),
            Slot::Is(_) => {}
        }
        slot.take().unwrap_or_default()
    }

    fn not_empty<'a>(&mut self, field: &str, slot: &mut Slot<'a, Text<'a>>) -> Text<'a> {
        let was_there = slot.get().is_some();
        let text = self.text(field, slot);
        if was_there && text.is_empty() {
            self.refuse(field, "a string that is not empty", "\"\"");
        }
        text
    }

    fn optional<'a>(&mut self, field: &str, slot: &mut Slot<'a, Text<'a>>) -> Option<Text<'a>> {
        if let Slot::Wrong(found) = slot {
            self.suspect(field, Text::EXPECTED, found);
        }
        slot.take()
    }

    fn extents(&mut self, field: &str, slot: &Slot<'_, Extents>) -> Dim3 {
        match slot {
            Slot::Wrong(found) => self.refuse(field, Extents::EXPECTED, found),
            Slot::Absent => self.refuse(field, Extents::EXPECTED, "nothing"),
            Slot::Is(extents) => match extents.fits() {
                Some(extents) => return extents,
                None => self.beyond(field, "a larger number"),
            },
        }
        [0; 3]
    }

    fn entries<'a, T>(&mut self, field: &str, slot: &mut Slot<'a, Vec<T>>) -> Vec<T> {
        if let Slot::Wrong(found) = slot {
            self.suspect(field, "an array of objects", found);
        }
        slot.take().unwrap_or_default()
    }

    fn adds_up(&mut self, field: &str, state: &Device<'_>) {
        let (Some(used), Some(free), Some(total)) =
            (state.used_mib, state.free_mib, state.total_mib)
        else {
            return;
        };
        if used.checked_add(free) != Some(total) {
            self.suspect(field, "used_mib + free_mib", &format!("{used} + {free} != {total}"));
        }
    }
}

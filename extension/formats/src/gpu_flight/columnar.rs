//! Events become batches whose texts are interned.
//!
//! A dictionary line stands before every line that uses what it explains, in each channel, so that
//! each file can be read alone: also the next one after a rotation, which begins anew with the
//! session's first line and explains each id again where it is first used.

use std::collections::HashMap;

use super::Channel;
use super::columnar_batch::{Cell, Rows};
use super::columnar_session::{Place, Session, TYPES};
use super::dictionary::Kind;
use super::rows::Type;
use super::session_lines::{self as lines, session_id};
use crate::event::{
    Copy, Device, Dim3, Event, Host, Kernel, KernelDetails, Phase, Profile, Sampling, Scope,
    Source, Start, System, What,
};
use crate::loss::Losses;
use crate::time::Timestamp;

/// Where lines go. Each call has one or more whole lines, newlines included.
pub trait Channels {
    /// Appends to one channel.
    fn write(&mut self, channel: Channel, lines: &[u8]);
}

/// Which kernels get their details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Details {
    /// All that have any: nothing is lost, and details make up most of the log.
    #[default]
    All,
    /// The first kernel of each name.
    First,
}

/// Rows of a batch, as the original's client has it.
const ROWS: usize = 512;

/// Writes columnar batches.
#[derive(Debug)]
pub struct Columnar {
    details: Details,
    sessions: Vec<Session>,
    places: HashMap<String, usize>,
    latest: usize,
    losses: Losses,
    out: Vec<u8>,
}

impl Columnar {
    /// A writer that has written nothing.
    #[must_use]
    pub fn new(details: Details) -> Self {
        Self {
            details,
            sessions: vec![],
            places: HashMap::new(),
            latest: 0,
            losses: Losses::default(),
            out: vec![],
        }
    }

    /// What could not be written so far.
    #[must_use]
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Takes one event. Its line may wait until its batch is full.
    pub fn write(&mut self, event: &Event<'_>, channels: &mut dyn Channels) {
        let place = self.place_of(&session_id(&event.source));
        let Some(session) = self.sessions.get_mut(place) else { return };
        let mut writing = Writing {
            session,
            losses: &mut self.losses,
            out: &mut self.out,
            channels,
            details: self.details,
        };
        writing.event(event);
    }

    /// The place of a session, which is new where it was not seen before.
    fn place_of(&mut self, id: &str) -> usize {
        // Most events are of the session of the one before them.
        if self.sessions.get(self.latest).is_some_and(|session| session.id == id) {
            return self.latest;
        }
        self.latest = match self.places.get(id) {
            Some(place) => *place,
            None => {
                self.places.insert(id.to_owned(), self.sessions.len());
                self.sessions.push(Session::new(id));
                self.sessions.len() - 1
            }
        };
        self.latest
    }

    /// Writes all that waits.
    pub fn flush(&mut self, channels: &mut dyn Channels) {
        for session in &mut self.sessions {
            let (losses, out) = (&mut self.losses, &mut self.out);
            Writing { session, losses, out, channels, details: self.details }.flush();
        }
    }

    /// The channel's file has been replaced by an empty one: what it uses has to be explained anew.
    pub fn rotated(&mut self, channel: Channel) {
        self.sessions.iter_mut().for_each(|session| session.rotated(channel));
    }
}

fn channel_of(of: Type) -> Channel {
    match of {
        Type::Kernel | Type::Copy => Channel::Device,
        Type::Scope | Type::Profile => Channel::Scope,
        Type::Host | Type::Device => Channel::System,
    }
}

/// What a line of details tells of one launch beside the details themselves.
struct Launch {
    grid: Option<Dim3>,
    block: Option<Dim3>,
    correlation: Option<i64>,
}

/// One call of the writer.
struct Writing<'w> {
    session: &'w mut Session,
    losses: &'w mut Losses,
    out: &'w mut Vec<u8>,
    channels: &'w mut dyn Channels,
    details: Details,
}

impl Writing<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if !matches!(
            event.what,
            What::Start(_) | What::End(_) | What::Sampling(_) | What::KernelDetails(_)
        ) {
            self.session.compare_source(&event.source, self.losses);
        }
        match &event.what {
            What::Start(start) => self.start(&event.source, start),
            What::End(time) => self.end(&event.source, *time),
            What::Sampling(sampling) => self.sampling(&event.source, sampling),
            What::Kernel(kernel) => self.kernel(&event.source, kernel),
            What::KernelDetails(details) => {
                let launch = Launch {
                    grid: details.grid,
                    block: details.block,
                    correlation: details.correlation,
                };
                self.kernel_details(&event.source, &launch, details);
            }
            What::Copy(copy) => self.copy(copy),
            What::Scope(scope) => self.scope(scope),
            What::Profile(sample) => self.profile(sample),
            What::System(system) => self.system(system),
        }
    }

    fn start(&mut self, source: &Source<'_>, start: &Start<'_>) {
        self.flush();
        self.session.learn_source(source);
        let mut line = vec![];
        lines::start(&mut line, "job_start", source, start);
        if self.session.start.as_ref() == Some(&line) {
            // Each channel of a session begins with the same line.
            return;
        }
        self.session.start = Some(line);
        self.session.started = 0;
        Channel::ALL.into_iter().for_each(|channel| self.send(channel));
    }

    fn end(&mut self, source: &Source<'_>, time: Timestamp) {
        self.flush();
        for channel in Channel::ALL {
            lines::end(self.out, source, time);
            self.send(channel);
        }
    }

    fn sampling(&mut self, source: &Source<'_>, sampling: &Sampling<'_>) {
        self.flush_type(Type::Host);
        self.flush_type(Type::Device);
        lines::sampling(self.out, source, sampling);
        self.send(Channel::System);
    }

    /// Sends what has been appended, behind what the channel needs first.
    fn send(&mut self, channel: Channel) {
        let mut before = vec![];
        self.session.begin(channel, &mut before);
        self.session.explain(channel, &mut before);
        for lines in [&mut before, self.out] {
            if !lines.is_empty() {
                self.channels.write(channel, lines);
                lines.clear();
            }
        }
    }

    fn flush(&mut self) {
        TYPES.into_iter().for_each(|of| self.flush_type(of));
    }

    fn flush_type(&mut self, of: Type) {
        let session = &mut *self.session;
        let Some(rows) = session.batches.get_mut(of as usize) else { return };
        rows.write(&session.id, self.out);
        if !self.out.is_empty() {
            self.send(channel_of(of));
        }
        if of == Type::Kernel && !self.session.details.is_empty() {
            std::mem::swap(&mut self.session.details, self.out);
            self.send(Channel::Device);
        }
    }

    fn row(&mut self, of: Type, time: Timestamp, cells: &[Cell]) {
        let full = |rows: &Rows| rows.len() >= ROWS || !rows.takes(time.0, cells);
        if self.session.batches.get(of as usize).is_some_and(full) {
            self.flush_type(of);
        }
        let Some(rows) = self.session.batches.get_mut(of as usize) else { return };
        rows.push(time.0, cells);
        if rows.len() >= ROWS {
            self.flush_type(of);
        }
    }

    fn id(&mut self, of: Type, kind: Kind, text: &str) -> Option<i64> {
        let id = self.session.id(channel_of(of), kind, text);
        if id.is_none() {
            self.losses.count("text beyond 8 MiB of dictionary");
        }
        id
    }

    /// The id of a text that may be absent; 0 is none.
    fn some_id(&mut self, of: Type, kind: Kind, text: Option<&str>) -> Option<i64> {
        self.id(of, kind, text?)
    }

    fn kernel(&mut self, source: &Source<'_>, kernel: &Kernel<'_>) {
        let Some(name) = self.id(Type::Kernel, Kind::Kernel, &kernel.name) else { return };
        let has_details = self.details_of(source, kernel, name);
        let external = kernel.external_kind.is_some_and(|kind| kind != 0);
        self.row(
            Type::Kernel,
            kernel.start,
            &[
                ("kernel_id", Some(name)),
                ("stream_id", kernel.stream),
                ("duration_ns", Some(kernel.duration.0)),
                ("corr_id", kernel.correlation),
                ("dyn_shared", kernel.dynamic_shared_bytes),
                ("num_regs", kernel.registers),
                ("has_details", has_details.map(i64::from)),
                ("external_kind", kernel.external_kind.filter(|_| external)),
                ("external_id", kernel.external.filter(|_| external)),
            ],
        );
        if !external {
            let id = kernel.external.filter(|id| *id != 0);
            self.losses.count_some("kernel.external_id without its kind", id.as_ref());
        }
        self.losses.count_some("kernel.device_id", kernel.device.as_ref());
        self.losses.count_some("kernel.platform", kernel.platform.as_ref());
        self.losses.count_some("kernel.api_start_ns", kernel.call_start.as_ref());
        self.losses.count_some("kernel.api_exit_ns", kernel.call_end.as_ref());
        self.losses.count_some("kernel.cuda_error", kernel.error.as_ref());
        self.losses.count_some("kernel.tag", kernel.tag.as_ref());
    }

    /// Writes the details of a kernel, as far as that is wanted, and says whether there are any.
    fn details_of(&mut self, source: &Source<'_>, kernel: &Kernel<'_>, name: i64) -> Option<bool> {
        let details = kernel.details.as_ref().unwrap_or(&KernelDetails::NONE);
        let launch = Launch {
            grid: kernel.grid.or(details.grid),
            block: kernel.block.or(details.block),
            correlation: details.correlation.or(kernel.correlation),
        };
        if launch.grid.is_none() && launch.block.is_none() && details.is_bare() {
            // They may stand in a line of their own.
            return kernel.has_details;
        }
        let is_wanted = match self.details {
            Details::All => true,
            Details::First => !self.session.detailed.contains(&name),
        };
        if !is_wanted || launch.correlation.is_none() {
            self.losses.count("kernel.details");
            return Some(false);
        }
        if self.details == Details::First {
            self.session.detailed.insert(name);
        }
        self.kernel_details(source, &launch, details);
        Some(true)
    }

    fn kernel_details(
        &mut self,
        source: &Source<'_>,
        launch: &Launch,
        details: &KernelDetails<'_>,
    ) {
        let mut line = self.session.open_details(source);
        line.some_integer("corr_id", launch.correlation);
        lines::some_extents(&mut line, "grid", launch.grid);
        lines::some_extents(&mut line, "block", launch.block);
        lines::details(&mut line, details, "static_shared", self.losses);
        line.close_line();
    }

    fn copy(&mut self, copy: &Copy<'_>) {
        self.row(
            Type::Copy,
            copy.start,
            &[
                ("stream_id", copy.stream),
                ("duration_ns", Some(copy.duration.0)),
                ("bytes", Some(copy.bytes)),
                ("copy_kind", Some(copy.kind.0)),
                ("corr_id", copy.correlation),
            ],
        );
        self.losses.count_some("memcpy.device_id", copy.device.as_ref());
        self.losses.count_some("memcpy.platform", copy.platform.as_ref());
        self.losses.count_some("memcpy.name", copy.name.as_ref());
        self.losses.count_some("memcpy.api_start_ns", copy.call_start.as_ref());
        self.losses.count_some("memcpy.api_exit_ns", copy.call_end.as_ref());
        self.losses.count_some("memcpy.src_kind", copy.source.as_ref());
        self.losses.count_some("memcpy.dst_kind", copy.destination.as_ref());
        self.losses.count_some("memcpy.user_scope", copy.scope_path.as_ref());
        self.losses.count_some("memcpy.scope_depth", copy.scope_depth.as_ref());
        self.losses.count_some("memcpy.stack_trace", copy.stack.as_ref());
    }

    fn scope(&mut self, scope: &Scope<'_>) {
        let event_type = match scope.phase {
            Phase::Begin => 0,
            Phase::End => 1,
            Phase::Continue => 2,
            Phase::Suspend => 3,
            Phase::Sample => return self.losses.count("scope_sample"),
        };
        let Some(name) = self.id(Type::Scope, Kind::ScopeName, &scope.name) else { return };
        let Place { instance, depth, began } = self.session.scopes.place(scope);
        self.row(
            Type::Scope,
            scope.time,
            &[
                ("scope_instance_id", Some(instance)),
                ("name_id", Some(name)),
                ("event_type", Some(event_type)),
                ("depth", Some(depth)),
                ("repeat", scope.repeat),
                ("warmup", scope.warmup),
                ("original_start_ns", scope.original_start.map(|time| time.0)),
            ],
        );
        // The scope's begin and end tell both.
        self.losses
            .count_some("scope.ts_start_ns", scope.began.filter(|_| scope.began != began).as_ref());
        let told = scope.began.map(|began| scope.time.since(began));
        self.losses.count_some(
            "scope.duration_ns",
            scope.duration.filter(|_| scope.duration != told).as_ref(),
        );
        self.losses.count_some("scope.user_scope", scope.path.as_ref());
        self.losses.count_some("scope.tag", scope.tag.as_ref().filter(|tag| !tag.is_empty()));
        self.losses.count_some("scope.host", scope.host.as_ref());
        self.losses.count_some("scope.devices", scope.devices.first());
    }

    fn profile(&mut self, sample: &Profile<'_>) {
        let function = self.some_id(Type::Profile, Kind::Function, sample.function.as_deref());
        let metric = self.some_id(Type::Profile, Kind::Metric, sample.metric.as_deref());
        let scope = self.some_id(Type::Profile, Kind::ScopeName, sample.scope.as_deref());
        // A function's name ends with its file, so that only another one has to be told.
        let file = sample.source_file.as_deref().filter(|file| !sample.is_in_function(file));
        let file = self.some_id(Type::Profile, Kind::SourceFile, file);
        let line = sample.source_line.filter(|line| *line != 0);
        self.row(
            Type::Profile,
            sample.time,
            &[
                ("corr_id", sample.correlation),
                ("device_id", sample.device),
                ("function_id", function),
                ("pc_offset", sample.pc_offset),
                ("metric_id", metric),
                ("metric_value", sample.value),
                ("stall_reason", sample.stall_reason),
                ("sample_kind", sample.kind),
                ("scope_name_id", scope),
                ("source_file_id", file),
                ("source_line", line),
            ],
        );
        self.losses.count_some("profile_sample.reason_name", sample.stall_name.as_ref());
    }

    fn system(&mut self, system: &System<'_>) {
        if system.host.is_none() && system.devices.is_empty() {
            self.losses.count("system_sample without host and devices");
        }
        if let Some(host) = &system.host {
            self.host(system.time, *host);
        }
        for device in &system.devices {
            self.device(system.time, device);
        }
        self.losses.count_some("system_sample.name", system.name.as_ref());
    }

    fn host(&mut self, time: Timestamp, host: Host) {
        self.row(
            Type::Host,
            time,
            &[
                ("cpu_pct_x100", host.cpu_centipercent),
                ("ram_used_mib", host.ram_used_mib),
                ("ram_total_mib", host.ram_total_mib),
            ],
        );
    }

    fn device(&mut self, time: Timestamp, device: &Device<'_>) {
        self.row(
            Type::Device,
            time,
            &[
                ("device_id", Some(device.index)),
                ("gpu_util", device.gpu_percent),
                ("mem_util", device.memory_percent),
                ("temp_c", device.temperature_celsius),
                ("power_mw", device.power_milliwatts),
                ("used_mib", device.used_mib),
                ("total_mib", device.total_mib),
                ("clock_sm", device.multiprocessor_mhz),
            ],
        );
        let losses = &mut *self.losses;
        losses.count_some("system_sample.devices.name", device.name.as_ref());
        losses.count_some("system_sample.devices.uuid", device.uuid.as_ref());
        losses.count_some("system_sample.devices.vendor", device.vendor.as_ref());
        losses.count_some("system_sample.devices.pci_bus", device.pci_bus.as_ref());
        // With the total, free memory is told by what is used.
        let told =
            device.total_mib.zip(device.used_mib).and_then(|(total, used)| total.checked_sub(used));
        losses.count_some(
            "system_sample.devices.free_mib",
            device.free_mib.filter(|free| Some(*free) != told).as_ref(),
        );
        losses.count_some("system_sample.devices.clk_gfx_mhz", device.graphics_mhz.as_ref());
        losses.count_some("system_sample.devices.clk_mem_mhz", device.memory_mhz.as_ref());
        losses.count_some("system_sample.devices.throttle_pwr", device.throttled_by_power.as_ref());
        losses
            .count_some("system_sample.devices.throttle_therm", device.throttled_by_heat.as_ref());
        losses.count_some(
            "system_sample.devices.pcie_rx_bw_bps",
            device.pcie_received_bytes_per_second.as_ref(),
        );
        losses.count_some(
            "system_sample.devices.pcie_tx_bw_bps",
            device.pcie_sent_bytes_per_second.as_ref(),
        );
    }
}

//! Events become lines that the strict schema accepts.
//!
//! What gpumon has no place for is counted: a whole event where it cannot be written, a field where
//! only that is left out. Nothing is filled in: a kernel without its grid is no gpumon kernel.

use std::collections::HashMap;

use crate::event::{Device, Event, Host, Kernel, Phase, Scope, Source, Start, What};
use crate::json::write::Object;
use crate::loss::Losses;
use crate::time::Timestamp;

/// Most scopes that may wait for their end.
const MOST_OPEN: usize = 65_536;

/// Writes a gpumon log.
#[derive(Debug, Default)]
pub struct Writer {
    losses: Losses,
    /// The scopes whose end has to say when they began.
    open: Open,
}

impl Writer {
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

    /// Appends the event's line, with its newline, to `out`; nothing where gpumon has no such event.
    pub fn write(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        let Source { session, pid, app } = &event.source;
        let losses = &mut self.losses;
        let (Some(pid), Some(app)) =
            (pid.filter(|pid| *pid >= 0), app.as_deref().filter(|app| !app.is_empty()))
        else {
            return losses.count("event without a pid and an app");
        };
        let before = out.len();
        let mut line = Line { object: Object::open(out), pid, app };
        let written = match &event.what {
            What::Start(start) => line.start(start, losses),
            What::End(time) => line.end(*time),
            What::Kernel(kernel) => line.kernel(kernel, losses),
            What::Scope(scope) => {
                let session = session.as_deref().map(str::to_owned);
                let began = began(&mut self.open, (session, pid), scope);
                line.scope(scope, began, losses)
            }
            What::Sampling(_) => Err("system_start, system_stop"),
            What::KernelDetails(_) => Err("kernel_detail"),
            What::Copy(_) => Err("memcpy"),
            What::Profile(_) => Err("profile_sample"),
            What::System(_) => Err("system_sample"),
        };
        match written {
            Ok(()) => {
                losses.count_some("session_id", session.as_ref());
                line.object.close();
                out.push(b'\n');
            }
            Err(name) => {
                losses.count(name);
                out.truncate(before);
            }
        }
    }
}

/// When scopes began, by session, pid, and instance or else name.
type Open = HashMap<(Option<String>, Option<i64>, Result<i64, String>), Vec<Timestamp>>;

/// When the scope began that this ends; remembers those that begin.
fn began(
    open: &mut Open,
    (session, pid): (Option<String>, i64),
    scope: &Scope<'_>,
) -> Option<Timestamp> {
    let id = scope.instance.ok_or_else(|| scope.name.to_string());
    let key = (session, Some(pid), id);
    match scope.phase {
        Phase::Begin if open.len() < MOST_OPEN => open.entry(key).or_default().push(scope.time),
        Phase::End => {
            let began = open.get_mut(&key).and_then(Vec::pop);
            if open.get(&key).is_some_and(Vec::is_empty) {
                open.remove(&key);
            }
            return scope.began.or(began);
        }
        _ => {}
    }
    None
}

struct Line<'o, 'e> {
    object: Object<'o>,
    pid: i64,
    app: &'e str,
}

/// Nothing, or the name of what cannot be written.
type Written = Result<(), &'static str>;

impl Line<'_, '_> {
    fn head(&mut self, kind: &str) -> &mut Self {
        self.object.text("type", kind).integer("pid", self.pid).text("app", self.app);
        self
    }

    fn time(&mut self, key: &str, time: Timestamp) -> Written {
        if time.0 < 0 {
            return Err("event before the zero of its clock");
        }
        self.object.integer(key, time.0);
        Ok(())
    }

    fn start(&mut self, start: &Start<'_>, losses: &mut Losses) -> Written {
        self.head("init");
        if let Some(path) = &start.log_path {
            self.object.text("logPath", path);
        }
        self.time("ts_ns", start.time)?;
        losses.count_some("init.scope_rate_ms", start.scope_rate_ms.as_ref());
        losses.count_some("init.system_rate_ms", start.system_rate_ms.as_ref());
        losses.count_some("init.host", start.host.as_ref());
        losses.count_some("init.devices", start.devices.first());
        losses.count_some("init.cuda_static_devices", start.static_devices.first());
        Ok(())
    }

    fn end(&mut self, time: Timestamp) -> Written {
        self.head("shutdown").time("ts_ns", time)
    }

    fn kernel(&mut self, kernel: &Kernel<'_>, losses: &mut Losses) -> Written {
        let details = kernel.details.as_ref();
        let grid = kernel.grid.or(details.and_then(|details| details.grid));
        let block = kernel.block.or(details.and_then(|details| details.block));
        let (Some(grid), Some(block)) = (grid, block) else {
            return Err("kernel without grid and block");
        };
        if grid.iter().chain(&block).any(|extent| *extent < 0) {
            return Err("kernel with negative grid or block");
        }
        let Some(shared) = kernel.dynamic_shared_bytes.filter(|bytes| *bytes >= 0) else {
            return Err("kernel without dyn_shared");
        };
        let Some(end) =
            kernel.start.0.checked_add(kernel.duration.0).filter(|_| kernel.duration.0 >= 0)
        else {
            return Err("kernel without an end of 64 bits");
        };
        let Some(error) = &kernel.error else { return Err("kernel without cuda_error") };
        if kernel.name.is_empty() {
            return Err("kernel without a name");
        }
        self.head("kernel").object.text("kernel", &kernel.name);
        self.time("ts_start_ns", kernel.start)?;
        self.time("ts_end_ns", Timestamp(end))?;
        self.object.integer("duration_ns", kernel.duration.0);
        self.object.integers("grid", grid).integers("block", block);
        self.object.integer("shared_mem_bytes", shared).text("cuda_error", error);
        if let Some(tag) = &kernel.tag {
            self.object.text("tag", tag);
        }
        losses.count_some("kernel.device_id", kernel.device.as_ref());
        losses.count_some("kernel.stream_id", kernel.stream.as_ref());
        losses.count_some("kernel.corr_id", kernel.correlation.as_ref());
        losses.count_some("kernel.num_regs", kernel.registers.as_ref());
        losses.count_some("kernel.api_start_ns", kernel.call_start.as_ref());
        losses.count_some("kernel.api_exit_ns", kernel.call_end.as_ref());
        losses.count_some(
            "kernel.external_kind",
            kernel.external_kind.filter(|kind| *kind != 0).as_ref(),
        );
        losses.count_some("kernel.external_id", kernel.external.filter(|id| *id != 0).as_ref());
        losses.count_some("kernel.platform", kernel.platform.as_ref());
        losses.count_some("kernel.details", details);
        Ok(())
    }

    fn scope(
        &mut self,
        scope: &Scope<'_>,
        began: Option<Timestamp>,
        losses: &mut Losses,
    ) -> Written {
        let kind = match scope.phase {
            Phase::Begin => "scope_begin",
            Phase::Sample => "scope_sample",
            Phase::End => "scope_end",
            Phase::Continue | Phase::Suspend => return Err("scope continuation"),
        };
        if scope.name.is_empty() {
            return Err("scope without a name");
        }
        self.head(kind).object.text("name", &scope.name);
        if let Some(tag) = &scope.tag {
            self.object.text("tag", tag);
        }
        if scope.phase == Phase::End {
            let Some(began) = began else { return Err("scope_end without its begin") };
            let duration = scope.duration.unwrap_or(scope.time.since(began));
            if duration.0 < 0 {
                return Err("scope that ends before it begins");
            }
            self.time("ts_start_ns", began)?;
            self.time("ts_end_ns", scope.time)?;
            self.object.integer("duration_ns", duration.0);
        } else {
            self.time("ts_ns", scope.time)?;
            losses.count_some("scope.ts_start_ns", scope.began.as_ref());
            losses.count_some("scope.duration_ns", scope.duration.as_ref());
        }
        self.memory(&scope.devices, scope.host, losses);
        losses.count_some("scope.instance", scope.instance.as_ref());
        losses.count_some("scope.depth", scope.depth.as_ref());
        losses.count_some("scope.user_scope", scope.path.as_ref());
        losses.count_some("scope.repeat", scope.repeat.filter(|count| *count != 0).as_ref());
        losses.count_some("scope.original_start_ns", scope.original_start.as_ref());
        losses.count_some("scope.warmup", scope.warmup.filter(|count| *count != 0).as_ref());
        Ok(())
    }

    /// Writes the devices whose memory is told in full.
    fn memory(&mut self, devices: &[Device<'_>], host: Option<Host>, losses: &mut Losses) {
        losses.count_some("scope.host", host.as_ref());
        if devices.is_empty() {
            return;
        }
        let out = self.object.key("memory");
        out.push(b'[');
        let mut first = true;
        for device in devices {
            let (Some(used), Some(free), Some(total)) =
                (device.used_mib, device.free_mib, device.total_mib)
            else {
                losses.count("scope.devices without memory");
                continue;
            };
            if device.index < 0 || used < 0 || free < 0 || total < 0 {
                losses.count("scope.devices with negative memory");
                continue;
            }
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            let mut entry = Object::open(out);
            entry.integer("device", device.index).integer("used_mib", used);
            entry.integer("free_mib", free).integer("total_mib", total);
            entry.close();
            let memory_alone = Device {
                index: device.index,
                used_mib: device.used_mib,
                free_mib: device.free_mib,
                total_mib: device.total_mib,
                ..Device::default()
            };
            if *device != memory_alone {
                losses.count("scope.devices beyond memory");
            }
        }
        out.push(b']');
    }
}

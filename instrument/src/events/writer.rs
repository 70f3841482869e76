//! From records and rows to the lines of the log's files.
//!
//! One thread at a time. Nothing is kept for longer than one round, which [`Writer::flush`] ends: it
//! writes whole lines or counts their events as lost.

use std::borrow::Cow;
use std::path::Path;

use warpgauge_formats::event::{
    self, Copy, CopyKind, Device, Event, Kernel, KernelDetails, Scope, Source, System, What,
};
use warpgauge_formats::time::{Span, Timestamp};

use crate::events::clock::Offset;
use crate::events::files::{FileError, Files};
use crate::events::form::{Form, Lines};
use crate::events::losses::{Losses, Reason};
use crate::events::open_scopes::OpenScopes;
use crate::events::record::{MemoryRecord, Record};
use crate::events::row::Row;
use crate::events::settings::{EventSettings, Format};
use crate::names::{NameId, NameTable};
use crate::scopes::{self, Payload, ScopeRecord};

/// Bytes of lines that wait before they are written in the midst of a round.
const MOST_WAITING: usize = 1 << 20;

/// What stands for a name that could not be read or kept.
const UNKNOWN: &str = "(name unknown)";

/// Whether the session's first line stands in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    No,
    /// It is among the lines that wait.
    Waits,
    Yes,
}

/// Writes the log of one process.
#[derive(Debug)]
pub struct Writer {
    form: Form,
    is_gpumon: bool,
    files: Vec<Files>,
    lines: Lines,
    /// Events that the lines of each file tell, or that the form keeps for them.
    waiting: Vec<u64>,
    source: Source<'static>,
    began: i64,
    begun: Begun,
    names: Names,
    open: OpenScopes,
    losses: Losses,
    written: u64,
    /// Kernels whose name was not known.
    unnamed: u64,
    /// Scopes whose category, colour or payload neither format has a place for.
    beyond_formats: u64,
}

impl Writer {
    /// A writer for this process, which calls itself `app`; no file is made yet.
    #[must_use]
    pub fn new(
        format: Format,
        settings: &EventSettings,
        app: &str,
        names: &'static NameTable,
        now: i64,
    ) -> Self {
        let pid = std::process::id();
        let form = Form::new(format);
        let is_gpumon = format == Format::Gpumon;
        let file = |stem| Files::new(&settings.folder, stem, settings.limits);
        let files: Vec<Files> = form.stems(app, pid).into_iter().map(file).collect();
        Self {
            lines: vec![vec![]; files.len()],
            waiting: vec![0; files.len()],
            files,
            form,
            is_gpumon,
            source: Source {
                // One process may have several sessions in its life: exec keeps the pid.
                session: (!is_gpumon).then(|| format!("{app}-{pid}-{now}").into()),
                pid: Some(pid.into()),
                app: Some(app.to_owned().into()),
            },
            began: now,
            begun: Begun::No,
            names: Names { table: names, texts: vec![] },
            open: OpenScopes::default(),
            losses: Losses::default(),
            written: 0,
            unnamed: 0,
            beyond_formats: 0,
        }
    }

    /// Begins a round: makes sure of the files, and of the first line in them.
    ///
    /// # Errors
    /// The first file that cannot be had; events of this round will be lost there.
    pub fn prepare(&mut self) -> Result<(), FileError> {
        let mut outcome = Ok(());
        for (place, files) in self.files.iter_mut().enumerate() {
            match files.prepare() {
                Ok(true) => self.form.rotated(place),
                Ok(false) => {}
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        if self.begun == Begun::No {
            self.form.begin(&self.source, self.began, &mut self.lines);
            self.begun = Begun::Waits;
        }
        self.losses.set(Reason::Removed, self.files.iter().map(Files::removed).sum());
        outcome
    }

    /// Ends a round: all lines are written, or their events are counted as lost.
    ///
    /// # Errors
    /// The first file that refused its lines.
    pub fn flush(&mut self) -> Result<(), FileError> {
        self.form.flush(&mut self.lines);
        let mut outcome = Ok(());
        let (files, waiting) = (self.files.iter_mut(), self.waiting.iter_mut());
        for (place, ((files, waiting), lines)) in
            files.zip(waiting).zip(&mut self.lines).enumerate()
        {
            let events = std::mem::take(waiting);
            if lines.is_empty() {
                continue;
            }
            match files.append(lines, events) {
                Ok(()) => {
                    self.written += events;
                    self.begun = Begun::Yes;
                }
                Err(error) => {
                    self.losses.add(Reason::Unwritten, events);
                    // What the lines explained is to be explained again.
                    self.form.rotated(place);
                    if self.begun == Begun::Waits {
                        self.begun = Begun::No;
                    }
                    outcome = outcome.and(Err(error));
                }
            }
            lines.clear();
        }
        outcome
    }

    /// Writes the last line, with what was lost, and everything that waits.
    ///
    /// # Errors
    /// The first file that refused its lines.
    pub fn end(&mut self, now: i64) -> Result<(), FileError> {
        self.form.flush(&mut self.lines);
        let mut more = format!(",\"events\":{}", self.written + self.waiting.iter().sum::<u64>());
        self.losses.write(&mut more);
        if self.unnamed > 0 {
            more.push_str(&format!(",\"unnamed\":{}", self.unnamed));
        }
        self.form.end(&self.source, now, &more, &mut self.lines);
        self.flush()
    }

    /// What did not get into the log.
    pub fn losses(&mut self) -> &mut Losses {
        &mut self.losses
    }

    /// Events in the log.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Events that did not get into the log.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.losses.total()
    }

    /// What the format cannot hold.
    #[must_use]
    pub fn left_out(&self) -> &warpgauge_formats::loss::Losses {
        self.form.left_out()
    }

    /// Scopes whose category, colour or payload is not in the log: neither format has a place for
    /// them.
    #[must_use]
    pub fn beyond_formats(&self) -> u64 {
        self.beyond_formats
    }

    /// The first of the files that are written now.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.files.first().and_then(Files::path)
    }

    /// Takes a record of the ring.
    ///
    /// # Errors
    /// As [`Self::flush`], where so much waits that it is written at once.
    pub fn record(&mut self, record: &Record) -> Result<(), FileError> {
        match record {
            Record::Scope(scope) => self.scope(scope),
            Record::Memory(memory) => self.memory(memory),
        }
    }

    /// Takes a kernel or a copy, whose times are CUPTI's.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub fn row(&mut self, row: &Row, clock: Offset) -> Result<(), FileError> {
        if row.start == 0 || row.end < row.start {
            self.losses.add(Reason::WithoutTimes, 1);
            return Ok(());
        }
        let start = Timestamp(clock.apply(row.start));
        let duration = Span((row.end - row.start).cast_signed());
        // What gpumon has no place for need not be offered to it.
        let unless_gpumon = |number: u32| (!self.is_gpumon).then_some(i64::from(number));
        if row.is_copy {
            let what = What::Copy(Copy {
                start,
                duration,
                bytes: row.bytes.cast_signed(),
                kind: CopyKind(row.copy_kind.into()),
                stream: Some(row.stream.into()),
                correlation: Some(row.correlation.into()),
                ..Copy::default()
            });
            return write(&mut self.form, &mut self.lines, &mut self.waiting, &self.source, what)
                .map_or(Ok(()), |()| self.flush());
        }
        let name = self.names.text(row.name);
        self.unnamed += u64::from(name.is_none());
        let correlation = unless_gpumon(row.correlation);
        let details = (!self.is_gpumon).then(|| KernelDetails {
            correlation,
            static_shared_bytes: Some(row.static_shared.into()),
            local_bytes_per_thread: Some(row.local_per_thread.into()),
            ..KernelDetails::default()
        });
        let what = What::Kernel(Kernel {
            start,
            duration,
            name: Cow::Borrowed(name.unwrap_or(UNKNOWN)),
            stream: unless_gpumon(row.stream),
            correlation,
            dynamic_shared_bytes: Some(row.dynamic_shared.into()),
            registers: unless_gpumon(row.registers.into()),
            grid: Some(row.grid.map(i64::from)),
            block: Some(row.block.map(i64::from)),
            details,
            // A record tells of a launch that the driver accepted.
            error: self.is_gpumon.then_some(Cow::Borrowed("cudaSuccess")),
            ..Kernel::default()
        });
        write(&mut self.form, &mut self.lines, &mut self.waiting, &self.source, what)
            .map_or(Ok(()), |()| self.flush())
    }

    fn scope(&mut self, scope: &ScopeRecord) -> Result<(), FileError> {
        self.open.follow(scope);
        let has_more = scope.color.is_some() || scope.payload != Payload::None;
        if scope.phase != scopes::Phase::End && (has_more || scope.category != 0) {
            self.beyond_formats += 1;
        }
        let phases: &[event::Phase] = match scope.phase {
            scopes::Phase::Begin => &[event::Phase::Begin],
            scopes::Phase::End => &[event::Phase::End],
            // Neither format has moments: a scope that ends when it begins.
            scopes::Phase::Mark => &[event::Phase::Begin, event::Phase::End],
        };
        self.names.prepare(scope.name);
        self.names.prepare(scope.domain);
        for phase in phases {
            // What GPU Flight has no place for need not be offered to it.
            let ends = self.is_gpumon && *phase == event::Phase::End;
            let what = What::Scope(Scope {
                phase: *phase,
                time: Timestamp(scope.time_ns),
                name: Cow::Borrowed(self.names.known(scope.name).unwrap_or(UNKNOWN)),
                instance: Some(scope.instance.cast_signed()),
                depth: Some(scope.depth.into()),
                began: ends.then_some(Timestamp(scope.begun_ns)),
                duration: ends.then(|| Span(scope.time_ns.saturating_sub(scope.begun_ns))),
                tag: self.names.known(scope.domain).map(Cow::Borrowed),
                ..Scope::default()
            });
            let is_much =
                write(&mut self.form, &mut self.lines, &mut self.waiting, &self.source, what);
            if is_much.is_some() {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn memory(&mut self, memory: &MemoryRecord) -> Result<(), FileError> {
        let mib = |bytes: u64| (bytes >> 20).cast_signed();
        let (used, total) = (mib(memory.used_bytes), mib(memory.total_bytes));
        let devices = vec![Device {
            index: memory.device.into(),
            used_mib: Some(used),
            free_mib: Some(total - used),
            total_mib: Some(total),
            ..Device::default()
        }];
        let time = Timestamp(memory.time_ns);
        let what = if self.is_gpumon {
            // The scope has ended since then, or it was begun before the log.
            let Some((instance, name)) = self.open.around(memory.thread) else { return Ok(()) };
            let name = Cow::Borrowed(self.names.text(name).unwrap_or(UNKNOWN));
            let phase = event::Phase::Sample;
            let instance = Some(instance.cast_signed());
            What::Scope(Scope { phase, time, name, instance, devices, ..Scope::default() })
        } else {
            What::System(System { time, devices, ..System::default() })
        };
        write(&mut self.form, &mut self.lines, &mut self.waiting, &self.source, what)
            .map_or(Ok(()), |()| self.flush())
    }
}

/// Hands an event to the form; `Some` where so much waits now that it should be written.
fn write(
    form: &mut Form,
    lines: &mut Lines,
    waiting: &mut [u64],
    source: &Source<'_>,
    what: What<'_>,
) -> Option<()> {
    let place = form.place_of(&what);
    let source = Source {
        session: source.session.as_deref().map(Cow::Borrowed),
        pid: source.pid,
        app: source.app.as_deref().map(Cow::Borrowed),
    };
    form.write(&Event { source, what }, lines);
    if let Some(events) = waiting.get_mut(place) {
        *events += 1;
    }
    lines.get(place).is_some_and(|lines| lines.len() > MOST_WAITING).then_some(())
}

/// The texts of names, made once each.
#[derive(Debug)]
struct Names {
    table: &'static NameTable,
    texts: Vec<Option<Box<str>>>,
}

impl Names {
    /// The text of a name; `None` where there is none.
    fn text(&mut self, id: NameId) -> Option<&str> {
        self.prepare(id);
        self.known(id)
    }

    /// Makes a name's text, to be had from [`Self::known`].
    fn prepare(&mut self, id: NameId) {
        let index = id.number() as usize;
        if self.texts.get(index).is_some_and(Option::is_some) {
            return;
        }
        let mut bytes = vec![];
        if !self.table.copy(id, &mut bytes) {
            return;
        }
        if self.texts.len() <= index {
            self.texts.resize(index + 1, None);
        }
        if let Some(place) = self.texts.get_mut(index) {
            *place = Some(String::from_utf8_lossy(&bytes).into());
        }
    }

    fn known(&self, id: NameId) -> Option<&str> {
        self.texts.get(id.number() as usize)?.as_deref()
    }
}

//! What the writer leaves in the folder, read again by the formats' readers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use std::fs;
use std::path::{Path, PathBuf};

use warpgauge_formats::event::{Event, Kernel, Phase as LoggedPhase, What};
use warpgauge_formats::finding::{Finding, Sink};
use warpgauge_formats::{gpu_flight, gpumon};
use warpgauge_instrument::events::clock::Offset;
use warpgauge_instrument::events::files::Limits;
use warpgauge_instrument::events::losses::Reason;
use warpgauge_instrument::events::record::{MemoryRecord, Record};
use warpgauge_instrument::events::row::Row;
use warpgauge_instrument::events::settings::{EventSettings, Format};
use warpgauge_instrument::events::writer::Writer;
use warpgauge_instrument::names::{NAMES, NameId};
use warpgauge_instrument::scopes::{Payload, Phase, ScopeRecord};

const NOW: i64 = 1_789_552_800_000_000_000;

#[derive(Default)]
struct Log {
    events: Vec<Event<'static>>,
    findings: Vec<Finding>,
}

fn owned(event: &Event<'_>) -> Event<'static> {
    let what = match &event.what {
        What::Kernel(kernel) => What::Kernel(kernel.clone().into_owned()),
        What::Copy(copy) => What::Copy(warpgauge_formats::event::Copy {
            start: copy.start,
            duration: copy.duration,
            bytes: copy.bytes,
            kind: copy.kind,
            ..Default::default()
        }),
        What::Scope(scope) => What::Scope(warpgauge_formats::event::Scope {
            phase: scope.phase,
            time: scope.time,
            name: scope.name.clone().into_owned().into(),
            instance: scope.instance,
            depth: scope.depth,
            tag: scope.tag.clone().map(|tag| tag.into_owned().into()),
            devices: scope.devices.iter().cloned().map(|device| device.into_owned()).collect(),
            ..Default::default()
        }),
        What::System(system) => What::System(warpgauge_formats::event::System {
            time: system.time,
            devices: system.devices.iter().cloned().map(|device| device.into_owned()).collect(),
            ..Default::default()
        }),
        What::Start(start) => {
            What::Start(warpgauge_formats::event::Start { time: start.time, ..Default::default() })
        }
        What::End(time) => What::End(*time),
        What::KernelDetails(details) => What::KernelDetails(details.clone().into_owned()),
        other => panic!("not written here: {other:?}"),
    };
    Event { source: event.source.clone().into_owned(), what }
}

impl Sink for Log {
    fn event(&mut self, _line: u64, event: &Event<'_>) {
        self.events.push(owned(event));
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn unknown(&mut self, _line: u64, _name: &str) {}
}

impl Log {
    fn kernels(&self) -> Vec<&Kernel<'static>> {
        self.events
            .iter()
            .filter_map(|event| match &event.what {
                What::Kernel(kernel) => Some(kernel),
                _ => None,
            })
            .collect()
    }
}

fn lines(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).unwrap();
    assert!(bytes.ends_with(b"\n"), "{}", path.display());
    bytes[..bytes.len() - 1].split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

fn read_gpumon(paths: &[PathBuf]) -> Log {
    let (mut log, mut reader) = (Log::default(), gpumon::Reader::new(gpumon::Mode::Strict));
    for path in paths {
        for (index, line) in lines(path).iter().enumerate() {
            reader.line(index as u64 + 1, line, &mut log);
        }
    }
    log
}

fn read_gpu_flight(paths: &[PathBuf]) -> Log {
    let (mut log, mut reader) = (Log::default(), gpu_flight::Reader::default());
    for path in paths {
        for (index, line) in lines(path).iter().enumerate() {
            reader.line(index as u64 + 1, line, &mut log);
        }
    }
    reader.end(&mut log);
    log
}

fn paths(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn settings(folder: &Path) -> EventSettings {
    EventSettings { folder: folder.to_owned(), ..EventSettings::default() }
}

fn writer(format: Format, settings: &EventSettings) -> Writer {
    Writer::new(format, settings, "trainer", &NAMES, NOW)
}

fn kernel(number: u32) -> Row {
    Row {
        start: 1_000 * u64::from(number) + 1,
        end: 1_000 * u64::from(number) + 501,
        bytes: 0,
        name: NAMES.intern(format!("kernel_{}", number % 7).as_bytes()),
        device: 0,
        stream: 7,
        correlation: number + 1,
        grid: [number % 5 + 1, 2, 3],
        dynamic_shared: 64,
        static_shared: 128,
        local_per_thread: 16,
        block: [256, 1, 1],
        registers: 32,
        copy_kind: 0,
        is_copy: false,
    }
}

fn copy(number: u32) -> Row {
    Row { bytes: 4096, is_copy: true, copy_kind: 1, ..kernel(number) }
}

fn scope(phase: Phase, instance: u64, depth: u16, name: &str) -> Record {
    Record::Scope(ScopeRecord {
        time_ns: NOW + 1_000 * instance.cast_signed() + i64::from(phase == Phase::End),
        begun_ns: NOW + 1_000 * instance.cast_signed(),
        thread: 1,
        phase,
        instance,
        name: NAMES.intern(name.as_bytes()),
        domain: NameId::NONE,
        category: 0,
        depth,
        spans_threads: false,
        payload: Payload::None,
        color: None,
    })
}

fn memory() -> Record {
    Record::Memory(MemoryRecord {
        time_ns: NOW + 5,
        thread: 1,
        device: 0,
        used_bytes: (3 << 20) + 7,
        total_bytes: 80 << 30,
    })
}

/// A round of everything.
fn write_everything(writer: &mut Writer, kernels: std::ops::Range<u32>) {
    writer.prepare().unwrap();
    writer.record(&scope(Phase::Begin, 1, 0, "epoch")).unwrap();
    writer.record(&scope(Phase::Begin, 2, 1, "step")).unwrap();
    writer.record(&memory()).unwrap();
    for number in kernels.clone() {
        writer.row(&kernel(number), Offset::default()).unwrap();
    }
    writer.row(&copy(kernels.end), Offset::default()).unwrap();
    writer.record(&scope(Phase::Mark, 3, 2, "checkpoint")).unwrap();
    writer.record(&scope(Phase::End, 2, 1, "step")).unwrap();
    writer.record(&scope(Phase::End, 1, 0, "epoch")).unwrap();
    writer.flush().unwrap();
}

#[test]
fn a_gpumon_log_is_read_strictly_without_findings() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(Format::Gpumon, &settings(folder.path()));
    write_everything(&mut writer, 0..100);
    writer.losses().set(Reason::RingFull, 5);
    writer.end(NOW + 1_000_000).unwrap();
    let paths = paths(folder.path());
    let name = format!("gpumon_trainer_{}.log", std::process::id());
    assert_eq!(paths, [folder.path().join(name)]);
    let log = read_gpumon(&paths);
    assert_eq!(log.findings, []);
    let kernels = log.kernels();
    assert_eq!(kernels.len(), 100);
    assert_eq!(kernels[9].name, "kernel_2");
    assert_eq!((kernels[9].start.0, kernels[9].duration.0), (9_001, 500));
    assert_eq!((kernels[9].grid, kernels[9].block), (Some([5, 2, 3]), Some([256, 1, 1])));
    let sample = log.events.iter().find_map(|event| match &event.what {
        What::Scope(scope) if scope.phase == LoggedPhase::Sample => Some(scope),
        _ => None,
    });
    let sample = sample.unwrap();
    assert_eq!((sample.name.as_ref(), sample.devices[0].used_mib), ("step", Some(3)));
    let last = lines(&paths[0]).pop().unwrap();
    let last = String::from_utf8(last).unwrap();
    assert!(last.ends_with(r#","lost":5,"lost_by_reason":{"ring_full":5}}"#), "{last}");
    assert_eq!(writer.left_out().iter().collect::<Vec<_>>()[0], ("memcpy", 1));
}

#[test]
fn a_gpu_flight_log_is_read_without_findings_and_explains_its_ids_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(Format::GpuFlight, &settings(folder.path()));
    write_everything(&mut writer, 0..1000);
    writer.end(NOW + 1_000_000).unwrap();
    let paths = paths(folder.path());
    let names = paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap());
    let pid = std::process::id();
    let expected = ["device", "scope", "system"].map(|c| format!("trainer-{pid}.{c}.log"));
    assert!(names.eq(expected));
    let log = read_gpu_flight(&paths);
    assert_eq!(log.findings, []);
    assert_eq!(log.kernels().len(), 1000);
    assert_eq!(log.kernels()[9].registers, Some(32));
    let copies = log.events.iter().filter(|event| matches!(event.what, What::Copy(_)));
    assert_eq!(copies.count(), 1);
    for path in &paths {
        explains_ids_before_it_uses_them(path);
    }
}

/// The rule of the format: in each file, the line that uses an id comes after the one with its text.
fn explains_ids_before_it_uses_them(path: &Path) {
    let mut known = std::collections::BTreeSet::new();
    for line in lines(path) {
        let line = String::from_utf8(line).unwrap();
        if line.contains("dictionary_update") {
            for part in line.split('"') {
                known.extend(part.parse::<i64>());
            }
        }
        let column = if line.contains("kernel_event_batch") {
            1
        } else if line.contains("scope_event_batch") {
            2
        } else {
            continue;
        };
        let rows = line.split("\"rows\":[").nth(1).unwrap();
        for row in rows.split('[').filter(|row| !row.is_empty()) {
            let id = row.split(',').nth(column).unwrap().parse::<i64>().unwrap();
            assert!(known.contains(&id), "{}: {id} is used before it is told", path.display());
        }
    }
}

#[test]
fn a_full_file_is_followed_by_one_that_can_be_read_alone() {
    for format in [Format::Gpumon, Format::GpuFlight] {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { file_bytes: 20_000, files: 100 };
        let mut writer = writer(format, &EventSettings { limits, ..settings(folder.path()) });
        for round in 0..10 {
            writer.prepare().unwrap();
            for number in 0..100 {
                writer.row(&kernel(100 * round + number), Offset::default()).unwrap();
            }
            writer.flush().unwrap();
        }
        writer.end(NOW + 1).unwrap();
        let paths = paths(folder.path());
        assert!(paths.len() >= 5, "{format:?}: {paths:?}");
        let mut kernels = 0;
        for path in &paths {
            let paths = [path.clone()];
            let log = match format {
                Format::Gpumon => read_gpumon(&paths),
                Format::GpuFlight => read_gpu_flight(&paths),
            };
            assert_eq!(log.findings, [], "{}", path.display());
            kernels += log.kernels().len();
        }
        assert_eq!(kernels, 1000, "{format:?}");
    }
}

#[test]
fn a_folder_that_vanishes_costs_what_is_written_meanwhile_and_that_is_counted() {
    for format in [Format::Gpumon, Format::GpuFlight] {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("events");
        let mut writer = writer(format, &settings(&folder));
        let round = |writer: &mut Writer, first: u32| {
            let prepared = writer.prepare().is_ok();
            for number in first..first + 10 {
                writer.row(&kernel(number), Offset::default()).unwrap();
            }
            (prepared, writer.flush().is_ok())
        };
        assert_eq!(round(&mut writer, 0), (false, false), "there is none yet");
        fs::create_dir(&folder).unwrap();
        assert_eq!(round(&mut writer, 10), (true, true));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(round(&mut writer, 20), (false, false));
        fs::create_dir(&folder).unwrap();
        assert_eq!(round(&mut writer, 30), (true, true));
        writer.end(NOW + 1).unwrap();
        assert_eq!((writer.losses().of(Reason::Unwritten), writer.written()), (20, 20));
        let log = match format {
            Format::Gpumon => read_gpumon(&paths(&folder)),
            Format::GpuFlight => read_gpu_flight(&paths(&folder)),
        };
        assert_eq!(log.findings, [], "{format:?}");
        assert_eq!(log.kernels().len(), 10, "{format:?}: those of the folder that is there");
    }
}

#[test]
fn rows_without_times_are_counted_and_names_that_are_none_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = writer(Format::Gpumon, &settings(folder.path()));
    writer.prepare().unwrap();
    writer.row(&Row { start: 0, end: 0, ..kernel(0) }, Offset::default()).unwrap();
    writer.row(&Row { end: 1, ..kernel(5) }, Offset::default()).unwrap();
    writer.row(&Row { name: NameId::NONE, ..kernel(0) }, Offset::default()).unwrap();
    writer.end(NOW + 1).unwrap();
    let path = paths(folder.path()).remove(0);
    let log = read_gpumon(std::slice::from_ref(&path));
    assert_eq!((log.findings.len(), log.kernels().len()), (0, 1));
    assert_eq!(log.kernels()[0].name, "(name unknown)");
    let last = String::from_utf8(lines(&path).pop().unwrap()).unwrap();
    assert!(last.contains(r#""lost_by_reason":{"without_times":2},"unnamed":1"#), "{last}");
}

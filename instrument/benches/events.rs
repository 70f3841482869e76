//! What an event costs: on the program's thread, and in the writer.
//!
//! `cargo bench -p warpgauge-instrument --bench events`. The aims: under 150 ns a scope on the
//! program's thread, beside a copy of the record into memory; at least two million kernels a second
//! in the writer, beside writing the same bytes without making them.

use std::hint::black_box;
use std::io::Write;
use std::path::PathBuf;

use divan::Bencher;
use divan::counter::ItemsCount;
use warpgauge_instrument::events::clock::Offset;
use warpgauge_instrument::events::files::Limits;
use warpgauge_instrument::events::losses::Reason;
use warpgauge_instrument::events::row::Row;
use warpgauge_instrument::events::settings::{EventSettings, Format};
use warpgauge_instrument::events::writer::Writer;
use warpgauge_instrument::events::{self, RING_RECORDS};
use warpgauge_instrument::names::{NAMES, NameId};
use warpgauge_instrument::scopes::{Payload, Phase, ScopeRecord};

fn main() {
    events::switch(true);
    divan::main();
}

const SCOPES: usize = RING_RECORDS / 4;
const KERNELS: u32 = 20_000;

fn scope(number: usize) -> ScopeRecord {
    ScopeRecord {
        time_ns: 1_789_552_800_000_000_000 + number as i64,
        begun_ns: 1_789_552_800_000_000_000,
        thread: 7,
        phase: Phase::Mark,
        instance: number as u64,
        name: NameId::from_number(1),
        domain: NameId::NONE,
        category: 0,
        depth: 3,
        spans_threads: false,
        payload: Payload::None,
        color: None,
    }
}

/// The ring is emptied between two samples, outside the time.
#[divan::bench]
fn a_scope_into_the_ring(bencher: Bencher<'_, '_>) {
    bencher
        .counter(ItemsCount::new(SCOPES))
        .with_inputs(|| {
            events::take(|record| {
                black_box(record);
            });
            assert_eq!(events::dropped(), 0);
        })
        .bench_local_refs(|()| (0..SCOPES).for_each(|number| events::accept(&scope(number))));
}

#[divan::bench]
fn a_scope_into_memory(bencher: Bencher<'_, '_>) {
    let mut records = vec![scope(0); SCOPES];
    bencher.counter(ItemsCount::new(SCOPES)).bench_local(|| {
        for (number, record) in records.iter_mut().enumerate() {
            *record = black_box(scope(number));
        }
    });
}

#[divan::bench]
fn a_name_that_is_known(bencher: Bencher<'_, '_>) {
    let name = b"void gemm<float, 4>(float const*, float const*, float*, int)";
    NAMES.intern(name);
    bencher.bench_local(|| NAMES.intern(black_box(name)));
}

fn kernel(number: u32) -> Row {
    Row {
        start: 1_000_000 * u64::from(number) + 1,
        end: 1_000_000 * u64::from(number) + 34_567,
        bytes: 0,
        name: NameId::from_number(1),
        device: 0,
        stream: 7,
        correlation: number + 1,
        grid: [4096, 2, 1],
        dynamic_shared: 16_384,
        static_shared: 0,
        local_per_thread: 0,
        block: [256, 1, 1],
        registers: 64,
        copy_kind: 0,
        is_copy: false,
    }
}

fn folder() -> PathBuf {
    // Memory, where there is such a folder: the disk is not what is measured.
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

fn kernels(bencher: Bencher<'_, '_>, format: Format) {
    let Ok(folder) = tempfile::tempdir_in(folder()) else { return };
    let limits = Limits { file_bytes: 16 << 20, files: 2 };
    let settings =
        EventSettings { folder: folder.path().to_owned(), limits, ..EventSettings::default() };
    let mut writer = Writer::new(format, &settings, "bench", &NAMES, 1_789_552_800_000_000_000);
    let rows: Vec<Row> = (0..KERNELS)
        .map(|number| Row {
            name: NAMES.intern(format!("kernel_with_a_name_{}", number % 50).as_bytes()),
            ..kernel(number)
        })
        .collect();
    bencher.counter(ItemsCount::new(KERNELS)).bench_local(|| {
        let _prepared = writer.prepare();
        for row in &rows {
            let _written = writer.row(row, Offset::default());
        }
        let _written = writer.flush();
    });
    assert_eq!(writer.losses().of(Reason::Unwritten), 0);
}

#[divan::bench]
fn kernels_as_gpumon(bencher: Bencher<'_, '_>) {
    kernels(bencher, Format::Gpumon);
}

#[divan::bench]
fn kernels_as_gpu_flight(bencher: Bencher<'_, '_>) {
    kernels(bencher, Format::GpuFlight);
}

/// As many bytes as gpumon's lines have, made beforehand.
#[divan::bench]
fn kernels_made_beforehand(bencher: Bencher<'_, '_>) {
    const LINE: &[u8] = b"{\"type\":\"kernel\",\"pid\":123456,\"app\":\"bench\",\"kernel\":\
        \"kernel_with_a_name_17\",\"ts_start_ns\":1000000,\"ts_end_ns\":1034566,\"duration_ns\":\
        34566,\"grid\":[4096,2,1],\"block\":[256,1,1],\"shared_mem_bytes\":16384,\"cuda_error\":\
        \"cudaSuccess\"}\n";
    let Ok(mut file) = tempfile::tempfile_in(folder()) else { return };
    let mut lines = vec![];
    bencher.counter(ItemsCount::new(KERNELS)).bench_local(|| {
        lines.clear();
        for _ in 0..KERNELS {
            lines.extend_from_slice(black_box(LINE));
        }
        let _cut = file.set_len(0);
        let _written = file.write_all(&lines);
    });
}

//! What reading telemetry events costs, beside a floor from the same run: finding the newlines of the
//! same bytes. Budgets: lines 250 MB/s, a list 200 MB/s.
//!
//! `a_list_of_two_gibibytes` reads a list that is made while it is read, and prints the largest
//! memory that the process had until then.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark stops at the first surprise"
)]

#[path = "../tests/telemetry/endless.rs"]
mod endless;

use std::sync::LazyLock;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use endless::{Count, endless_list, largest_memory, record};
use warpgauge_formats::telemetry::{Options, TelemetryEvent, load};

const RECORDS: u64 = 100_000;

/// A record of version 2 a line.
static LINES: LazyLock<String> = LazyLock::new(|| (0..RECORDS).map(record).collect());

static LIST: LazyLock<String> =
    LazyLock::new(|| format!("[{}]", LINES.trim_end().replace('\n', ",\n")));

/// Legacy records a line, as trackers before version 2 wrote them.
static LEGACY: LazyLock<String> = LazyLock::new(|| {
    let record = |number: u64| {
        format!(
            "{{\"timestamp\": {}.25, \"type\": \"allocation\", \"memory_allocated\": {number}, \
             \"memory_reserved\": 2147483648, \"memory_change\": 1048576, \"device\": \"cuda:0\", \
             \"message\": null, \"metadata_total_memory\": 85899345920, \
             \"metadata_backend\": \"cuda\"}}\n",
            1_700_000_000 + number
        )
    };
    (0..RECORDS).map(record).collect()
});

fn main() {
    divan::main();
}

fn read(bencher: Bencher, text: &'static str) {
    bencher.counter(BytesCount::new(text.len())).bench_local(|| {
        let mut count = Count::default();
        load(text.as_bytes(), None, &Options::default(), &mut count).unwrap();
        assert_eq!((count.events, count.refused), (RECORDS, 0));
    });
}

#[divan::bench]
fn floor_newlines(bencher: Bencher) {
    bencher
        .counter(BytesCount::new(LINES.len()))
        .bench_local(|| memchr::memchr_iter(b'\n', black_box(LINES.as_bytes())).count());
}

#[divan::bench]
fn lines(bencher: Bencher) {
    read(bencher, &LINES);
}

#[divan::bench]
fn list(bencher: Bencher) {
    read(bencher, &LIST);
}

#[divan::bench]
fn legacy_lines(bencher: Bencher) {
    read(bencher, &LEGACY);
}

#[divan::bench]
fn write(bencher: Bencher) {
    let line = record(1);
    let event = TelemetryEvent::from_json(&line, &Options::default()).unwrap();
    let mut out = vec![];
    bencher.counter(BytesCount::new(line.len())).bench_local(|| {
        out.clear();
        event.write(&mut out);
    });
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn a_list_of_two_gibibytes(bencher: Bencher) {
    const LENGTH: u64 = 2 << 30;
    bencher.counter(BytesCount::new(LENGTH)).bench_local(|| {
        let mut count = Count::default();
        load(endless_list(LENGTH), None, &Options::default(), &mut count).unwrap();
        assert_eq!(count.refused, 0);
        println!("{} events, at most {:?} bytes of memory", count.events, largest_memory());
    });
}

//! Reads a session that `tests/fixtures/gpuflight/generate_session.py` made, converts it to every
//! form, checks that each tells the same, and prints their sizes.
//!
//! ```text
//! python3 tests/fixtures/gpuflight/generate_session.py --out target/session
//! cargo run --release -p warpgauge-formats --features parquet --example session_report -- target/session [TABLES [--sizes]]
//! ```
//!
//! The tables are left in the folder TABLES. With `--sizes` every form is packed too, which takes
//! minutes. It fails where a form tells something else, where
//! batches are less than 15.6 times smaller than the wide form, or tables larger than 1.5 MB.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a report stops at the first surprise"
)]

mod forms;
mod truth;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use flate2::{Compression, write::GzEncoder};
use forms::Logs;
use warpgauge_formats::gpu_flight::Details;

/// The forms in which the generator writes a session, but for the wide one.
const FLAVOURS: [(&str, &str); 5] = [
    ("columnar", "batches of the generator"),
    ("columnar_head", "the same, of the later producer"),
    ("columnar_nodetail", "the same, without details"),
    ("columnar_alldetail", "the same, all details"),
    ("columnar_250ms", "the same, flushed every 250 ms"),
];

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = arguments.next().expect("the folder of a session");
    let is_packed = std::env::args().any(|argument| argument == "--sizes");
    let row = |title: &str, logs: &Logs| row(title, logs, is_packed);
    let expected = truth::expected(&folder);
    let agrees = |form: &str, hashes: BTreeMap<String, String>, but: &[&str]| {
        for (name, hash) in &expected {
            assert!(
                but.contains(&name.as_str()) || hashes.get(name) == Some(hash),
                "{form}: {name} differ"
            );
        }
    };

    let fat = forms::load(&folder.join("fat"));
    let (first, losses) = forms::batches(&fat, Details::First);
    let (all, _) = forms::batches(&fat, Details::All);
    let tables = forms::parquet(&fat);
    // The wide form rounds the host's processor use to a tenth of a percent.
    agrees("batches", forms::hashes(&first), &["host"]);
    agrees("batches with all details", forms::hashes(&all), &["host"]);
    agrees("tables", forms::hashes_of_tables(&tables), &["host"]);
    if let Some(folder) = arguments.next() {
        tables.save(&folder).expect("a folder for the tables");
    }

    println!("| form | raw | gzip -6 | zstd -3 | zstd -19 |\n|---|---|---|---|---|");
    row("wide", &fat);
    row("batches, first details", &first);
    row("batches, all details", &all);
    for (name, title) in FLAVOURS {
        let logs = forms::load(&folder.join(name));
        agrees(name, forms::hashes(&logs), &[]);
        row(title, &logs);
    }
    println!("| Parquet | {} | | | |", megabytes(tables.bytes()));

    println!("\nLeft out by batches with first details:");
    losses.iter().for_each(|(name, count)| println!("{count:>8} {name}"));

    let (wide, batches) = (bytes(&fat), bytes(&first));
    println!("\nwide / batches: {}.{:02}", wide / batches, wide * 100 / batches % 100);
    // What is the same at any length, names and details, outweighs a short session.
    if wide > 100_000_000 {
        assert!(wide * 10 >= batches * 156, "batches are less than 15.6 times smaller");
        assert!(tables.bytes() <= 1_500_000, "tables are larger than 1.5 MB");
    }
}

fn bytes(logs: &Logs) -> usize {
    logs.0.iter().map(Vec::len).sum()
}

/// Each channel is a file of its own and packed alone.
fn row(title: &str, logs: &Logs, is_packed: bool) {
    if !is_packed {
        return println!("| {title} | {} | | | |", megabytes(bytes(logs)));
    }
    let sum = |pack: &dyn Fn(&[u8]) -> usize| megabytes(logs.0.iter().map(|log| pack(log)).sum());
    let gzip = |log: &[u8]| {
        let mut encoder = GzEncoder::new(vec![], Compression::new(6));
        encoder.write_all(log).expect("memory");
        encoder.finish().expect("memory").len()
    };
    let zstd =
        |level: i32| move |log: &[u8]| zstd::bulk::compress(log, level).expect("memory").len();
    println!(
        "| {title} | {} | {} | {} | {} |",
        megabytes(bytes(logs)),
        sum(&gzip),
        sum(&zstd(3)),
        sum(&zstd(19))
    );
}

/// Millions of bytes, to the hundredth.
fn megabytes(bytes: usize) -> String {
    let hundredths = (bytes + 5_000) / 10_000;
    format!("{}.{:02} MB", hundredths / 100, hundredths % 100)
}

//! What exporting 15,000 data points costs: mapped to OTLP, encoded, committed to the spool,
//! compressed and sent to a receiver in this process, as `pass.rs` does it. The floor is one POST
//! of the same encoded bytes, uncompressed, over a connection that is there already.
//!
//! ```text
//! cargo bench -p warpgauge --bench export -- [--json] [--rounds N]
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark stops at the first surprise"
)]

#[path = "support/figures.rs"]
#[allow(dead_code, reason = "not every benchmark needs all of it")]
mod figures;
#[path = "../tests/otlp_transport/http_receiver.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod http_receiver;
#[path = "support/rounds.rs"]
#[allow(dead_code, reason = "not every benchmark needs all of it")]
mod rounds;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use figures::{Budget, Figure, Samples};
use flate2::{Compression, write::GzEncoder};
use http_receiver::{Behaviour, HttpReceiver};
use opentelemetry_proto::tonic::metrics::v1::ResourceMetrics;
use rounds::{Asked, milliseconds, place};
use warpgauge::aggregate::{FileTally, Shape, Tally};
use warpgauge::atomic_file::Durability;
use warpgauge::config::export::{Export, Protocol};
use warpgauge::listing::ListedProcess;
use warpgauge::otlp::chunks::{self, Chunk};
use warpgauge::otlp::mapping::{self, Window};
use warpgauge::otlp::resource::Host;
use warpgauge::otlp::sender::{self, Outcome};
use warpgauge::otlp::settings::Settings;
use warpgauge::spool::{After, Commit, Spool};
use warpgauge_wire::measurement::parse_line;

const PROCESSES: usize = 3_000;

const POINTS_PER_PROCESS: usize = 5;

/// Budget of the project's specification.
const MILLISECONDS: f64 = 200.0;

fn main() {
    let asked = Asked::from_arguments();
    let place = place();
    let receiver = HttpReceiver::start(Behaviour::respond("200 OK", &[], b""));
    let (processes, tallies) = measured(asked.size(PROCESSES));
    let points = processes.len() * POINTS_PER_PROCESS;
    let requests: Vec<_> =
        chunks::pack(map(&processes, &tallies)).into_iter().map(|chunk| chunk.request).collect();
    let bytes = requests.concat();

    let [mut floor, mut whole, mut mapped, mut encoded, mut spooled, mut sent] =
        [(); 6].map(|()| Samples::default());
    for round in 0..asked.rounds(21) {
        floor.push(post(&receiver, &bytes));
        receiver.received();
        let part = export(&processes, &tallies, &place.path().join(round.to_string()), &receiver);
        assert_eq!(points_received(&receiver), points);
        whole.push(part.iter().sum());
        let all = [&mut mapped, &mut encoded, &mut spooled, &mut sent];
        all.into_iter().zip(part).for_each(|(samples, ms)| samples.push(ms));
    }

    let what = |part: &str| format!("{points} points: {part}");
    let mut figures = vec![
        Figure::new(what("whole"), "ms", whole).over(&floor).within(Budget::AtMost(MILLISECONDS)),
        Figure::new(what("map"), "ms", mapped),
        Figure::new(what("encode"), "ms", encoded),
        Figure::new(what("commit to the spool"), "ms", spooled),
        Figure::new(what("compress and send"), "ms", sent),
        Figure::new(what("encoded"), "kB", [bytes.len() as f64 / 1e3].into_iter().collect()),
    ];
    figures.extend([1, 3, 6].into_iter().flat_map(|level| compression(asked, &requests, level)));
    figures::print("export", place.path(), figures, asked);
}

/// The four parts of an export, in milliseconds: map, encode, spool, send.
fn export(
    processes: &[ListedProcess],
    tallies: &[Tally],
    state: &Path,
    receiver: &HttpReceiver,
) -> [f64; 4] {
    let spool = Spool::open(state).unwrap();
    let export = Export {
        protocol: Some(Protocol::HttpProtobuf),
        endpoint: Some(receiver.url()),
        ..Export::default()
    };
    let settings = Settings::resolve(&export, &|_| None).unwrap();

    let started = Instant::now();
    let resources = map(processes, tallies);
    let mapped = Instant::now();
    let chunks: Vec<Chunk> = chunks::pack(resources);
    let encoded = Instant::now();
    let commit = Commit {
        window: window(),
        chunks: &chunks,
        counted: b"",
        refused: b"",
        after: &[After { name: "after.json", content: b"{}" }],
        durability: Durability::PowerCut,
    };
    let entry = spool.commit(&commit).unwrap();
    entry.apply_after("after.json", &state.join("carried.json")).unwrap();
    let committed = Instant::now();
    let mut sender = sender::open(&settings).unwrap();
    let end = committed + Duration::from_secs(15);
    for request in spool.pending().unwrap() {
        assert!(request.points().unwrap() > 0);
        assert_eq!(sender.send(&request.read().unwrap(), end), Outcome::Accepted);
        spool.remove(&request).unwrap();
    }
    spool.sweep().unwrap();
    let sent = Instant::now();

    let marks = [started, mapped, encoded, committed, sent];
    std::array::from_fn(|part| (marks[part + 1] - marks[part]).as_secs_f64() * 1e3)
}

fn map(processes: &[ListedProcess], tallies: &[Tally]) -> Vec<ResourceMetrics> {
    let host = Host {
        name: "node-0017.gpu.example.com".to_owned(),
        boot_id: "0d5b6e1c-7c6a-4a2b-9d53-2f1f4f3c8a11".to_owned(),
        attributes: Vec::new(),
    };
    let each = processes.iter().zip(tallies);
    each.map(|(process, tally)| mapping::tally(host.process(process), tally, window())).collect()
}

fn window() -> Window {
    Window { start_ns: 1_789_550_000_000_000_000, end_ns: 1_789_550_060_000_000_000 }
}

/// Processes, and what each was found to do; no two do the same.
fn measured(count: usize) -> (Vec<ListedProcess>, Vec<Tally>) {
    let process = |number: usize| ListedProcess {
        pid: 4_000 + number as u32,
        own_pid: 4_000 + number as u32,
        start_ticks: 170_000 + 13 * number as u64,
        created_ns: 1_789_500_000_000_000_000 + 130_000_000 * number as u64,
        uids: vec![1_000],
        group: Some(format!("trainer-{}", number % 40)),
        executable: "python3.13".to_owned(),
        service_name: None,
        container_id: None,
        pod_uid: None,
        folder: None,
        gone_since_ns: None,
    };
    let tally = |number: usize| {
        let mut file = FileTally::new(Shape::None);
        let share = (number * 7_919 % 100_000) as f64 / 1_000.0;
        for line in [
            format!("0:{}", 1_000_000_007 * (number + 1)),
            format!("1:{share}"),
            format!("2:{}", 100.0 - share),
            format!("3:{}", share / 3.0),
            format!("4:{}", 6_000 + number),
        ] {
            file.add(parse_line(line.as_bytes()).unwrap().unwrap());
        }
        let mut tally = Tally::default();
        tally.merge_file(&file);
        tally
    };
    ((0..count).map(process).collect(), (0..count).map(tally).collect())
}

fn points_received(receiver: &HttpReceiver) -> usize {
    receiver.received().iter().map(|request| chunks::points_of(&request.message())).sum()
}

/// How long one POST takes, in milliseconds.
fn post(receiver: &HttpReceiver, body: &[u8]) -> f64 {
    let mut stream = TcpStream::connect(receiver.address).unwrap();
    stream.set_nodelay(true).unwrap();
    let head =
        format!("POST /v1/metrics HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    milliseconds(|| {
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut status = String::new();
        BufReader::new(&stream).read_line(&mut status).unwrap();
        assert!(status.contains("200"), "{status}");
    })
}

/// What a level of gzip costs on these requests, and what it leaves of them.
fn compression(asked: Asked, requests: &[Vec<u8>], level: u32) -> [Figure; 2] {
    let [mut time, mut size] = [(); 2].map(|()| Samples::default());
    for _ in 0..asked.rounds(11) {
        let mut compressed = 0;
        time.push(milliseconds(|| {
            for request in requests {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
                encoder.write_all(request).unwrap();
                compressed += encoder.finish().unwrap().len();
            }
        }));
        size.push(compressed as f64 / 1e3);
    }
    [
        Figure::new(format!("gzip alone, level {level}: time"), "ms", time),
        Figure::new(format!("gzip alone, level {level}: size"), "kB", size),
    ]
}

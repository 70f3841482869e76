//! Lists of events of any length, made while they are read.

use std::io::{self, Read};

use warpgauge_formats::telemetry::{Fault, Place, Sink, TelemetryEvent};

/// Counts what it is given.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub(crate) events: u64,
    pub(crate) refused: u64,
}

impl Sink for Count {
    fn event(&mut self, _: Place, _: &TelemetryEvent<'_>) {
        self.events += 1;
    }

    fn refused(&mut self, _: Place, _: Fault) {
        self.refused += 1;
    }
}

/// A record of version 2 as producers write them, and a newline.
pub(crate) fn record(number: u64) -> String {
    format!(
        "{{\"schema_version\": 2, \"timestamp_ns\": {}, \"event_type\": \"sample\", \
         \"collector\": \"gpumemprof.cuda_tracker\", \"sampling_interval_ms\": 100, \
         \"pid\": 4711, \"host\": \"node-17\", \"device_id\": 0, \
         \"allocator_allocated_bytes\": {}, \"allocator_reserved_bytes\": 2147483648, \
         \"allocator_active_bytes\": 1073741824, \"allocator_inactive_bytes\": null, \
         \"allocator_change_bytes\": -{number}, \"device_used_bytes\": 2147483648, \
         \"device_free_bytes\": 83751862272, \"device_total_bytes\": 85899345920, \
         \"context\": \"epoch 3\", \"metadata\": {{\"backend\": \"cuda\", \
         \"supports_device_total\": true, \"sampling_source\": \"torch.cuda\"}}}}\n",
        1_700_000_000_000_000_000 + number * 100_000_000,
        1_073_741_824 + number,
    )
}

/// A list of at least that many bytes.
pub(crate) fn endless_list(length: u64) -> impl Read {
    List { length, made: 0, records: 0, piece: b"[".to_vec(), at: 0, ended: false }
}

struct List {
    length: u64,
    made: u64,
    records: u64,
    /// A part of the list, of which the bytes before `at` have been given.
    piece: Vec<u8>,
    at: usize,
    ended: bool,
}

impl List {
    fn next_piece(&mut self) {
        self.made += self.piece.len() as u64;
        self.at = 0;
        self.piece.clear();
        if self.made >= self.length {
            self.ended = true;
            self.piece.push(b']');
            return;
        }
        // Many records at once, the making of which takes little against their reading.
        for _ in 0..512 {
            if self.records > 0 {
                self.piece.push(b',');
            }
            self.piece.extend_from_slice(record(self.records % 8).as_bytes());
            self.records += 1;
        }
    }
}

impl Read for List {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() && !self.ended {
            self.next_piece();
        }
        let count = self.piece[self.at..].as_ref().read(into)?;
        self.at += count;
        Ok(count)
    }
}

/// The most memory that this process has had, in bytes; `None` where the system does not say.
pub(crate) fn largest_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

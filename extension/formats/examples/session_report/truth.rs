//! What a session tells, in the canonical rows whose hashes the generator of sessions leaves.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use warpgauge_formats::event::{Event, Phase, What};
use warpgauge_formats::finding::{Finding, Sink};

/// Collects rows of all kinds; each is its sort key and its text at once.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    kernels: Vec<(i64, String, [i64; 5])>,
    scopes: Vec<(i64, i64, String, [i64; 2])>,
    samples: Vec<(i64, i64, i64, String, [i64; 3], String)>,
    host: Vec<[i64; 4]>,
    device: Vec<[i64; 7]>,
    copies: Vec<[i64; 6]>,
    /// What the readers found wrong.
    pub(crate) findings: Vec<Finding>,
}

impl Truth {
    /// The hashes, by the names that the generator gives them.
    pub(crate) fn hashes(mut self) -> BTreeMap<String, String> {
        self.kernels.sort_unstable();
        self.scopes.sort_unstable();
        self.samples.sort_unstable();
        self.host.sort_unstable();
        self.device.sort_unstable();
        self.copies.sort_unstable();
        let kernels =
            self.kernels.iter().map(|(start, name, rest)| format!("{start},{name},{}", join(rest)));
        let scopes = self
            .scopes
            .iter()
            .map(|(time, instance, name, rest)| format!("{time},{instance},{name},{}", join(rest)));
        let samples =
            self.samples.iter().map(|(time, correlation, device, function, rest, scope)| {
                format!("{time},{correlation},{device},{function},{},{scope}", join(rest))
            });
        BTreeMap::from([
            ("kernels".to_owned(), hash(kernels)),
            ("scopes".to_owned(), hash(scopes)),
            ("pc_samples".to_owned(), hash(samples)),
            ("host".to_owned(), hash(self.host.iter().map(|row| join(row)))),
            ("device".to_owned(), hash(self.device.iter().map(|row| join(row)))),
            ("memcpy".to_owned(), hash(self.copies.iter().map(|row| join(row)))),
        ])
    }
}

/// The hashes that the generator left in `folder`.
pub(crate) fn expected(folder: &Path) -> BTreeMap<String, String> {
    let text =
        std::fs::read_to_string(folder.join("truth/expected.json")).expect("truth/expected.json");
    let truth: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let hashes = truth["sha256"].as_object().expect("hashes");
    hashes
        .iter()
        .map(|(name, hash)| (name.clone(), hash.as_str().unwrap_or_default().to_owned()))
        .collect()
}

fn join(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

fn hash(rows: impl Iterator<Item = String>) -> String {
    let mut hasher = Sha256::new();
    for (position, row) in rows.enumerate() {
        if position > 0 {
            hasher.update(b"\n");
        }
        hasher.update(row);
    }
    hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Sink for Truth {
    fn event(&mut self, _: u64, event: &Event<'_>) {
        let number = Option::unwrap_or_default;
        match &event.what {
            What::Kernel(kernel) => {
                let rest = [
                    kernel.stream,
                    Some(kernel.duration.0),
                    kernel.correlation,
                    kernel.dynamic_shared_bytes,
                    kernel.registers,
                ];
                self.kernels.push((kernel.start.0, kernel.name.to_string(), rest.map(number)));
            }
            What::Scope(scope) => {
                let phase = i64::from(scope.phase == Phase::End);
                self.scopes.push((
                    scope.time.0,
                    number(scope.instance),
                    scope.name.to_string(),
                    [phase, number(scope.depth)],
                ));
            }
            What::Profile(sample) => self.samples.push((
                sample.time.0,
                number(sample.correlation),
                number(sample.device),
                sample.function.as_deref().unwrap_or_default().to_owned(),
                [sample.pc_offset, sample.value, sample.stall_reason].map(number),
                sample.scope.as_deref().unwrap_or_default().to_owned(),
            )),
            What::System(system) => {
                if let Some(host) = &system.host {
                    let [cpu, used, total] =
                        [host.cpu_centipercent, host.ram_used_mib, host.ram_total_mib].map(number);
                    self.host.push([system.time.0, cpu, used, total]);
                }
                for device in &system.devices {
                    let [gpu, memory, celsius] =
                        [device.gpu_percent, device.memory_percent, device.temperature_celsius]
                            .map(number);
                    let [power, used] = [device.power_milliwatts, device.used_mib].map(number);
                    self.device.push([
                        system.time.0,
                        device.index,
                        gpu,
                        memory,
                        celsius,
                        power,
                        used,
                    ]);
                }
            }
            What::Copy(copy) => self.copies.push([
                copy.start.0,
                number(copy.stream),
                copy.duration.0,
                copy.bytes,
                copy.kind.0,
                number(copy.correlation),
            ]),
            _ => {}
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    fn unknown(&mut self, _: u64, _: &str) {}
}

//! The state of host and devices: counters with units.

use super::Timeline;
use super::device_work::{integer, text};
use super::processes::Place;
use crate::event::{Device, Host};
use crate::time::Timestamp;
use crate::trace::{CounterEvent, Id, Metadata, Record, Track, Value};

/// A counter's name, its unit (UCUM) and the names and values of its series.
type Counter<'v> = (&'static str, &'static str, &'v [(&'static str, Option<i64>)]);

impl Timeline<'_> {
    /// Draws the state at one moment.
    pub(super) fn state(
        &mut self,
        line: u64,
        source: Place,
        time: Timestamp,
        host: Option<&Host>,
        devices: &[Device<'_>],
    ) {
        if let Some(host) = host {
            self.host_state(line, source, time, host);
        }
        for device in devices {
            self.device_state(line, source, time, device);
        }
    }

    fn host_state(&mut self, line: u64, source: Place, time: Timestamp, host: &Host) {
        let process = self.processes.host(source).0.process;
        let timestamp = self.time(line, time);
        if let Some(use_of_all) = host.cpu_centipercent {
            let percent = hundredths(use_of_all);
            let values = vec![("use".into(), percent)];
            self.counter(line, timestamp, &process, None, "host processor", "%", values);
        }
        self.counters(
            line,
            timestamp,
            &process,
            None,
            &[
                ("host memory", "MiBy", &[("used", host.ram_used_mib)]),
                ("host memory total", "MiBy", &[("total", host.ram_total_mib)]),
            ],
        );
    }

    fn device_state(&mut self, line: u64, source: Place, time: Timestamp, device: &Device<'_>) {
        let process = self.processes.device(source, Some(device.index), line, self.next);
        if self.processes.is_first_told(source, device.index) {
            let mut metadata = Metadata::new();
            text(&mut metadata, "name", device.name.as_ref());
            text(&mut metadata, "uuid", device.uuid.as_ref());
            text(&mut metadata, "vendor", device.vendor.as_ref());
            integer(&mut metadata, "pci bus", device.pci_bus);
            if !metadata.is_empty() {
                self.device_label(line, process.clone(), metadata);
            }
        }
        let timestamp = self.time(line, time);
        self.counters(
            line,
            timestamp,
            &process,
            Some(device.index),
            &[
                ("memory", "MiBy", &[("used", device.used_mib), ("free", device.free_mib)]),
                ("memory total", "MiBy", &[("total", device.total_mib)]),
                ("utilization", "%", &[("gpu", device.gpu_percent)]),
                ("memory utilization", "%", &[("memory", device.memory_percent)]),
                ("temperature", "Cel", &[("gpu", device.temperature_celsius)]),
                ("power", "mW", &[("gpu", device.power_milliwatts)]),
                ("graphics clock", "MHz", &[("graphics", device.graphics_mhz)]),
                ("multiprocessor clock", "MHz", &[("multiprocessor", device.multiprocessor_mhz)]),
                ("memory clock", "MHz", &[("memory", device.memory_mhz)]),
                (
                    "throttled",
                    "1",
                    &[
                        ("by power", device.throttled_by_power),
                        ("by heat", device.throttled_by_heat),
                    ],
                ),
                (
                    "PCIe",
                    "By/s",
                    &[
                        ("received", device.pcie_received_bytes_per_second),
                        ("sent", device.pcie_sent_bytes_per_second),
                    ],
                ),
            ],
        );
    }

    /// Draws those counters of which something is told.
    fn counters(
        &mut self,
        line: u64,
        timestamp: Timestamp,
        process: &Id<'_>,
        device: Option<i64>,
        counters: &[Counter<'_>],
    ) {
        for (name, unit, series) in counters {
            let told = series
                .iter()
                .filter_map(|(series, value)| Some(((*series).into(), Value::Integer((*value)?))));
            let values: Metadata<'_> = told.collect();
            if !values.is_empty() {
                self.counter(line, timestamp, process, device, name, unit, values);
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one counter, with all that it says")]
    fn counter(
        &mut self,
        line: u64,
        timestamp: Timestamp,
        process: &Id<'_>,
        device: Option<i64>,
        name: &'static str,
        unit: &'static str,
        values: Metadata<'_>,
    ) {
        let counter = CounterEvent {
            timestamp,
            track: Track { process: process.borrowed(), row: Id::None },
            device,
            category: None,
            name: name.into(),
            values,
            unit: Some(unit.into()),
        };
        self.record(line, &Record::Counter(counter));
    }
}

/// Hundredths of a percent as percent.
#[expect(clippy::cast_precision_loss, reason = "hundredths of a percent have few digits")]
fn hundredths(value: i64) -> Value<'static> {
    Value::Float(value as f64 / 100.0)
}

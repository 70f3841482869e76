//! A machine whose devices are those of a script: the stand-in for NVML, and passes that load it.

use std::fs;
use std::path::{Path, PathBuf};

use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;

use super::points::Point;
use super::receiver::Receiver;
use super::world::{Pass, World, finish, write};

/// A world with devices, and the receiver that its passes send to.
pub(crate) struct Machine {
    pub(crate) world: World,
    receiver: Receiver,
}

impl Machine {
    /// One whose devices are those of a script (tests/standins/nvml, `script.rs`).
    pub(crate) fn new(script: &str) -> Self {
        let receiver = Receiver::start();
        let mut world = World::sending_to(&receiver.url());
        fs::copy(standin(), world.path("libnvidia-ml.so.1")).unwrap();
        let library = world.path("libnvidia-ml.so.1").display().to_string();
        world.devices = format!("library = \"{library}\"\n");
        let machine = Self { world, receiver };
        machine.becomes(script);
        machine
    }

    /// From now on its devices are those of another script.
    pub(crate) fn becomes(&self, script: &str) {
        write(self.world.path("devices.script"), script);
    }

    /// From now on its passes append their records to this file.
    pub(crate) fn writes_records_to(&mut self, path: &Path) {
        self.world.tables.push_str(&format!("[telemetry]\noutput = \"{}\"\n", path.display()));
    }

    /// Plays a driver that is too old for a function.
    pub(crate) fn forgets(&self, function: &str) {
        let path = self.world.path("libnvidia-ml.so.1");
        let mut library = fs::read(&path).unwrap();
        let name = format!("\0{function}\0").into_bytes();
        let found: Vec<_> = (0..library.len() - name.len())
            .filter(|at| library[*at..*at + name.len()] == name)
            .collect();
        assert!(!found.is_empty(), "the stand-in has no {function}");
        for at in found {
            library[at + 1] = b'N';
        }
        write(&path, library);
    }

    /// Runs a command that has the devices.
    pub(crate) fn run(&self, arguments: &[&str]) -> Pass {
        let mut command = self.world.command(arguments);
        command.env("STANDIN_NVML_SCRIPT", self.world.path("devices.script"));
        finish(command)
    }

    /// Runs one pass that is to end with this exit code.
    #[track_caller]
    pub(crate) fn pass(&self, code: i32) -> Pass {
        let pass = self.run(&["run", "--json"]);
        assert_eq!(pass.code(), Some(code), "{pass:#?}");
        pass
    }

    /// Everything that arrived.
    pub(crate) fn points(&self) -> Vec<Point> {
        self.receiver.points()
    }

    /// All that arrived about a device, as text and in the order of the names; of what throttles it
    /// only what holds.
    pub(crate) fn shown(&self, id: &str) -> Vec<String> {
        let points = self.points();
        let of_device = points.iter().filter(|point| {
            point.attributes.get("hw.id").is_some_and(|known| known == id)
                && point.resource.get("warpgauge.source").is_some_and(|from| from == "devices")
        });
        let mut shown: Vec<_> = of_device
            .filter(|point| point.reason().is_none() || point.count() > 0)
            .map(|point| {
                let reason = point.reason().map(|reason| format!(" {reason}"));
                match point.value {
                    Value::AsInt(value) => {
                        format!("{} {value}{}", point.metric, reason.unwrap_or_default())
                    }
                    Value::AsDouble(value) => format!("{} {value}", point.metric),
                }
            })
            .collect();
        shown.sort_unstable();
        shown
    }
}

/// The stand-in, which Cargo builds as a dependency of these tests, beside them.
fn standin() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.parent().unwrap().join("libstandin_nvml.so");
    assert!(path.exists(), "{} was not built", path.display());
    path
}

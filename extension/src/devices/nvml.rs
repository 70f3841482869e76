//! Asks the management library, device by device.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::Sender;

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;

use super::fault::Fault;
use super::sampling::Piece;
use super::{Device, Library, MOST_DEVICES, Memory, Process, Throttling, Versions};

/// How often a list of processes is asked for while it grows between the question how long it is and
/// the one what is in it.
const ATTEMPTS: usize = 4;

/// `NVML_DEVICE_MIG_ENABLE` (nvml.h)
const MIG_ENABLED: u32 = 1;

/// What the loader looks for where the configuration names no file.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Hands over all that the library says. Nobody may be there to take it: the pass had to go on.
pub(super) fn read(named: Option<&Path>, to: &Sender<Piece>) {
    read_from(named.unwrap_or(Path::new(LIBRARY)), named.is_some(), to);
}

fn read_from(library: &Path, must_be_there: bool, to: &Sender<Piece>) {
    let mut reading = Reading { to, ids: Vec::new() };
    match Nvml::builder().lib_path(library.as_os_str()).init() {
        Ok(nvml) => {
            reading.machine(&nvml);
            // Neither shut down nor unloaded, see `sampling`.
            std::mem::forget(nvml);
        }
        Err(NvmlError::LibloadingError(fault))
            if !must_be_there && is_absence(&fault.to_string(), library) =>
        {
            reading.hand_over(Piece::Library(Library::Absent(fault.to_string())));
        }
        Err(fault) => drop(reading.fault("the library", &fault)),
    }
    reading.hand_over(Piece::End);
}

/// Whether the loader found no such file, in its words (dlerror(3)): those of glibc, which are
/// English where nobody calls `setlocale`, and of musl. What the library itself needs may be missing,
/// too, which is no absence.
fn is_absence(words: &str, library: &Path) -> bool {
    let whose = format!("{}: ", library.display());
    words.contains(&whose) && words.contains("No such file") && !words.contains("needed by")
}

struct Reading<'s> {
    to: &'s Sender<Piece>,
    /// The ids that were given, each once.
    ids: Vec<String>,
}

/// Why no more is asked of a device.
struct Ended;

/// A question: its words, and the function of the library that answers it.
type Question<'q, 'n, T> =
    (&'static str, &'q dyn Fn(&nvml_wrapper::Device<'n>) -> Result<T, NvmlError>);

impl Reading<'_> {
    fn hand_over(&self, piece: Piece) {
        // Who does not wait any more needs it no more.
        let _ = self.to.send(piece);
    }

    fn fault(&self, whose: &str, fault: &NvmlError) -> Fault {
        let reason = Fault::from(fault);
        self.hand_over(Piece::Fault(reason, format!("{whose}: {fault}")));
        reason
    }

    fn machine(&mut self, nvml: &Nvml) {
        let driver = nvml.sys_driver_version().unwrap_or_default();
        let version = nvml.sys_nvml_version().unwrap_or_default();
        let versions = Versions { driver, nvml: version };
        self.hand_over(Piece::Library(Library::Loaded(versions)));
        let count = match nvml.device_count() {
            Ok(count) => count,
            Err(fault) => {
                self.fault("number of devices", &fault);
                return;
            }
        };
        for index in 0..count {
            if self.ids.len() >= MOST_DEVICES {
                let words = format!("{count} devices; the first {MOST_DEVICES} are read");
                return self.hand_over(Piece::Fault(Fault::TooManyDevices, words));
            }
            let whose = format!("device {index}");
            self.hand_over(Piece::Asking(whose.clone()));
            match nvml.device_by_index(index) {
                Ok(device) => self.gpu(index, &whose, &device),
                Err(fault) => {
                    self.fault(&whose, &fault);
                }
            }
        }
    }

    /// A GPU, and the instances that it is divided into.
    fn gpu(&mut self, index: u32, whose: &str, handle: &nvml_wrapper::Device<'_>) {
        let mut device =
            Device { index, id: self.id(handle, index.to_string()), ..Device::default() };
        // What was read of a device before it was lost is as true as ever.
        let mode = self.figures(whose, handle, &mut device).and_then(|()| {
            // A GPU that cannot be divided is not.
            self.ask(
                whose,
                handle,
                ("MIG mode", &|handle| match handle.mig_mode() {
                    Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_)) => Ok(0),
                    mode => mode.map(|mode| mode.current),
                }),
            )
        });
        let is_divided = matches!(mode, Ok(Some(MIG_ENABLED)));
        if mode.is_ok() && !is_divided {
            let _ = self.processes(whose, handle, &mut device);
        }
        let parent = device.id.clone();
        self.hand_over(Piece::Device(Box::new(device)));
        if is_divided {
            // The processes of a divided GPU are those of its instances.
            let _ = self.instances(index, whose, &parent, handle);
        }
    }

    fn instances(
        &mut self,
        index: u32,
        whose: &str,
        parent: &str,
        gpu: &nvml_wrapper::Device<'_>,
    ) -> Result<(), Ended> {
        let most = self.ask(whose, gpu, ("MIG instances", &|gpu| gpu.mig_device_count()))?;
        for place in 0..most.unwrap_or(0) {
            let whose = format!("{whose}, MIG instance {place}");
            self.hand_over(Piece::Asking(whose.clone()));
            let handle = match gpu.mig_device_by_index(place) {
                Ok(handle) => handle,
                // Places need not be taken.
                Err(NvmlError::NotFound | NvmlError::InvalidArg) => continue,
                Err(fault) if self.fault(&whose, &fault).is_the_end_of_a_device() => {
                    return Err(Ended);
                }
                Err(_) => continue,
            };
            let id = self.id(&handle, format!("{index}.{place}"));
            let mut device =
                Device { index, id, parent: Some(parent.to_owned()), ..Device::default() };
            let read = self
                .memory(&whose, &handle, &mut device)
                .and_then(|()| self.processes(&whose, &handle, &mut device));
            self.hand_over(Piece::Device(Box::new(device)));
            read?;
        }
        Ok(())
    }

    /// The device's UUID, or `else_id` where there is none or another device has it.
    fn id(&mut self, handle: &nvml_wrapper::Device<'_>, else_id: String) -> String {
        let uuid = handle.uuid().ok().filter(|uuid| !uuid.is_empty() && !self.ids.contains(uuid));
        let id = uuid.unwrap_or(else_id);
        self.ids.push(id.clone());
        id
    }

    /// The answer to one question; `Ok(None)` where there is none, which is then counted.
    fn ask<'n, T>(
        &self,
        whose: &str,
        handle: &nvml_wrapper::Device<'n>,
        (what, question): Question<'_, 'n, T>,
    ) -> Result<Option<T>, Ended> {
        let whose = format!("{whose}, {what}");
        self.hand_over(Piece::Asking(whose.clone()));
        match question(handle) {
            Ok(answer) => Ok(Some(answer)),
            Err(fault) if self.fault(&whose, &fault).is_the_end_of_a_device() => Err(Ended),
            Err(_) => Ok(None),
        }
    }

    fn figures(
        &self,
        whose: &str,
        handle: &nvml_wrapper::Device<'_>,
        device: &mut Device,
    ) -> Result<(), Ended> {
        self.memory(whose, handle, device)?;
        let utilization =
            self.ask(whose, handle, ("utilization", &|handle| handle.utilization_rates()))?;
        if let Some(utilization) = utilization {
            let share = |percent: u32| (percent <= 100).then_some(percent);
            (device.gpu_percent, device.memory_percent) =
                (share(utilization.gpu), share(utilization.memory));
            if device.gpu_percent.is_none() || device.memory_percent.is_none() {
                let words = format!("{whose}: {} % and {} %", utilization.gpu, utilization.memory);
                self.hand_over(Piece::Fault(Fault::Implausible, words));
            }
        }
        device.temperature_celsius = self.ask(
            whose,
            handle,
            ("temperature", &|handle| handle.temperature(TemperatureSensor::Gpu)),
        )?;
        device.power_milliwatts =
            self.ask(whose, handle, ("power", &|handle| handle.power_usage()))?;
        device.throttling = self.ask(
            whose,
            handle,
            ("throttling reasons", &|handle| {
                handle.current_throttle_reasons().map(|reasons| Throttling(reasons.bits()))
            }),
        )?;
        Ok(())
    }

    /// Name and memory, which MIG instances have as well.
    fn memory(
        &self,
        whose: &str,
        handle: &nvml_wrapper::Device<'_>,
        device: &mut Device,
    ) -> Result<(), Ended> {
        device.name = self.ask(whose, handle, ("name", &|handle| handle.name()))?;
        let memory = self.ask(whose, handle, ("memory", &|handle| handle.memory_info()))?;
        device.memory = memory.and_then(|memory| {
            let (total, used) = (memory.total, memory.used);
            if used > total || memory.free > total {
                let words = format!("{whose}: {used} of {total} bytes used, {} free", memory.free);
                self.hand_over(Piece::Fault(Fault::Implausible, words));
                return None;
            }
            Some(Memory { total, used, free: memory.free, reserved: memory.reserved })
        });
        Ok(())
    }

    /// A process that both computes and draws is in both lists with the same bytes.
    fn processes(
        &self,
        whose: &str,
        handle: &nvml_wrapper::Device<'_>,
        device: &mut Device,
    ) -> Result<(), Ended> {
        let mut by_pid = BTreeMap::<u32, Option<u64>>::new();
        let lists: [Question<'_, '_, Vec<ProcessInfo>>; 2] = [
            ("compute processes", &|handle| {
                again_while_it_grows(|| handle.running_compute_processes())
            }),
            ("graphics processes", &|handle| {
                again_while_it_grows(|| handle.running_graphics_processes())
            }),
        ];
        let mut ended = Ok(());
        for list in lists {
            match self.ask(whose, handle, list) {
                Ok(processes) => {
                    for process in processes.into_iter().flatten() {
                        let used = match process.used_gpu_memory {
                            UsedGpuMemory::Used(bytes) => Some(bytes),
                            UsedGpuMemory::Unavailable => None,
                        };
                        let known = by_pid.entry(process.pid).or_default();
                        *known = used.max(*known);
                    }
                }
                Err(Ended) => {
                    ended = Err(Ended);
                    break;
                }
            }
        }
        device.processes = by_pid.into_iter().map(|(pid, used)| Process { pid, used }).collect();
        ended
    }
}

fn again_while_it_grows<T>(mut ask: impl FnMut() -> Result<T, NvmlError>) -> Result<T, NvmlError> {
    for _ in 1..ATTEMPTS {
        match ask() {
            Err(NvmlError::InsufficientSize(_)) => {}
            answer => return answer,
        }
    }
    ask()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn read(must_be_there: bool) -> Vec<Piece> {
        let (sender, pieces) = mpsc::channel();
        read_from(Path::new("libmanagement-of-no-machine.so.1"), must_be_there, &sender);
        drop(sender);
        pieces.iter().collect()
    }

    #[test]
    fn a_machine_without_the_library_has_no_fault() {
        let pieces = read(false);
        let [Piece::Library(Library::Absent(words)), Piece::End] = &pieces[..] else {
            panic!("{pieces:?}")
        };
        assert!(words.contains("libmanagement-of-no-machine.so.1"), "{words}");
    }

    #[test]
    fn a_library_without_what_it_needs_is_not_absent() {
        let library = Path::new("liba.so.1");
        for (words, is_absent) in [
            ("liba.so.1: cannot open shared object file: No such file or directory", true),
            ("libb.so: cannot open shared object file: No such file or directory", false),
            ("Error loading shared library liba.so.1: No such file or directory", true),
            ("Error loading shared library libb.so: No such file (needed by liba.so.1)", false),
            ("liba.so.1: invalid ELF header", false),
        ] {
            assert_eq!(is_absence(words, library), is_absent, "{words}");
        }
    }

    #[test]
    fn a_library_that_somebody_names_has_to_be_there() {
        let pieces = read(true);
        assert!(matches!(pieces[..], [Piece::Fault(Fault::LibraryUnusable, _), Piece::End]));
    }
}

//! A sample is taken beside the pass, and waited for no longer than until a deadline.
//!
//! A driver call may never return. Its thread is then left to itself, with what it had found until
//! then already handed over, and ends with the process. Nobody waits for the library's end either:
//! it is neither shut down nor unloaded, since the process ends soon and both are calls that may hang.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::fault::Fault;
use super::{Device, Library, Sample, nvml};
use crate::config::devices::Devices;

/// What the thread hands over, piece by piece.
#[derive(Debug)]
pub(super) enum Piece {
    /// First of all.
    Library(Library),
    /// What is asked next, for people, should no answer come.
    Asking(String),
    /// A device with all that could be read of it.
    Device(Box<Device>),
    /// What could not be read.
    Fault(Fault, String),
    /// There is no more.
    End,
}

/// A sample that is being taken.
#[derive(Debug)]
pub struct Sampling {
    pieces: Receiver<Piece>,
    timeout: Duration,
    deadline: Instant,
}

/// Begins to take a sample; `None` where the configuration wants none.
#[must_use]
pub fn begin(settings: &Devices) -> Option<Sampling> {
    if !settings.enabled {
        return None;
    }
    let (sender, pieces) = mpsc::channel();
    let library = settings.library.clone();
    let of_thread = sender.clone();
    let work = move || nvml::read(library.as_deref(), &of_thread);
    if let Err(fault) = thread::Builder::new().name("nvml".to_owned()).spawn(work) {
        // The receiver is below.
        let _ = sender.send(Piece::Fault(Fault::Unexpected, format!("no thread: {fault}")));
        let _ = sender.send(Piece::End);
    }
    let timeout = settings.timeout;
    Some(Sampling { pieces, timeout, deadline: Instant::now() + timeout })
}

impl Sampling {
    /// Waits for the rest.
    #[must_use]
    pub fn finish(self) -> Sample {
        let mut sample = Sample::default();
        let mut asked = "to load the library".to_owned();
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            match self.pieces.recv_timeout(left) {
                Ok(Piece::Library(library)) => sample.library = library,
                Ok(Piece::Asking(what)) => asked = what,
                Ok(Piece::Device(device)) => sample.devices.push(*device),
                Ok(Piece::Fault(fault, words)) => sample.faults.note(fault.reason(), || words),
                Ok(Piece::End) => break,
                Err(RecvTimeoutError::Timeout) => {
                    let words = format!(
                        "{asked}: no answer within {} ms (devices.timeout); the call is left to itself",
                        self.timeout.as_millis()
                    );
                    sample.faults.note(Fault::NoAnswer.reason(), || words);
                    break;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let words = format!("{asked}: the library's caller ended");
                    sample.faults.note(Fault::Unexpected.reason(), || words);
                    break;
                }
            }
        }
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        sample.time_ns = u64::try_from(since_epoch.unwrap_or_default().as_nanos()).unwrap_or(0);
        sample
    }
}

impl Sample {
    /// Says what could not be read: what is normal for those who want to hear more, the rest as
    /// warnings, once for each reason.
    pub fn log(&self) {
        if let Library::Absent(words) = &self.library {
            tracing::debug!("devices: no management library: {words}");
        }
        for (reason, skip) in self.faults.iter() {
            let (count, example) = (skip.count, &skip.example);
            if Fault::is_normal_reason(reason) {
                tracing::debug!("devices: {count} x {reason}, the first: {example}");
            } else {
                tracing::warn!("devices: {count} x {reason}, the first: {example}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that hands over one device, and then ends or goes on for good.
    fn sample(ends: bool) -> Sample {
        let (sender, pieces) = mpsc::channel();
        let sampling = Sampling {
            pieces,
            timeout: Duration::from_millis(20),
            deadline: Instant::now() + Duration::from_millis(20),
        };
        sender.send(Piece::Device(Box::default())).unwrap();
        sender.send(Piece::Asking("device 1, power".to_owned())).unwrap();
        let kept = (!ends).then_some(sender);
        let sample = sampling.finish();
        drop(kept);
        sample
    }

    #[test]
    fn what_was_read_before_the_deadline_or_before_a_fault_is_kept() {
        for (ends, fault) in [(false, Fault::NoAnswer), (true, Fault::Unexpected)] {
            let sample = sample(ends);
            assert_eq!(sample.devices.len(), 1);
            let faults: Vec<_> = sample.faults.iter().collect();
            let [(reason, skip)] = faults[..] else { panic!("{faults:?}") };
            assert_eq!(reason, fault.reason());
            assert!(skip.example.starts_with("device 1, power: "), "{}", skip.example);
        }
    }

    #[test]
    fn nothing_is_asked_where_nothing_is_wanted() {
        assert!(begin(&Devices { enabled: false, ..Devices::default() }).is_none());
    }
}

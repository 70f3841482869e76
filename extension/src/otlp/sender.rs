//! What a send is, and what may become of it.

use std::time::{Duration, Instant};

use super::file::FileSender;
use super::grpc::GrpcTransport;
use super::http::HttpTransport;
use super::network::NetworkSender;
use super::settings::{Destination, Settings};

/// What became of a request, and so what may become of its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has it all: forget it.
    Accepted,
    /// The receiver took all but some points, for good: forget it, and say what was lost.
    Partial {
        /// How many points were not taken.
        rejected_points: u64,
        /// The receiver's words.
        message: String,
    },
    /// The receiver read the request and will never take it: set it aside.
    Refused {
        /// The receiver's words.
        reason: String,
    },
    /// The receiver did not answer, or is not ready: keep it and try again.
    Retry {
        /// What happened.
        reason: String,
        /// How long the receiver asks to be left alone.
        after: Option<Duration>,
    },
    /// The request was never judged, for the way there is wrong: keep it until a person has
    /// mended the configuration.
    Misconfigured {
        /// What is wrong and what to do.
        reason: String,
    },
}

impl Outcome {
    /// [`Outcome::Retry`] without a time.
    pub(super) fn retry(reason: impl Into<String>) -> Self {
        Self::Retry { reason: reason.into(), after: None }
    }

    /// [`Outcome::Refused`].
    pub(super) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into() }
    }

    /// [`Outcome::Misconfigured`].
    pub(super) fn misconfigured(reason: impl Into<String>) -> Self {
        Self::Misconfigured { reason: reason.into() }
    }
}

/// A way to a destination.
pub trait Sender {
    /// Sends `request`, an encoded `ExportMetricsServiceRequest` (protobuf), once. The same bytes
    /// travel each time the same request is sent. Returns by `deadline`, however slow the receiver;
    /// only a file system can hold it longer.
    fn send(&mut self, request: &[u8], deadline: Instant) -> Outcome;
}

/// Why there is no sender for the settings.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system gave no event loop to drive the connection.
    #[error("cannot start the event loop that drives a connection: {0}")]
    EventLoop(std::io::Error),
    /// The OpenTelemetry exporter did not take the settings.
    #[error("the HTTP exporter does not take these settings: {0}")]
    Http(opentelemetry_otlp::ExporterBuildError),
    /// The gRPC library did not take the settings.
    #[error("the gRPC library does not take these settings: {0}")]
    Grpc(tonic::transport::Error),
}

/// Makes the sender for `settings`. Neither connects nor touches a file: each send meets the
/// world as it is then.
///
/// # Errors
///
/// When a library does not take the settings, or the operating system lacks resources.
pub fn open(settings: &Settings) -> Result<Box<dyn Sender>, OpenError> {
    Ok(match &settings.destination {
        Destination::File(path) => Box::new(FileSender::new(path)),
        Destination::Http(endpoint) => {
            let transport = HttpTransport::new(endpoint, settings)?;
            Box::new(NetworkSender::new(transport, endpoint, settings))
        }
        Destination::Grpc(endpoint) => {
            let transport = GrpcTransport::new(endpoint, settings)?;
            Box::new(NetworkSender::new(transport, endpoint, settings))
        }
    })
}

//! `[export]`: where measurements go and how. Plain data; what the environment adds is decided by
//! `otlp::settings`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

/// How a request travels (`export.protocol`, OTLP specification "Protocol").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Protocol {
    /// OTLP JSON lines appended to a file, as the OpenTelemetry Collector's file exporter writes.
    #[serde(rename = "file")]
    File,
    /// Protobuf over HTTP POST.
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
    /// Protobuf over gRPC.
    #[serde(rename = "grpc")]
    Grpc,
}

/// What a sum's value counts from (OTLP `AggregationTemporality`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Temporality {
    /// Since the previous point of the series.
    Delta,
    /// Since the fixed start of the series.
    Cumulative,
}

/// A destination whose needs are known; each stands for a temporality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Dynatrace: refuses cumulative sums.
    Dynatrace,
    /// The OpenTelemetry Collector: takes both; delta keeps no state here.
    Collector,
    /// Prometheus 3 and Mimir: drop or refuse delta sums unless told otherwise.
    Prometheus,
    /// VictoriaMetrics: answers 200 to delta sums and drops them.
    VictoriaMetrics,
}

impl Preset {
    /// The temporality that this destination keeps.
    #[must_use]
    pub fn temporality(self) -> Temporality {
        match self {
            Self::Dynatrace | Self::Collector => Temporality::Delta,
            Self::Prometheus | Self::VictoriaMetrics => Temporality::Cumulative,
        }
    }
}

/// Compression of a request's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// As it is.
    None,
    /// gzip (RFC 1952).
    Gzip,
}

/// The section `[export]` as written in the configuration file. `None` means "not said": the
/// environment (`OTEL_EXPORTER_OTLP_*`) and then the default decide.
#[derive(Debug, Clone, Default)]
pub struct Export {
    /// `protocol`
    pub protocol: Option<Protocol>,
    /// `path`: the file of protocol `file`.
    pub path: Option<PathBuf>,
    /// `endpoint`: base URL; `/v1/metrics` is appended for HTTP.
    pub endpoint: Option<String>,
    /// `temporality`
    pub temporality: Option<Temporality>,
    /// `preset`
    pub preset: Option<Preset>,
    /// `compression`
    pub compression: Option<Compression>,
    /// `timeout`: of one request.
    pub timeout: Option<Duration>,
    /// `budget`: of all sending in one pass; default 15 s.
    pub budget: Option<Duration>,
    /// `[export.headers]`: name to value; a value `file:/path` is read from that file at each pass
    /// and never printed.
    pub headers: BTreeMap<String, String>,
    /// `ca_file`: PEM certificates to trust instead of the built-in roots.
    pub ca_file: Option<PathBuf>,
    /// `client_certificate_file`: PEM chain that identifies this client.
    pub client_certificate_file: Option<PathBuf>,
    /// `client_key_file`: PEM private key of that certificate.
    pub client_key_file: Option<PathBuf>,
}

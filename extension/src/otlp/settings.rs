//! `[export]` and the environment, resolved into one answer.
//!
//! For each value the first that says something wins: the configuration file, then
//! `OTEL_EXPORTER_OTLP_METRICS_*`, then `OTEL_EXPORTER_OTLP_*`, then the default
//! (OpenTelemetry specification, "OpenTelemetry Protocol Exporter"). Everything that is wrong is
//! reported at once, and only what the destination uses is looked at: a token file that is absent
//! is no fault while the destination is a file.

pub mod credential_files;
mod environment;
mod headers;
mod warnings;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use self::credential_files::{Findings, PemFiles};
use self::environment::Environment;
use super::credentials::Headers;
use super::endpoint::{Endpoint, UrlPath};
use super::tls::Tls;
use crate::config::export::{Compression, Export, Protocol, Temporality};

/// OpenTelemetry's default for one request.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// A pass runs each minute and must not meet the next.
const DEFAULT_BUDGET: Duration = Duration::from_secs(15);
const DEFAULT_HTTP_ENDPOINT: &str = "http://127.0.0.1:4318";
const DEFAULT_GRPC_ENDPOINT: &str = "http://127.0.0.1:4317";

/// Something that a person should change: what is said where, what is wrong with it, and what to
/// do. Never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A key of the configuration file (`export.endpoint`) or an environment variable.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.key, self.problem, self.remedy)
    }
}

/// Where requests go, and how they are spelled there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// OTLP JSON lines, appended to this file.
    File(PathBuf),
    /// Protobuf by HTTP POST to this URL.
    Http(Endpoint),
    /// Protobuf by gRPC to this host and port.
    Grpc(Endpoint),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Http(endpoint) | Self::Grpc(endpoint) => endpoint.fmt(f),
        }
    }
}

/// How to export, with nothing left to decide.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where requests go.
    pub destination: Destination,
    /// What goes with each request; empty for a file.
    pub headers: Headers,
    /// What sums count from.
    pub temporality: Temporality,
    /// Of request bodies; a file is never compressed.
    pub compression: Compression,
    /// The most that one request may take.
    pub timeout: Duration,
    /// The most that all sending of one pass may take.
    pub budget: Duration,
    /// Whom to trust and who to be, for `https`.
    pub tls: Tls,
    warnings: Vec<Finding>,
}

impl Settings {
    /// Resolves the section `[export]` with the environment, which `environment` looks up by
    /// variable name.
    ///
    /// # Errors
    ///
    /// Every fault there is.
    pub fn resolve(
        export: &Export,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<Finding>> {
        let environment = Environment::new(environment);
        let mut resolver = Resolver { export, environment, findings: Findings::default() };
        let settings = resolver.settings();
        match settings {
            Some(mut settings) if resolver.findings.faults.is_empty() => {
                settings.warnings.append(&mut resolver.findings.warnings);
                settings.warnings.extend(warnings::of(&settings));
                Ok(settings)
            }
            _ => Err(resolver.findings.faults),
        }
    }

    /// How requests travel.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        match self.destination {
            Destination::File(_) => Protocol::File,
            Destination::Http(_) => Protocol::HttpProtobuf,
            Destination::Grpc(_) => Protocol::Grpc,
        }
    }

    /// What works and yet loses or shows data: a destination that drops what it is sent, a token
    /// that travels in the clear.
    #[must_use]
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }
}

/// Goes through the keys one by one and collects what is wrong with them.
struct Resolver<'a> {
    export: &'a Export,
    environment: Environment<'a>,
    findings: Findings,
}

impl Resolver<'_> {
    /// `None` only where a fault was found, too.
    fn settings(&mut self) -> Option<Settings> {
        let protocol = self.protocol();
        let temporality = self.temporality();
        let budget = self.positive("export.budget", self.export.budget, DEFAULT_BUDGET);
        let network = matches!(protocol, Some(Protocol::HttpProtobuf | Protocol::Grpc));
        let destination = protocol.and_then(|protocol| self.destination(protocol));
        let headers = if network { self.headers(protocol) } else { Headers::default() };
        let tls = if network { self.tls() } else { Tls::default() };
        let compression = if network { self.compression() } else { Compression::None };
        let timeout = if network { self.timeout() } else { DEFAULT_TIMEOUT };
        // Only now may a fault end this: every key was looked at.
        Some(Settings {
            destination: destination?,
            headers,
            temporality,
            compression,
            timeout,
            budget,
            tls,
            warnings: vec![],
        })
    }

    fn protocol(&mut self) -> Option<Protocol> {
        if let Some(protocol) = self.export.protocol {
            return Some(protocol);
        }
        match (&self.export.path, &self.export.endpoint) {
            (Some(_), Some(_)) => {
                self.fault(
                    "export.protocol",
                    "both `path` and `endpoint` are given",
                    "say which with `protocol = \"file\"`, \"http/protobuf\" or \"grpc\"",
                );
                return None;
            }
            (Some(_), None) => return Some(Protocol::File),
            (None, _) => {}
        }
        match self.environment.find("PROTOCOL") {
            Some((variable, value)) => match value.as_str() {
                "http/protobuf" => Some(Protocol::HttpProtobuf),
                "grpc" => Some(Protocol::Grpc),
                _ => {
                    self.fault(
                        &variable,
                        format!("`{value}` is not a protocol that warpgauge speaks"),
                        "use `http/protobuf` or `grpc`, or name `export.protocol` in the file",
                    );
                    None
                }
            },
            None if self.export.endpoint.is_some() => Some(Protocol::HttpProtobuf),
            None if self.environment.find("ENDPOINT").is_some() => Some(Protocol::HttpProtobuf),
            None => Some(Protocol::File),
        }
    }

    fn destination(&mut self, protocol: Protocol) -> Option<Destination> {
        if protocol == Protocol::File {
            return self.path().map(Destination::File);
        }
        let (key, text, path) = self.endpoint_text(protocol);
        let endpoint = if protocol == Protocol::Grpc {
            Endpoint::grpc(&text).map(Destination::Grpc)
        } else {
            Endpoint::http(&text, path).map(Destination::Http)
        };
        endpoint.map_err(|error| self.fault(&key, error.to_string(), error.remedy())).ok()
    }

    fn path(&mut self) -> Option<PathBuf> {
        let remedy = "name a file, such as \"/var/lib/warpgauge/metrics.otlp.jsonl\"";
        match &self.export.path {
            Some(path) if path.is_absolute() => Some(path.clone()),
            Some(path) => {
                let problem = format!("`{}` is not an absolute path", path.display());
                self.fault("export.path", problem, remedy);
                None
            }
            None => {
                self.fault("export.path", "missing, and the protocol is `file`", remedy);
                None
            }
        }
    }

    /// Where the endpoint is said, its text, and whether its path is complete.
    fn endpoint_text(&self, protocol: Protocol) -> (String, String, UrlPath) {
        if let Some(endpoint) = &self.export.endpoint {
            return ("export.endpoint".to_owned(), endpoint.clone(), UrlPath::Base);
        }
        if let Some((variable, text)) = self.environment.find("ENDPOINT") {
            let path =
                if Environment::is_for_metrics(&variable) { UrlPath::Exact } else { UrlPath::Base };
            return (variable, text, path);
        }
        let default =
            if protocol == Protocol::Grpc { DEFAULT_GRPC_ENDPOINT } else { DEFAULT_HTTP_ENDPOINT };
        ("export.endpoint".to_owned(), default.to_owned(), UrlPath::Base)
    }

    fn temporality(&mut self) -> Temporality {
        match (self.export.preset, self.export.temporality) {
            (Some(preset), Some(temporality)) if preset.temporality() != temporality => {
                self.fault(
                    "export.temporality",
                    "contradicts `export.preset`",
                    "remove one of the two; a preset brings its own temporality",
                );
                temporality
            }
            (Some(preset), _) => preset.temporality(),
            (None, Some(temporality)) => temporality,
            (None, None) => self.temporality_preference(),
        }
    }

    fn temporality_preference(&mut self) -> Temporality {
        let Some((variable, value)) = self.environment.find_for_metrics("TEMPORALITY_PREFERENCE")
        else {
            return Temporality::Delta;
        };
        match value.to_ascii_lowercase().as_str() {
            "cumulative" => Temporality::Cumulative,
            // `lowmemory` means delta for synchronous counters, and all of ours are of that kind.
            "delta" | "lowmemory" => Temporality::Delta,
            _ => {
                let problem = format!("`{value}` is not a temporality preference");
                self.fault(&variable, problem, "use `cumulative`, `delta` or `lowmemory`");
                Temporality::Delta
            }
        }
    }

    fn compression(&mut self) -> Compression {
        if let Some(compression) = self.export.compression {
            return compression;
        }
        let Some((variable, value)) = self.environment.find("COMPRESSION") else {
            return Compression::Gzip;
        };
        match value.to_ascii_lowercase().as_str() {
            "gzip" => Compression::Gzip,
            "none" => Compression::None,
            _ => {
                let problem = format!("`{value}` is not a compression that warpgauge has");
                self.fault(&variable, problem, "use `gzip` or `none`");
                Compression::Gzip
            }
        }
    }

    fn timeout(&mut self) -> Duration {
        if self.export.timeout.is_some() {
            return self.positive("export.timeout", self.export.timeout, DEFAULT_TIMEOUT);
        }
        let Some((variable, value)) = self.environment.find("TIMEOUT") else {
            return DEFAULT_TIMEOUT;
        };
        match value.trim().parse() {
            Ok(milliseconds) => {
                let timeout = Some(Duration::from_millis(milliseconds));
                self.positive(&variable, timeout, DEFAULT_TIMEOUT)
            }
            Err(_) => {
                let problem = format!("`{value}` is not a whole number of milliseconds");
                self.fault(&variable, problem, "write it like `10000`");
                DEFAULT_TIMEOUT
            }
        }
    }

    fn positive(&mut self, key: &str, value: Option<Duration>, default: Duration) -> Duration {
        if value.is_some_and(|value| value.is_zero()) {
            self.fault(key, "is zero", "give it some time, or remove it for the default");
        }
        value.unwrap_or(default)
    }

    fn tls(&mut self) -> Tls {
        let named = PemFiles {
            authorities: self.pem("export.ca_file", &self.export.ca_file, "CERTIFICATE"),
            certificate: self.pem(
                "export.client_certificate_file",
                &self.export.client_certificate_file,
                "CLIENT_CERTIFICATE",
            ),
            private_key: self.pem(
                "export.client_key_file",
                &self.export.client_key_file,
                "CLIENT_KEY",
            ),
        };
        self.findings.tls("export", named)
    }

    /// Where a PEM file is named, and its path.
    fn pem(&self, key: &str, file: &Option<PathBuf>, variable: &str) -> Option<(String, PathBuf)> {
        match file {
            Some(path) => Some((key.to_owned(), path.clone())),
            None => self.environment.find(variable).map(|(name, path)| (name, path.into())),
        }
    }

    fn fault(&mut self, key: &str, problem: impl Into<String>, remedy: impl Into<String>) {
        self.findings.fault(key, problem, remedy);
    }
}

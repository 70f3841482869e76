//! `[forward]`, with its files read, resolved into one answer. Everything that is wrong is reported
//! at once.

use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use http::HeaderValue;
use http::header::AUTHORIZATION;

use crate::config::export::Compression;
use crate::config::forward::{Form, Forward};
use crate::follow::Rule;
use crate::otlp::credentials::{Headers, Secret};
use crate::otlp::endpoint::{Endpoint, EndpointError, UrlPath};
use crate::otlp::settings::Finding;
use crate::otlp::settings::credential_files::{Findings, PemFiles};
use crate::otlp::tls::Tls;

/// An address that is routed like any of the internet's and belongs to nobody (RFC 5737).
const NOBODY: (&str, u16) = ("192.0.2.1", 9);

/// How to forward, with nothing left to decide.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Which logs.
    pub logs: Vec<Rule>,
    /// Where lines go.
    pub backend: Endpoint,
    /// What the body of a request is.
    pub form: Form,
    /// The token, if there is one.
    pub headers: Headers,
    /// Whom to trust and who to be, for `https`.
    pub tls: Tls,
    /// Most bytes of several lines in one request; `None`: a line a request.
    pub batch_bytes: Option<u64>,
    /// Of request bodies.
    pub compression: Compression,
    /// The most that one request may take.
    pub timeout: Duration,
    /// The most that all forwarding of one pass may take.
    pub budget: Duration,
    /// Bytes of request bodies a second.
    pub max_rate: u64,
    /// Bytes of request bodies a pass.
    pub max_bytes: u64,
    /// Bytes of dead letters on the disk.
    pub max_dead_letter_bytes: u64,
    warnings: Vec<Finding>,
}

impl Settings {
    /// Resolves the section; `None` where it names no backend.
    ///
    /// # Errors
    /// Every fault there is.
    pub fn resolve(forward: &Forward) -> Result<Option<Self>, Vec<Finding>> {
        let Some(url) = &forward.backend_url else { return Ok(None) };
        let mut findings = Findings::default();
        let logs = rules(forward, &mut findings);
        let backend = endpoint(url, &mut findings);
        let headers = headers(forward, &mut findings);
        let named = |key: &str, path: &Option<_>| Some((format!("forward.{key}"), path.clone()?));
        let files = PemFiles {
            authorities: named("ca_file", &forward.ca_file),
            certificate: named("client_certificate_file", &forward.client_certificate_file),
            private_key: named("client_key_file", &forward.client_key_file),
        };
        let tls = findings.tls("forward", files);
        if let Some(backend) = &backend {
            findings.warnings.extend(plain_text(backend, &headers, &tls));
        }
        match backend {
            Some(backend) if findings.faults.is_empty() => Ok(Some(Self {
                logs,
                backend,
                form: forward.form,
                headers,
                tls,
                batch_bytes: forward.batch_bytes,
                compression: forward.compression,
                timeout: forward.timeout,
                budget: forward.budget,
                max_rate: forward.max_rate,
                max_bytes: forward.max_bytes,
                max_dead_letter_bytes: forward.max_dead_letter_bytes,
                warnings: findings.warnings,
            })),
            _ => Err(findings.faults),
        }
    }

    /// What works and yet shows what it should not.
    #[must_use]
    pub fn warnings(&self) -> &[Finding] {
        &self.warnings
    }
}

fn rules(forward: &Forward, findings: &mut Findings) -> Vec<Rule> {
    const KEY: &str = "forward.logs";
    const REMEDY: &str = "write patterns with their full path, such as \"/var/log/gpufl/*.log\"";
    if forward.logs.is_empty() {
        findings.fault(KEY, "names no logs, and there is a backend for them", REMEDY);
    }
    let rules = forward.logs.iter().map(|pattern| Rule::new(pattern));
    rules
        .filter_map(|rule| {
            rule.map_err(|fault| findings.fault(KEY, fault.to_string(), REMEDY)).ok()
        })
        .collect()
}

fn endpoint(url: &str, findings: &mut Findings) -> Option<Endpoint> {
    let endpoint = Endpoint::http(url, UrlPath::Exact);
    let fault = |error: EndpointError| {
        let remedy = match error {
            EndpointError::HoldsCredentials => "put a token into forward.token",
            _ => error.remedy(),
        };
        findings.fault("forward.backend_url", error.to_string(), remedy);
    };
    endpoint.map_err(fault).ok()
}

/// The token as `Authorization: Bearer`; one that says so itself is taken as it is.
fn headers(forward: &Forward, findings: &mut Findings) -> Headers {
    const KEY: &str = "forward.token";
    let mut headers = Headers::default();
    let token = match forward.token.as_deref() {
        None => return headers,
        Some(text) => match text.strip_prefix("file:") {
            Some(path) => findings.credential(KEY, Path::new(path), true),
            None => Some(Secret::new(text.to_owned())),
        },
    };
    let Some(token) = token else { return headers };
    let value = match token.expose() {
        token if token.starts_with("Bearer ") => token.to_owned(),
        token => format!("Bearer {token}"),
    };
    if token.expose().trim().is_empty() || HeaderValue::from_str(&value).is_err() {
        findings.fault(
            KEY,
            "is empty, or holds a control character or a line break",
            "give one line of text, such as `file:/etc/warpgauge/backend.token`",
        );
        return headers;
    }
    headers.set(AUTHORIZATION, Secret::new(value));
    headers
}

/// A token that travels in the clear, and certificates that nothing uses.
fn plain_text(backend: &Endpoint, headers: &Headers, tls: &Tls) -> Vec<Finding> {
    let mut found = vec![];
    if backend.is_tls() {
        return found;
    }
    let mut warn = |problem: String, remedy: &str| {
        let (key, remedy) = ("forward.backend_url".to_owned(), remedy.to_owned());
        found.push(Finding { key, problem, remedy });
    };
    if !backend.is_loopback() && headers.get("authorization").is_some() {
        warn(format!("the token travels unencrypted to {}", backend.host()), "use `https`");
    }
    if !tls.is_default() {
        let problem = "certificates are given, but plain `http` uses none";
        warn(problem.to_owned(), "use `https`, or remove them");
    }
    found
}

/// Who wraps the lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speaker {
    /// This machine's name.
    pub hostname: String,
    /// The address from which it reaches the backend, as far as that can be told without asking
    /// anybody.
    pub ip_addr: String,
}

impl Speaker {
    /// The machine called `hostname`, speaking to `backend`.
    #[must_use]
    pub fn new(hostname: &str, backend: &Endpoint) -> Self {
        let ip_addr = address_towards(backend).unwrap_or_else(|| "127.0.0.1".to_owned());
        Self { hostname: hostname.to_owned(), ip_addr }
    }
}

/// The source address of the route to the backend, or of the default route where the backend has a
/// name: to look that up would take time. A datagram socket that is connected sends nothing.
fn address_towards(backend: &Endpoint) -> Option<String> {
    let host = if backend.host() == "localhost" { "127.0.0.1" } else { backend.host() };
    let target = host.parse().map(|address: std::net::IpAddr| (address, backend.port()));
    let target = target.ok().or_else(|| Some((NOBODY.0.parse().ok()?, NOBODY.1)))?;
    let any = if target.0.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(target).ok()?;
    Some(socket.local_addr().ok()?.ip().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn forward(url: &str, token: Option<&str>) -> Forward {
        Forward {
            logs: vec!["/logs/*.log".to_owned()],
            backend_url: Some(url.to_owned()),
            token: token.map(str::to_owned),
            ..Forward::default()
        }
    }

    #[test]
    fn without_a_backend_nothing_is_forwarded() {
        let forward = Forward { token: Some("file:/nowhere".into()), ..Forward::default() };
        assert!(Settings::resolve(&forward).unwrap().is_none());
    }

    #[test]
    fn the_token_comes_from_its_file_and_is_never_shown() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "hunter22").unwrap();
        let from_file = format!("file:{}", file.path().display());
        for token in [from_file.as_str(), "hunter22", "Bearer hunter22"] {
            let settings = Settings::resolve(&forward("https://h", Some(token))).unwrap().unwrap();
            let sent = settings.headers.get("authorization").unwrap();
            assert_eq!(sent.expose(), "Bearer hunter22");
            assert!(!format!("{settings:?}").contains("hunter22"));
        }
        for token in ["hunter\n22", "", "file:relative", "file:/nowhere"] {
            let faults = Settings::resolve(&forward("https://h", Some(token))).unwrap_err();
            assert_eq!(faults.len(), 1, "{token}: {faults:?}");
            assert_eq!(faults[0].key, "forward.token");
            assert!(!faults[0].to_string().contains("hunter"), "{faults:?}");
        }
    }

    #[test]
    fn every_fault_is_found_at_once_and_no_password_is_shown() {
        let mut forward = forward("http://u:hunter2@h", Some("file:/nowhere"));
        forward.ca_file = Some("/nowhere.pem".into());
        forward.logs = vec!["logs/*.log".into()];
        let faults = Settings::resolve(&forward).unwrap_err();
        let keys: Vec<_> = faults.iter().map(|fault| fault.key.as_str()).collect();
        assert_eq!(
            keys,
            ["forward.logs", "forward.backend_url", "forward.token", "forward.ca_file"]
        );
        assert!(!format!("{faults:?}").contains("hunter2"));
    }

    #[test]
    fn a_token_in_the_clear_is_warned_of_unless_it_stays_on_this_machine() {
        let warnings = |url| {
            let settings = Settings::resolve(&forward(url, Some("t"))).unwrap().unwrap();
            settings.warnings().len()
        };
        assert_eq!(warnings("http://backend.example"), 1);
        assert_eq!(warnings("http://127.0.0.1:8080"), 0);
        assert_eq!(warnings("https://backend.example"), 0);
    }

    #[test]
    fn the_speaker_has_the_address_that_the_backend_sees() {
        let backend = Endpoint::http("http://127.0.0.1:1", UrlPath::Exact).unwrap();
        assert_eq!(Speaker::new("gpu7", &backend).ip_addr, "127.0.0.1");
        let backend = Endpoint::http("http://backend.example", UrlPath::Exact).unwrap();
        let address = Speaker::new("gpu7", &backend).ip_addr;
        assert!(address.parse::<std::net::IpAddr>().is_ok(), "{address}");
    }
}

//! One POST over HTTP/1.1, with every failure named.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use ureq::tls::{Certificate, ClientCert, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Timeout};

use crate::otlp::endpoint::Endpoint;
use crate::otlp::network::Failure;
use crate::otlp::tls::{self, Tls};

/// The most that is read of a response body, in bytes. OTLP's own answers have less than 1 kB.
const LARGEST_BODY: u64 = 64 * 1024;

/// What a receiver answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The body, or its first [`LARGEST_BODY`] bytes.
    pub(crate) body: Vec<u8>,
}

/// A connection to one receiver, kept open between requests.
#[derive(Debug)]
pub(crate) struct Poster {
    agent: Agent,
}

impl Poster {
    /// `accept` is the media type that answers should have.
    pub(crate) fn new(endpoint: &Endpoint, tls: &Tls, accept: &str) -> Self {
        let config = Agent::config_builder()
            .https_only(endpoint.is_tls())
            .http_status_as_error(false)
            // A redirect may lead to where the token must not go.
            .max_redirects(0)
            .max_redirects_will_error(false)
            // `HTTP_PROXY` is the environment's; settings decide where requests go.
            .proxy(None)
            .accept(accept)
            .tls_config(tls_config(tls))
            .build();
        Self { agent: config.into() }
    }

    /// Sends `request` once and reads the answer, all of it by `deadline`.
    pub(crate) fn post(
        &self,
        request: Request<Bytes>,
        deadline: Instant,
    ) -> Result<Reply, Failure> {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let failed = |error| failure_of(&error, remaining);
        let (parts, body) = request.into_parts();
        let request = Request::from_parts(parts, &*body);
        let request = self.agent.configure_request(request).timeout_global(Some(remaining)).build();
        let response = self.agent.run(request).map_err(failed)?;
        let (parts, body) = response.into_parts();
        let mut content = Vec::new();
        body.into_reader()
            .take(LARGEST_BODY)
            .read_to_end(&mut content)
            .map_err(|error| failed(error.into()))?;
        Ok(Reply { status: parts.status, headers: parts.headers, body: content })
    }
}

/// The settings were checked when they were read, so nothing is skipped here.
fn tls_config(tls: &Tls) -> TlsConfig {
    let mut config = TlsConfig::builder();
    if let Some(authorities) = tls.authorities() {
        config = config.root_certs(RootCerts::new_with_certs(&certificates(authorities)));
    }
    if let Some(identity) = tls.identity() {
        let key = ureq::tls::PrivateKey::from_pem(identity.private_key.expose().as_bytes());
        let chain = certificates(&identity.certificates);
        config = config.client_cert(key.ok().map(|key| ClientCert::new_with_certs(&chain, key)));
    }
    config.build()
}

fn certificates(pem: &str) -> Vec<Certificate<'static>> {
    let items = parse_pem(pem.as_bytes()).filter_map(Result::ok);
    items
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect()
}

/// Whether the next try may fare better, or a person has to mend something first.
fn failure_of(error: &ureq::Error, limit: Duration) -> Failure {
    let tls_cause = match error {
        ureq::Error::Rustls(error) => tls::misconfiguration(error),
        ureq::Error::Io(error) => tls::misconfiguration(error),
        _ => None,
    };
    if let Some(cause) = tls_cause {
        return Failure::Misconfigured(cause);
    }
    match error {
        ureq::Error::Timeout(phase) => {
            Failure::Unanswered(format!("{} within {:.1} s", undone(*phase), limit.as_secs_f64()))
        }
        ureq::Error::Io(error) => Failure::Unanswered(io_cause(error)),
        ureq::Error::HostNotFound => Failure::Unanswered("the host name has no address".to_owned()),
        ureq::Error::Protocol(error) if begins_wrong(error) => Failure::Misconfigured(format!(
            "the answer is not HTTP/1.1 ({error}); is this a port for gRPC (usually 4317) or TLS?"
        )),
        ureq::Error::Tls(cause) => Failure::Misconfigured((*cause).to_owned()),
        other => Failure::Unanswered(format!("the answer broke off: {other}")),
    }
}

/// The very beginning of an answer could not be read.
fn begins_wrong(error: &impl std::fmt::Display) -> bool {
    let text = error.to_string();
    text.starts_with("http parse fail") || text.starts_with("unsupported http version")
}

fn undone(phase: Timeout) -> &'static str {
    match phase {
        Timeout::Resolve => "the host name was not resolved",
        Timeout::Connect => "no connection",
        Timeout::SendRequest | Timeout::SendBody => "the receiver did not take the request",
        _ => "no complete answer",
    }
}

fn io_cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => {
            format!("the receiver closed the connection before its answer was complete ({error})")
        }
        _ => error.to_string(),
    }
}

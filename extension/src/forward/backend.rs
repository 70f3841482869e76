//! The way to a backend over HTTP.

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, USER_AGENT};
use http::{HeaderName, HeaderValue};

use super::answer::{self, Verdict};
use super::request::{self, Request};
use super::settings::Settings;
use crate::config::export::{Compression, Protocol};
use crate::config::forward::Form;
use crate::otlp::PRODUCT;
use crate::otlp::credentials::Headers;
use crate::otlp::diagnosis::diagnose;
use crate::otlp::endpoint::Endpoint;
use crate::otlp::http::gzip;
use crate::otlp::http::post::Poster;
use crate::otlp::network::Failure;
use crate::otlp::tls::Tls;

/// A request as it travels.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    http: http::Request<Bytes>,
}

impl Packed {
    /// Bytes of its body.
    pub(super) fn size(&self) -> usize {
        self.http.body().len()
    }
}

/// A backend, and the connection to it, kept open between requests.
pub(super) struct Backend {
    poster: Poster,
    endpoint: Endpoint,
    form: Form,
    headers: Headers,
    compression: Compression,
    tls: Tls,
    timeout: Duration,
}

impl Backend {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            poster: Poster::new(&settings.backend, &settings.tls, "application/json"),
            endpoint: settings.backend.clone(),
            form: settings.form,
            headers: settings.headers.clone(),
            compression: settings.compression,
            tls: settings.tls.clone(),
            timeout: settings.timeout,
        }
    }

    /// Makes a request ready to travel.
    ///
    /// # Errors
    /// None in practice: the type is escaped and the headers were checked.
    pub(super) fn pack(&self, request: &Request) -> Result<Packed, http::Error> {
        let mut builder =
            http::Request::post(request::url(&self.endpoint, self.form, &request.kind)?)
                .header(CONTENT_TYPE, &request.content_type)
                .header(USER_AGENT, PRODUCT);
        for (name, value) in self.headers.to_send() {
            builder = builder.header::<HeaderName, HeaderValue>(name, value);
        }
        // Without memory to compress in, it goes as it is.
        let packed = match self.compression {
            Compression::Gzip => gzip(&request.body).ok(),
            Compression::None => None,
        };
        let http = match packed {
            Some(body) => builder.header(CONTENT_ENCODING, "gzip").body(body.into())?,
            None => builder.body(request.body.clone())?,
        };
        Ok(Packed { http })
    }

    /// Sends a request once and returns by `deadline` what became of it.
    pub(super) fn post(&self, packed: &Packed, deadline: Instant) -> Verdict {
        let deadline = deadline.min(Instant::now() + self.timeout);
        let verdict = match self.poster.post(packed.http.clone(), deadline) {
            Ok(reply) => answer::judge(&reply, SystemTime::now()),
            Err(Failure::Misconfigured(reason)) => Verdict::Misconfigured { reason },
            Err(Failure::Unanswered(reason)) => match self.diagnose(deadline) {
                Some(reason) => Verdict::Misconfigured { reason },
                None => Verdict::Retry { reason, after: None },
            },
        };
        match verdict {
            Verdict::Accepted => Verdict::Accepted,
            Verdict::Refused { status, words } => {
                Verdict::Refused { status, words: self.headers.redact(&words) }
            }
            Verdict::Retry { reason, after } => {
                Verdict::Retry { reason: self.located(&reason), after }
            }
            Verdict::Misconfigured { reason } => {
                Verdict::Misconfigured { reason: self.located(&reason) }
            }
        }
    }

    /// A server that wants another certificate says so after the handshake, where a client that is
    /// still writing does not hear it.
    fn diagnose(&self, deadline: Instant) -> Option<String> {
        let is_tls = self.endpoint.is_tls();
        is_tls.then(|| diagnose(&self.endpoint, Protocol::HttpProtobuf, &self.tls, deadline))?
    }

    /// A reason with its destination, and without a token that the backend may have echoed.
    fn located(&self, reason: &str) -> String {
        format!("{}: {}", self.endpoint, self.headers.redact(reason))
    }
}

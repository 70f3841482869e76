//! OTLP/HTTP through the exporter of `opentelemetry-otlp`.
//!
//! The exporter (0.33.1) knows how OTLP/HTTP spells a request: method, URL, content type, content
//! encoding, user agent. It knows only data of the SDK, though, with one resource for each
//! provider; of the answer it keeps neither status nor words; and a partial success it reports
//! nowhere. So it exports nothing, and the [`PayloadClient`] under it exchanges that nothing for
//! the request that is due and keeps the answer.
//!
//! What it must not do here: it merges `OTEL_EXPORTER_OTLP_HEADERS` over the headers it was given
//! and percent-decodes those, and it cannot be told not to compress where the environment asks
//! for it, so headers and compression come from our settings alone; and it retries, so its
//! retries are off, and the client sends each request once, whatever is asked of it.
//!
//! All of this becomes unnecessary once the exporter offers a call that takes an encoded (or
//! proto) `ExportMetricsServiceRequest` and returns status, headers and response message.

pub(crate) mod answer;
pub(crate) mod post;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use flate2::{GzBuilder, write::GzEncoder};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{MetricExporter, RetryPolicy, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter as _;

use self::post::{Poster, Reply};
use super::PRODUCT;
use super::endpoint::Endpoint;
use super::network::{Failure, Transport};
use super::sender::{OpenError, Outcome};
use super::settings::Settings;
use crate::config::export::Compression;

/// What OTLP/HTTP answers in.
const ACCEPT: &str = "application/x-protobuf";

/// The exporter, and the client that it believes to send its data with.
pub(super) struct HttpTransport {
    exporter: MetricExporter,
    client: Arc<PayloadClient>,
    /// Drives the exporter's future, which never waits: its client blocks.
    runtime: tokio::runtime::Runtime,
}

impl HttpTransport {
    pub(super) fn new(endpoint: &Endpoint, settings: &Settings) -> Result<Self, OpenError> {
        let client = Arc::new(PayloadClient {
            poster: Poster::new(endpoint, &settings.tls, ACCEPT),
            headers: settings.headers.to_send().collect(),
            compression: settings.compression,
            due: Mutex::default(),
            answer: Mutex::default(),
        });
        let mut builder = MetricExporter::builder()
            .with_http()
            .with_shared_http_client(Arc::clone(&client) as Arc<dyn HttpClient>)
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_endpoint(endpoint.uri().to_string())
            .with_timeout(settings.timeout)
            .with_retry_policy(RetryPolicy::disabled());
        if settings.compression == Compression::Gzip {
            builder = builder.with_compression(opentelemetry_otlp::Compression::Gzip);
        }
        let exporter = builder.build().map_err(OpenError::Http)?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().build().map_err(OpenError::EventLoop)?;
        Ok(Self { exporter, client, runtime })
    }
}

impl Transport for HttpTransport {
    fn exchange(&mut self, request: &[u8], deadline: Instant) -> Result<Outcome, Failure> {
        put(&self.client.due, (Bytes::copy_from_slice(request), deadline));
        let exported = self.runtime.block_on(self.exporter.export(&ResourceMetrics::default()));
        match (take(&self.client.answer), exported) {
            (Some(answer), _) => answer.map(|reply| answer::judge(&reply, SystemTime::now())),
            (None, Err(error)) => Err(Failure::Misconfigured(format!("nothing was sent: {error}"))),
            (None, Ok(())) => Err(Failure::Unanswered("nothing was sent".to_owned())),
        }
    }
}

/// Sends what is due instead of what it is given.
#[derive(Debug)]
struct PayloadClient {
    poster: Poster,
    headers: Vec<(HeaderName, HeaderValue)>,
    compression: Compression,
    /// The request to send next, until it is sent.
    due: Mutex<Option<(Bytes, Instant)>>,
    answer: Mutex<Option<Result<Reply, Failure>>>,
}

impl PayloadClient {
    /// The exporter's request with our body and our headers.
    fn dress(&self, request: Request<Bytes>, body: Bytes) -> Result<Request<Bytes>, HttpError> {
        let (mut parts, _) = request.into_parts();
        let mut headers = HeaderMap::new();
        for name in [CONTENT_TYPE, CONTENT_ENCODING] {
            if let Some(value) = parts.headers.remove(&name) {
                headers.insert(name, value);
            }
        }
        // The exporter looks at the environment by its own order of precedence; ours stands.
        if self.compression == Compression::None {
            headers.remove(CONTENT_ENCODING);
        }
        // The product before the exporter, as the OTLP exporter specification has it.
        let exporter = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let user_agent = format!("{PRODUCT} {}", exporter.unwrap_or_default());
        headers.insert(USER_AGENT, HeaderValue::from_str(user_agent.trim())?);
        headers.extend(self.headers.iter().cloned());
        let body = if headers.contains_key(CONTENT_ENCODING) { gzip(&body)?.into() } else { body };
        parts.headers = headers;
        Ok(Request::from_parts(parts, body))
    }
}

#[async_trait::async_trait]
impl HttpClient for PayloadClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (body, deadline) = take(&self.due).ok_or("this request was sent already")?;
        let request = self.dress(request, body)?;
        match self.poster.post(request, deadline) {
            Ok(reply) => {
                let response =
                    Response::builder().status(reply.status).body(reply.body.clone().into())?;
                put(&self.answer, Ok(reply));
                Ok(response)
            }
            Err(failure) => {
                put(&self.answer, Err(failure));
                Err("no answer".into())
            }
        }
    }
}

/// Compresses to the same bytes each time: the header has no time and no host in it.
///
/// At the quickest level, for the cores belong to the programs that are measured: on a request of
/// many processes the usual level takes six times as long and leaves an eighth less
/// (`cargo bench -p warpgauge --bench export`).
pub(crate) fn gzip(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let buffer = Vec::with_capacity(body.len() / 8);
    let mut encoder: GzEncoder<Vec<u8>> =
        GzBuilder::new().mtime(0).operating_system(255).write(buffer, flate2::Compression::fast());
    encoder.write_all(body)?;
    encoder.finish()
}

fn put<T>(slot: &Mutex<Option<T>>, value: T) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::tls::Tls;

    /// Our request, made from one of the exporter in an environment that speaks against us.
    fn dressed(compression: Compression) -> Request<Bytes> {
        let endpoint =
            Endpoint::http("http://127.0.0.1:1", crate::otlp::endpoint::UrlPath::Base).unwrap();
        let ours = HeaderValue::from_static("ours");
        let client = PayloadClient {
            poster: Poster::new(&endpoint, &Tls::default(), ACCEPT),
            headers: vec![(HeaderName::from_static("api-key"), ours)],
            compression,
            due: Mutex::default(),
            answer: Mutex::default(),
        };
        let request = Request::post("http://127.0.0.1:1/v1/metrics")
            .header(CONTENT_TYPE, "application/x-protobuf")
            .header(CONTENT_ENCODING, "gzip")
            .header(USER_AGENT, "exporter")
            .header("api-key", "theirs")
            .header("x-environment", "theirs")
            .body(Bytes::from_static(b"nothing"))
            .unwrap();
        client.dress(request, Bytes::from_static(b"payload")).unwrap()
    }

    #[test]
    fn the_settings_decide_on_headers_and_compression() {
        let request = dressed(Compression::None);
        let mut names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["api-key", "content-type", "user-agent"]);
        assert_eq!(request.headers()["api-key"], "ours");
        assert_eq!(request.body().as_ref(), b"payload");

        let request = dressed(Compression::Gzip);
        assert_eq!(request.headers()[CONTENT_ENCODING], "gzip");
        assert_eq!(request.body().as_ref(), gzip(b"payload").unwrap());
    }

    #[test]
    fn a_request_is_sent_once_however_often_the_exporter_asks() {
        let export = crate::config::export::Export {
            endpoint: Some("http://127.0.0.1:1".into()),
            ..Default::default()
        };
        let settings = Settings::resolve(&export, &|_| None).unwrap();
        let crate::otlp::settings::Destination::Http(endpoint) = &settings.destination else {
            panic!("{:?}", settings.destination);
        };
        let transport = HttpTransport::new(endpoint, &settings).unwrap();
        let request = || Request::post("http://127.0.0.1:1").body(Bytes::new()).unwrap();
        let again = transport.runtime.block_on(transport.client.send_bytes(request()));
        assert!(again.unwrap_err().to_string().contains("already"));
        assert_eq!(take(&transport.client.answer), None);
    }
}

//! OTLP/gRPC: the request's bytes as they are, over a channel on a current-thread runtime.
//!
//! The generated `MetricsServiceClient` would take a decoded request and encode it again; the
//! codec here passes the bytes through, so what is sent is what was stored. The SDK takes no
//! part: its reader and a tonic channel on one thread can wait for each other for ever.

mod answer;

use std::time::Instant;

use bytes::{Buf, BufMut, Bytes};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use prost::Message;
use tokio::runtime::Runtime;
use tonic::client::Grpc;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataMap;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};
use tonic::{Request, Status};

use super::PRODUCT;
use super::endpoint::Endpoint;
use super::network::{Failure, Transport, acknowledgement};
use super::sender::{OpenError, Outcome};
use super::settings::Settings;
use super::tls::Tls;
use crate::config::export::Compression;

/// `MetricsService.Export` (opentelemetry-proto, `metrics_service.proto`).
const EXPORT: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
/// The largest response message that is read, in bytes.
const LARGEST_RESPONSE: usize = 64 * 1024;

/// A channel to one receiver, made at the first request and kept.
pub(super) struct GrpcTransport {
    /// `None` only while being dropped.
    runtime: Option<Runtime>,
    endpoint: tonic::transport::Endpoint,
    channel: Option<Channel>,
    metadata: MetadataMap,
    compression: Compression,
}

impl GrpcTransport {
    pub(super) fn new(endpoint: &Endpoint, settings: &Settings) -> Result<Self, OpenError> {
        let mut channel = tonic::transport::Endpoint::from_shared(endpoint.uri().to_string())
            .and_then(|channel| channel.user_agent(PRODUCT))
            .map_err(OpenError::Grpc)?;
        if endpoint.is_tls() {
            channel = channel.tls_config(tls_config(&settings.tls)).map_err(OpenError::Grpc)?;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(OpenError::EventLoop)?;
        Ok(Self {
            runtime: Some(runtime),
            endpoint: channel,
            channel: None,
            metadata: MetadataMap::from_headers(settings.headers.to_send().collect()),
            compression: settings.compression,
        })
    }
}

impl Transport for GrpcTransport {
    fn exchange(&mut self, request: &[u8], deadline: Instant) -> Result<Outcome, Failure> {
        let Some(runtime) = &self.runtime else {
            return Err(Failure::Unanswered("the sender is closed".to_owned()));
        };
        let remaining = deadline.saturating_duration_since(Instant::now());
        let mut message = Request::new(Bytes::copy_from_slice(request));
        *message.metadata_mut() = self.metadata.clone();
        message.set_timeout(remaining);
        let call = call(self.endpoint.clone(), self.channel.take(), message, self.compression);
        let (channel, answer) = runtime.block_on(async {
            // In a task of its own: tonic panics at a malformed `grpc-status-details-bin`, and no
            // receiver may end a pass.
            let mut task = tokio::spawn(call);
            match tokio::time::timeout_at(deadline.into(), &mut task).await {
                Ok(Ok((channel, answer))) => (channel, answer),
                Ok(Err(_)) => (None, Ok(Outcome::retry("the answer could not be read"))),
                Err(_) => {
                    task.abort();
                    let limit = remaining.as_secs_f64();
                    let reason = format!("no complete answer within {limit:.1} s");
                    (None, Err(Failure::Unanswered(reason)))
                }
            }
        });
        self.channel = channel;
        answer
    }
}

impl Drop for GrpcTransport {
    /// Dropping a runtime waits for its blocking tasks, and one of them may be a name lookup that
    /// hangs.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// One call, over `channel` or a new one. Gives the channel back where it is still good.
async fn call(
    endpoint: tonic::transport::Endpoint,
    channel: Option<Channel>,
    request: Request<Bytes>,
    compression: Compression,
) -> (Option<Channel>, Result<Outcome, Failure>) {
    let channel = match channel {
        Some(channel) => channel,
        None => match endpoint.connect().await {
            Ok(channel) => channel,
            Err(error) => return (None, Err(answer::of_broken_connection(&error))),
        },
    };
    // Receivers answer in the encoding in which they were asked.
    let mut client = Grpc::new(channel.clone())
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(LARGEST_RESPONSE);
    if compression == Compression::Gzip {
        client = client.send_compressed(CompressionEncoding::Gzip);
    }
    if let Err(error) = client.ready().await {
        return (None, Err(answer::of_broken_connection(&error)));
    }
    let path = http::uri::PathAndQuery::from_static(EXPORT);
    match client.unary(request, path, PassThrough).await {
        Ok(response) => (Some(channel), Ok(acknowledgement(response.into_inner()))),
        Err(status) => (Some(channel), answer::judge(&status)),
    }
}

fn tls_config(tls: &Tls) -> ClientTlsConfig {
    let mut config = match tls.authorities() {
        Some(authorities) => {
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authorities))
        }
        None => ClientTlsConfig::new().with_webpki_roots(),
    };
    if let Some(identity) = tls.identity() {
        config = config
            .identity(Identity::from_pem(&identity.certificates, identity.private_key.expose()));
    }
    config
}

/// Sends bytes that are encoded already, and decodes the response.
struct PassThrough;

impl Codec for PassThrough {
    type Encode = Bytes;
    type Decode = ExportMetricsServiceResponse;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for PassThrough {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for PassThrough {
    type Item = ExportMetricsServiceResponse;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        let message = buffer.copy_to_bytes(buffer.remaining());
        // The status says yes; a response message that cannot be read only hides what it warns of.
        let response = ExportMetricsServiceResponse::decode(message).unwrap_or_else(|error| {
            tracing::warn!("the receiver accepted, but its response cannot be read: {error}");
            ExportMetricsServiceResponse::default()
        });
        Ok(Some(response))
    }
}

//! An OTLP/gRPC receiver, one HTTP/2 frame at a time, with faults.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

/// No peer waits longer than this, so that no test hangs for good.
const PATIENCE: Duration = Duration::from_secs(20);

/// A call as it arrived.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// The message after decompression.
    pub(crate) message: Vec<u8>,
}

/// What the receiver does with a call once it has read it.
#[derive(Debug, Clone)]
pub(crate) enum Behaviour {
    /// Takes everything: an empty response message, status 0.
    Accept,
    /// Sends this response message and status 0.
    Respond(Vec<u8>),
    /// Ends the call with these trailers.
    Fail(Vec<(&'static str, String)>),
    /// Answers with this HTTP status alone, as a proxy in between would.
    Proxy(u16),
    /// Resets the stream.
    Reset,
    /// Says nothing until the peer leaves.
    Hang,
}

/// Listens on a loopback port until it is dropped.
pub(crate) struct GrpcReceiver {
    pub(crate) address: SocketAddr,
    received: mpsc::Receiver<Received>,
    _stop: oneshot::Sender<()>,
}

impl GrpcReceiver {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        Self::listen(behaviour, None)
    }

    pub(crate) fn start_tls(behaviour: Behaviour, tls: Arc<ServerConfig>) -> Self {
        Self::listen(behaviour, Some(TlsAcceptor::from(tls)))
    }

    fn listen(behaviour: Behaviour, tls: Option<TlsAcceptor>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, received) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        thread::spawn(move || {
            runtime.block_on(async {
                tokio::spawn(accept(listener, tls, behaviour, sender));
                // The test has dropped its end.
                stopped.await.ok();
            });
        });
        Self { address, received, _stop: stop }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What has arrived so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.try_iter().collect()
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    behaviour: Behaviour,
    sender: mpsc::Sender<Received>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, behaviour, sender) = (tls.clone(), behaviour.clone(), sender.clone());
        tokio::spawn(tokio::time::timeout(PATIENCE, connection(stream, tls, behaviour, sender)));
    }
}

async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    behaviour: Behaviour,
    sender: mpsc::Sender<Received>,
) {
    // A peer that leaves in the middle is part of the game.
    match tls {
        None => converse(stream, behaviour, sender).await.ok(),
        Some(tls) => match tls.accept(stream).await {
            Ok(stream) => converse(stream, behaviour, sender).await.ok(),
            Err(_) => None,
        },
    };
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    behaviour: Behaviour,
    sender: mpsc::Sender<Received>,
) -> Result<(), h2::Error> {
    let mut connection = h2::server::handshake(stream).await?;
    while let Some(call) = connection.accept().await {
        let (request, response) = call?;
        tokio::spawn(answer(request, response, behaviour.clone(), sender.clone()));
    }
    Ok(())
}

async fn answer(
    request: Request<h2::RecvStream>,
    mut response: SendResponse<Bytes>,
    behaviour: Behaviour,
    sender: mpsc::Sender<Received>,
) -> Result<(), h2::Error> {
    let (parts, mut body) = request.into_parts();
    let mut frame = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        frame.extend_from_slice(&data);
    }
    let received = Received {
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        message: message(&frame),
    };
    sender.send(received).ok();

    let head = Response::builder().header("content-type", "application/grpc");
    match behaviour {
        Behaviour::Accept => respond(response, head.body(()).unwrap(), &[])?,
        Behaviour::Respond(message) => respond(response, head.body(()).unwrap(), &message)?,
        Behaviour::Fail(trailers) => {
            let head = trailers.iter().fold(head, |head, (name, value)| head.header(*name, value));
            response.send_response(head.body(()).unwrap(), true)?;
        }
        Behaviour::Proxy(status) => {
            let head = Response::builder().status(status).header("content-type", "text/html");
            response.send_response(head.body(()).unwrap(), true)?;
        }
        Behaviour::Reset => response.send_reset(h2::Reason::INTERNAL_ERROR),
        Behaviour::Hang => tokio::time::sleep(PATIENCE).await,
    }
    Ok(())
}

fn respond(
    mut response: SendResponse<Bytes>,
    head: Response<()>,
    message: &[u8],
) -> Result<(), h2::Error> {
    let mut stream = response.send_response(head, false)?;
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    stream.send_data([&[0], &length[..], message].concat().into(), false)?;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    stream.send_trailers(trailers)
}

/// The one length-prefixed message of a unary call: a flag, four bytes of length, the content.
fn message(frame: &[u8]) -> Vec<u8> {
    use std::io::Read;

    let (prefix, content) = frame.split_at(5);
    assert_eq!(u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize, content.len());
    if prefix[0] == 0 {
        return content.to_vec();
    }
    let mut message = Vec::new();
    flate2::read::GzDecoder::new(content).read_to_end(&mut message).unwrap();
    message
}

//! Why there was no answer, asked once more in a way that lets the other side speak.
//!
//! A client that is still writing when the other side closes finds a broken pipe, and what the
//! other side had to say is lost with it: that it wants another certificate (in TLS 1.3 an alert
//! after the handshake), or that it speaks HTTP/1.1 where gRPC was expected. So one more
//! connection is made, on which nothing of ours is sent, and its first words are waited for.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::endpoint::Endpoint;
use super::tls::{self, Tls};
use crate::config::export::Protocol;

/// How long first words are waited for: many times what the longest line takes.
const PATIENCE: Duration = Duration::from_secs(2);

/// The first half of how HTTP/2 begins (RFC 9113, section 3.4), which is a whole request to a
/// server that knows only HTTP/1.1: it reads all of it, answers, and closes in peace.
const HTTP_2_GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\n";

/// What a person has to mend, if the other side says so before `deadline`.
pub(crate) fn diagnose(
    endpoint: &Endpoint,
    protocol: Protocol,
    tls: &Tls,
    deadline: Instant,
) -> Option<String> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    let patience = remaining.min(PATIENCE);
    if patience.is_zero() {
        return None;
    }
    let (host, port) = (endpoint.host().to_owned(), endpoint.port());
    let examine: Box<dyn Fn(TcpStream) -> Option<String> + Send> = if endpoint.is_tls() {
        let name = ServerName::try_from(host.clone()).ok()?;
        let config = Arc::new(tls.client_config()?);
        Box::new(move |socket| alert(socket, name.clone(), Arc::clone(&config)))
    } else {
        Box::new(move |socket| first_words(socket, protocol))
    };
    let (sender, receiver) = mpsc::channel();
    // In a thread, for nothing else bounds a name lookup.
    thread::spawn(move || {
        let cause = connect(&host, port, patience).and_then(examine);
        // Nobody listens any more where the deadline has passed.
        let _ = sender.send(cause);
    });
    receiver.recv_timeout(remaining).ok().flatten()
}

fn connect(host: &str, port: u16, patience: Duration) -> Option<TcpStream> {
    let address = (host, port).to_socket_addrs().ok()?.next()?;
    let socket = TcpStream::connect_timeout(&address, patience).ok()?;
    socket.set_read_timeout(Some(patience)).ok()?;
    socket.set_write_timeout(Some(patience)).ok()?;
    Some(socket)
}

/// Shakes hands and waits for an alert.
fn alert(
    socket: TcpStream,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
) -> Option<String> {
    let connection = ClientConnection::new(config, name).ok()?;
    let error = StreamOwned::new(connection, socket).read(&mut [0]).err()?;
    tls::misconfiguration(&error)
}

/// Greets in HTTP/2 and looks at what comes back.
fn first_words(mut socket: TcpStream, protocol: Protocol) -> Option<String> {
    socket.write_all(HTTP_2_GREETING).ok()?;
    let mut words = [0; 2];
    socket.read_exact(&mut words).ok()?;
    let cause = match (&words, protocol) {
        // A TLS record that holds an alert (RFC 8446, section 5.1).
        ([21, 3], _) => "the receiver speaks TLS on this port; use https://",
        // A frame of settings, by the upper bytes of its length (RFC 9113, section 4.1).
        ([0, 0], Protocol::Grpc) => return None,
        ([0, 0], _) => {
            "the receiver speaks gRPC on this port; use its port for HTTP (usually 4318), or \
             protocol = \"grpc\""
        }
        (_, Protocol::Grpc) => {
            "the receiver does not speak gRPC on this port, perhaps HTTP/1.1; use its port for \
             gRPC (usually 4317), or protocol = \"http/protobuf\""
        }
        _ => return None,
    };
    Some(cause.to_owned())
}

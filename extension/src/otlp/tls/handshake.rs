//! A handshake for its own sake.
//!
//! In TLS 1.3 a client learns only after the handshake, by an alert, that the receiver wants
//! another certificate. A client that is sending its request by then finds a broken pipe, and the
//! alert is lost with it. So where a connection broke, one more handshake is made, on which
//! nothing is sent, and the alert is waited for.

use std::io::Read;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::{Tls, certificates, misconfiguration};
use crate::otlp::endpoint::Endpoint;

/// How long an alert is waited for: many times what the longest line takes.
const ALERT_PATIENCE: Duration = Duration::from_secs(2);

/// Why the receiver turns this client down, if it says so before `deadline`.
pub(in crate::otlp) fn refusal(
    endpoint: &Endpoint,
    tls: &Tls,
    deadline: Instant,
) -> Option<String> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    let patience = remaining.min(ALERT_PATIENCE);
    if patience.is_zero() {
        return None;
    }
    let (sender, receiver) = mpsc::channel();
    let (host, port) = (endpoint.host().to_owned(), endpoint.port());
    let config = client_config(tls)?;
    // In a thread, for nothing else bounds a name lookup.
    thread::spawn(move || sender.send(alert(&host, port, config, patience)));
    receiver.recv_timeout(remaining).ok().flatten()
}

fn alert(host: &str, port: u16, config: ClientConfig, patience: Duration) -> Option<String> {
    let name = ServerName::try_from(host.to_owned()).ok()?;
    let address = (host, port).to_socket_addrs().ok()?.next()?;
    let socket = TcpStream::connect_timeout(&address, patience).ok()?;
    socket.set_read_timeout(Some(patience)).ok()?;
    socket.set_write_timeout(Some(patience)).ok()?;
    let connection = ClientConnection::new(Arc::new(config), name).ok()?;
    let error = StreamOwned::new(connection, socket).read(&mut [0]).err()?;
    misconfiguration(&error)
}

fn client_config(tls: &Tls) -> Option<ClientConfig> {
    let mut roots = RootCertStore::empty();
    match tls.authorities() {
        Some(authorities) => {
            roots.add_parsable_certificates(certificates(authorities).ok()?);
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots);
    match tls.identity() {
        None => Some(builder.with_no_client_auth()),
        Some(identity) => {
            let chain = certificates(&identity.certificates).ok()?;
            let key = identity.private_key.expose().as_bytes();
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key).ok()?).ok()
        }
    }
}

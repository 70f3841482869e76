//! A strict OTLP/HTTP receiver over HTTP/1.1, with faults.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// No peer waits longer than this, so that no test hangs for good.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) request_line: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// As it travelled: perhaps compressed.
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body after decompression.
    pub(crate) fn message(&self) -> Vec<u8> {
        match self.header("content-encoding") {
            Some("gzip") => {
                let mut message = Vec::new();
                flate2::read::GzDecoder::new(&*self.body).read_to_end(&mut message).unwrap();
                message
            }
            None => self.body.clone(),
            Some(other) => panic!("content-encoding {other}"),
        }
    }
}

/// What the receiver does with a request once it has read it.
#[derive(Debug, Clone)]
pub(crate) enum Behaviour {
    /// Writes these bytes and keeps the connection.
    Answer(Vec<u8>),
    /// Writes these bytes and closes the connection.
    AnswerAndClose(Vec<u8>),
    /// Writes these bytes one by one, with a pause before each.
    Trickle(Vec<u8>),
    /// Says nothing until the peer leaves.
    Hang,
}

impl Behaviour {
    /// A complete response.
    pub(crate) fn respond(status: &str, headers: &[&str], body: &[u8]) -> Self {
        Self::Answer(response(status, headers, body))
    }
}

/// A complete response with its `content-length`.
pub(crate) fn response(status: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

/// Listens on a loopback port until it is dropped.
pub(crate) struct HttpReceiver {
    pub(crate) address: SocketAddr,
    received: mpsc::Receiver<Received>,
    stopped: Arc<AtomicBool>,
}

impl HttpReceiver {
    /// Treats every request alike.
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        Self::listen(behaviour, None)
    }

    /// Treats every request alike, over TLS.
    pub(crate) fn start_tls(behaviour: Behaviour, tls: Arc<ServerConfig>) -> Self {
        Self::listen(behaviour, Some(tls))
    }

    fn listen(behaviour: Behaviour, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, received) = mpsc::channel();
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let (behaviour, sender, tls) = (behaviour.clone(), sender.clone(), tls.clone());
                // A peer that leaves in the middle is part of the game.
                thread::spawn(move || serve(stream, tls, &behaviour, &sender).ok());
            }
        });
        Self { address, received, stopped }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What has arrived so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.try_iter().collect()
    }
}

impl Drop for HttpReceiver {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        TcpStream::connect(self.address).ok();
    }
}

/// Listens on a loopback port and tells whoever comes these bytes, whatever they say. Ends after
/// its first peer.
pub(crate) fn tell_anyone(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.read_exact(&mut [0])?;
        stream.write_all(bytes)?;
        stream.shutdown(std::net::Shutdown::Write)?;
        io::copy(&mut stream, &mut io::sink())?;
        Ok(())
    });
    address
}

fn serve(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    behaviour: &Behaviour,
    sender: &mpsc::Sender<Received>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    match tls {
        None => converse(BufReader::new(stream), behaviour, sender),
        Some(tls) => {
            let connection = ServerConnection::new(tls).map_err(io::Error::other)?;
            let stream = StreamOwned::new(connection, stream);
            converse(BufReader::new(stream), behaviour, sender)
        }
    }
}

fn converse<S: Read + Write>(
    mut stream: BufReader<S>,
    behaviour: &Behaviour,
    sender: &mpsc::Sender<Received>,
) -> io::Result<()> {
    while let Some(received) = read_request(&mut stream)? {
        sender.send(received).ok();
        let peer = stream.get_mut();
        match behaviour {
            Behaviour::Answer(bytes) => peer.write_all(bytes)?,
            Behaviour::AnswerAndClose(bytes) => {
                peer.write_all(bytes)?;
                return Ok(());
            }
            Behaviour::Trickle(bytes) => {
                for byte in bytes {
                    thread::sleep(Duration::from_millis(100));
                    peer.write_all(&[*byte])?;
                }
            }
            Behaviour::Hang => {
                io::copy(&mut stream, &mut io::sink())?;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The next request; `None` where the peer has no more.
fn read_request(stream: &mut impl BufRead) -> io::Result<Option<Received>> {
    let mut request_line = String::new();
    if stream.read_line(&mut request_line)? == 0 {
        return Ok(None);
    }
    let mut headers = vec![];
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let request_line = request_line.trim_end().to_owned();
    let mut received = Received { request_line, headers, body: vec![] };
    let length: usize = received.header("content-length").unwrap().parse().unwrap();
    received.body = vec![0; length];
    stream.read_exact(&mut received.body)?;
    Ok(Some(received))
}

//! A backend inside the test that keeps what it is sent, with faults at will.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// No peer waits longer than this, so that no test hangs for good.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the backend does with a request that it has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Keeps it and says so.
    Accept,
    /// Keeps it, but its answer breaks off in the middle.
    AcceptAndBreakOff,
    /// Keeps it, and says so byte by byte.
    AcceptSlowly,
    /// Keeps it, and says so in other words: status, header lines, body.
    AcceptSaying(&'static str),
    /// Does not keep it, and says this: status, header lines.
    Say(&'static str, Vec<String>),
    /// Does not keep it and says nothing until the peer leaves.
    Hang,
}

impl Answer {
    /// Does not keep it, and says this.
    pub(crate) fn say(status: &'static str) -> Self {
        Self::Say(status, Vec::new())
    }

    fn keeps(&self) -> bool {
        !matches!(self, Self::Say(..) | Self::Hang)
    }
}

/// A request, and what the backend did with it.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// After decompression.
    pub(crate) body: String,
    /// Bytes before it.
    pub(crate) travelled: usize,
    pub(crate) answer: Answer,
    /// When it had arrived.
    pub(crate) at: Instant,
}

impl Post {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

type Script = Box<dyn FnMut(&Post) -> Answer + Send>;

#[derive(Default)]
struct Shared {
    posts: Vec<Post>,
    script: Option<Script>,
}

/// Listens on a loopback port until it is dropped.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    stopped: Arc<AtomicBool>,
}

impl Backend {
    /// One that accepts everything.
    pub(crate) fn start() -> Self {
        Self::listen(None)
    }

    /// The same over TLS.
    pub(crate) fn start_tls(tls: Arc<ServerConfig>) -> Self {
        Self::listen(Some(tls))
    }

    fn listen(tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(Shared::default()));
        let stopped = Arc::new(AtomicBool::new(false));
        let (of_thread, stop) = (Arc::clone(&shared), Arc::clone(&stopped));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let (shared, tls) = (Arc::clone(&of_thread), tls.clone());
                // A peer that is killed in the middle is part of the game.
                thread::spawn(move || serve(stream, tls, &shared).ok());
            }
        });
        Self { address, shared, stopped }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on asks this what to do with each request.
    pub(crate) fn answers(&self, script: impl FnMut(&Post) -> Answer + Send + 'static) {
        lock(&self.shared).script = Some(Box::new(script));
    }

    /// From now on always answers so.
    pub(crate) fn always(&self, answer: Answer) {
        self.answers(move |_| answer.clone());
    }

    /// Every request so far, in the order of arrival.
    pub(crate) fn posts(&self) -> Vec<Post> {
        lock(&self.shared).posts.clone()
    }

    /// The requests that it keeps, in the order of arrival.
    pub(crate) fn kept(&self) -> Vec<Post> {
        self.posts().into_iter().filter(|post| post.answer.keeps()).collect()
    }

    /// The bodies that it keeps.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.kept().into_iter().map(|post| post.body).collect()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        TcpStream::connect(self.address).ok();
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    shared: &Mutex<Shared>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    match tls {
        None => converse(stream, shared),
        Some(tls) => {
            let connection = ServerConnection::new(tls).map_err(io::Error::other)?;
            converse(StreamOwned::new(connection, stream), shared)
        }
    }
}

fn converse(stream: impl Read + Write, shared: &Mutex<Shared>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(mut post) = read_request(&mut stream)? {
        let answer = {
            let mut shared = lock(shared);
            if let Some(script) = shared.script.as_mut() {
                post.answer = script(&post);
            }
            shared.posts.push(post.clone());
            post.answer
        };
        let peer = stream.get_mut();
        match answer {
            Answer::Accept => respond(peer, "200 OK", &[], "{}")?,
            Answer::AcceptSaying(body) => respond(peer, "200 OK", &[], body)?,
            Answer::AcceptSlowly => {
                for byte in b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}" {
                    thread::sleep(Duration::from_millis(2));
                    peer.write_all(&[*byte])?;
                    peer.flush()?;
                }
            }
            Answer::AcceptAndBreakOff => {
                peer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"taken\":")?;
                return peer.flush();
            }
            Answer::Say(status, headers) => {
                // Some echo what they were sent.
                let token = post.headers.iter().find(|(name, _)| name == "authorization");
                let token = token.map(|(_, value)| value.as_str()).unwrap_or_default();
                respond(peer, status, &headers, &format!("no thanks {token}"))?;
            }
            Answer::Hang => {
                io::copy(&mut stream, &mut io::sink())?;
                return Ok(());
            }
        }
    }
    Ok(())
}

fn respond(peer: &mut impl Write, status: &str, headers: &[String], body: &str) -> io::Result<()> {
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|header| text += &format!("{header}\r\n"));
    text += &format!("\r\n{body}");
    peer.write_all(text.as_bytes())?;
    peer.flush()
}

/// The next request; `None` where the peer has no more.
fn read_request(stream: &mut impl BufRead) -> io::Result<Option<Post>> {
    let mut request_line = String::new();
    if stream.read_line(&mut request_line)? == 0 {
        return Ok(None);
    }
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let path = request_line.strip_prefix("POST ").and_then(|rest| rest.split_once(' '));
    let path = path.ok_or_else(|| io::Error::other("no POST"))?.0.to_owned();
    let at = Instant::now();
    let (body, answer) = (String::new(), Answer::Accept);
    let mut post = Post { path, headers, body, travelled: 0, answer, at };
    let length = post.header("content-length").and_then(|length| length.parse().ok());
    let mut travelled = vec![0; length.ok_or_else(|| io::Error::other("no content-length"))?];
    stream.read_exact(&mut travelled)?;
    post.travelled = travelled.len();
    match post.header("content-encoding") {
        Some("gzip") => {
            flate2::read::GzDecoder::new(&*travelled).read_to_string(&mut post.body)?;
        }
        _ => post.body = String::from_utf8(travelled).map_err(io::Error::other)?,
    }
    Ok(Some(post))
}

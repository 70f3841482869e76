//! A strict OTLP/HTTP receiver inside the test, with faults at will.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
};
use prost::Message;

use super::points::{self, Point};

/// No peer waits longer than this, so that no test hangs for good.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the receiver does with a request that it has read and understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Keeps it and says so.
    Accept,
    /// Keeps it, but the acknowledgement gets lost: the connection closes without a word.
    AcceptInSilence,
    /// Keeps all but some points.
    Partial { rejected: i64, words: &'static str },
    /// Keeps nothing.
    Refuse { status: &'static str, words: &'static str },
    /// Keeps nothing and says nothing until the peer leaves.
    Hang,
}

/// A request, and what the receiver did with it.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    /// After decompression.
    pub(crate) request: Vec<u8>,
    pub(crate) answer: Answer,
}

type Script = Box<dyn FnMut(usize) -> Answer + Send>;

#[derive(Default)]
struct Shared {
    exchanges: Vec<Exchange>,
    /// What a strict receiver would not take.
    faults: Vec<String>,
    script: Option<Script>,
}

/// Listens on a loopback port until it is dropped.
pub(crate) struct Receiver {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    stopped: Arc<AtomicBool>,
}

impl Receiver {
    /// One that accepts everything.
    pub(crate) fn start() -> Self {
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
                let shared = Arc::clone(&of_thread);
                // A peer that is killed in the middle is part of the game.
                thread::spawn(move || converse(stream, &shared).ok());
            }
        });
        Self { address, shared, stopped }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on asks this for the answer to each request, by the number of requests before it.
    pub(crate) fn answers(&self, script: impl FnMut(usize) -> Answer + Send + 'static) {
        lock(&self.shared).script = Some(Box::new(script));
    }

    /// From now on always answers so.
    pub(crate) fn always(&self, answer: Answer) {
        self.answers(move |_| answer.clone());
    }

    /// Every request so far that could be read, in the order of arrival.
    #[track_caller]
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        let shared = lock(&self.shared);
        assert_eq!(shared.faults, Vec::<String>::new());
        shared.exchanges.clone()
    }

    /// The requests that it keeps, each once however often it came, in the order of their first
    /// arrival; and how many came again.
    #[track_caller]
    pub(crate) fn kept(&self) -> (Vec<Vec<u8>>, usize) {
        let mut seen = HashSet::new();
        let mut again = 0;
        let mut kept = Vec::new();
        for Exchange { request, answer } in self.exchanges() {
            if !matches!(answer, Answer::Accept | Answer::AcceptInSilence | Answer::Partial { .. })
            {
                continue;
            }
            if seen.insert(request.clone()) {
                kept.push(request);
            } else {
                again += 1;
            }
        }
        (kept, again)
    }

    /// The points that it keeps.
    #[track_caller]
    pub(crate) fn points(&self) -> Vec<Point> {
        let (kept, _) = self.kept();
        kept.iter().flat_map(|request| points::from_protobuf(request).unwrap()).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        TcpStream::connect(self.address).ok();
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn converse(stream: TcpStream, shared: &Mutex<Shared>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream)? {
        let answer = match request.and_then(|request| {
            points::from_protobuf(&request)?;
            Ok(request)
        }) {
            Ok(request) => keep(shared, request),
            Err(fault) => {
                lock(shared).faults.push(fault);
                Answer::Refuse { status: "400 Bad Request", words: "not for a strict receiver" }
            }
        };
        match answer {
            Answer::Accept => respond(stream.get_mut(), "200 OK", &[])?,
            Answer::AcceptInSilence => return Ok(()),
            Answer::Partial { rejected, words } => {
                let partial = ExportMetricsPartialSuccess {
                    rejected_data_points: rejected,
                    error_message: words.to_owned(),
                };
                let response = ExportMetricsServiceResponse { partial_success: Some(partial) };
                respond(stream.get_mut(), "200 OK", &response.encode_to_vec())?;
            }
            Answer::Refuse { status, words } => {
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", words.len());
                stream.get_mut().write_all(&[head.as_bytes(), words.as_bytes()].concat())?;
            }
            Answer::Hang => {
                io::copy(&mut stream, &mut io::sink())?;
                return Ok(());
            }
        }
    }
    Ok(())
}

fn keep(shared: &Mutex<Shared>, request: Vec<u8>) -> Answer {
    let mut shared = lock(shared);
    let number = shared.exchanges.len();
    let answer = shared.script.as_mut().map_or(Answer::Accept, |script| script(number));
    shared.exchanges.push(Exchange { request, answer: answer.clone() });
    answer
}

fn respond(stream: &mut TcpStream, status: &str, body: &[u8]) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat())
}

/// The next request: its body, or what is wrong with it; `None` where the peer has no more.
fn read_request(stream: &mut impl BufRead) -> io::Result<Option<Result<Vec<u8>, String>>> {
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
    let header = |name: &str| {
        headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    let length = header("content-length").and_then(|length| length.parse().ok());
    let Some(length) = length else {
        return Err(io::Error::other("no content-length"));
    };
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    if request_line.trim_end() != "POST /v1/metrics HTTP/1.1" {
        return Ok(Some(Err(format!("request line {request_line:?}"))));
    }
    if header("content-type") != Some("application/x-protobuf") {
        return Ok(Some(Err(format!("headers {headers:?}"))));
    }
    Ok(Some(match header("content-encoding") {
        None => Ok(body),
        Some("gzip") => {
            let mut message = Vec::new();
            let mut decoder = flate2::read::GzDecoder::new(&*body);
            decoder.read_to_end(&mut message).map(|_| message).map_err(|fault| fault.to_string())
        }
        Some(other) => Err(format!("content-encoding {other}")),
    }))
}

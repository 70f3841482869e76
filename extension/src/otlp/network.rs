//! What HTTP and gRPC share: the deadline, the reading of an acknowledgement, and discretion
//! about what a receiver says.

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;

use super::credentials::Headers;
use super::diagnosis::diagnose;
use super::endpoint::Endpoint;
use super::sender::{Outcome, Sender};
use super::settings::Settings;
use super::tls::Tls;
use crate::config::export::Protocol;

/// The most of a receiver's words that is kept, in bytes.
const LONGEST_QUOTE: usize = 4096;

/// One exchange of a request for an answer.
pub(super) trait Transport {
    /// Sends `request` once and returns by `deadline` what the answer means. A partial success
    /// that rejects no point is a receiver's warning.
    fn exchange(&mut self, request: &[u8], deadline: Instant) -> Result<Outcome, Failure>;
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Nobody there, nothing said in time, or a connection that broke.
    Unanswered(String),
    /// The cause is known, and a person has to mend it.
    Misconfigured(String),
}

/// A transport with its bounds.
pub(super) struct NetworkSender<T> {
    transport: T,
    endpoint: Endpoint,
    protocol: Protocol,
    headers: Headers,
    tls: Tls,
    timeout: Duration,
}

impl<T: Transport> NetworkSender<T> {
    pub(super) fn new(transport: T, endpoint: &Endpoint, settings: &Settings) -> Self {
        Self {
            transport,
            endpoint: endpoint.clone(),
            protocol: settings.protocol(),
            headers: settings.headers.clone(),
            tls: settings.tls.clone(),
            timeout: settings.timeout,
        }
    }

    /// What a failure means, after a look at what is at the other end.
    fn explain(&self, failure: Failure, deadline: Instant) -> Outcome {
        match failure {
            Failure::Misconfigured(reason) => Outcome::misconfigured(reason),
            Failure::Unanswered(reason) => {
                match diagnose(&self.endpoint, self.protocol, &self.tls, deadline) {
                    Some(cause) => Outcome::misconfigured(cause),
                    None => Outcome::retry(reason),
                }
            }
        }
    }

    /// A reason with its destination, and without the secrets that a receiver may have echoed.
    fn located(&self, reason: &str) -> String {
        format!("{}: {}", self.endpoint, self.headers.redact(reason))
    }
}

impl<T: Transport> Sender for NetworkSender<T> {
    fn send(&mut self, request: &[u8], deadline: Instant) -> Outcome {
        let now = Instant::now();
        if deadline <= now {
            return Outcome::retry(self.located("no time was left to send"));
        }
        let deadline = deadline.min(now + self.timeout);
        let outcome = self.transport.exchange(request, deadline);
        let outcome = outcome.unwrap_or_else(|failure| self.explain(failure, deadline));
        match outcome {
            Outcome::Accepted => Outcome::Accepted,
            Outcome::Partial { rejected_points: 0, message } => {
                tracing::warn!("{}", self.located(&format!("accepted, with a warning: {message}")));
                Outcome::Accepted
            }
            Outcome::Partial { rejected_points, message } => {
                Outcome::Partial { rejected_points, message: self.headers.redact(&message) }
            }
            Outcome::Refused { reason } => Outcome::Refused { reason: self.located(&reason) },
            Outcome::Retry { reason, after } => {
                Outcome::Retry { reason: self.located(&reason), after }
            }
            Outcome::Misconfigured { reason } => {
                Outcome::Misconfigured { reason: self.located(&reason) }
            }
        }
    }
}

/// What a successful response says (OTLP specification, "Partial Success").
pub(super) fn acknowledgement(response: ExportMetricsServiceResponse) -> Outcome {
    let Some(partial) = response.partial_success else {
        return Outcome::Accepted;
    };
    let message = quote(partial.error_message.as_bytes());
    match u64::try_from(partial.rejected_data_points) {
        Ok(0) if message.is_empty() => Outcome::Accepted,
        Ok(rejected_points) => Outcome::Partial { rejected_points, message },
        Err(_) => Outcome::Partial {
            rejected_points: 0,
            message: format!("{} rejected points; {message}", partial.rejected_data_points),
        },
    }
}

/// A receiver's words on one line, bounded, and harmless to a terminal.
pub(crate) fn quote(words: &[u8]) -> String {
    let bounded = words.get(..LONGEST_QUOTE).unwrap_or(words);
    let text = String::from_utf8_lossy(bounded);
    let visible = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut quote = visible.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if words.len() > bounded.len() {
        quote.push_str(" …");
    }
    quote
}

/// The receiver says that a request is too large for it: no later try is smaller.
pub(super) fn says_too_large(words: &str) -> bool {
    ["larger than max", "message length too large", "message too large"]
        .iter()
        .any(|saying| words.contains(saying))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsPartialSuccess;

    fn response(rejected_data_points: i64, error_message: &str) -> ExportMetricsServiceResponse {
        let error_message = error_message.to_owned();
        ExportMetricsServiceResponse {
            partial_success: Some(ExportMetricsPartialSuccess {
                rejected_data_points,
                error_message,
            }),
        }
    }

    #[test]
    fn only_rejected_points_make_a_success_partial() {
        assert_eq!(
            acknowledgement(ExportMetricsServiceResponse { partial_success: None }),
            Outcome::Accepted
        );
        assert_eq!(acknowledgement(response(0, "")), Outcome::Accepted);
        assert_eq!(
            acknowledgement(response(3, "cumulative")),
            Outcome::Partial { rejected_points: 3, message: "cumulative".into() }
        );
    }

    #[test]
    fn a_negative_count_of_rejected_points_is_a_warning_and_no_loss() {
        let Outcome::Partial { rejected_points: 0, message } = acknowledgement(response(-1, "?"))
        else {
            panic!("not a warning");
        };
        assert!(message.contains("-1"), "{message}");
    }

    #[test]
    fn a_receivers_words_are_bounded_and_tame() {
        assert_eq!(quote(b"two\r\nlines \x1b[31mred\x07 \xff"), "two lines [31mred \u{fffd}");
        let long = quote(&vec![b'x'; 10_000]);
        assert_eq!(long.len(), LONGEST_QUOTE + " …".len());
    }

    /// Answers once, from a list.
    struct Scripted(Vec<Outcome>);

    impl Transport for Scripted {
        fn exchange(&mut self, _: &[u8], _: Instant) -> Result<Outcome, Failure> {
            Ok(self.0.pop().unwrap())
        }
    }

    fn sender(answer: Outcome) -> NetworkSender<Scripted> {
        let mut headers = Headers::default();
        headers.set(
            http::header::AUTHORIZATION,
            super::super::credentials::Secret::new("Bearer hunter22".into()),
        );
        NetworkSender {
            transport: Scripted(vec![answer]),
            endpoint: Endpoint::grpc("http://h:1").unwrap(),
            protocol: Protocol::HttpProtobuf,
            headers,
            tls: Tls::default(),
            timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn an_echoed_token_is_in_no_outcome() {
        let words = || "the token hunter22 is unknown".to_owned();
        for answer in [
            Outcome::Partial { rejected_points: 1, message: words() },
            Outcome::refused(words()),
            Outcome::retry(words()),
            Outcome::misconfigured(words()),
        ] {
            let outcome = sender(answer).send(b"", Instant::now() + Duration::from_secs(1));
            let shown = format!("{outcome:?}");
            assert!(shown.contains("[hidden]") && !shown.contains("hunter22"), "{shown}");
        }
    }

    #[test]
    fn nothing_is_sent_after_the_deadline() {
        let outcome = sender(Outcome::Accepted).send(b"", Instant::now());
        assert!(matches!(outcome, Outcome::Retry { .. }), "{outcome:?}");
    }
}

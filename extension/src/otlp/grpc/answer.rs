//! What a gRPC status means for the data (OTLP specification, "OTLP/gRPC Response").
//!
//! | status | outcome |
//! |---|---|
//! | `CANCELLED`, `DEADLINE_EXCEEDED`, `ABORTED`, `OUT_OF_RANGE`, `UNAVAILABLE`, `DATA_LOSS` | retry |
//! | `RESOURCE_EXHAUSTED` | retry, after the time of `RetryInfo`; refused where the request is too large |
//! | `UNAUTHENTICATED`, `PERMISSION_DENIED`, `UNIMPLEMENTED` | misconfigured: about the way, not the data |
//! | any other | refused |
//!
//! The specification lets `RESOURCE_EXHAUSTED` be retried only with `RetryInfo`. But receivers
//! with a rate limit and without `RetryInfo` are common, and a full minute lies between passes.

use std::error::Error;

use prost::Message;
use tonic::{Code, Status};

use crate::otlp::network::{quote, says_too_large};
use crate::otlp::rpc_status::RpcStatus;
use crate::otlp::sender::Outcome;
use crate::otlp::tls;

/// What a status means, from the receiver or from a connection that broke.
pub(super) fn judge(status: &Status) -> Outcome {
    if let Some(source) = status.source() {
        // Made on this side: the receiver has judged nothing.
        return of_failed_connection(source);
    }
    let words = quote(status.message().as_bytes());
    let said = if words.is_empty() {
        format!("gRPC {:?}", status.code())
    } else {
        format!("gRPC {:?}: {words}", status.code())
    };
    match status.code() {
        Code::Internal if is_no_grpc_answer(&words) => {
            Outcome::misconfigured(format!("{said}; is this a port for OTLP over gRPC?"))
        }
        Code::Unknown if is_no_grpc_answer(&words) => Outcome::retry(said),
        Code::OutOfRange | Code::ResourceExhausted if says_too_large(&words) => {
            Outcome::refused(said)
        }
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss
        | Code::ResourceExhausted => {
            let details = RpcStatus::decode(status.details()).ok();
            Outcome::Retry {
                reason: said,
                after: details.and_then(|details| details.retry_after()),
            }
        }
        Code::Unauthenticated | Code::PermissionDenied => {
            Outcome::misconfigured(format!("{said}; check [export.headers]"))
        }
        Code::Unimplemented => Outcome::misconfigured(format!(
            "{said}; does the receiver take OTLP metrics by gRPC on this port, compressed as set?"
        )),
        _ => Outcome::refused(said),
    }
}

/// tonic's words for an answer without a gRPC status: a proxy gave it, not the receiver.
fn is_no_grpc_answer(words: &str) -> bool {
    words.starts_with("grpc-status header missing") || words.contains("missing grpc-status trailer")
}

/// What it means that there was no connection, or that it broke.
pub(super) fn of_failed_connection(error: &(dyn Error + 'static)) -> Outcome {
    if let Some(cause) = tls::misconfiguration(error) {
        return Outcome::misconfigured(cause);
    }
    let mut causes = vec![error.to_string()];
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if causes.last().is_none_or(|last| !last.contains(&text)) {
            causes.push(text);
        }
        next = cause.source();
    }
    let reason = quote(causes.join(": ").as_bytes());
    if speaks_no_http2(&reason) {
        return Outcome::misconfigured(format!(
            "{reason}; the receiver does not speak gRPC: is this a port for HTTP (usually 4318) \
             or for TLS?"
        ));
    }
    if reason.contains("broken pipe") || reason.contains("connection reset") {
        return Outcome::retry(format!(
            "{reason}; should this last: is it a port for gRPC, and is TLS right?"
        ));
    }
    Outcome::retry(reason)
}

/// The first bytes of an HTTP/1.1 answer or a TLS alert, read as an HTTP/2 frame.
fn speaks_no_http2(reason: &str) -> bool {
    reason.contains("frame with invalid size") || reason.contains("FRAME_SIZE_ERROR")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;
    use crate::otlp::rpc_status::with_retry_info;

    #[test]
    fn each_status_has_its_outcome() {
        use Code as C;
        for code in [
            C::Cancelled,
            C::DeadlineExceeded,
            C::Aborted,
            C::OutOfRange,
            C::Unavailable,
            C::DataLoss,
            C::ResourceExhausted,
        ] {
            let outcome = judge(&Status::new(code, "busy"));
            assert!(matches!(outcome, Outcome::Retry { after: None, .. }), "{outcome:?}");
        }
        for code in [C::Unauthenticated, C::PermissionDenied, C::Unimplemented] {
            let outcome = judge(&Status::new(code, "no"));
            assert!(matches!(outcome, Outcome::Misconfigured { .. }), "{outcome:?}");
        }
        for code in [
            C::Unknown,
            C::InvalidArgument,
            C::NotFound,
            C::AlreadyExists,
            C::FailedPrecondition,
            C::Internal,
        ] {
            let outcome = judge(&Status::new(code, "bad unit"));
            assert_eq!(outcome, Outcome::refused(format!("gRPC {code:?}: bad unit")));
        }
    }

    #[test]
    fn a_throttling_receiver_is_asked_again_when_it_says() {
        for code in [Code::ResourceExhausted, Code::Unavailable] {
            let details = Bytes::from(with_retry_info(7, 0));
            let outcome = judge(&Status::with_details(code, "slow down", details));
            let Outcome::Retry { after, .. } = outcome else { panic!("{outcome:?}") };
            assert_eq!(after, Some(Duration::from_secs(7)));
        }
    }

    #[test]
    fn a_request_that_is_too_large_will_not_shrink() {
        for (code, words) in [
            (Code::ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"),
            (Code::OutOfRange, "Error, decoded message length too large: found 5 bytes"),
        ] {
            let outcome = judge(&Status::new(code, words));
            assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome:?}");
        }
    }
}

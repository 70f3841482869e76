//! What an HTTP answer means for the data (OTLP specification, "OTLP/HTTP Response").
//!
//! | answer | outcome |
//! |---|---|
//! | 2xx | accepted, or partial as the body says |
//! | 429, 502, 503, 504 | retry, after the time of `Retry-After` |
//! | 1xx, 3xx, 401, 403, 404, 405, 407, 415, 421, 426 | misconfigured: about the way, not the data |
//! | any other | refused |
//!
//! The specification forbids to retry what the third line lists, too. But a wrong token or path
//! says nothing about the data, so the data waits for a person.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
};
use prost::Message;
use serde_json::Value;

use super::post::Reply;
use crate::otlp::network::{acknowledgement, quote};
use crate::otlp::rpc_status::RpcStatus;
use crate::otlp::sender::Outcome;

/// What `reply`, received at `now`, means.
pub(super) fn judge(reply: &Reply, now: SystemTime) -> Outcome {
    let status = reply.status;
    if status.is_success() {
        return judge_success(reply);
    }
    let words = words(reply);
    let said =
        if words.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {words}") };
    match status.as_u16() {
        429 | 502 | 503 | 504 => {
            Outcome::Retry { reason: said, after: retry_after(&reply.headers, now) }
        }
        100..=199 => Outcome::misconfigured(format!("{said}; is this an OTLP receiver?")),
        300..=399 => Outcome::misconfigured(match header(&reply.headers, LOCATION) {
            Some(target) => {
                format!(
                    "{said}; redirected to `{}`, which is not followed: name the receiver itself",
                    quote(target.as_bytes())
                )
            }
            None => format!("{said}; name the receiver itself"),
        }),
        401 | 403 | 407 => Outcome::misconfigured(format!("{said}; check [export.headers]")),
        404 | 405 | 415 | 421 | 426 => {
            Outcome::misconfigured(format!("{said}; check host, port and path of the endpoint"))
        }
        // VictoriaMetrics has no 404.
        400 if words.contains("unsupported path") => {
            Outcome::misconfigured(format!("{said}; check the path of the endpoint"))
        }
        400 if speaks_of_tls(&words) => {
            Outcome::misconfigured(format!("{said}; check https:// and the client certificate"))
        }
        _ => Outcome::refused(said),
    }
}

fn judge_success(reply: &Reply) -> Outcome {
    let content_type = header(&reply.headers, CONTENT_TYPE).unwrap_or_default();
    let body = reply.body.as_slice();
    if content_type.starts_with("text/html") {
        // A log-in page or a web server: it says 200 to anything, and keeps nothing.
        return Outcome::misconfigured(format!(
            "HTTP {} with a web page; this is no OTLP receiver",
            reply.status
        ));
    }
    if body.is_empty() {
        return Outcome::Accepted;
    }
    if content_type.starts_with("application/json") {
        return read_json(body).map_or_else(|| unreadable(reply), acknowledgement);
    }
    if content_type.starts_with("application/x-protobuf") {
        return ExportMetricsServiceResponse::decode(body)
            .map_or_else(|_| unreadable(reply), acknowledgement);
    }
    // Receivers that say "ok" in their own way do not know partial success.
    Outcome::Accepted
}

/// The response message as OTLP JSON, in which a 64-bit integer is a string or a number, and any
/// field may be absent. The serde form of `opentelemetry-proto` (0.33.1) takes only the number, and
/// wants every field.
fn read_json(body: &[u8]) -> Option<ExportMetricsServiceResponse> {
    let json: Value = serde_json::from_slice(body).ok()?;
    let partial = json.as_object()?.get("partialSuccess").filter(|value| !value.is_null());
    let Some(partial) = partial else {
        return Some(ExportMetricsServiceResponse { partial_success: None });
    };
    let rejected_data_points = match partial.get("rejectedDataPoints") {
        None | Some(Value::Null) => 0,
        Some(Value::String(digits)) => digits.parse().ok()?,
        Some(number) => number.as_i64()?,
    };
    let error_message = partial.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
    let error_message = error_message.to_owned();
    Some(ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess { rejected_data_points, error_message }),
    })
}

/// The status says yes, and the rest cannot be read: the data is there, perhaps not all of it.
fn unreadable(reply: &Reply) -> Outcome {
    Outcome::Partial {
        rejected_points: 0,
        message: format!("HTTP {}, but the response message cannot be read", reply.status),
    }
}

/// The receiver's reason: a `google.rpc.Status` as protobuf or JSON, or text.
pub(crate) fn words(reply: &Reply) -> String {
    let content_type = header(&reply.headers, CONTENT_TYPE).unwrap_or_default();
    let body = reply.body.as_slice();
    if content_type.starts_with("application/x-protobuf")
        && let Ok(status) = RpcStatus::decode(body)
        && !status.message.is_empty()
    {
        return quote(status.message.as_bytes());
    }
    if let Ok(json) = serde_json::from_slice::<Value>(body) {
        let reason = ["/message", "/error/message", "/error"]
            .iter()
            .find_map(|pointer| json.pointer(pointer)?.as_str());
        if let Some(reason) = reason {
            return quote(reason.as_bytes());
        }
    }
    quote(body)
}

/// What Go and nginx answer to a request without TLS, or without the client certificate that they
/// want: with 400, as if the data were wrong.
pub(crate) fn speaks_of_tls(words: &str) -> bool {
    [
        "HTTP request to an HTTPS server",
        "plain HTTP request was sent to HTTPS port",
        "No required SSL certificate was sent",
        "The SSL certificate error",
    ]
    .iter()
    .any(|saying| words.contains(saying))
}

/// `Retry-After`: seconds, or a date (RFC 9110, section 10.2.3).
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = header(headers, RETRY_AFTER)?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

fn header(headers: &HeaderMap, name: http::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue, StatusCode};

    const PROTOBUF: (HeaderName, &str) = (CONTENT_TYPE, "application/x-protobuf");
    const JSON: (HeaderName, &str) = (CONTENT_TYPE, "application/json");

    fn answer(status: u16, headers: &[(HeaderName, &'static str)], body: &[u8]) -> Outcome {
        let headers = headers.iter().cloned();
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        let reply = Reply {
            status: StatusCode::from_u16(status).unwrap(),
            headers: headers.collect(),
            body: body.to_vec(),
        };
        judge(&reply, SystemTime::UNIX_EPOCH)
    }

    fn reason(outcome: &Outcome) -> &str {
        match outcome {
            Outcome::Refused { reason }
            | Outcome::Retry { reason, .. }
            | Outcome::Misconfigured { reason } => reason,
            _ => panic!("{outcome:?} has no reason"),
        }
    }

    #[test]
    fn success_is_as_complete_as_its_body_says() {
        let partial = ExportMetricsServiceResponse {
            partial_success: Some(ExportMetricsPartialSuccess {
                rejected_data_points: 2,
                error_message: "old".into(),
            }),
        }
        .encode_to_vec();
        let rejected = Outcome::Partial { rejected_points: 2, message: "old".into() };
        assert_eq!(answer(200, &[PROTOBUF], &partial), rejected);
        let json = br#"{"partialSuccess":{"rejectedDataPoints":"2","errorMessage":"old"}}"#;
        assert_eq!(answer(200, &[JSON], json), rejected);
        for status in [200, 202, 204] {
            assert_eq!(answer(status, &[PROTOBUF], b""), Outcome::Accepted);
        }
        assert_eq!(answer(200, &[JSON], b"{}"), Outcome::Accepted);
        assert_eq!(answer(200, &[JSON], br#"{"partialSuccess":{}}"#), Outcome::Accepted);
        assert_eq!(answer(200, &[], b"ok"), Outcome::Accepted);
    }

    #[test]
    fn a_success_that_cannot_be_read_is_a_warning() {
        let many = br#"{"partialSuccess":{"rejectedDataPoints":"many"}}"#;
        for (content_type, body) in [(PROTOBUF, &b"\xff\xff"[..]), (JSON, b"{"), (JSON, many)] {
            let outcome = answer(200, &[content_type], body);
            assert!(matches!(outcome, Outcome::Partial { rejected_points: 0, .. }), "{outcome:?}");
        }
    }

    #[test]
    fn a_web_page_is_no_acknowledgement() {
        let outcome = answer(200, &[(CONTENT_TYPE, "text/html; charset=utf-8")], b"<html>");
        assert!(matches!(outcome, Outcome::Misconfigured { .. }), "{outcome:?}");
    }

    #[test]
    fn a_busy_receiver_is_asked_again_when_it_says() {
        for status in [429, 502, 503, 504] {
            let outcome = answer(status, &[(RETRY_AFTER, "120")], b"");
            let Outcome::Retry { after, .. } = outcome else { panic!("{status}: {outcome:?}") };
            assert_eq!(after, Some(Duration::from_secs(120)));
        }
        for (value, after) in [
            ("Thu, 01 Jan 1970 00:00:30 GMT", Some(Duration::from_secs(30))),
            ("Wed, 31 Dec 1969 23:59:59 GMT", None),
            ("soon", None),
            ("-1", None),
        ] {
            let Outcome::Retry { after: found, .. } = answer(503, &[(RETRY_AFTER, value)], b"")
            else {
                panic!("no retry");
            };
            assert_eq!(found, after, "{value}");
        }
    }

    #[test]
    fn what_is_wrong_with_the_way_does_not_condemn_the_data() {
        for status in [301, 308, 401, 403, 404, 405, 407, 415, 421, 426] {
            let outcome = answer(status, &[], b"");
            assert!(matches!(outcome, Outcome::Misconfigured { .. }), "{status}: {outcome:?}");
        }
        let outcome = answer(308, &[(LOCATION, "https://elsewhere/")], b"");
        assert!(reason(&outcome).contains("https://elsewhere/"), "{outcome:?}");
        for words in [
            &b"Client sent an HTTP request to an HTTPS server.\n"[..],
            b"<html><title>400 No required SSL certificate was sent</title></html>",
        ] {
            let outcome = answer(400, &[], words);
            assert!(matches!(outcome, Outcome::Misconfigured { .. }), "{outcome:?}");
        }
    }

    #[test]
    fn a_refusal_carries_the_receivers_words() {
        let status = RpcStatus { code: 3, message: "bad unit".into(), ..Default::default() };
        let text = (CONTENT_TYPE, "text/plain");
        for (content_type, body) in [
            (PROTOBUF, status.encode_to_vec()),
            (JSON, br#"{"code":3,"message":"bad unit"}"#.to_vec()),
            (JSON, br#"{"error":{"code":400,"message":"bad unit"}}"#.to_vec()),
            (JSON, br#"{"error":"bad unit"}"#.to_vec()),
            (text, b"bad unit\n".to_vec()),
        ] {
            let outcome = answer(400, &[content_type], &body);
            assert_eq!(outcome, Outcome::refused("HTTP 400 Bad Request: bad unit"));
        }
        for status in [400, 408, 413, 422, 500, 501, 505] {
            assert!(matches!(answer(status, &[], b""), Outcome::Refused { .. }), "{status}");
        }
    }
}

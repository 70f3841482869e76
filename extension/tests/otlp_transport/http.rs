//! OTLP/HTTP against a receiver with faults.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
};
use prost::Message;
use warpgauge::config::export::{Compression, Export, Protocol};
use warpgauge::otlp::sender::{self, Outcome};

use crate::http_receiver::{Behaviour, HttpReceiver, response};
use crate::requests::{
    assert_misconfigured, assert_refused, assert_retry, header, reason, request, send, send_within,
    settings,
};

/// Short, for receivers that never answer.
const MOMENT: Duration = Duration::from_millis(400);

fn to(receiver: &HttpReceiver) -> Export {
    to_url(&receiver.url())
}

fn to_url(url: &str) -> Export {
    Export {
        protocol: Some(Protocol::HttpProtobuf),
        endpoint: Some(url.to_owned()),
        ..Export::default()
    }
}

fn answering(status: &str, headers: &[&str], body: &[u8]) -> (HttpReceiver, Outcome) {
    let receiver = HttpReceiver::start(Behaviour::respond(status, headers, body));
    let outcome = send(&to(&receiver));
    (receiver, outcome)
}

#[test]
fn a_request_arrives_as_the_protocol_has_it() {
    let receiver = HttpReceiver::start(Behaviour::respond("200 OK", &[], b""));
    let headers = header("Api-Token", "100%25 s3cret");
    let outcome = send(&Export { headers, ..to(&receiver) });
    assert_eq!(outcome, Outcome::Accepted);
    let received = receiver.received();
    let [received] = received.as_slice() else { panic!("{received:?}") };
    assert_eq!(received.request_line, "POST /v1/metrics HTTP/1.1");
    assert_eq!(received.header("content-type"), Some("application/x-protobuf"));
    assert_eq!(received.header("content-encoding"), Some("gzip"));
    assert_eq!(received.header("api-token"), Some("100%25 s3cret"));
    assert_eq!(received.header("host"), Some(receiver.address.to_string().as_str()));
    let user_agent = received.header("user-agent").unwrap();
    assert!(user_agent.starts_with("warpgauge/"), "{user_agent}");
    assert!(user_agent.contains("OTel-OTLP-Exporter-Rust/"), "{user_agent}");
    assert_eq!(received.message(), request(7));
}

#[test]
fn the_same_request_is_the_same_bytes_each_time() {
    for compression in [Compression::Gzip, Compression::None] {
        let receiver = HttpReceiver::start(Behaviour::respond("503 Busy", &[], b""));
        let export = Export { compression: Some(compression), ..to(&receiver) };
        let mut sender = sender::open(&settings(&export)).unwrap();
        for _ in 0..2 {
            assert_retry(&sender.send(&request(7), Instant::now() + Duration::from_secs(60)));
        }
        assert_retry(&send(&export));
        let received = receiver.received();
        assert_eq!(received.len(), 3, "each send is one request");
        assert!(received.iter().all(|each| *each == received[0]), "{received:?}");
        assert_eq!(received[0].message(), request(7));
    }
}

#[test]
fn requests_of_one_sender_share_a_connection() {
    let receiver = HttpReceiver::start(Behaviour::respond("200 OK", &[], b""));
    let mut sender = sender::open(&settings(&to(&receiver))).unwrap();
    for instructions in 0..3 {
        let outcome = sender.send(&request(instructions), Instant::now() + Duration::from_secs(60));
        assert_eq!(outcome, Outcome::Accepted);
    }
    let received = receiver.received();
    let messages: Vec<_> = received.iter().map(|received| received.message()).collect();
    assert_eq!(messages, [request(0), request(1), request(2)]);
}

#[test]
fn a_partial_success_says_how_many_points_were_lost() {
    let body = ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess {
            rejected_data_points: 3,
            error_message: "cumulative sums are not supported".into(),
        }),
    }
    .encode_to_vec();
    let (_, outcome) = answering("200 OK", &["content-type: application/x-protobuf"], &body);
    let message = "cumulative sums are not supported".to_owned();
    assert_eq!(outcome, Outcome::Partial { rejected_points: 3, message });
}

#[test]
fn a_chunked_answer_is_read() {
    let partial = ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess {
            rejected_data_points: 1,
            error_message: String::new(),
        }),
    }
    .encode_to_vec();
    let mut answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\n\
                       transfer-encoding: chunked\r\n\r\n"
        .to_vec();
    for byte in &partial {
        answer.extend([b'1', b'\r', b'\n', *byte, b'\r', b'\n']);
    }
    answer.extend(b"0\r\n\r\n");
    let receiver = HttpReceiver::start(Behaviour::Answer(answer));
    let outcome = send(&to(&receiver));
    assert!(matches!(outcome, Outcome::Partial { rejected_points: 1, .. }), "{outcome:?}");
}

#[test]
fn a_refusal_says_what_the_receiver_said_and_where() {
    let (receiver, outcome) = answering("400 Bad Request", &[], b"no such unit");
    assert_refused(&outcome);
    assert!(reason(&outcome).contains("no such unit"), "{outcome:?}");
    assert!(reason(&outcome).contains(&receiver.address.to_string()), "{outcome:?}");
}

#[test]
fn a_token_that_the_receiver_echoes_is_hidden() {
    let answer = Behaviour::respond("400 Bad Request", &[], b"token dt0c01.XYZ is unknown");
    let receiver = HttpReceiver::start(answer);
    let headers = header("Authorization", "Api-Token dt0c01.XYZ");
    let outcome = send(&Export { headers, ..to(&receiver) });
    assert!(!format!("{outcome:?}").contains("XYZ"), "{outcome:?}");
}

#[test]
fn a_wrong_token_or_path_leaves_the_data_for_later() {
    let (_, outcome) = answering("401 Unauthorized", &[], b"");
    assert_misconfigured(&outcome, "export.headers");
    let (_, outcome) = answering("404 Not Found", &[], b"");
    assert_misconfigured(&outcome, "path");
}

#[test]
fn a_busy_receiver_is_heard() {
    let (_, outcome) = answering("503 Service Unavailable", &["retry-after: 17"], b"maintenance");
    let Outcome::Retry { reason, after } = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("maintenance"), "{reason}");
    assert_eq!(after, Some(Duration::from_secs(17)));
}

#[test]
fn a_redirect_is_not_followed() {
    let elsewhere = HttpReceiver::start(Behaviour::respond("200 OK", &[], b""));
    for status in ["301 Moved Permanently", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let location = format!("location: {}/v1/metrics", elsewhere.url());
        let (_, outcome) = answering(status, &[&location], b"");
        assert_misconfigured(&outcome, &elsewhere.url());
    }
    assert_eq!(elsewhere.received(), []);
}

#[test]
fn a_huge_answer_is_read_to_a_bound() {
    let (_, outcome) = answering("400 Bad Request", &[], &vec![b'x'; 5_000_000]);
    assert_refused(&outcome);
    assert!(reason(&outcome).len() < 5000, "{} bytes kept", reason(&outcome).len());
    let endless = b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n".to_vec();
    let endless = [endless, vec![b'x'; 100_000]].concat();
    let receiver = HttpReceiver::start(Behaviour::Answer(endless));
    assert_eq!(send_within(&to(&receiver), MOMENT * 5), Outcome::Accepted);
}

#[test]
fn endless_headers_are_no_answer() {
    let headers = format!("x-long: {}", "x".repeat(500_000));
    let (_, outcome) = answering("200 OK", &[&headers], b"");
    assert_retry(&outcome);
}

#[test]
fn nobody_there_means_later() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let outcome = send(&to_url(&url));
    assert_retry(&outcome);
    assert!(reason(&outcome).contains("refused"), "{outcome:?}");
    assert_retry(&send(&to_url("http://no-such-host.invalid:4318")));
}

#[test]
fn a_receiver_that_hangs_is_given_up_at_the_deadline() {
    let receiver = HttpReceiver::start(Behaviour::Hang);
    let outcome = send_within(&to(&receiver), MOMENT);
    assert_retry(&outcome);
    assert!(reason(&outcome).contains("within 0.4 s"), "{outcome:?}");
}

#[test]
fn a_receiver_that_hangs_is_given_up_at_the_timeout_of_the_settings() {
    let receiver = HttpReceiver::start(Behaviour::Hang);
    let outcome = send(&Export { timeout: Some(MOMENT), ..to(&receiver) });
    assert_retry(&outcome);
    assert!(reason(&outcome).contains("within 0.4 s"), "{outcome:?}");
}

#[test]
fn a_receiver_that_never_accepts_is_given_up_at_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    assert_retry(&send_within(&to_url(&url), MOMENT));
}

#[test]
fn a_receiver_that_trickles_is_given_up_at_the_deadline() {
    for body in [&b""[..], &[b'x'; 60]] {
        let answer = response("200 OK", &["x-filler: 0123456789012345678901234567890"], body);
        let receiver = HttpReceiver::start(Behaviour::Trickle(answer));
        assert_retry(&send_within(&to(&receiver), MOMENT));
    }
}

#[test]
fn an_answer_that_breaks_off_is_no_answer() {
    let whole = response("200 OK", &["content-type: application/x-protobuf"], &[0; 100]);
    for kept in [0, 5, 30, whole.len() - 50] {
        let broken = whole[..kept].to_vec();
        let receiver = HttpReceiver::start(Behaviour::AnswerAndClose(broken));
        assert_retry(&send(&to(&receiver)));
    }
}

#[test]
fn an_answer_in_another_protocol_is_named() {
    // The first frame of every HTTP/2 server: its settings.
    let settings_frame = b"\0\0\x06\x04\0\0\0\0\0\0\x05\0\0\x40\0".to_vec();
    let receiver = HttpReceiver::start(Behaviour::AnswerAndClose(settings_frame));
    assert_misconfigured(&send(&to(&receiver)), "gRPC");
}

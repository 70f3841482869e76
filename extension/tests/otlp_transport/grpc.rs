//! OTLP/gRPC against a receiver with faults.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceResponse,
};
use prost::Message;
use warpgauge::config::export::{Compression, Export, Protocol};
use warpgauge::otlp::sender::{self, Outcome};

use crate::grpc_receiver::{Behaviour, GrpcReceiver};
use crate::http_receiver::tell_anyone;
use crate::requests::{
    assert_misconfigured, assert_refused, assert_retry, header, reason, request, send, send_within,
    settings,
};

const MOMENT: Duration = Duration::from_millis(400);

fn to(receiver: &GrpcReceiver) -> Export {
    to_url(&receiver.url())
}

fn to_url(url: &str) -> Export {
    Export { protocol: Some(Protocol::Grpc), endpoint: Some(url.to_owned()), ..Export::default() }
}

fn failing(code: u8, message: &str) -> Outcome {
    let trailers = vec![("grpc-status", code.to_string()), ("grpc-message", message.to_owned())];
    send(&to(&GrpcReceiver::start(Behaviour::Fail(trailers))))
}

#[test]
fn a_call_arrives_as_the_protocol_has_it() {
    for (compression, encoding) in [(Compression::Gzip, Some("gzip")), (Compression::None, None)] {
        let receiver = GrpcReceiver::start(Behaviour::Accept);
        let outcome = send(&Export {
            headers: header("Authorization", "Bearer s3cret"),
            compression: Some(compression),
            ..to(&receiver)
        });
        assert_eq!(outcome, Outcome::Accepted);
        let received = receiver.received();
        let [received] = received.as_slice() else { panic!("{received:?}") };
        assert_eq!(
            received.path,
            "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
        );
        let header = |name| received.headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!(header("authorization"), Some("Bearer s3cret"));
        assert_eq!(header("grpc-encoding"), encoding);
        assert!(header("grpc-timeout").is_some());
        assert!(header("user-agent").unwrap().starts_with("warpgauge/"));
        assert_eq!(received.message, request(7));
    }
}

#[test]
fn calls_of_one_sender_share_a_channel_and_survive_a_refusal() {
    let receiver = GrpcReceiver::start(Behaviour::Accept);
    let mut sender = sender::open(&settings(&to(&receiver))).unwrap();
    for instructions in 0..3 {
        let outcome = sender.send(&request(instructions), Instant::now() + Duration::from_secs(60));
        assert_eq!(outcome, Outcome::Accepted);
    }
    let messages: Vec<_> = receiver.received().into_iter().map(|call| call.message).collect();
    assert_eq!(messages, [request(0), request(1), request(2)]);
}

#[test]
fn a_partial_success_says_how_many_points_were_lost() {
    let message = ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess {
            rejected_data_points: 3,
            error_message: "too old".into(),
        }),
    };
    let receiver = GrpcReceiver::start(Behaviour::Respond(message.encode_to_vec()));
    let outcome = send(&to(&receiver));
    assert_eq!(outcome, Outcome::Partial { rejected_points: 3, message: "too old".into() });
}

#[test]
fn an_acceptance_that_cannot_be_read_is_an_acceptance() {
    let receiver = GrpcReceiver::start(Behaviour::Respond(vec![0xff; 9]));
    assert_eq!(send(&to(&receiver)), Outcome::Accepted);
}

#[test]
fn a_refusal_says_what_the_receiver_said_and_where() {
    let outcome = failing(3, "no such unit");
    assert_refused(&outcome);
    assert!(reason(&outcome).contains("no such unit"), "{outcome:?}");
    assert!(reason(&outcome).contains("http://127.0.0.1:"), "{outcome:?}");
}

#[test]
fn a_wrong_token_or_service_leaves_the_data_for_later() {
    assert_misconfigured(&failing(16, "who?"), "export.headers");
    assert_misconfigured(&failing(7, "no"), "export.headers");
    assert_misconfigured(&failing(12, "unknown service"), "unknown service");
}

#[test]
fn a_busy_receiver_is_asked_again() {
    for code in [1, 4, 8, 10, 11, 14, 15] {
        assert_retry(&failing(code, "busy"));
    }
}

#[test]
fn a_proxy_in_between_does_not_condemn_the_data() {
    for status in [502, 503, 504, 429] {
        let receiver = GrpcReceiver::start(Behaviour::Proxy(status));
        assert_retry(&send(&to(&receiver)));
    }
    for status in [400, 401, 403, 404] {
        let receiver = GrpcReceiver::start(Behaviour::Proxy(status));
        let outcome = send(&to(&receiver));
        assert!(matches!(outcome, Outcome::Misconfigured { .. }), "{status}: {outcome:?}");
    }
    for status in [200, 500] {
        let receiver = GrpcReceiver::start(Behaviour::Proxy(status));
        let outcome = send(&to(&receiver));
        assert_retry(&outcome);
    }
}

#[test]
fn a_stream_that_is_reset_is_no_answer() {
    let receiver = GrpcReceiver::start(Behaviour::Reset);
    assert_retry(&send(&to(&receiver)));
}

#[test]
fn garbage_in_the_status_details_ends_a_call_and_not_the_process() {
    let trailers =
        vec![("grpc-status", "8".into()), ("grpc-status-details-bin", "!not base64!".into())];
    let receiver = GrpcReceiver::start(Behaviour::Fail(trailers));
    assert_retry(&send(&to(&receiver)));
}

#[test]
fn nobody_there_means_later() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let outcome = send(&to_url(&url));
    assert_retry(&outcome);
    assert!(reason(&outcome).contains("refused"), "{outcome:?}");
    assert_retry(&send(&to_url("http://no-such-host.invalid:4317")));
}

#[test]
fn a_receiver_that_hangs_is_given_up_at_the_deadline() {
    let receiver = GrpcReceiver::start(Behaviour::Hang);
    let outcome = send_within(&to(&receiver), MOMENT);
    assert_retry(&outcome);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    assert_retry(&send_within(&to_url(&url), MOMENT));
}

#[test]
fn a_sender_that_gave_up_can_send_again() {
    let receiver = GrpcReceiver::start(Behaviour::Hang);
    let mut sender = sender::open(&settings(&to(&receiver))).unwrap();
    for _ in 0..2 {
        assert_retry(&sender.send(&request(7), Instant::now() + MOMENT));
    }
    assert_eq!(receiver.received().len(), 2);
}

#[test]
fn a_port_for_http_1_is_named() {
    let address = tell_anyone(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    assert_misconfigured(&send(&to_url(&format!("http://{address}"))), "does not speak gRPC");
}

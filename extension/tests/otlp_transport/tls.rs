//! Trust, and the lack of it, over HTTP and gRPC alike.

use std::sync::Arc;

use rustls::ServerConfig;
use warpgauge::config::export::{Export, Protocol};
use warpgauge::otlp::sender::Outcome;

use crate::certificates::{Authority, Certified, Files};
use crate::grpc_receiver::{self, GrpcReceiver};
use crate::http_receiver::{Behaviour, HttpReceiver, tell_anyone};
use crate::requests::{assert_misconfigured, assert_retry, send};

/// Sends to a receiver with this TLS by both protocols; `export` has the client's certificates.
fn send_by_both(tls: &Arc<ServerConfig>, host: &str, export: &Export) -> [Outcome; 2] {
    let http = HttpReceiver::start_tls(Behaviour::respond("200 OK", &[], b""), Arc::clone(tls));
    let grpc = GrpcReceiver::start_tls(grpc_receiver::Behaviour::Accept, Arc::clone(tls));
    let destinations =
        [(Protocol::HttpProtobuf, http.address.port()), (Protocol::Grpc, grpc.address.port())];
    destinations.map(|(protocol, port)| {
        send(&Export {
            protocol: Some(protocol),
            endpoint: Some(format!("https://{host}:{port}")),
            ..export.clone()
        })
    })
}

fn trusting(authority: &Authority, files: &Files) -> Export {
    let ca_file = files.add("ca.pem", &authority.certificate);
    Export { ca_file: Some(ca_file), ..Export::default() }
}

fn presenting(certified: &Certified, files: &Files, export: Export) -> Export {
    Export {
        client_certificate_file: Some(files.add("client.pem", &certified.certificate)),
        client_key_file: Some(files.add("client.key", &certified.key)),
        ..export
    }
}

#[test]
fn a_receiver_with_a_trusted_certificate_gets_the_request() {
    let (authority, files) = (Authority::new(), Files::new());
    let export = trusting(&authority, &files);
    for host in ["localhost", "127.0.0.1"] {
        let outcomes = send_by_both(&authority.sign(host).server(None), host, &export);
        assert_eq!(outcomes, [Outcome::Accepted, Outcome::Accepted], "{host}");
    }
}

#[test]
fn a_receiver_whom_nobody_vouches_for_gets_nothing() {
    let (authority, files) = (Authority::new(), Files::new());
    let tls = authority.sign("localhost").server(None);
    for export in [trusting(&Authority::new(), &files), Export::default()] {
        for outcome in send_by_both(&tls, "localhost", &export) {
            assert_misconfigured(&outcome, "ca_file");
        }
    }
}

#[test]
fn an_expired_certificate_is_named() {
    let (authority, files) = (Authority::new(), Files::new());
    let tls = authority.sign_expired("localhost").server(None);
    for outcome in send_by_both(&tls, "localhost", &trusting(&authority, &files)) {
        assert_misconfigured(&outcome, "has expired");
    }
}

#[test]
fn a_certificate_for_another_host_is_named() {
    let (authority, files) = (Authority::new(), Files::new());
    let tls = authority.sign("collector.example.com").server(None);
    for outcome in send_by_both(&tls, "localhost", &trusting(&authority, &files)) {
        assert_misconfigured(&outcome, "another host");
    }
}

#[test]
fn a_receiver_that_demands_a_certificate_takes_the_right_one() {
    let (authority, files) = (Authority::new(), Files::new());
    let tls = authority.sign("localhost").server(Some(&authority));
    let client = authority.sign("warpgauge");
    let export = presenting(&client, &files, trusting(&authority, &files));
    let outcomes = send_by_both(&tls, "localhost", &export);
    assert_eq!(outcomes, [Outcome::Accepted, Outcome::Accepted]);
}

#[test]
fn a_receiver_that_demands_a_certificate_says_so() {
    let (authority, files) = (Authority::new(), Files::new());
    let tls = authority.sign("localhost").server(Some(&authority));
    for outcome in send_by_both(&tls, "localhost", &trusting(&authority, &files)) {
        assert_misconfigured(&outcome, "client certificate");
    }
}

#[test]
fn a_client_certificate_of_a_stranger_is_turned_down() {
    let (authority, files) = (Authority::new(), Files::new());
    let tls = authority.sign("localhost").server(Some(&authority));
    let stranger = Authority::new().sign("warpgauge");
    let export = presenting(&stranger, &files, trusting(&authority, &files));
    for outcome in send_by_both(&tls, "localhost", &export) {
        assert_misconfigured(&outcome, "client certificate");
    }
}

#[test]
fn tls_to_a_port_without_it_is_named() {
    for protocol in [Protocol::HttpProtobuf, Protocol::Grpc] {
        let address = tell_anyone(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        let outcome = send(&Export {
            protocol: Some(protocol),
            endpoint: Some(format!("https://{address}")),
            ..Export::default()
        });
        assert_misconfigured(&outcome, "does not speak TLS");
    }
}

#[test]
fn a_port_with_tls_reached_without_it_is_named() {
    let tls = Authority::new().sign("localhost").server(None);
    let receiver = HttpReceiver::start_tls(Behaviour::respond("200 OK", &[], b""), tls);
    let export = Export { endpoint: Some(receiver.url()), ..Export::default() };
    let http = send(&Export { protocol: Some(Protocol::HttpProtobuf), ..export.clone() });
    assert_misconfigured(&http, "TLS");
    let grpc = send(&Export { protocol: Some(Protocol::Grpc), ..export });
    assert_misconfigured(&grpc, "TLS");
}

#[test]
fn a_handshake_that_hangs_is_given_up_at_the_deadline() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    for protocol in [Protocol::HttpProtobuf, Protocol::Grpc] {
        let export = Export {
            protocol: Some(protocol),
            endpoint: Some(format!("https://{}", listener.local_addr().unwrap())),
            timeout: Some(std::time::Duration::from_millis(400)),
            ..Export::default()
        };
        assert_retry(&send(&export));
    }
}

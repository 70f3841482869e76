//! `[export]` and `OTEL_EXPORTER_OTLP_*`, resolved.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use warpgauge::config::export::{Compression, Export, Preset, Protocol, Temporality};
use warpgauge::otlp::settings::{Finding, Settings};

use crate::certificates::{Authority, Files};
use crate::requests::header;

/// Resolves `export` in an environment of `variables`, each named without `OTEL_EXPORTER_OTLP_`.
fn resolve(export: &Export, variables: &[(&str, &str)]) -> Result<Settings, Vec<Finding>> {
    Settings::resolve(export, &|name| {
        let name = name.strip_prefix("OTEL_EXPORTER_OTLP_")?;
        let (_, value) = variables.iter().find(|(known, _)| *known == name)?;
        Some((*value).to_owned())
    })
}

fn resolved(export: &Export, variables: &[(&str, &str)]) -> Settings {
    resolve(export, variables).unwrap()
}

/// The keys of all faults.
fn faulty_keys(export: &Export, variables: &[(&str, &str)]) -> Vec<String> {
    resolve(export, variables).unwrap_err().into_iter().map(|fault| fault.key).collect()
}

fn to_file() -> Export {
    Export { path: Some("/metrics.jsonl".into()), ..Export::default() }
}

fn to_url(protocol: Protocol, url: &str) -> Export {
    Export { protocol: Some(protocol), endpoint: Some(url.to_owned()), ..Export::default() }
}

fn to_http(url: &str) -> Export {
    to_url(Protocol::HttpProtobuf, url)
}

#[test]
fn file_and_environment_and_default_decide_in_this_order() {
    // The lines hold: protocol and endpoint of the file, variables, destination.
    let (http, grpc) = (Some(Protocol::HttpProtobuf), Some(Protocol::Grpc));
    let default_http = "http://127.0.0.1:4318/v1/metrics";
    let default_grpc = "http://127.0.0.1:4317/";
    for (protocol, endpoint, variables, destination) in [
        (http, None, vec![], (Protocol::HttpProtobuf, default_http)),
        (grpc, None, vec![], (Protocol::Grpc, default_grpc)),
        (
            None,
            None,
            vec![("ENDPOINT", "http://e:1")],
            (Protocol::HttpProtobuf, "http://e:1/v1/metrics"),
        ),
        (
            None,
            None,
            vec![("ENDPOINT", "http://e:1"), ("METRICS_ENDPOINT", "http://m:2/in")],
            (Protocol::HttpProtobuf, "http://m:2/in"),
        ),
        (
            None,
            None,
            vec![("METRICS_ENDPOINT", " "), ("ENDPOINT", "http://e:1")],
            (Protocol::HttpProtobuf, "http://e:1/v1/metrics"),
        ),
        (
            None,
            None,
            vec![("PROTOCOL", "grpc"), ("ENDPOINT", "http://e:1")],
            (Protocol::Grpc, "http://e:1/"),
        ),
        (
            None,
            None,
            vec![("PROTOCOL", "grpc"), ("METRICS_PROTOCOL", "http/protobuf")],
            (Protocol::HttpProtobuf, default_http),
        ),
        (grpc, None, vec![("ENDPOINT", "https://e")], (Protocol::Grpc, "https://e/")),
        (
            http,
            Some("http://f:3/otlp"),
            vec![("PROTOCOL", "grpc"), ("METRICS_ENDPOINT", "http://m:2/in")],
            (Protocol::HttpProtobuf, "http://f:3/otlp/v1/metrics"),
        ),
        (
            None,
            Some("http://f:3/v1/metrics"),
            vec![("ENDPOINT", "http://e:1")],
            (Protocol::HttpProtobuf, "http://f:3/v1/metrics"),
        ),
    ] {
        let endpoint = endpoint.map(str::to_owned);
        let settings = resolved(&Export { protocol, endpoint, ..Export::default() }, &variables);
        let found = settings.destination.to_string();
        assert_eq!((settings.protocol(), found.as_str()), destination, "{variables:?}");
    }
}

#[test]
fn a_path_in_the_file_is_a_destination_whatever_the_environment_says() {
    let settings = resolved(&to_file(), &[("ENDPOINT", "http://e:1"), ("PROTOCOL", "grpc")]);
    assert_eq!(settings.protocol(), Protocol::File);
    assert_eq!(settings.destination.to_string(), "/metrics.jsonl");
    let both = Export { endpoint: Some("http://f:3".into()), ..to_file() };
    assert_eq!(faulty_keys(&both, &[]), ["export.protocol"]);
}

#[test]
fn the_other_values_have_defaults() {
    let settings = resolved(&to_http("http://h"), &[]);
    assert_eq!(settings.temporality, Temporality::Delta);
    assert_eq!(settings.compression, Compression::Gzip);
    assert_eq!(settings.timeout, Duration::from_secs(10));
    assert_eq!(settings.budget, Duration::from_secs(15));
    assert!(settings.tls.is_default());
    assert_eq!(settings.headers.names().count(), 0);
    assert_eq!(settings.warnings(), []);
}

#[test]
fn the_environment_sets_what_the_file_leaves_open() {
    let variables = [
        ("TIMEOUT", "2500"),
        ("COMPRESSION", "none"),
        ("METRICS_TEMPORALITY_PREFERENCE", "Cumulative"),
    ];
    let settings = resolved(&to_http("http://h"), &variables);
    assert_eq!(settings.timeout, Duration::from_millis(2500));
    assert_eq!(settings.compression, Compression::None);
    assert_eq!(settings.temporality, Temporality::Cumulative);

    let said = Export {
        timeout: Some(Duration::from_secs(3)),
        compression: Some(Compression::Gzip),
        temporality: Some(Temporality::Delta),
        ..to_http("http://h")
    };
    let settings = resolved(&said, &variables);
    assert_eq!(settings.timeout, Duration::from_secs(3));
    assert_eq!(settings.compression, Compression::Gzip);
    assert_eq!(settings.temporality, Temporality::Delta);

    let low = [("METRICS_TEMPORALITY_PREFERENCE", "lowmemory"), ("METRICS_TIMEOUT", "1")];
    let settings = resolved(&to_http("http://h"), &low);
    assert_eq!(settings.temporality, Temporality::Delta);
    assert_eq!(settings.timeout, Duration::from_millis(1));
}

#[test]
fn a_preset_brings_its_temporality_before_the_environment() {
    for (preset, temporality) in [
        (Preset::Dynatrace, Temporality::Delta),
        (Preset::Collector, Temporality::Delta),
        (Preset::Prometheus, Temporality::Cumulative),
        (Preset::VictoriaMetrics, Temporality::Cumulative),
    ] {
        let export = Export { preset: Some(preset), ..to_file() };
        for preference in ["delta", "cumulative"] {
            let variables = [("METRICS_TEMPORALITY_PREFERENCE", preference)];
            assert_eq!(resolved(&export, &variables).temporality, temporality);
        }
    }
}

#[test]
fn headers_of_file_and_environment_meet_name_by_name() {
    let export = Export { headers: header("Api-Key", "from file"), ..to_http("http://127.0.0.1") };
    let list = "api-key=from%20list, X-Scope-OrgID = a%2Cb ,,";
    let settings = resolved(&export, &[("HEADERS", list)]);
    let value = |name| settings.headers.get(name).map(|secret| secret.expose().to_owned());
    assert_eq!(value("api-key").as_deref(), Some("from file"));
    assert_eq!(value("x-scope-orgid").as_deref(), Some("a,b"));
    assert_eq!(settings.headers.names().count(), 2);

    let settings = resolved(&export, &[("HEADERS", "x=1"), ("METRICS_HEADERS", "y=2")]);
    let names: Vec<_> = settings.headers.names().map(|name| name.as_str()).collect();
    assert_eq!(names, ["y", "api-key"], "the list for metrics replaces the list for all");
}

#[test]
fn a_token_comes_from_its_file_and_is_never_shown() {
    let files = Files::new();
    let token = files.add("token", "Api-Token dt0c01.secret\n");
    let value = format!("file:{}", token.display());
    let export =
        Export { headers: header("Authorization", &value), ..to_http("https://h?key=dt0c01") };
    let settings = resolved(&export, &[("HEADERS", "x-token=dt0c01.other")]);
    let sent = settings.headers.get("authorization").unwrap();
    assert_eq!(sent.expose(), "Api-Token dt0c01.secret");
    assert!(!format!("{settings:?}").contains("dt0c01"), "{settings:?}");
    assert_eq!(settings.warnings(), []);

    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let settings = resolved(&export, &[]);
    let [warning] = settings.warnings() else { panic!("{:?}", settings.warnings()) };
    assert_eq!(warning.key, "export.headers.Authorization");
    assert!(warning.remedy.contains("chmod"), "{warning}");
    assert!(!warning.to_string().contains("dt0c01"), "{warning}");
}

#[test]
fn every_fault_is_reported_at_once_and_without_secrets() {
    let files = Files::new();
    let headers = [
        ("Authorization", "file:/no/such/token"),
        ("Content-Type", "text/plain"),
        ("bad name", "hunter22"),
        ("x-lines", "hunter22\r\nx-evil: 1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let export = Export {
        protocol: Some(Protocol::HttpProtobuf),
        endpoint: Some("http://user:hunter22@host".into()),
        temporality: Some(Temporality::Delta),
        preset: Some(Preset::Prometheus),
        budget: Some(Duration::ZERO),
        headers: headers.into(),
        ca_file: Some(files.add("ca.pem", "hunter22")),
        client_certificate_file: Some("/no/such/certificate".into()),
        ..Export::default()
    };
    let variables = [("HEADERS", "a=1,hunter22"), ("COMPRESSION", "zstd"), ("TIMEOUT", "soon")];
    let mut keys = faulty_keys(&export, &variables);
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "OTEL_EXPORTER_OTLP_COMPRESSION",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_TIMEOUT",
            "export.budget",
            "export.ca_file",
            "export.client_certificate_file",
            "export.client_certificate_file",
            "export.endpoint",
            "export.headers.Authorization",
            "export.headers.Content-Type",
            "export.headers.bad name",
            "export.headers.x-lines",
            "export.temporality",
        ]
    );
    for fault in resolve(&export, &variables).unwrap_err() {
        assert!(!fault.to_string().contains("hunter22"), "{fault}");
        assert!(!fault.remedy.is_empty(), "{fault}");
    }
}

#[test]
fn a_destination_that_is_none_is_a_fault() {
    assert_eq!(faulty_keys(&Export::default(), &[]), ["export.path"]);
    let relative = Export { path: Some(PathBuf::from("metrics.jsonl")), ..Export::default() };
    assert_eq!(faulty_keys(&relative, &[]), ["export.path"]);
    assert_eq!(faulty_keys(&to_http("collector:4318"), &[]), ["export.endpoint"]);
    let with_path = to_url(Protocol::Grpc, "http://h:4317/v1/metrics");
    assert_eq!(faulty_keys(&with_path, &[]), ["export.endpoint"]);
    let protocol = "OTEL_EXPORTER_OTLP_PROTOCOL";
    assert_eq!(faulty_keys(&Export::default(), &[("PROTOCOL", "http/json")]), [protocol]);
    let endpoint = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
    let variables = [("METRICS_ENDPOINT", "nowhere")];
    assert_eq!(faulty_keys(&Export::default(), &variables), [endpoint]);
    let preference = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
    let variables = [("METRICS_TEMPORALITY_PREFERENCE", "sometimes")];
    assert_eq!(faulty_keys(&to_file(), &variables), [preference]);
}

#[test]
fn what_a_file_does_not_need_is_not_looked_at() {
    let export = Export {
        headers: header("Authorization", "file:/no/such/token"),
        ca_file: Some("/no/such/ca".into()),
        ..to_file()
    };
    let settings = resolved(&export, &[("TIMEOUT", "soon"), ("HEADERS", "?")]);
    assert_eq!(settings.protocol(), Protocol::File);
}

#[test]
fn grpc_keeps_some_header_names_for_itself() {
    for name in ["grpc-timeout", "trace-bin"] {
        let headers = header(name, "1");
        let export = Export { headers, ..to_url(Protocol::Grpc, "http://h") };
        assert_eq!(faulty_keys(&export, &[]), [format!("export.headers.{name}")]);
        let http = Export { protocol: Some(Protocol::HttpProtobuf), ..export };
        assert_eq!(resolved(&http, &[]).headers.names().count(), 1);
    }
}

#[test]
fn certificates_are_checked_when_they_are_read() {
    let (authority, files) = (Authority::new(), Files::new());
    let (ours, theirs) = (authority.sign("ours"), authority.sign("theirs"));
    let ca = files.add("ca.pem", &authority.certificate);
    let certificate = files.add("client.pem", &ours.certificate);
    let key = files.add("client.key", &ours.key);
    let wrong_key = files.add("wrong.key", &theirs.key);
    let path = |path: &PathBuf| path.to_str().unwrap().to_owned();

    let variables = [
        ("CERTIFICATE", path(&ca)),
        ("CLIENT_CERTIFICATE", path(&certificate)),
        ("CLIENT_KEY", path(&key)),
    ];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let settings = resolved(&to_http("https://h"), &variables);
    assert!(!settings.tls.is_default());
    assert!(!format!("{settings:?}").contains("PRIVATE"), "{settings:?}");

    let export = Export {
        client_certificate_file: Some(certificate.clone()),
        client_key_file: Some(wrong_key),
        ..to_http("https://h")
    };
    let faults = resolve(&export, &[]).unwrap_err();
    assert!(faults[0].problem.contains("do not belong together"), "{faults:?}");

    let no_key = Export { client_key_file: None, ..export };
    assert_eq!(faulty_keys(&no_key, &[]), ["export.client_certificate_file"]);
    let no_certificate = Export { client_key_file: Some(key), ..to_http("https://h") };
    assert_eq!(faulty_keys(&no_certificate, &[]), ["export.client_key_file"]);
    let certificate_as_key = [("CERTIFICATE", "/no/such/file")];
    assert_eq!(
        faulty_keys(&to_http("https://h"), &certificate_as_key),
        ["OTEL_EXPORTER_OTLP_CERTIFICATE"]
    );
}

#[test]
fn a_pair_that_is_known_to_lose_data_is_warned_of() {
    let lossy = [
        ("https://abc.live.dynatrace.com/api/v2/otlp", Temporality::Cumulative),
        ("http://vm:8428/opentelemetry", Temporality::Delta),
        ("http://prometheus:9090/api/v1/otlp", Temporality::Delta),
        ("https://mimir/otlp", Temporality::Delta),
    ];
    for (url, temporality) in lossy {
        let export = Export { temporality: Some(temporality), ..to_http(url) };
        let settings = resolved(&export, &[]);
        let [warning] = settings.warnings() else { panic!("{url}: {:?}", settings.warnings()) };
        assert_eq!(warning.key, "export.temporality");
        assert!(warning.remedy.contains("preset"), "{warning}");

        let other = match temporality {
            Temporality::Delta => Temporality::Cumulative,
            Temporality::Cumulative => Temporality::Delta,
        };
        let export = Export { temporality: Some(other), ..to_http(url) };
        assert_eq!(resolved(&export, &[]).warnings(), [], "{url}");
    }
    for temporality in [Temporality::Delta, Temporality::Cumulative] {
        let export = Export { temporality: Some(temporality), ..to_http("http://collector:4318") };
        assert_eq!(resolved(&export, &[]).warnings(), []);
    }
}

#[test]
fn a_secret_on_an_open_line_is_warned_of() {
    for (url, name, warnings) in [
        ("http://10.0.0.1", "Authorization", 1),
        ("http://10.0.0.1", "X-Api-Key", 1),
        ("http://10.0.0.1", "X-Scope-OrgID", 0),
        ("http://127.0.0.1", "Authorization", 0),
        ("https://10.0.0.1", "Authorization", 0),
    ] {
        let export = Export { headers: header(name, "t0k3n"), ..to_http(url) };
        let settings = resolved(&export, &[]);
        assert_eq!(settings.warnings().len(), warnings, "{url} {name}");
        assert!(!format!("{:?}", settings.warnings()).contains("t0k3n"));
    }
}

#[test]
fn a_timeout_that_the_budget_cuts_short_is_warned_of() {
    let export = Export { timeout: Some(Duration::from_secs(16)), ..to_http("http://h") };
    let settings = resolved(&export, &[]);
    assert_eq!(settings.warnings()[0].key, "export.timeout");
}

//! Sample requests, and settings to send them with.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, metric,
    number_data_point,
};
use prost::Message;
use warpgauge::config::export::Export;
use warpgauge::otlp::sender::{self, Outcome};
use warpgauge::otlp::settings::Settings;

/// An encoded request with one sum of the value `instructions`.
pub(crate) fn request(instructions: i64) -> Vec<u8> {
    let point = NumberDataPoint {
        start_time_unix_nano: 1_700_000_000_000_000_000,
        time_unix_nano: 1_700_000_060_000_000_000,
        value: Some(number_data_point::Value::AsInt(instructions)),
        ..Default::default()
    };
    let sum = Sum {
        data_points: vec![point],
        aggregation_temporality: AggregationTemporality::Delta.into(),
        is_monotonic: true,
    };
    let metric = Metric {
        name: "gpu.kernel.instructions".into(),
        unit: "{instruction}".into(),
        data: Some(metric::Data::Sum(sum)),
        ..Default::default()
    };
    let scope = ScopeMetrics { metrics: vec![metric], ..Default::default() };
    let resource = ResourceMetrics { scope_metrics: vec![scope], ..Default::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![resource] }.encode_to_vec()
}

/// The settings of `export` in an empty environment.
pub(crate) fn settings(export: &Export) -> Settings {
    Settings::resolve(export, &|_| None).unwrap()
}

/// Sends one request with the settings of `export`, with more time than any test takes.
pub(crate) fn send(export: &Export) -> Outcome {
    send_within(export, Duration::from_secs(60))
}

/// Sends one request with the settings of `export`.
pub(crate) fn send_within(export: &Export, time: Duration) -> Outcome {
    let mut sender = sender::open(&settings(export)).unwrap();
    sender.send(&request(7), Instant::now() + time)
}

/// One header.
pub(crate) fn header(name: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

/// The reason that an outcome gives.
pub(crate) fn reason(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Refused { reason }
        | Outcome::Retry { reason, .. }
        | Outcome::Misconfigured { reason } => reason,
        Outcome::Accepted | Outcome::Partial { .. } => panic!("{outcome:?} has no reason"),
    }
}

#[track_caller]
pub(crate) fn assert_retry(outcome: &Outcome) {
    assert!(matches!(outcome, Outcome::Retry { .. }), "{outcome:?}");
}

#[track_caller]
pub(crate) fn assert_refused(outcome: &Outcome) {
    assert!(matches!(outcome, Outcome::Refused { .. }), "{outcome:?}");
}

/// The outcome keeps the data for a person, and its reason names the cause.
#[track_caller]
pub(crate) fn assert_misconfigured(outcome: &Outcome, cause: &str) {
    assert!(matches!(outcome, Outcome::Misconfigured { .. }), "{outcome:?}");
    assert!(reason(outcome).contains(cause), "{outcome:?} does not say `{cause}`");
}

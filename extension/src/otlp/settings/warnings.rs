//! What works and yet loses or shows data.

use super::{Destination, Finding, Settings};
use crate::config::export::Temporality;
use crate::otlp::endpoint::Endpoint;

/// Every warning about `settings`.
pub(super) fn of(settings: &Settings) -> Vec<Finding> {
    let mut found = vec![];
    let endpoint = match &settings.destination {
        Destination::File(_) => return found,
        Destination::Http(endpoint) => {
            found.extend(temporality(endpoint, settings.temporality));
            endpoint
        }
        Destination::Grpc(endpoint) => endpoint,
    };
    found.extend(plain_text(endpoint, settings));
    if settings.timeout > settings.budget {
        found.push(finding(
            "export.timeout",
            "is longer than `export.budget`, which ends all sending of a pass",
            "raise the budget or lower the timeout",
        ));
    }
    found
}

/// A destination that is known to lose sums of this temporality, recognised by its URL.
///
/// Seen in trials: VictoriaMetrics 1.112 answers 200 to delta sums and drops them; Dynatrace
/// refuses cumulative ones; Prometheus 3 and Mimir drop or refuse delta unless told otherwise.
fn temporality(endpoint: &Endpoint, temporality: Temporality) -> Option<Finding> {
    let host = endpoint.host();
    let path = endpoint.path();
    let dynatrace = path.contains("/api/v2/otlp/")
        || host.ends_with(".dynatrace.com")
        || host.ends_with(".dynatracelabs.com");
    match temporality {
        Temporality::Cumulative if dynatrace => Some(finding(
            "export.temporality",
            "Dynatrace refuses cumulative sums",
            "set `preset = \"dynatrace\"`",
        )),
        Temporality::Delta if path.contains("/opentelemetry/") => Some(finding(
            "export.temporality",
            "VictoriaMetrics answers 200 to delta sums and drops them",
            "set `preset = \"victoriametrics\"`",
        )),
        Temporality::Delta if path.contains("/api/v1/otlp/") => Some(finding(
            "export.temporality",
            "Prometheus drops delta sums unless `otlp-deltatocumulative` is enabled there",
            "set `preset = \"prometheus\"`",
        )),
        Temporality::Delta if path.contains("/otlp/") && !dynatrace => Some(finding(
            "export.temporality",
            "this looks like Mimir, which refuses delta sums unless told otherwise",
            "set `preset = \"prometheus\"`",
        )),
        _ => None,
    }
}

/// Secrets that travel in the clear, and TLS settings that nothing uses.
fn plain_text(endpoint: &Endpoint, settings: &Settings) -> Vec<Finding> {
    let mut found = vec![];
    if endpoint.is_tls() {
        return found;
    }
    if !endpoint.is_loopback()
        && let Some(name) = settings.headers.names().find(|name| names_a_secret(name.as_str()))
    {
        found.push(finding(
            "export.endpoint",
            &format!("the header `{name}` travels unencrypted to {}", endpoint.host()),
            "use `https`",
        ));
    }
    if !settings.tls.is_default() {
        found.push(finding(
            "export.endpoint",
            "certificates are given, but plain `http` uses none",
            "use `https`, or remove them",
        ));
    }
    found
}

/// The header's name says that its value opens a door.
fn names_a_secret(name: &str) -> bool {
    ["authorization", "key", "token", "secret", "password", "cookie"]
        .iter()
        .any(|word| name.contains(word))
}

fn finding(key: &str, problem: &str, remedy: &str) -> Finding {
    Finding { key: key.to_owned(), problem: problem.to_owned(), remedy: remedy.to_owned() }
}

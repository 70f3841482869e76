//! Sends one encoded request the way a pass would, and says what became of it.
//!
//! ```text
//! OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 send <request.bin     to a receiver
//! send /tmp/metrics.otlp.jsonl <request.bin                              to a file
//! ```
//!
//! Standard input is an `ExportMetricsServiceRequest` (protobuf). Standard output is one line of
//! JSON with `outcome` and what belongs to it. The exit status is 0 once something was sent.

use std::io::Read;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};
use warpgauge::config::export::Export;
use warpgauge::otlp::sender::{self, Outcome};
use warpgauge::otlp::settings::Settings;

fn main() -> anyhow::Result<()> {
    let path = std::env::args_os().nth(1).map(Into::into);
    let export = Export { path, ..Export::default() };
    let settings =
        Settings::resolve(&export, &|name| std::env::var(name).ok()).map_err(|faults| {
            let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("{}", faults.join("\n"))
        })?;
    for warning in settings.warnings() {
        eprintln!("warning: {warning}");
    }
    let mut request = Vec::new();
    std::io::stdin().read_to_end(&mut request).context("cannot read the request")?;
    let mut sender = sender::open(&settings)?;
    println!("{}", describe(sender.send(&request, Instant::now() + settings.budget)));
    Ok(())
}

fn describe(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Accepted => json!({ "outcome": "accepted" }),
        Outcome::Partial { rejected_points, message } => {
            json!({ "outcome": "partial", "rejected_points": rejected_points, "message": message })
        }
        Outcome::Refused { reason } => json!({ "outcome": "refused", "reason": reason }),
        Outcome::Retry { reason, after } => {
            let after = after.map(|after| after.as_secs_f64());
            json!({ "outcome": "retry", "reason": reason, "after": after })
        }
        Outcome::Misconfigured { reason } => {
            json!({ "outcome": "misconfigured", "reason": reason })
        }
    }
}

//! How telemetry is read, as arguments.

use clap::Args;

use crate::events::telemetry::Reading;

/// The heading under which they stand.
const HEADING: &str = "Telemetry";

/// What telemetry may say and what stands in for what it does not.
#[derive(Debug, Args)]
pub(super) struct Telemetry {
    /// Take job_id, rank, local_rank and world_size, which later producers write
    #[arg(long, help_heading = HEADING)]
    accept_distributed: bool,
    /// Collector of legacy records that do not hint at theirs [default: legacy.unknown]
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    default_collector: Option<String>,
    /// Sampling interval of legacy records without one [default: 0]
    #[arg(long, value_name = "MS", help_heading = HEADING, value_parser = clap::value_parser!(i64).range(0..))]
    default_sampling_interval_ms: Option<i64>,
    /// Key of the list of events, where a document's is not `events`
    #[arg(long, value_name = "KEY", help_heading = HEADING)]
    events_key: Option<String>,
}

impl Telemetry {
    /// Whether nothing is asked.
    pub(super) fn is_empty(&self) -> bool {
        !self.accept_distributed
            && self.default_collector.is_none()
            && self.default_sampling_interval_ms.is_none()
            && self.events_key.is_none()
    }

    /// The reading that they mean.
    pub(super) fn reading(&self) -> Reading {
        let mut reading = Reading::default();
        reading.options.accept_distributed = self.accept_distributed;
        if let Some(collector) = &self.default_collector {
            reading.options.default_collector.clone_from(collector);
        }
        if let Some(interval) = self.default_sampling_interval_ms {
            reading.options.default_sampling_interval_ms = interval;
        }
        reading.events_key.clone_from(&self.events_key);
        reading
    }
}

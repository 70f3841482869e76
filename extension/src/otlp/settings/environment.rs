//! The variables `OTEL_EXPORTER_OTLP_*`.

const FOR_METRICS: &str = "OTEL_EXPORTER_OTLP_METRICS_";
const FOR_ALL_SIGNALS: &str = "OTEL_EXPORTER_OTLP_";

/// The environment, behind a lookup so that each caller owns its world.
pub(super) struct Environment<'a>(&'a dyn Fn(&str) -> Option<String>);

impl<'a> Environment<'a> {
    pub(super) fn new(lookup: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self(lookup)
    }

    /// The variable that ends in `name`, for metrics or else for all signals, and its value. An
    /// empty value counts as unset (OpenTelemetry specification, "Environment Variable
    /// Specification").
    pub(super) fn find(&self, name: &str) -> Option<(String, String)> {
        self.find_for_metrics(name).or_else(|| self.read(format!("{FOR_ALL_SIGNALS}{name}")))
    }

    /// The same, for what only metrics have.
    pub(super) fn find_for_metrics(&self, name: &str) -> Option<(String, String)> {
        self.read(format!("{FOR_METRICS}{name}"))
    }

    fn read(&self, variable: String) -> Option<(String, String)> {
        let value = (self.0)(&variable)?;
        (!value.trim().is_empty()).then(|| (variable, value.trim().to_owned()))
    }

    /// The variable speaks of metrics alone.
    pub(super) fn is_for_metrics(variable: &str) -> bool {
        variable.starts_with(FOR_METRICS)
    }
}

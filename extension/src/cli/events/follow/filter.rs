//! Which events are shown.

use regex::Regex;
use warpgauge_formats::event::{Event, What};

/// What `--type` takes: the `type` of an event's JSON, or the first word of several.
pub(in crate::cli::events) const TYPES: [&str; 16] = [
    "start",
    "end",
    "sampling",
    "sampling_start",
    "sampling_stop",
    "kernel",
    "kernel_details",
    "copy",
    "scope",
    "scope_begin",
    "scope_end",
    "scope_continue",
    "scope_suspend",
    "scope_sample",
    "profile_sample",
    "system_sample",
];

/// The types and the names that are asked for.
pub(super) struct Filter<'f> {
    /// None asks for all.
    types: &'f [String],
    name: Option<&'f Regex>,
}

impl<'f> Filter<'f> {
    pub(super) fn new(types: &'f [String], name: Option<&'f Regex>) -> Self {
        Self { types, name }
    }

    pub(super) fn passes(&self, event: &Event<'_>) -> bool {
        let is_type = |asked: &String| match (asked.as_str(), &event.what) {
            ("scope", What::Scope(_)) | ("sampling", What::Sampling(_)) => true,
            (asked, what) => asked == what.name(),
        };
        let is_asked_for = self.types.is_empty() || self.types.iter().any(is_type);
        let has_name =
            |pattern: &Regex| name(&event.what).is_some_and(|name| pattern.is_match(name));
        is_asked_for && self.name.is_none_or(has_name)
    }
}

/// What an event is called by: the kernel, the scope, the kind of a copy, the sampled function, or
/// the sampling. Sessions and details have no name.
pub(super) fn name<'e>(what: &'e What<'_>) -> Option<&'e str> {
    match what {
        What::Kernel(kernel) => Some(&kernel.name),
        What::Scope(scope) => Some(&scope.name),
        What::Copy(copy) => copy.name.as_deref().or(copy.kind.name()),
        What::Profile(sample) => sample.function.as_deref(),
        What::Sampling(sampling) => sampling.name.as_deref(),
        What::System(system) => system.name.as_deref(),
        What::Start(_) | What::End(_) | What::KernelDetails(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use warpgauge_formats::event::{Kernel, Phase, Scope, Source};

    use super::*;

    fn event(what: What<'static>) -> Event<'static> {
        Event { source: Source::default(), what }
    }

    #[test]
    fn a_type_is_that_of_the_json_or_the_first_word_of_several() {
        let end = event(What::Scope(Scope { phase: Phase::End, ..Scope::default() }));
        let kernel = event(What::Kernel(Kernel::default()));
        let passes = |types: &[&str], event: &Event<'_>| {
            let types: Vec<_> = types.iter().map(ToString::to_string).collect();
            Filter::new(&types, None).passes(event)
        };
        assert!(passes(&[], &end) && passes(&["scope"], &end) && passes(&["scope_end"], &end));
        assert!(!passes(&["scope_begin", "kernel"], &end));
        assert!(passes(&["scope", "kernel"], &kernel) && !passes(&["kernel_details"], &kernel));
    }

    #[test]
    fn a_name_is_searched_and_what_has_none_does_not_pass() {
        let pattern = Regex::new("^ge..$").unwrap();
        let filter = Filter::new(&[], Some(&pattern));
        let named = |name: &'static str| {
            event(What::Kernel(Kernel { name: name.into(), ..Kernel::default() }))
        };
        assert!(filter.passes(&named("gemm")) && !filter.passes(&named("relu")));
        assert!(!filter.passes(&event(What::End(warpgauge_formats::time::Timestamp(1)))));
    }
}

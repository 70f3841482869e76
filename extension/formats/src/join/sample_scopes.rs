//! Profile samples and the scope that their kernel ran in.

use std::collections::{HashMap, VecDeque};

use crate::event::{Event, Text, What};
use crate::finding::{Finding, Sink};
use crate::interner::{Handle, Interner};

/// Most kernels that are remembered; the oldest are forgotten first.
const MOST: usize = 262_144;

/// Bytes of distinct scope names.
const NAMES: usize = 1 << 20;

/// Names of scopes.
#[derive(Debug)]
struct ScopeName;

/// Gives a sample that names no scope the innermost scope of its kernel, which the correlation id
/// finds.
///
/// The one-line form tells the scopes with the kernel and not with the sample; the columnar form
/// the other way round. A sample whose kernel has not come yet, or too long ago, goes on as it is.
/// Memory: two numbers for each of 262,144 kernels, and 1 MiB of names.
#[derive(Debug)]
pub struct SampleScopes {
    names: Interner<ScopeName>,
    by_correlation: HashMap<i64, Handle<ScopeName>>,
    order: VecDeque<i64>,
}

impl Default for SampleScopes {
    fn default() -> Self {
        let names = Interner::with_limit(NAMES);
        Self { names, by_correlation: HashMap::new(), order: VecDeque::new() }
    }
}

impl SampleScopes {
    /// A sink before `next` that remembers here.
    pub fn before<'s>(&'s mut self, next: &'s mut dyn Sink) -> impl Sink + 's {
        Before { scopes: self, next }
    }

    fn remember(&mut self, correlation: i64, path: &str) {
        let innermost = path.rsplit('|').next().unwrap_or(path);
        let Ok((name, _)) = self.names.intern(innermost) else { return };
        if self.by_correlation.insert(correlation, name).is_none() {
            self.order.push_back(correlation);
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_correlation.remove(&oldest);
        }
    }
}

struct Before<'s> {
    scopes: &'s mut SampleScopes,
    next: &'s mut dyn Sink,
}

impl Sink for Before<'_> {
    fn event(&mut self, line: u64, event: &Event<'_>) {
        match &event.what {
            What::Kernel(kernel) => {
                let path =
                    kernel.details.as_ref().and_then(|details| details.scope_path.as_deref());
                if let (Some(correlation), Some(path)) = (kernel.correlation, path) {
                    self.scopes.remember(correlation, path);
                }
            }
            What::Profile(sample) if sample.scope.is_none() => {
                let name = sample.correlation.and_then(|id| self.scopes.by_correlation.get(&id));
                if let Some(name) = name.copied() {
                    let mut sample = sample.clone();
                    sample.scope = Some(Text::Owned(self.scopes.names.text(name).to_owned()));
                    let event = Event { source: event.source.clone(), what: What::Profile(sample) };
                    return self.next.event(line, &event);
                }
            }
            _ => {}
        }
        self.next.event(line, event);
    }

    fn finding(&mut self, finding: Finding) {
        self.next.finding(finding);
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.next.unknown(line, name);
    }
}

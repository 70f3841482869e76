//! Kernels and their details, which GPU Flight's batches tell in lines of their own.

use std::collections::{HashMap, VecDeque};

use crate::event::{Event, Kernel, KernelDetails, Source, What};
use crate::finding::{Finding, Sink};

/// Most kernels that wait for their details, and most details that wait for their kernels.
const MOST: usize = 16_384;

/// Puts details into their kernels, whichever comes first.
///
/// The nodes of a graph launch share one correlation id and so one line of details. A kernel waits
/// while at most 16,384 others wait behind it; then it goes on without. Details that no kernel asks
/// for are handed on alone.
pub struct KernelDetailsJoin<'s> {
    next: &'s mut dyn Sink,
    /// Kernels that announced details, in the order in which they came.
    kernels: VecDeque<(u64, Source<'static>, Kernel<'static>)>,
    details: HashMap<Key, Found>,
    order: VecDeque<Key>,
}

/// Session and correlation id.
type Key = (Option<String>, i64);

struct Found {
    line: u64,
    source: Source<'static>,
    details: KernelDetails<'static>,
    is_used: bool,
}

impl<'s> KernelDetailsJoin<'s> {
    /// Joins on the way to `next`.
    pub fn new(next: &'s mut dyn Sink) -> Self {
        Self { next, kernels: VecDeque::new(), details: HashMap::new(), order: VecDeque::new() }
    }

    /// Hands on all that still waits. Call it when the log has ended.
    pub fn end(mut self) {
        while !self.kernels.is_empty() {
            self.let_one_go();
        }
        while !self.order.is_empty() {
            self.forget_one();
        }
    }

    fn kernel(&mut self, line: u64, source: &Source<'_>, kernel: &Kernel<'_>) {
        let key = key(source, kernel.correlation.unwrap_or_default());
        let mut kernel = kernel.clone();
        if let Some(found) = self.details.get_mut(&key) {
            found.is_used = true;
            attach(&mut kernel, &found.details);
            return self
                .next
                .event(line, &Event { source: source.clone(), what: What::Kernel(kernel) });
        }
        self.kernels.push_back((line, source.clone().into_owned(), kernel.into_owned()));
        if self.kernels.len() > MOST {
            self.let_one_go();
        }
    }

    fn details(&mut self, line: u64, source: &Source<'_>, details: &KernelDetails<'_>) {
        let key = key(source, details.correlation.unwrap_or_default());
        let details = details.clone().into_owned();
        let mut is_used = false;
        let is_its = |(_, source, kernel): &(u64, Source<'static>, Kernel<'static>)| {
            kernel.correlation == details.correlation
                && source.session.as_deref() == key.0.as_deref()
        };
        while let Some(place) = self.kernels.iter().position(is_its) {
            let Some((line, source, mut kernel)) = self.kernels.remove(place) else { break };
            is_used = true;
            attach(&mut kernel, &details);
            self.next.event(line, &Event { source, what: What::Kernel(kernel) });
        }
        let source = source.clone().into_owned();
        if self.details.insert(key.clone(), Found { line, source, details, is_used }).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MOST {
            self.forget_one();
        }
    }

    fn let_one_go(&mut self) {
        if let Some((line, source, kernel)) = self.kernels.pop_front() {
            self.next.event(line, &Event { source, what: What::Kernel(kernel) });
        }
    }

    fn forget_one(&mut self) {
        let Some(found) = self.order.pop_front().and_then(|key| self.details.remove(&key)) else {
            return;
        };
        if !found.is_used {
            let what = What::KernelDetails(found.details);
            self.next.event(found.line, &Event { source: found.source, what });
        }
    }
}

fn key(source: &Source<'_>, correlation: i64) -> Key {
    (source.session.as_deref().map(str::to_owned), correlation)
}

fn attach<'a>(kernel: &mut Kernel<'a>, details: &KernelDetails<'a>) {
    kernel.grid = kernel.grid.or(details.grid);
    kernel.block = kernel.block.or(details.block);
    kernel.details = Some(details.clone());
}

impl Sink for KernelDetailsJoin<'_> {
    fn event(&mut self, line: u64, event: &Event<'_>) {
        match &event.what {
            What::Kernel(kernel)
                if kernel.has_details == Some(true)
                    && kernel.details.is_none()
                    && kernel.correlation.is_some() =>
            {
                self.kernel(line, &event.source, kernel);
            }
            What::KernelDetails(details) => self.details(line, &event.source, details),
            What::End(_) => {
                while !self.kernels.is_empty() {
                    self.let_one_go();
                }
                self.next.event(line, event);
            }
            _ => self.next.event(line, event),
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.next.finding(finding);
    }

    fn unknown(&mut self, line: u64, name: &str) {
        self.next.unknown(line, name);
    }
}

impl std::fmt::Debug for KernelDetailsJoin<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kernels, details) = (self.kernels.len(), self.details.len());
        write!(formatter, "KernelDetailsJoin({kernels} kernels, {details} details wait)")
    }
}

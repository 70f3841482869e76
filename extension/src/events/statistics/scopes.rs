//! Scopes as a tree: how often each was open within which, and how long.

use std::collections::HashMap;

use warpgauge_formats::event::{Phase, Scope};
use warpgauge_formats::time::{Span, Timestamp};

/// Most nodes of the tree.
const MOST_NODES: usize = 65_536;

/// Most scopes that may be open at once.
const MOST_OPEN: usize = 65_536;

/// The tree.
#[derive(Debug)]
pub struct Scopes {
    /// The first node stands for the log as a whole.
    nodes: Vec<Node>,
    /// Open scopes of each process or session by its place, the innermost last.
    open: HashMap<usize, Vec<Open>>,
    open_count: usize,
    /// Scopes that began when there was no room for them.
    pub left_out: u64,
    /// Ends whose begin did not come.
    pub without_begin: u64,
}

/// One scope within those around it.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// How often it began.
    pub count: u64,
    /// How often it ended.
    pub ended: u64,
    /// Nanoseconds for which it was open, of those times that ended.
    pub time: i128,
    children: Vec<usize>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
struct Open {
    node: usize,
    instance: Option<i64>,
    depth: Option<i64>,
    began: Timestamp,
}

impl Default for Scopes {
    fn default() -> Self {
        let nodes = vec![Node::default()];
        Self { nodes, open: HashMap::new(), open_count: 0, left_out: 0, without_begin: 0 }
    }
}

impl Scopes {
    pub(super) fn note(&mut self, source: usize, scope: &Scope<'_>) {
        match scope.phase {
            Phase::Begin => self.begin(source, scope),
            Phase::End => self.end(source, scope),
            Phase::Continue | Phase::Suspend | Phase::Sample => {}
        }
    }

    fn begin(&mut self, source: usize, scope: &Scope<'_>) {
        let node = match scope.path.as_deref() {
            Some(path) => path.split('|').try_fold(0, |parent, name| self.child(parent, name)),
            None => self.child(self.around(source, scope.depth), &scope.name),
        };
        let Some(node) = node.filter(|_| self.open_count < MOST_OPEN) else {
            self.left_out += 1;
            return;
        };
        if let Some(node) = self.nodes.get_mut(node) {
            node.count += 1;
        }
        let open = Open { node, instance: scope.instance, depth: scope.depth, began: scope.time };
        self.open_count += 1;
        self.open.entry(source).or_default().push(open);
    }

    /// The innermost open scope that is less deep: threads of a process interleave, and the depth
    /// tells them apart where there is one.
    fn around(&self, source: usize, depth: Option<i64>) -> usize {
        let is_around = |open: &&Open| depth.zip(open.depth).is_none_or(|(own, other)| other < own);
        let stack = self.open.get(&source).map(Vec::as_slice).unwrap_or_default();
        stack.iter().rev().find(is_around).map_or(0, |open| open.node)
    }

    fn end(&mut self, source: usize, scope: &Scope<'_>) {
        let nodes = &self.nodes;
        let is_its = |open: &Open| match (open.instance, scope.instance) {
            (Some(begun), Some(ended)) => begun == ended,
            _ => nodes.get(open.node).is_some_and(|node| node.name == scope.name),
        };
        let stack = self.open.get_mut(&source);
        let Some(open) = stack.and_then(|stack| {
            let place = stack.iter().rposition(is_its)?;
            Some(stack.remove(place))
        }) else {
            self.without_begin += 1;
            return;
        };
        self.open_count -= 1;
        let Span(duration) = scope.duration.unwrap_or(scope.time.since(open.began));
        if let Some(node) = self.nodes.get_mut(open.node) {
            node.ended += 1;
            node.time += i128::from(duration);
        }
    }

    fn child(&mut self, parent: usize, name: &str) -> Option<usize> {
        let new = self.nodes.len();
        let node = self.nodes.get_mut(parent)?;
        if let Some(child) = node.by_name.get(name) {
            return Some(*child);
        }
        if new >= MOST_NODES {
            return None;
        }
        node.by_name.insert(name.to_owned(), new);
        node.children.push(new);
        self.nodes.push(Node { name: name.to_owned(), ..Node::default() });
        Some(new)
    }

    /// The outermost scopes, those that took the most time first.
    #[must_use]
    pub fn outermost(&self) -> Vec<&Node> {
        self.nodes.first().map(|log| self.within(log)).unwrap_or_default()
    }

    /// The scopes within one, those that took the most time first.
    #[must_use]
    pub fn within(&self, node: &Node) -> Vec<&Node> {
        let mut children: Vec<_> =
            node.children.iter().filter_map(|child| self.nodes.get(*child)).collect();
        children.sort_by_key(|node| (std::cmp::Reverse(node.time), &node.name));
        children
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(phase: Phase, name: &'static str, time: i64) -> Scope<'static> {
        Scope { phase, name: name.into(), time: Timestamp(time), ..Scope::default() }
    }

    fn shown(scopes: &Scopes, nodes: &[&Node]) -> String {
        let one = |node: &&Node| {
            let within = shown(scopes, &scopes.within(node));
            format!("{} {}/{} {}[{within}]", node.name, node.ended, node.count, node.time)
        };
        nodes.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_begins_while_another_is_open_stands_within_it() {
        let mut scopes = Scopes::default();
        for (phase, name, time) in [
            (Phase::Begin, "step", 0),
            (Phase::Begin, "load", 1),
            (Phase::End, "load", 4),
            (Phase::End, "step", 10),
            (Phase::Begin, "step", 20),
            (Phase::End, "other", 21),
        ] {
            scopes.note(0, &scope(phase, name, time));
        }
        assert_eq!(shown(&scopes, &scopes.outermost()), "step 1/2 10[load 1/1 3[]]");
        assert_eq!(scopes.without_begin, 1);
    }

    #[test]
    fn depth_tells_the_scopes_of_two_threads_apart() {
        let mut scopes = Scopes::default();
        for (name, depth) in [("a", 0), ("b", 0), ("in b", 1)] {
            scopes.note(0, &Scope { depth: Some(depth), ..scope(Phase::Begin, name, 0) });
        }
        assert_eq!(shown(&scopes, &scopes.outermost()), "a 0/1 0[], b 0/1 0[in b 0/1 0[]]");
    }
}

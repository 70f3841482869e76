//! Kernels inside graphs: read when a graph is instantiated, counted whenever it is launched.
//!
//! Child graphs are read with their parents. Of what a conditional node runs only the device knows;
//! of a graph that was instantiated before anybody looked there is nothing to read; a node that is
//! changed inside an executable graph is counted as it was. Each of these is told once. None of
//! these is measured in a window: what it counts could not be told apart. Nor is a graph with a
//! kernel that waits for others, or of which the driver does not say whether it does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{PoisonError, RwLock, TryLockError};

use crate::collective::is_collective;
use crate::driver::{Driver, GraphNode};
use crate::launch::Launch;

/// More executable graphs than a program keeps; further ones are not counted.
const MAX_GRAPHS: usize = 4096;

/// Graphs inside graphs, more deeply than anybody nests them.
const MAX_DEPTH: u32 = 16;

/// How often a launch looks whether the graphs may be read, while another thread writes.
const ATTEMPTS: u32 = 100;

/// What graphs held that was not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Unseen {
    /// A node behind which the device decides.
    Conditional = 1,
    /// A graph from before the process was listed, or one too many.
    Unknown = 2,
    /// A node that was changed after its graph was instantiated.
    Changed = 4,
    /// The driver did not say what is in a graph.
    Unreadable = 8,
}

impl Unseen {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Conditional, Self::Unknown, Self::Changed, Self::Unreadable];

    /// What that means, for the log.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Conditional => "kernels behind a graph's conditional node are not counted",
            Self::Unknown => {
                "a graph that was instantiated before the process was listed is not counted"
            }
            Self::Changed => "a kernel that was changed inside a graph is counted as it was",
            Self::Unreadable => "the driver does not say what is in a graph: it is not counted",
        }
    }
}

/// A kernel of a graph, and how often the graph holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kernel {
    function: u64,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    times: u64,
}

impl Kernel {
    fn launched_in(&self, context: u64) -> Launch {
        let Self { function, grid, block, shared, .. } = *self;
        let config = std::ptr::null();
        Launch { context, function, grid, block, shared, cluster: 1, config }
    }
}

/// An executable graph.
#[derive(Debug, Default)]
struct Graph {
    kernels: Vec<Kernel>,
    /// Whether it runs these kernels and no others, and none of them waits for others.
    is_measurable: bool,
}

/// The executable graphs of a process.
#[derive(Debug)]
pub struct Graphs {
    known: RwLock<BTreeMap<u64, Graph>>,
    unseen: AtomicU8,
}

impl Graphs {
    /// None known.
    #[must_use]
    pub const fn new() -> Self {
        Self { known: RwLock::new(BTreeMap::new()), unseen: AtomicU8::new(0) }
    }

    /// A graph was instantiated, or an executable one was updated from it.
    pub fn instantiated(&self, executable: u64, graph: u64, driver: &Driver) {
        let mut read = Graph { kernels: Vec::new(), is_measurable: true };
        if !self.read(graph, driver, &mut read, MAX_DEPTH) {
            read.is_measurable = false;
            self.see(Unseen::Unreadable);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_GRAPHS || known.contains_key(&executable) {
            known.insert(executable, read);
        }
    }

    fn read(&self, graph: u64, driver: &Driver, into: &mut Graph, depth: u32) -> bool {
        let Some(nodes) = driver.graph_nodes(graph) else { return false };
        let mut readable = true;
        for node in nodes {
            match node {
                Some(GraphNode::Kernel { function, grid, block, shared, waits }) => {
                    let named = driver.with_name(function, |name| is_collective(name.to_bytes()));
                    into.is_measurable &= named == Some(false) && waits == Some(false);
                    let kernel = Kernel { function, grid, block, shared, times: 1 };
                    add(&mut into.kernels, kernel);
                }
                Some(GraphNode::Child(child)) if depth > 0 => {
                    readable &= self.read(child, driver, into, depth - 1);
                }
                Some(GraphNode::Conditional) => {
                    into.is_measurable = false;
                    self.see(Unseen::Conditional);
                }
                Some(GraphNode::Other) => {}
                Some(GraphNode::Child(_)) | None => readable = false,
            }
        }
        readable
    }

    /// An executable graph is about to be destroyed: its handle may come again.
    pub fn destroyed(&self, executable: u64) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(&executable);
    }

    /// A node of an executable graph was changed.
    pub fn changed(&self, executable: u64) {
        self.see(Unseen::Changed);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(graph) = known.get_mut(&executable) {
            graph.is_measurable = false;
        }
    }

    /// A graph was launched: gives each of its kernels and how often it holds it. Waits for nobody.
    pub fn launched(&self, executable: u64, context: u64, mut each: impl FnMut(&Launch, u64)) {
        let counted = self.look(executable, |graph| {
            for kernel in &graph.kernels {
                each(&kernel.launched_in(context), kernel.times);
            }
        });
        if counted.is_none() {
            self.see(Unseen::Unknown);
        }
    }

    /// The kernels of a graph that may be measured, each with how often it is held, if one of them
    /// is wanted. Waits for nobody; allocates where one is.
    pub fn wanted(
        &self,
        executable: u64,
        context: u64,
        is_wanted: impl Fn(&Launch) -> bool,
    ) -> Option<Vec<(Launch, u64)>> {
        self.look(executable, |graph| {
            let launches = || graph.kernels.iter().map(|kernel| kernel.launched_in(context));
            if !graph.is_measurable || !launches().any(|launch| is_wanted(&launch)) {
                return None;
            }
            Some(launches().zip(graph.kernels.iter().map(|kernel| kernel.times)).collect())
        })?
    }

    /// Looks at a graph; `None` where it is not known, or where another thread is writing for long.
    fn look<T>(&self, executable: u64, read: impl FnOnce(&Graph) -> T) -> Option<T> {
        for _ in 0..ATTEMPTS {
            let known = match self.known.try_read() {
                Ok(known) => known,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    std::hint::spin_loop();
                    continue;
                }
            };
            return known.get(&executable).map(read);
        }
        None
    }

    /// Forgets every graph: they may have changed while nobody looked.
    pub fn forget(&self) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn see(&self, unseen: Unseen) {
        // Mostly it is set already, and a look is cheaper than a write.
        if self.unseen.load(Ordering::Relaxed) & unseen as u8 == 0 {
            self.unseen.fetch_or(unseen as u8, Ordering::Relaxed);
        }
    }

    /// What was not counted so far.
    pub fn unseen(&self) -> impl Iterator<Item = Unseen> {
        let seen = self.unseen.load(Ordering::Relaxed);
        Unseen::ALL.into_iter().filter(move |unseen| seen & *unseen as u8 != 0)
    }
}

impl Default for Graphs {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds a kernel to a list in which none comes twice next to itself: a graph is often one kernel in
/// a long row.
fn add(kernels: &mut Vec<Kernel>, kernel: Kernel) {
    match kernels.last_mut() {
        Some(last) if (Kernel { times: kernel.times, ..*last }) == kernel => {
            last.times += kernel.times;
        }
        _ => kernels.push(kernel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: Kernel =
        Kernel { function: 7, grid: [1; 3], block: [32, 1, 1], shared: 0, times: 1 };

    #[test]
    fn the_same_kernel_in_a_row_is_looked_up_once() {
        let mut kernels = Vec::new();
        for function in [7, 7, 8, 7] {
            add(&mut kernels, Kernel { function, ..KERNEL });
        }
        let times: Vec<_> = kernels.iter().map(|kernel| (kernel.function, kernel.times)).collect();
        assert_eq!(times, [(7, 2), (8, 1), (7, 1)]);
    }

    #[test]
    fn a_graph_that_is_not_known_or_not_known_any_more_is_told() {
        let graphs = Graphs::new();
        let graph = Graph { kernels: vec![KERNEL], is_measurable: true };
        graphs.known.write().unwrap().insert(1, graph);
        let mut counted = 0;
        graphs.launched(1, 5, |launch, times| {
            assert_eq!((launch.context, launch.function), (5, 7));
            counted += times;
        });
        assert_eq!((counted, graphs.unseen().count()), (1, 0));
        graphs.destroyed(1);
        graphs.launched(1, 5, |_, _| counted += 1);
        assert_eq!(counted, 1);
        assert_eq!(graphs.unseen().collect::<Vec<_>>(), [Unseen::Unknown]);
    }

    #[test]
    fn a_graph_is_measured_where_a_kernel_of_it_is_wanted_and_until_it_is_changed() {
        let graphs = Graphs::new();
        let graph = Graph { kernels: vec![KERNEL, KERNEL], is_measurable: true };
        graphs.known.write().unwrap().insert(1, graph);
        assert_eq!(graphs.wanted(1, 5, |launch| launch.function == 8), None);
        assert_eq!(graphs.wanted(1, 5, |launch| launch.function == 7).unwrap().len(), 2);
        graphs.changed(1);
        assert_eq!(graphs.wanted(1, 5, |_| true), None);
    }

    #[test]
    fn a_launch_does_not_wait_for_a_thread_that_instantiates() {
        let graphs = Graphs::new();
        let _held = graphs.known.write().unwrap();
        graphs.launched(1, 5, |_, _| panic!("nothing can be read"));
        assert_eq!(graphs.unseen().collect::<Vec<_>>(), [Unseen::Unknown]);
    }
}

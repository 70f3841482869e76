//! Graphs: kernels, other graphs, and nodes that only the device decides on.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::execute;
use crate::hook::{Api, traced};
use crate::launch::check;
use crate::registry;
use crate::result::{CUresult, INVALID_HANDLE, INVALID_VALUE, SUCCESS, answer, answer_or};

/// A kernel in a graph.
#[derive(Clone, Copy)]
pub(crate) struct KernelNode {
    pub(crate) function: usize,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
}

/// A node of a graph.
#[derive(Clone)]
pub(crate) enum Node {
    Kernel(KernelNode),
    /// Another graph, by handle.
    Child(usize),
    /// What runs behind it is decided on the device; here nothing ever does.
    Conditional,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2` (cuda.h).
#[repr(C)]
struct KernelNodeParams {
    function: *mut c_void,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
    kernel: *mut c_void,
    context: *mut c_void,
}

const _: () = assert!(size_of::<KernelNodeParams>() == 72);

/// `cuGraphInstantiateWithFlags_params` (generated_cuda_meta.h).
#[repr(C)]
struct InstantiateParams {
    executable: *mut *mut c_void,
    graph: *mut c_void,
    flags: u64,
}

/// `cuGraphLaunch_params` and the parameters of calls with one handle (generated_cuda_meta.h).
#[repr(C)]
struct HandleParams {
    handle: *mut c_void,
    stream: *mut c_void,
}

/// Graphs and executable graphs, each with its nodes; a handle is a base and a place.
struct Graphs {
    graphs: Vec<Vec<Node>>,
    executables: Vec<Option<Vec<Node>>>,
}

const GRAPH: usize = 0x6000_0000;
const EXECUTABLE: usize = 0x6800_0000;
const NODE: usize = 0x7000_0000;
const NODES_PER_GRAPH: usize = 4096;

static GRAPHS: Mutex<Graphs> = Mutex::new(Graphs { graphs: Vec::new(), executables: Vec::new() });

fn graphs() -> MutexGuard<'static, Graphs> {
    GRAPHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A new graph with these nodes.
pub(crate) fn add(nodes: Vec<Node>) -> usize {
    let mut all = graphs();
    all.graphs.push(nodes);
    GRAPH + 16 * (all.graphs.len() - 1)
}

impl Graphs {
    fn nodes(&mut self, graph: usize) -> Result<&mut Vec<Node>, CUresult> {
        let place = graph.checked_sub(GRAPH).ok_or(INVALID_HANDLE)? / 16;
        self.graphs.get_mut(place).ok_or(INVALID_HANDLE)
    }

    fn node(&mut self, node: usize) -> Result<Node, CUresult> {
        let place = node.checked_sub(NODE).ok_or(INVALID_HANDLE)? / 16;
        let (graph, place) = (place / NODES_PER_GRAPH, place % NODES_PER_GRAPH);
        let nodes = self.graphs.get(graph).ok_or(INVALID_HANDLE)?;
        nodes.get(place).cloned().ok_or(INVALID_HANDLE)
    }

    fn add_node(&mut self, graph: usize, node: Node) -> Result<*mut c_void, CUresult> {
        let nodes = self.nodes(graph)?;
        nodes.push(node);
        let place = (graph - GRAPH) / 16 * NODES_PER_GRAPH + nodes.len() - 1;
        Ok((NODE + 16 * place) as *mut c_void)
    }

    /// The nodes with those of child graphs in their place.
    fn flat(&mut self, graph: usize) -> Result<Vec<Node>, CUresult> {
        let mut flat = Vec::new();
        for node in self.nodes(graph)?.clone() {
            match node {
                Node::Child(child) => flat.extend(self.flat(child)?),
                other => flat.push(other),
            }
        }
        Ok(flat)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphCreate(graph: *mut *mut c_void, _flags: u32) -> CUresult {
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer(graph, add(Vec::new()) as *mut c_void) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddKernelNode_v2(
    node: *mut *mut c_void,
    graph: *mut c_void,
    _dependencies: *const *mut c_void,
    _dependency_count: usize,
    params: *const c_void,
) -> CUresult {
    // SAFETY: the caller passes the structure or null, as the C interface asks.
    let Some(params) = (unsafe { params.cast::<KernelNodeParams>().as_ref() }) else {
        return INVALID_VALUE;
    };
    let refused = check(params.function, params.grid, params.block);
    if refused != SUCCESS {
        return refused;
    }
    let kernel = KernelNode {
        function: params.function as usize,
        grid: params.grid,
        block: params.block,
        shared: params.shared,
    };
    let added = graphs().add_node(graph as usize, Node::Kernel(kernel));
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(node, added) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphAddChildGraphNode(
    node: *mut *mut c_void,
    graph: *mut c_void,
    _dependencies: *const *mut c_void,
    _dependency_count: usize,
    child: *mut c_void,
) -> CUresult {
    let added = graphs().add_node(graph as usize, Node::Child(child as usize));
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(node, added) }
}

/// Ours: `cuGraphAddNode` with the parameters of a conditional node.
#[unsafe(no_mangle)]
extern "C" fn standin_add_conditional_node(graph: *mut c_void) -> CUresult {
    graphs().add_node(graph as usize, Node::Conditional).err().unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphGetNodes(
    graph: *mut c_void,
    out: *mut *mut c_void,
    count: *mut usize,
) -> CUresult {
    let total = match graphs().nodes(graph as usize) {
        Ok(nodes) => nodes.len(),
        Err(error) => return error,
    };
    if count.is_null() {
        return INVALID_VALUE;
    }
    if !out.is_null() {
        // SAFETY: not null, and says how much room there is.
        let room = unsafe { count.read() };
        let first = (graph as usize - GRAPH) / 16 * NODES_PER_GRAPH;
        for place in 0..total.min(room) {
            let node = (NODE + 16 * (first + place)) as *mut c_void;
            // SAFETY: within the room that the caller gives.
            let slot = unsafe { out.add(place) };
            // SAFETY: as above.
            unsafe { slot.write(node) };
        }
    }
    // SAFETY: not null, and the caller passes a pointer to be written.
    unsafe { answer(count, total) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphNodeGetType(node: *mut c_void, kind: *mut u32) -> CUresult {
    // Of CUgraphNodeType: KERNEL, GRAPH and CONDITIONAL.
    let found = graphs().node(node as usize).map(|node| match node {
        Node::Kernel(_) => 0,
        Node::Child(_) => 4,
        Node::Conditional => 13,
    });
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(kind, found) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphKernelNodeGetParams_v2(
    node: *mut c_void,
    params: *mut c_void,
) -> CUresult {
    let found = graphs().node(node as usize).and_then(|node| match node {
        Node::Kernel(kernel) => Ok(KernelNodeParams {
            function: kernel.function as *mut c_void,
            grid: kernel.grid,
            block: kernel.block,
            shared: kernel.shared,
            kernel_params: std::ptr::null_mut(),
            extra: std::ptr::null_mut(),
            kernel: std::ptr::null_mut(),
            context: registry::current_handle() as *mut c_void,
        }),
        _ => Err(INVALID_VALUE),
    });
    // SAFETY: the caller passes a structure to be written, as the C interface asks.
    unsafe { answer_or(params.cast(), found) }
}

/// No kernel here has an attribute: every value is zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphKernelNodeGetAttribute(
    node: *mut c_void,
    _attribute: u32,
    value: *mut [u64; 8],
) -> CUresult {
    let found = graphs().node(node as usize).and_then(|node| match node {
        Node::Kernel(_) => Ok([0; 8]),
        _ => Err(INVALID_VALUE),
    });
    // SAFETY: the caller passes a union to be written, as the C interface asks.
    unsafe { answer_or(value, found) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphChildGraphNodeGetGraph(
    node: *mut c_void,
    graph: *mut *mut c_void,
) -> CUresult {
    let found = graphs().node(node as usize).and_then(|node| match node {
        Node::Child(child) => Ok(child as *mut c_void),
        _ => Err(INVALID_VALUE),
    });
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(graph, found) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphInstantiateWithFlags(
    executable: *mut *mut c_void,
    graph: *mut c_void,
    flags: u64,
) -> CUresult {
    let api = Api { name: c"cuGraphInstantiateWithFlags", cbid: 643 };
    let params = InstantiateParams { executable, graph, flags };
    traced(api, (&raw const params).cast(), None, || {
        let mut all = graphs();
        let made = all.flat(graph as usize).map(|nodes| {
            // The first place that is free, so that a handle comes again.
            let free = all.executables.iter().position(Option::is_none);
            let place = free.unwrap_or_else(|| {
                all.executables.push(None);
                all.executables.len() - 1
            });
            if let Some(slot) = all.executables.get_mut(place) {
                *slot = Some(nodes);
            }
            (EXECUTABLE + 16 * place) as *mut c_void
        });
        // SAFETY: the caller passes a pointer to be written, as the C interface asks.
        unsafe { answer_or(executable, made) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphExecDestroy(executable: *mut c_void) -> CUresult {
    let api = Api { name: c"cuGraphExecDestroy", cbid: 516 };
    let params = HandleParams { handle: executable, stream: std::ptr::null_mut() };
    traced(api, (&raw const params).cast(), None, || {
        let mut all = graphs();
        let place = (executable as usize).checked_sub(EXECUTABLE).map(|offset| offset / 16);
        let slot = place.and_then(|place| all.executables.get_mut(place));
        slot.and_then(Option::take).map_or(INVALID_HANDLE, |_| SUCCESS)
    })
}

/// Traced, as whoever subscribed hears of it; the executable graph stays what it was.
#[unsafe(no_mangle)]
extern "C" fn cuGraphExecKernelNodeSetParams_v2(
    executable: *mut c_void,
    node: *mut c_void,
    _params: *const c_void,
) -> CUresult {
    let api = Api { name: c"cuGraphExecKernelNodeSetParams_v2", cbid: 692 };
    let params = HandleParams { handle: executable, stream: node };
    traced(api, (&raw const params).cast(), None, || SUCCESS)
}

fn launch(api: Api, executable: *mut c_void, stream: *mut c_void) -> CUresult {
    let params = HandleParams { handle: executable, stream };
    traced(api, (&raw const params).cast(), None, || {
        let place = (executable as usize).checked_sub(EXECUTABLE).map(|offset| offset / 16);
        let nodes = place.and_then(|place| graphs().executables.get(place).cloned().flatten());
        let Some(nodes) = nodes else { return INVALID_HANDLE };
        for node in nodes {
            if let Node::Kernel(kernel) = node {
                execute::run(kernel.function, kernel.grid, kernel.block, kernel.shared);
            }
        }
        SUCCESS
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphLaunch(executable: *mut c_void, stream: *mut c_void) -> CUresult {
    launch(Api { name: c"cuGraphLaunch", cbid: 514 }, executable, stream)
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphLaunch_ptsz(executable: *mut c_void, stream: *mut c_void) -> CUresult {
    launch(Api { name: c"cuGraphLaunch_ptsz", cbid: 515 }, executable, stream)
}

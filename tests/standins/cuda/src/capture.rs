//! Streams that are captured into a graph.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use crate::graph::{self, KernelNode, Node};
use crate::hook::{Api, traced};
use crate::registry;
use crate::result::{CUresult, INVALID_VALUE, answer_or};

/// Streams and the nodes that were captured of them so far.
static CAPTURES: Mutex<Option<HashMap<usize, Vec<Node>>>> = Mutex::new(None);

fn with<T>(change: impl FnOnce(&mut HashMap<usize, Vec<Node>>) -> T) -> T {
    change(CAPTURES.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// Puts a launch into the graph that its stream is captured into; false where it is not.
pub(crate) fn add(stream: usize, node: &KernelNode) -> bool {
    with(|captures| match captures.get_mut(&stream) {
        Some(nodes) => {
            nodes.push(Node::Kernel(*node));
            true
        }
        None => false,
    })
}

/// Whether any stream is captured: then nothing may wait for the device.
pub(crate) fn is_active() -> bool {
    with(|captures| !captures.is_empty())
}

/// `cuStreamBeginCapture_v2_params` and `cuStreamEndCapture_params` (generated_cuda_meta.h).
#[repr(C)]
struct CaptureParams {
    stream: *mut c_void,
    mode_or_graph: usize,
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamBeginCapture_v2(stream: *mut c_void, mode: u32) -> CUresult {
    let api = Api { name: c"cuStreamBeginCapture_v2", cbid: 539 };
    let params = CaptureParams { stream, mode_or_graph: mode as usize };
    traced(api, (&raw const params).cast(), None, || {
        if let Err(error) = registry::current() {
            return error;
        }
        with(|captures| match captures.insert(stream as usize, Vec::new()) {
            None => 0,
            Some(_) => INVALID_VALUE,
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamEndCapture(stream: *mut c_void, out: *mut *mut c_void) -> CUresult {
    let api = Api { name: c"cuStreamEndCapture", cbid: 497 };
    let params = CaptureParams { stream, mode_or_graph: out as usize };
    traced(api, (&raw const params).cast(), None, || {
        let nodes = with(|captures| captures.remove(&(stream as usize))).ok_or(INVALID_VALUE);
        let graph = nodes.map(|nodes| graph::add(nodes) as *mut c_void);
        // SAFETY: the caller passes a pointer to be written, as the C interface asks.
        unsafe { answer_or(out, graph) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamIsCapturing(stream: *mut c_void, status: *mut u32) -> CUresult {
    let capturing = with(|captures| captures.contains_key(&(stream as usize)));
    // SAFETY: the caller passes a pointer to be written, as the C interface asks.
    unsafe { answer_or(status, registry::current().map(|_| capturing.into())) }
}

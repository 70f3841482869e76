//! The few calls that are made of the CUDA driver, resolved at run time.
//!
//! Result codes are taken as plain numbers: a driver newer than the headers may return ones that
//! they do not know.
#![allow(unsafe_code, reason = "the driver is a C library")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use cudarc::driver::sys::{
    CUDA_KERNEL_NODE_PARAMS, CUdevice_attribute, CUfunction, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchConfig,
};

use crate::dynamic_library::{DynamicLibrary, MissingSymbol};

type CUresult = c_int;
type NameOf = unsafe extern "C" fn(*mut *const c_char, *mut c_void) -> CUresult;
type MaxActiveClusters =
    unsafe extern "C" fn(*mut c_int, CUfunction, *const CUlaunchConfig) -> CUresult;

/// The driver's functions.
#[derive(Debug, Clone, Copy)]
pub struct Driver {
    init: unsafe extern "C" fn(u32) -> CUresult,
    current_device: unsafe extern "C" fn(*mut c_int) -> CUresult,
    device_attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> CUresult,
    max_active_blocks: unsafe extern "C" fn(*mut c_int, CUfunction, c_int, usize) -> CUresult,
    /// Missing before CUDA 11.8.
    max_active_clusters: Option<MaxActiveClusters>,
    synchronize: unsafe extern "C" fn() -> CUresult,
    memory: Option<unsafe extern "C" fn(*mut usize, *mut usize) -> CUresult>,
    is_capturing: unsafe extern "C" fn(*mut c_void, *mut u32) -> CUresult,
    /// Both missing before CUDA 12.3.
    function_name: Option<NameOf>,
    kernel_name: Option<NameOf>,
    graphs: Option<GraphCalls>,
}

/// The calls that tell what is in a graph (cuda.h, CUDA 12).
#[derive(Debug, Clone, Copy)]
struct GraphCalls {
    nodes: unsafe extern "C" fn(u64, *mut u64, *mut usize) -> CUresult,
    node_type: unsafe extern "C" fn(u64, *mut u32) -> CUresult,
    kernel_params: unsafe extern "C" fn(u64, *mut CUDA_KERNEL_NODE_PARAMS) -> CUresult,
    child: unsafe extern "C" fn(u64, *mut u64) -> CUresult,
    /// Missing before CUDA 11.0.
    kernel_attribute: Option<unsafe extern "C" fn(u64, u32, *mut [u64; 8]) -> CUresult>,
}

/// A node of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphNode {
    /// A kernel, as in a [`crate::launch::Launch`].
    Kernel {
        /// The kernel's handle.
        function: u64,
        /// Blocks along x, y and z.
        grid: [u32; 3],
        /// Threads of a block along x, y and z.
        block: [u32; 3],
        /// Dynamic shared memory in bytes per block.
        shared: u32,
        /// Whether its blocks wait for each other, as in a cooperative launch; `None` where the
        /// driver does not tell.
        waits: Option<bool>,
    },
    /// Another graph, by its handle.
    Child(u64),
    /// A node behind which the device decides what runs.
    Conditional,
    /// No kernel.
    Other,
}

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`.
const COOPERATIVE: u32 = 2;

/// Why the driver is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    /// Nobody has loaded it.
    #[error("libcuda.so.1 is not loaded")]
    NotLoaded,
    /// It lacks a function.
    #[error("libcuda.so.1: {0}")]
    MissingSymbol(#[from] MissingSymbol),
    /// A call failed; the codes are in cuda.h.
    #[error("{call} failed with CUresult {code}")]
    Call {
        /// The function.
        call: &'static str,
        /// What it returned.
        code: i32,
    },
}

fn checked(call: &'static str, code: CUresult) -> Result<(), DriverError> {
    if code == 0 { Ok(()) } else { Err(DriverError::Call { call, code }) }
}

impl Driver {
    /// The driver that the process has loaded.
    ///
    /// # Errors
    /// [`DriverError::NotLoaded`], or the function that it lacks.
    pub fn of_this_process() -> Result<Self, DriverError> {
        let library =
            DynamicLibrary::already_mapped(c"libcuda.so.1").ok_or(DriverError::NotLoaded)?;
        Ok(Self {
            // SAFETY: the type is that of cuda.h.
            init: unsafe { library.function(c"cuInit") }?,
            // SAFETY: the type is that of cuda.h.
            current_device: unsafe { library.function(c"cuCtxGetDevice") }?,
            // SAFETY: the type is that of cuda.h.
            device_attribute: unsafe { library.function(c"cuDeviceGetAttribute") }?,
            // SAFETY: the type is that of cuda.h.
            max_active_blocks: unsafe {
                library.function(c"cuOccupancyMaxActiveBlocksPerMultiprocessor")
            }?,
            // SAFETY: the type is that of cuda.h.
            max_active_clusters: unsafe { library.function(c"cuOccupancyMaxActiveClusters") }.ok(),
            // SAFETY: the type is that of cuda.h.
            synchronize: unsafe { library.function(c"cuCtxSynchronize") }?,
            // SAFETY: the type is that of cuda.h.
            memory: unsafe { library.function(c"cuMemGetInfo_v2") }.ok(),
            // SAFETY: the type is that of cuda.h, with the enumeration as a number.
            is_capturing: unsafe { library.function(c"cuStreamIsCapturing") }?,
            // SAFETY: the type is that of cuda.h; a CUfunction is a pointer.
            function_name: unsafe { library.function(c"cuFuncGetName") }.ok(),
            // SAFETY: the type is that of cuda.h; a CUkernel is a pointer.
            kernel_name: unsafe { library.function(c"cuKernelGetName") }.ok(),
            graphs: GraphCalls::of(library).ok(),
        })
    }

    /// Returns when the driver is initialised; it is the host that asked for it.
    ///
    /// # Errors
    /// What `cuInit` returned.
    pub fn wait_until_initialised(&self) -> Result<(), DriverError> {
        // SAFETY: the function has the type of cuda.h.
        checked("cuInit", unsafe { (self.init)(0) })
    }

    /// The device of the calling thread's context.
    ///
    /// # Errors
    /// What `cuCtxGetDevice` returned.
    pub fn current_device(&self) -> Result<c_int, DriverError> {
        let mut device = 0;
        // SAFETY: the pointer may be written.
        checked("cuCtxGetDevice", unsafe { (self.current_device)(&raw mut device) })?;
        Ok(device)
    }

    /// Bytes that are free on the device of the calling thread's context, and bytes that there are.
    ///
    /// # Errors
    /// What `cuMemGetInfo` returned, or that there is none.
    pub fn memory(&self) -> Result<(u64, u64), DriverError> {
        let memory = self.memory.ok_or(MissingSymbol(c"cuMemGetInfo_v2"))?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers may be written.
        checked("cuMemGetInfo", unsafe { memory(&raw mut free, &raw mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// One number about a device.
    ///
    /// # Errors
    /// What `cuDeviceGetAttribute` returned.
    pub fn attribute(
        &self,
        device: c_int,
        attribute: CUdevice_attribute,
    ) -> Result<u32, DriverError> {
        let mut value = 0;
        // SAFETY: the pointer may be written.
        let code = unsafe { (self.device_attribute)(&raw mut value, attribute as c_int, device) };
        checked("cuDeviceGetAttribute", code)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// How many blocks of a kernel one multiprocessor of the current device holds at once. `shared`
    /// is dynamic shared memory in bytes per block.
    ///
    /// # Errors
    /// What `cuOccupancyMaxActiveBlocksPerMultiprocessor` returned.
    pub fn max_active_blocks(
        &self,
        function: u64,
        threads: u32,
        shared: u32,
    ) -> Result<u32, DriverError> {
        let mut blocks = 0;
        let function = function as CUfunction;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        // SAFETY: the pointer may be written; the function is being launched, so it is alive.
        let code = unsafe {
            (self.max_active_blocks)(&raw mut blocks, function, threads, shared as usize)
        };
        checked("cuOccupancyMaxActiveBlocksPerMultiprocessor", code)?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// How many clusters of a launch the current device holds at once; `None` where the driver
    /// cannot tell.
    ///
    /// # Errors
    /// What `cuOccupancyMaxActiveClusters` returned.
    ///
    /// # Safety
    /// `config` is the configuration of a launch that has not returned to its caller.
    pub unsafe fn max_active_clusters(
        &self,
        function: u64,
        config: *const CUlaunchConfig,
    ) -> Result<Option<u32>, DriverError> {
        let Some(max_active_clusters) = self.max_active_clusters else { return Ok(None) };
        let mut clusters = 0;
        // SAFETY: the pointer may be written, and the caller promises the configuration.
        let code =
            unsafe { max_active_clusters(&raw mut clusters, function as CUfunction, config) };
        checked("cuOccupancyMaxActiveClusters", code)?;
        Ok(u32::try_from(clusters).ok())
    }

    /// Waits until everything launched in the current context has run.
    ///
    /// # Errors
    /// What `cuCtxSynchronize` returned: a fault of a kernel shows here as well.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the function has the type of cuda.h.
        checked("cuCtxSynchronize", unsafe { (self.synchronize)() })
    }

    /// Whether launches into a stream are being captured into a graph instead of run.
    ///
    /// # Errors
    /// What `cuStreamIsCapturing` returned.
    pub fn is_capturing(&self, stream: u64) -> Result<bool, DriverError> {
        let mut status = 0;
        // SAFETY: the pointer may be written; the stream is being launched into, so it is alive.
        let code = unsafe { (self.is_capturing)(stream as *mut c_void, &raw mut status) };
        checked("cuStreamIsCapturing", code)?;
        Ok(status != 0)
    }

    /// Gives the linker's name of a kernel to `read`; `None` where the driver is too old to tell.
    pub fn with_name<T>(&self, function: u64, read: impl FnOnce(&CStr) -> T) -> Option<T> {
        // What is launched may be a CUkernel in the place of a CUfunction.
        let known = [self.function_name, self.kernel_name].into_iter().flatten();
        for name_of in known {
            let mut name = ptr::null();
            // SAFETY: the pointer may be written; the function is being launched, so it is alive.
            let code = unsafe { name_of(&raw mut name, function as *mut c_void) };
            if code == 0 && !name.is_null() {
                // SAFETY: a C string that lives as long as the kernel's module.
                return Some(read(unsafe { CStr::from_ptr(name) }));
            }
        }
        None
    }

    /// What is in a graph, node by node; a node that cannot be read is `None`, and so is the whole
    /// where the driver is too old or refuses.
    #[must_use]
    pub fn graph_nodes(&self, graph: u64) -> Option<Vec<Option<GraphNode>>> {
        let calls = self.graphs?;
        let mut count = 0;
        // SAFETY: the graph was passed to the call that we are in; null asks for the number alone.
        if unsafe { (calls.nodes)(graph, ptr::null_mut(), &raw mut count) } != 0 {
            return None;
        }
        let mut nodes = vec![0; count];
        // SAFETY: there is room for as many nodes as it says.
        if unsafe { (calls.nodes)(graph, nodes.as_mut_ptr(), &raw mut count) } != 0 {
            return None;
        }
        nodes.truncate(count);
        Some(nodes.into_iter().map(|node| calls.read(node)).collect())
    }
}

impl GraphCalls {
    fn of(library: DynamicLibrary) -> Result<Self, MissingSymbol> {
        Ok(Self {
            // SAFETY: the type is that of cuda.h, with handles as the addresses that they are.
            nodes: unsafe { library.function(c"cuGraphGetNodes") }?,
            // SAFETY: as above, with the enumeration as a number.
            node_type: unsafe { library.function(c"cuGraphNodeGetType") }?,
            // SAFETY: as above.
            kernel_params: unsafe { library.function(c"cuGraphKernelNodeGetParams_v2") }?,
            // SAFETY: as above.
            child: unsafe { library.function(c"cuGraphChildGraphNodeGetGraph") }?,
            // SAFETY: as above, with the union as its size, which is locked below.
            kernel_attribute: unsafe { library.function(c"cuGraphKernelNodeGetAttribute") }.ok(),
        })
    }

    fn waits(&self, node: u64) -> Option<bool> {
        let mut value = [0; 8];
        // SAFETY: the node is a kernel's; the union may be written.
        let code = unsafe { (self.kernel_attribute?)(node, COOPERATIVE, &raw mut value) };
        // A number of 32 bits at its beginning.
        let [cooperative, ..] = value;
        (code == 0).then_some(cooperative & u64::from(u32::MAX) != 0)
    }

    fn read(&self, node: u64) -> Option<GraphNode> {
        /// `CUgraphNodeType`.
        const KERNEL: u32 = 0;
        const GRAPH: u32 = 4;
        const CONDITIONAL: u32 = 13;
        let mut kind = 0;
        // SAFETY: the node is of a graph that is alive; the pointer may be written.
        if unsafe { (self.node_type)(node, &raw mut kind) } != 0 {
            return None;
        }
        match kind {
            KERNEL => {
                // SAFETY: the structure holds numbers and pointers alone, for which zero is a value.
                let mut params: CUDA_KERNEL_NODE_PARAMS = unsafe { std::mem::zeroed() };
                // SAFETY: the node is a kernel's; the structure may be written.
                if unsafe { (self.kernel_params)(node, &raw mut params) } != 0 {
                    return None;
                }
                let function =
                    if params.func.is_null() { params.kern as u64 } else { params.func as u64 };
                Some(GraphNode::Kernel {
                    function,
                    grid: [params.gridDimX, params.gridDimY, params.gridDimZ],
                    block: [params.blockDimX, params.blockDimY, params.blockDimZ],
                    shared: params.sharedMemBytes,
                    waits: self.waits(node),
                })
            }
            GRAPH => {
                let mut child = 0;
                // SAFETY: the node is a child graph's; the pointer may be written.
                let code = unsafe { (self.child)(node, &raw mut child) };
                (code == 0).then_some(GraphNode::Child(child))
            }
            CONDITIONAL => Some(GraphNode::Conditional),
            _ => Some(GraphNode::Other),
        }
    }
}

const _: () = assert!(size_of::<CUDA_KERNEL_NODE_PARAMS>() == 72);
const _: () = assert!(size_of::<CUlaunchAttributeValue>() == size_of::<[u64; 8]>());
const _: () = assert!(COOPERATIVE == CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE as u32);

//! Launches by graphs: nodes added one by one, or captured from a stream.
#![allow(unsafe_code, reason = "the driver is a C library")]

use std::ffi::c_void;
use std::ptr;

use crate::arguments::{Api, Arguments, Mode, Shape};
use crate::driver::{Driver, DriverError, Handle, checked, symbol};
use crate::launcher::Pace;
use crate::report::Report;

type Pointer = *mut c_void;

/// `CUDA_KERNEL_NODE_PARAMS_v2` (cuda.h).
#[repr(C)]
struct KernelNodeParams {
    function: Pointer,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    unused: [Pointer; 4],
}

/// The functions of the driver that deal with graphs.
struct Graphs {
    create: unsafe extern "C" fn(*mut Pointer, u32) -> i32,
    add_kernel: unsafe extern "C" fn(
        *mut Pointer,
        Pointer,
        *const Pointer,
        usize,
        *const KernelNodeParams,
    ) -> i32,
    add_child: unsafe extern "C" fn(*mut Pointer, Pointer, *const Pointer, usize, Pointer) -> i32,
    begin_capture: unsafe extern "C" fn(Pointer, u32) -> i32,
    end_capture: unsafe extern "C" fn(Pointer, *mut Pointer) -> i32,
    instantiate: unsafe extern "C" fn(*mut Pointer, Pointer, u64) -> i32,
    launch: unsafe extern "C" fn(Pointer, Pointer) -> i32,
    destroy: unsafe extern "C" fn(Pointer) -> i32,
    /// Changes nothing: the stand-in takes no parameters.
    change: Option<unsafe extern "C" fn(Pointer, Pointer, *const KernelNodeParams) -> i32>,
    /// Of the stand-in alone.
    add_conditional: Option<unsafe extern "C" fn(Pointer) -> i32>,
}

/// Launches a graph that holds every shape: twice, of which once in a child graph, where nodes are
/// added; once where they are captured.
pub(crate) fn launch_graphs(
    driver: &Driver,
    arguments: &Arguments,
    report: &mut Report,
) -> Result<(), DriverError> {
    let graphs = Graphs::of(driver)?;
    let module = driver.load_module()?;
    let mut functions = Vec::new();
    for shape in &arguments.kernels {
        functions.push((driver.function(module, shape)?, shape));
    }
    let (graph, times) = match arguments.mode {
        Mode::Capture => (graphs.capture(driver, &functions)?, 1),
        _ => (graphs.build(&functions, arguments.conditional)?, 2),
    };
    let mut executable = ptr::null_mut();
    // SAFETY: the pointer may be written and the graph came from the driver.
    let code = unsafe { (graphs.instantiate)(&raw mut executable, graph, 0) };
    checked("cuGraphInstantiateWithFlags", code)?;
    if let Some(change) = graphs.change.filter(|_| arguments.change) {
        // SAFETY: the executable graph came from the driver; the stand-in looks at nothing else.
        let code = unsafe { change(executable, ptr::null_mut(), ptr::null()) };
        checked("cuGraphExecKernelNodeSetParams", code)?;
    }
    let mut pace = Pace::begin(arguments, arguments.launches);
    while pace.may_go_on() {
        // SAFETY: the executable graph came from the driver; null is the default stream.
        checked("cuGraphLaunch", unsafe { (graphs.launch)(executable, ptr::null_mut()) })?;
        for shape in 0..functions.len() {
            for _ in 0..times {
                report.launched(shape);
            }
        }
        pace.launched();
    }
    // SAFETY: the executable graph came from the driver and is not used any more.
    checked("cuGraphExecDestroy", unsafe { (graphs.destroy)(executable) })?;
    driver.synchronize()
}

impl Graphs {
    fn of(driver: &Driver) -> Result<Self, DriverError> {
        let library = driver.library();
        macro_rules! symbols {
            ($($field:ident: $name:literal,)*) => {
                Self {
                    $(// SAFETY: the field has the type that cuda.h gives the symbol.
                    $field: unsafe { symbol(library, $name) }?,)*
                    // SAFETY: as above; called with the stand-in alone.
                    change: unsafe { symbol(library, c"cuGraphExecKernelNodeSetParams_v2") }.ok(),
                    // SAFETY: the stand-in gives the symbol this type.
                    add_conditional: unsafe {
                        symbol(library, c"standin_add_conditional_node")
                    }.ok(),
                }
            };
        }
        Ok(symbols! {
            create: c"cuGraphCreate",
            add_kernel: c"cuGraphAddKernelNode_v2",
            add_child: c"cuGraphAddChildGraphNode",
            begin_capture: c"cuStreamBeginCapture_v2",
            end_capture: c"cuStreamEndCapture",
            instantiate: c"cuGraphInstantiateWithFlags",
            launch: c"cuGraphLaunch",
            destroy: c"cuGraphExecDestroy",
        })
    }

    fn capture(
        &self,
        driver: &Driver,
        functions: &[(Handle, &Shape)],
    ) -> Result<Pointer, DriverError> {
        let (stream, mut graph) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: null is the default stream.
        checked("cuStreamBeginCapture", unsafe { (self.begin_capture)(stream, 0) })?;
        for (function, shape) in functions {
            let launched = driver.launch(Api::Launch, None, *function, shape);
            launched.map_err(|code| DriverError::Failed { call: "cuLaunchKernel", code })?;
        }
        // SAFETY: the pointer may be written.
        checked("cuStreamEndCapture", unsafe { (self.end_capture)(stream, &raw mut graph) })?;
        Ok(graph)
    }

    fn build(
        &self,
        functions: &[(Handle, &Shape)],
        conditional: bool,
    ) -> Result<Pointer, DriverError> {
        let graph = self.of_kernels(functions)?;
        let child = self.of_kernels(functions)?;
        let mut node = ptr::null_mut();
        // SAFETY: the pointer may be written; both graphs came from the driver.
        let code = unsafe { (self.add_child)(&raw mut node, graph, ptr::null(), 0, child) };
        checked("cuGraphAddChildGraphNode", code)?;
        if let Some(add_conditional) = self.add_conditional.filter(|_| conditional) {
            // SAFETY: the graph came from the driver.
            checked("a conditional node", unsafe { add_conditional(graph) })?;
        }
        Ok(graph)
    }

    fn of_kernels(&self, functions: &[(Handle, &Shape)]) -> Result<Pointer, DriverError> {
        let (mut graph, mut node) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the pointer may be written.
        checked("cuGraphCreate", unsafe { (self.create)(&raw mut graph, 0) })?;
        for (function, shape) in functions {
            let params = KernelNodeParams {
                function: function.0,
                grid: shape.grid,
                block: shape.block,
                shared: shape.shared,
                unused: [ptr::null_mut(); 4],
            };
            // SAFETY: the pointers may be written and read; the kernel takes no arguments.
            let code = unsafe {
                (self.add_kernel)(&raw mut node, graph, ptr::null(), 0, &raw const params)
            };
            checked("cuGraphAddKernelNode", code)?;
        }
        Ok(graph)
    }
}

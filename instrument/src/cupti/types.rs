//! The structures that CUPTI hands over, in cudarc's words, and proof that their layout is the one
//! of NVIDIA's headers (cupti_callbacks.h, generated_cuda_meta.h and cuda.h, CUDA 13.0; the same
//! since 11.8).
//!
//! Enumerations inside them are never read as such: a value that the headers did not know would be
//! undefined behaviour. Fields are read one by one, as plain numbers.

use std::mem::offset_of;

use cudarc::cupti::sys as cupti;
use cudarc::driver::sys as driver;

pub use cudarc::cupti::sys::CUpti_CallbackData as CallbackData;
pub use cudarc::cupti::sys::CUpti_ResourceData as ResourceData;
pub use cudarc::cupti::sys::cuLaunchKernelEx_params_st as LaunchExParams;
pub use cudarc::driver::sys::CUlaunchAttribute_st as LaunchAttribute;
pub use cudarc::driver::sys::CUlaunchConfig_st as LaunchConfig;

/// Parameters of `cuLaunchKernel` and, up to the shared memory, of `cuLaunchCooperativeKernel`.
pub use cudarc::cupti::sys::cuLaunchKernel_params_st as LaunchParams;

/// `CUpti_CallbackDomain`: the two domains that are listened to.
pub mod domain {
    /// `CUPTI_CB_DOMAIN_DRIVER_API`.
    pub const DRIVER_API: u32 = 1;
    /// `CUPTI_CB_DOMAIN_RESOURCE`.
    pub const RESOURCE: u32 = 3;
}

/// `CUPTI_API_ENTER` of `CUpti_ApiCallbackSite`.
pub const API_ENTER: u32 = 0;

/// `CUPTI_API_EXIT` of `CUpti_ApiCallbackSite`.
pub const API_EXIT: u32 = 1;

/// Callback ids of the driver API: launches.
pub mod launch_id {
    /// `cuLaunchKernel` and its variant for per-thread default streams.
    pub const PLAIN: [u32; 2] = [307, 442];
    /// `cuLaunchCooperativeKernel`.
    pub const COOPERATIVE: [u32; 2] = [477, 478];
    /// `cuLaunchKernelEx`.
    pub const EX: [u32; 2] = [652, 653];
    /// Those of them in which a null stream is the thread's own.
    pub const PER_THREAD_STREAM: [u32; 3] = [442, 478, 653];
}

/// Callback ids of the driver API: graphs.
pub mod graph_id {
    /// `cuGraphLaunch` and its variant for per-thread default streams.
    pub const LAUNCH: [u32; 2] = [514, 515];
    /// `cuGraphInstantiate` in all its versions; their parameters begin alike.
    pub const INSTANTIATE: [u32; 5] = [513, 578, 643, 656, 657];
    /// `cuGraphExecUpdate` and `_v2`.
    pub const UPDATE: [u32; 2] = [561, 696];
    /// `cuGraphExecKernelNodeSetParams`, `_v2` and `cuGraphExecNodeSetParams`.
    pub const SET_PARAMS: [u32; 3] = [538, 692, 714];
    /// `cuGraphExecDestroy`.
    pub const DESTROY: u32 = 516;
}

/// Callback ids of the driver API: streams that are captured into graphs. All variants of a name,
/// for per-thread default streams and of later versions.
pub mod capture_id {
    /// `cuStreamBeginCapture`, `..._v2`, `...ToGraph` and `...ToCig`.
    pub const BEGIN: [u32; 8] = [495, 496, 539, 540, 720, 721, 783, 814];
    /// `cuStreamEndCapture` and `...ToCig`.
    pub const END: [u32; 4] = [497, 498, 815, 816];
}

/// Callback ids of the resource domain.
pub mod resource_id {
    /// `CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING`.
    pub const CONTEXT_DESTROY_STARTING: u32 = 2;
    /// `CUPTI_CBID_RESOURCE_MODULE_LOADED`.
    pub const MODULE_LOADED: u32 = 6;
    /// `CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING`.
    pub const MODULE_UNLOAD_STARTING: u32 = 7;
}

/// Every callback that has to be had: domain and id.
pub const CALLBACKS: [(u32, u32); 9] = [
    (domain::DRIVER_API, launch_id::PLAIN[0]),
    (domain::DRIVER_API, launch_id::PLAIN[1]),
    (domain::DRIVER_API, launch_id::COOPERATIVE[0]),
    (domain::DRIVER_API, launch_id::COOPERATIVE[1]),
    (domain::DRIVER_API, launch_id::EX[0]),
    (domain::DRIVER_API, launch_id::EX[1]),
    (domain::RESOURCE, resource_id::CONTEXT_DESTROY_STARTING),
    (domain::RESOURCE, resource_id::MODULE_LOADED),
    (domain::RESOURCE, resource_id::MODULE_UNLOAD_STARTING),
];

/// Callbacks of the driver API that an older CUPTI does not know, and neither does its driver.
pub fn callbacks_if_known() -> impl Iterator<Item = u32> {
    capture_id::BEGIN
        .into_iter()
        .chain(capture_id::END)
        .chain(graph_id::LAUNCH)
        .chain(graph_id::INSTANTIATE)
        .chain(graph_id::UPDATE)
        .chain(graph_id::SET_PARAMS)
        .chain([graph_id::DESTROY])
}

/// `CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION`.
pub const CLUSTER_DIMENSION: u32 = 4;

/// Fails to compile where a layout is another one than NVIDIA's.
macro_rules! layout {
    ($type:ty, $size:literal, $($field:ident at $offset:literal),+) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(offset_of!($type, $field) == $offset);)+
        };
    };
}

layout!(
    CallbackData, 72,
    callbackSite at 0, functionName at 8, functionParams at 16, functionReturnValue at 24,
    symbolName at 32, context at 40, contextUid at 48, correlationData at 56, correlationId at 64
);
layout!(cupti::cuGraphInstantiateWithFlags_params_st, 24, phGraphExec at 0, hGraph at 8);
layout!(cupti::cuGraphInstantiateWithParams_params_st, 24, phGraphExec at 0, hGraph at 8);
layout!(cupti::cuGraphInstantiate_params_st, 40, phGraphExec at 0, hGraph at 8);
layout!(cupti::cuGraphExecDestroy_params_st, 8, hGraphExec at 0);
layout!(cupti::cuGraphLaunch_params_st, 16, hGraph at 0);
layout!(cupti::cuGraphLaunch_ptsz_params_st, 16, hGraphExec at 0);
layout!(cupti::cuGraphExecUpdate_params_st, 32, hGraphExec at 0, hGraph at 8);
layout!(cupti::cuGraphExecUpdate_v2_params_st, 24, hGraphExec at 0, hGraph at 8);
layout!(ResourceData, 24, context at 0);
layout!(
    LaunchParams, 64,
    f at 0, gridDimX at 8, gridDimY at 12, gridDimZ at 16, blockDimX at 20, blockDimY at 24,
    blockDimZ at 28, sharedMemBytes at 32, hStream at 40, kernelParams at 48, extra at 56
);
layout!(
    cupti::cuLaunchKernel_ptsz_params_st, 64,
    f at 0, gridDimX at 8, gridDimY at 12, gridDimZ at 16, blockDimX at 20, blockDimY at 24,
    blockDimZ at 28, sharedMemBytes at 32, hStream at 40
);
layout!(
    cupti::cuLaunchCooperativeKernel_params_st, 56,
    f at 0, gridDimX at 8, gridDimY at 12, gridDimZ at 16, blockDimX at 20, blockDimY at 24,
    blockDimZ at 28, sharedMemBytes at 32, hStream at 40
);
layout!(
    cupti::cuLaunchCooperativeKernel_ptsz_params_st, 56,
    f at 0, gridDimX at 8, gridDimY at 12, gridDimZ at 16, blockDimX at 20, blockDimY at 24,
    blockDimZ at 28, sharedMemBytes at 32, hStream at 40
);
layout!(LaunchExParams, 32, config at 0, f at 8, kernelParams at 16, extra at 24);
layout!(cupti::cuLaunchKernelEx_ptsz_params_st, 32, config at 0, f at 8);
layout!(
    LaunchConfig, 56,
    gridDimX at 0, gridDimY at 4, gridDimZ at 8, blockDimX at 12, blockDimY at 16, blockDimZ at 20,
    sharedMemBytes at 24, hStream at 32, attrs at 40, numAttrs at 48
);
layout!(LaunchAttribute, 72, id at 0, value at 8);

const _: () = {
    use cupti::CUpti_driver_api_trace_cbid_enum as Id;
    assert!(launch_id::PLAIN[0] == Id::CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel as u32);
    assert!(launch_id::PLAIN[1] == Id::CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz as u32);
    assert!(
        launch_id::COOPERATIVE[0] == Id::CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel as u32
    );
    assert!(
        launch_id::COOPERATIVE[1]
            == Id::CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz as u32
    );
    assert!(launch_id::EX[0] == Id::CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx as u32);
    assert!(launch_id::EX[1] == Id::CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz as u32);
    assert!(
        CLUSTER_DIMENSION
            == driver::CUlaunchAttributeID_enum::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION as u32
    );
    assert!(
        resource_id::CONTEXT_DESTROY_STARTING
            == cupti::CUpti_CallbackIdResource::CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING as u32
    );
    assert!(
        resource_id::MODULE_UNLOAD_STARTING
            == cupti::CUpti_CallbackIdResource::CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING as u32
    );
    assert!(
        graph_id::LAUNCH[0] == Id::CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch as u32
            && graph_id::LAUNCH[1] == Id::CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz as u32
            && graph_id::INSTANTIATE[0] == Id::CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate as u32
            && graph_id::INSTANTIATE[1] == Id::CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2 as u32
            && graph_id::INSTANTIATE[2]
                == Id::CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags as u32
            && graph_id::INSTANTIATE[3]
                == Id::CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams as u32
            && graph_id::INSTANTIATE[4]
                == Id::CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz as u32
            && graph_id::UPDATE[0] == Id::CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate as u32
            && graph_id::UPDATE[1] == Id::CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2 as u32
            && graph_id::DESTROY == Id::CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy as u32
    );
    assert!(
        resource_id::MODULE_LOADED
            == cupti::CUpti_CallbackIdResource::CUPTI_CBID_RESOURCE_MODULE_LOADED as u32
    );
    assert!(
        capture_id::BEGIN[0] == Id::CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture as u32
            && capture_id::BEGIN[1] == Id::CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz as u32
            && capture_id::BEGIN[2] == Id::CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2 as u32
            && capture_id::BEGIN[3]
                == Id::CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz as u32
            && capture_id::BEGIN[4]
                == Id::CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph as u32
            && capture_id::BEGIN[5]
                == Id::CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz as u32
    );
    assert!(
        capture_id::END[0] == Id::CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture as u32
            && capture_id::END[1] == Id::CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz as u32
    );
};

//! The parameter structures of CUPTI's SASS metrics, in cudarc's words, and proof that their layout
//! is the one of NVIDIA's headers (cupti_sass_metrics.h, cupti_profiler_target.h, cupti_target.h,
//! CUDA 13.0; the same since 12.2).
//!
//! `structSize` is not `sizeof`: it ends behind the last field, without the padding that follows.

use std::mem::offset_of;

use cudarc::cupti::sys as cupti;

pub use cupti::CUpti_Device_GetChipName_Params as ChipNameParams;
pub use cupti::CUpti_Profiler_Initialize_Params as InitializeParams;
pub use cupti::CUpti_SassMetrics_Config as MetricConfig;
pub use cupti::CUpti_SassMetrics_Data as Record;
pub use cupti::CUpti_SassMetrics_GetProperties_Params as PropertiesParams;
pub use cupti::CUpti_SassMetrics_InstanceValue as InstanceValue;
pub use cupti::CUpti_SassMetrics_MetricDetails as MetricDetails;
pub use cupti::CUpti_SassMetricsDisable_Params as DisableParams;
pub use cupti::CUpti_SassMetricsEnable_Params as EnableParams;
pub use cupti::CUpti_SassMetricsFlushData_Params as FlushParams;
pub use cupti::CUpti_SassMetricsGetDataProperties_Params as DataPropertiesParams;
pub use cupti::CUpti_SassMetricsSetConfig_Params as SetConfigParams;
pub use cupti::CUpti_SassMetricsUnsetConfig_Params as UnsetConfigParams;

/// `CUpti_Profiler_DeviceSupported_Params` with its enumerations as plain numbers: CUPTI writes
/// them, and a newer one may know more values than the headers.
#[derive(Debug)]
#[repr(C)]
pub struct DeviceSupportedParams {
    /// Where the structure ends: [`size::DEVICE_SUPPORTED`].
    pub struct_size: usize,
    /// Null.
    pub private: *mut std::ffi::c_void,
    /// The device's ordinal.
    pub device: i32,
    /// The answer: [`SUPPORTED`] or why not.
    pub is_supported: u32,
    /// The answer for the architecture, SLI, vGPU, confidential computing, CMP and WSL.
    pub reasons: [u32; 6],
    /// What is asked about: [`SASS_METRICS`].
    pub api: u32,
}

/// `CUPTI_PROFILER_CONFIGURATION_SUPPORTED`.
pub const SUPPORTED: u32 = 3;
/// `CUPTI_PROFILER_SASS_METRICS` of `CUpti_Profiler_API`.
pub const SASS_METRICS: u32 = 2;
/// `CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU`: one value for the whole device.
pub const GRANULARITY_GPU: u8 = 0;

/// Values of `structSize`: `*_STRUCT_SIZE` of the headers.
pub mod size {
    /// `CUpti_Profiler_Initialize_Params_STRUCT_SIZE`.
    pub const INITIALIZE: usize = 16;
    /// `CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE` of 13.0; later ones append a field.
    pub const DEVICE_SUPPORTED: usize = 52;
    /// `CUpti_Device_GetChipName_Params_STRUCT_SIZE`.
    pub const CHIP_NAME: usize = 32;
    /// `CUpti_SassMetrics_GetProperties_Params_STRUCT_SIZE`.
    pub const PROPERTIES: usize = 56;
    /// `CUpti_SassMetricsSetConfig_Params_STRUCT_SIZE`.
    pub const SET_CONFIG: usize = 36;
    /// `CUpti_SassMetricsUnsetConfig_Params_STRUCT_SIZE`.
    pub const UNSET_CONFIG: usize = 20;
    /// `CUpti_SassMetricsEnable_Params_STRUCT_SIZE`.
    pub const ENABLE: usize = 25;
    /// `CUpti_SassMetricsDisable_Params_STRUCT_SIZE`.
    pub const DISABLE: usize = 32;
    /// `CUpti_SassMetricsGetDataProperties_Params_STRUCT_SIZE`.
    pub const DATA_PROPERTIES: usize = 40;
    /// `CUpti_SassMetricsFlushData_Params_STRUCT_SIZE`. The headers end it at the number of
    /// instances; the pointer behind it is read all the same.
    pub const FLUSH: usize = 40;
    /// A record ends behind its last field.
    pub const RECORD: usize = 48;
}

/// Fails to compile where a layout is another one than NVIDIA's.
macro_rules! layout {
    ($type:ty, $size:literal, $($field:ident at $offset:literal),+) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(offset_of!($type, $field) == $offset);)+
        };
    };
}

layout!(InitializeParams, 16, structSize at 0, pPriv at 8);
layout!(
    DeviceSupportedParams, 56,
    struct_size at 0, private at 8, device at 16, is_supported at 20, reasons at 24, api at 48
);
layout!(ChipNameParams, 32, structSize at 0, pPriv at 8, deviceIndex at 16, pChipName at 24);
layout!(MetricDetails, 24, metricId at 0, pMetricName at 8, pMetricDescription at 16);
layout!(
    PropertiesParams, 56,
    structSize at 0, pPriv at 8, pChipName at 16, pMetricName at 24, metric at 32
);
layout!(MetricConfig, 16, metricId at 0, outputGranularity at 8);
layout!(
    SetConfigParams, 40,
    structSize at 0, pPriv at 8, numOfMetricConfig at 16, pConfigs at 24, deviceIndex at 32
);
layout!(UnsetConfigParams, 24, structSize at 0, pPriv at 8, deviceIndex at 16);
layout!(EnableParams, 32, structSize at 0, pPriv at 8, ctx at 16, enableLazyPatching at 24);
layout!(DisableParams, 32, structSize at 0, pPriv at 8, ctx at 16, numOfDroppedRecords at 24);
layout!(
    DataPropertiesParams, 40,
    structSize at 0, pPriv at 8, ctx at 16, numOfPatchedInstructionRecords at 24,
    numOfInstances at 32
);
layout!(
    FlushParams, 48,
    structSize at 0, pPriv at 8, ctx at 16, numOfPatchedInstructionRecords at 24,
    numOfInstances at 32, pMetricsData at 40
);
layout!(
    Record, 48,
    structSize at 0, pPriv at 8, cubinCrc at 16, functionIndex at 20, functionName at 24,
    pcOffset at 32, pInstanceValues at 40
);
layout!(InstanceValue, 16, metricId at 0, value at 8);

const _: () = {
    use cupti::CUpti_Profiler_API as Api;
    use cupti::CUpti_Profiler_Support_Level as Level;
    use cupti::CUpti_SassMetrics_OutputGranularity as Granularity;
    assert!(size_of::<cupti::CUpti_Profiler_DeviceSupported_Params>() == 56);
    assert!(offset_of!(cupti::CUpti_Profiler_DeviceSupported_Params, api) == 48);
    assert!(SASS_METRICS == Api::CUPTI_PROFILER_SASS_METRICS as u32);
    assert!(SUPPORTED == Level::CUPTI_PROFILER_CONFIGURATION_SUPPORTED as u32);
    assert!(
        GRANULARITY_GPU as u32 == Granularity::CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU as u32
    );
    assert!(size::INITIALIZE == cupti::Profiler_Initialize_Params_STRUCT_SIZE as usize);
    assert!(size::DEVICE_SUPPORTED == cupti::Profiler_DeviceSupported_Params_STRUCT_SIZE as usize);
    assert!(size::CHIP_NAME == cupti::Device_GetChipName_Params_STRUCT_SIZE as usize);
    assert!(size::PROPERTIES == cupti::SassMetrics_GetProperties_Params_STRUCT_SIZE as usize);
    assert!(size::SET_CONFIG == cupti::SassMetricsSetConfig_Params_STRUCT_SIZE as usize);
    assert!(size::UNSET_CONFIG == cupti::SassMetricsUnsetConfig_Params_STRUCT_SIZE as usize);
    assert!(size::ENABLE == cupti::SassMetricsEnable_Params_STRUCT_SIZE as usize);
    assert!(size::DISABLE == cupti::SassMetricsDisable_Params_STRUCT_SIZE as usize);
    assert!(
        size::DATA_PROPERTIES == cupti::SassMetricsGetDataProperties_Params_STRUCT_SIZE as usize
    );
    assert!(size::FLUSH == cupti::SassMetricsFlushData_Params_STRUCT_SIZE as usize);
};

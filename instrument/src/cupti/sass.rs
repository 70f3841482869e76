//! CUPTI's SASS metrics: counting by code that CUPTI patches into the kernels themselves.
//!
//! ```text
//! once          cuptiProfilerInitialize
//! per device    cuptiProfilerDeviceSupported, cuptiDeviceGetChipName, ...GetProperties per metric
//! per window    ...SetConfig, ...Enable, the launch, ...GetDataProperties, ...FlushData,
//!               ...Disable, ...UnsetConfig
//! ```
//!
//! Nothing here is called before a process is listed for a function that needs it.
#![allow(unsafe_code, reason = "CUPTI is a C library")]

use std::ffi::{CStr, c_char};
use std::ptr;

use crate::cupti::record_names;
use crate::cupti::sass_types::{
    ChipNameParams, DataPropertiesParams, DeviceSupportedParams, DisableParams, EnableParams,
    FlushParams, GRANULARITY_GPU, InitializeParams, InstanceValue, MetricConfig, MetricDetails,
    PropertiesParams, Record, SASS_METRICS, SUPPORTED, SetConfigParams, UnsetConfigParams, size,
};
use crate::cupti::symbols::{Cupti, CuptiError};
use crate::dynamic_library::MissingSymbol;

/// More records or values than one kernel can bring: a count beyond is a fault of the library's.
const MAX_VALUES: usize = 1 << 24;

/// More than one launch can count at one place: a count beyond is a fault of the library's.
const MOST_COUNTED: u64 = 1 << 53;

/// `CUPTI_ERROR_UNKNOWN` (cupti_result.h).
const UNKNOWN: CUptiResult = 999;

type CUptiResult = u32;
type Call<P> = unsafe extern "C" fn(*mut P) -> CUptiResult;

/// A call that failed. On the host's threads nothing is made of it but these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedCall {
    /// The function.
    pub call: SassCall,
    /// Its `CUptiResult`.
    pub code: u32,
}

/// The calls of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SassCall {
    /// `cuptiSassMetricsSetConfig`.
    SetConfig = 1,
    /// `cuptiSassMetricsEnable`.
    Enable = 2,
    /// `cuptiSassMetricsGetDataProperties`.
    GetDataProperties = 3,
    /// `cuptiSassMetricsFlushData`.
    FlushData = 4,
    /// `cuptiSassMetricsDisable`.
    Disable = 5,
    /// `cuptiSassMetricsUnsetConfig`.
    UnsetConfig = 6,
}

impl SassCall {
    /// Every call.
    pub const ALL: [Self; 6] = [
        Self::SetConfig,
        Self::Enable,
        Self::GetDataProperties,
        Self::FlushData,
        Self::Disable,
        Self::UnsetConfig,
    ];

    /// The name of the C function.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SetConfig => "cuptiSassMetricsSetConfig",
            Self::Enable => "cuptiSassMetricsEnable",
            Self::GetDataProperties => "cuptiSassMetricsGetDataProperties",
            Self::FlushData => "cuptiSassMetricsFlushData",
            Self::Disable => "cuptiSassMetricsDisable",
            Self::UnsetConfig => "cuptiSassMetricsUnsetConfig",
        }
    }

    fn checked(self, code: CUptiResult) -> Result<(), FailedCall> {
        if code == 0 { Ok(()) } else { Err(FailedCall { call: self, code }) }
    }
}

/// The functions of the SASS metrics.
#[derive(Debug, Clone, Copy)]
pub struct Sass {
    initialize: Call<InitializeParams>,
    device_supported: Call<DeviceSupportedParams>,
    chip_name: Call<ChipNameParams>,
    properties: Call<PropertiesParams>,
    set_config: Call<SetConfigParams>,
    unset_config: Call<UnsetConfigParams>,
    enable: Call<EnableParams>,
    disable: Call<DisableParams>,
    data_properties: Call<DataPropertiesParams>,
    flush: Call<FlushParams>,
}

/// Why a device's kernels cannot be counted this way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SassError {
    /// The library is from before CUDA 12.2, or lacks a function.
    #[error("{file}: {missing}: SASS metrics need CUDA 12.2 or newer")]
    MissingSymbol {
        /// The library.
        file: String,
        /// What it lacks.
        missing: MissingSymbol,
    },
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CuptiError),
    /// CUPTI says no, `CUpti_Profiler_Support_Level`.
    #[error("CUPTI does not support SASS metrics on device {device} (support level {level})")]
    Unsupported {
        /// The device's ordinal.
        device: u32,
        /// 0 unknown, 1 unsupported, 2 switched off.
        level: u32,
    },
}

impl Sass {
    /// The functions of a libcupti, initialised.
    ///
    /// # Errors
    /// A function that it lacks, or what `cuptiProfilerInitialize` returned.
    pub fn start(cupti: &Cupti) -> Result<Self, SassError> {
        macro_rules! symbols {
            ($($field:ident: $name:literal,)*) => {
                Self {$(
                    // SAFETY: every one of these takes a pointer to the parameters that the header
                    // names after it, which is the field's type.
                    $field: unsafe { cupti.library.function($name) }.map_err(|missing| {
                        SassError::MissingSymbol { file: cupti.file.clone(), missing }
                    })?,
                )*}
            };
        }
        let sass = symbols! {
            initialize: c"cuptiProfilerInitialize",
            device_supported: c"cuptiProfilerDeviceSupported",
            chip_name: c"cuptiDeviceGetChipName",
            properties: c"cuptiSassMetricsGetProperties",
            set_config: c"cuptiSassMetricsSetConfig",
            unset_config: c"cuptiSassMetricsUnsetConfig",
            enable: c"cuptiSassMetricsEnable",
            disable: c"cuptiSassMetricsDisable",
            data_properties: c"cuptiSassMetricsGetDataProperties",
            flush: c"cuptiSassMetricsFlushData",
        };
        let mut params = InitializeParams { structSize: size::INITIALIZE, pPriv: ptr::null_mut() };
        // SAFETY: the parameters are filled in as the header asks.
        let code = unsafe { (sass.initialize)(&raw mut params) };
        cupti.checked("cuptiProfilerInitialize", code)?;
        Ok(sass)
    }

    /// The ids of metrics on a device, `None` for those that it does not have.
    ///
    /// # Errors
    /// That the device is not supported, or the call that failed.
    pub fn metrics_of(
        &self,
        cupti: &Cupti,
        device: u32,
        names: &[&CStr],
    ) -> Result<Vec<Option<u64>>, SassError> {
        let mut support = DeviceSupportedParams {
            struct_size: size::DEVICE_SUPPORTED,
            private: ptr::null_mut(),
            device: device.cast_signed(),
            is_supported: 0,
            reasons: [0; 6],
            api: SASS_METRICS,
        };
        // SAFETY: the parameters are filled in as the header asks.
        let code = unsafe { (self.device_supported)(&raw mut support) };
        cupti.checked("cuptiProfilerDeviceSupported", code)?;
        if support.is_supported != SUPPORTED {
            return Err(SassError::Unsupported { device, level: support.is_supported });
        }
        let mut chip = ChipNameParams {
            structSize: size::CHIP_NAME,
            pPriv: ptr::null_mut(),
            deviceIndex: device as usize,
            pChipName: ptr::null(),
        };
        // SAFETY: as above.
        let code = unsafe { (self.chip_name)(&raw mut chip) };
        cupti.checked("cuptiDeviceGetChipName", code)?;
        Ok(names.iter().map(|name| self.metric(chip.pChipName, name)).collect())
    }

    fn metric(&self, chip: *const c_char, name: &CStr) -> Option<u64> {
        let mut params = PropertiesParams {
            structSize: size::PROPERTIES,
            pPriv: ptr::null_mut(),
            pChipName: chip,
            pMetricName: name.as_ptr(),
            metric: MetricDetails {
                metricId: 0,
                pMetricName: ptr::null(),
                pMetricDescription: ptr::null(),
            },
        };
        // SAFETY: the chip's name came from CUPTI, the metric's is a C string.
        let code = unsafe { (self.properties)(&raw mut params) };
        (code == 0).then_some(params.metric.metricId)
    }

    /// Says what kernels on a device are to be counted for.
    ///
    /// # Errors
    /// [`SassCall::SetConfig`] and its code.
    pub fn set_config(&self, device: u32, metrics: &[u64]) -> Result<(), FailedCall> {
        let mut configs: Vec<MetricConfig> = metrics
            .iter()
            .map(|&id| MetricConfig { metricId: id, outputGranularity: GRANULARITY_GPU })
            .collect();
        let mut params = SetConfigParams {
            structSize: size::SET_CONFIG,
            pPriv: ptr::null_mut(),
            numOfMetricConfig: configs.len(),
            pConfigs: configs.as_mut_ptr(),
            deviceIndex: device,
        };
        // SAFETY: the configurations outlive the call and are as many as it says.
        SassCall::SetConfig.checked(unsafe { (self.set_config)(&raw mut params) })
    }

    /// Takes the configuration back.
    ///
    /// # Errors
    /// [`SassCall::UnsetConfig`] and its code.
    pub fn unset_config(&self, device: u32) -> Result<(), FailedCall> {
        let mut params = UnsetConfigParams {
            structSize: size::UNSET_CONFIG,
            pPriv: ptr::null_mut(),
            deviceIndex: device,
        };
        // SAFETY: the parameters are filled in as the header asks.
        SassCall::UnsetConfig.checked(unsafe { (self.unset_config)(&raw mut params) })
    }

    /// Patches kernels: `lazily` as they are launched, or all that are loaded at once.
    ///
    /// # Errors
    /// [`SassCall::Enable`] and its code.
    pub fn enable(&self, context: u64, lazily: bool) -> Result<(), FailedCall> {
        let mut params = EnableParams {
            structSize: size::ENABLE,
            pPriv: ptr::null_mut(),
            ctx: context as *mut _,
            enableLazyPatching: lazily.into(),
        };
        // SAFETY: the context is current on this thread, so it is alive.
        SassCall::Enable.checked(unsafe { (self.enable)(&raw mut params) })
    }

    /// Removes the patches.
    ///
    /// # Errors
    /// [`SassCall::Disable`] and its code.
    pub fn disable(&self, context: u64) -> Result<(), FailedCall> {
        let mut params = DisableParams {
            structSize: size::DISABLE,
            pPriv: ptr::null_mut(),
            ctx: context as *mut _,
            numOfDroppedRecords: 0,
        };
        // SAFETY: the context is current on this thread, so it is alive.
        SassCall::Disable.checked(unsafe { (self.disable)(&raw mut params) })
    }

    /// Hands every value that was counted to `each`: the function's name, metric and value.
    ///
    /// # Errors
    /// [`SassCall::GetDataProperties`] or [`SassCall::FlushData`] and its code.
    pub fn collect(
        &self,
        context: u64,
        mut each: impl FnMut(&CStr, u64, u64),
    ) -> Result<(), FailedCall> {
        let mut properties = DataPropertiesParams {
            structSize: size::DATA_PROPERTIES,
            pPriv: ptr::null_mut(),
            ctx: context as *mut _,
            numOfPatchedInstructionRecords: 0,
            numOfInstances: 0,
        };
        // SAFETY: the context is current on this thread, so it is alive.
        let code = unsafe { (self.data_properties)(&raw mut properties) };
        SassCall::GetDataProperties.checked(code)?;
        let (records, instances) =
            (properties.numOfPatchedInstructionRecords, properties.numOfInstances);
        if records.checked_mul(instances).is_none_or(|values| values == 0 || values > MAX_VALUES) {
            return Ok(());
        }
        let (mut values, mut data) = (Vec::new(), Vec::new());
        let room = values.try_reserve_exact(records * instances).is_ok()
            && data.try_reserve_exact(records).is_ok();
        if !room {
            // The program's memory is its own; without a measurement the window was in vain.
            return Ok(());
        }
        values.resize(records * instances, InstanceValue { metricId: 0, value: 0 });
        data.extend(values.chunks_exact_mut(instances).map(|values| Record {
            structSize: size::RECORD,
            pPriv: ptr::null_mut(),
            cubinCrc: 0,
            functionIndex: 0,
            functionName: ptr::null(),
            pcOffset: 0,
            pInstanceValues: values.as_mut_ptr(),
        }));
        let mut params = FlushParams {
            structSize: size::FLUSH,
            pPriv: ptr::null_mut(),
            ctx: context as *mut _,
            numOfPatchedInstructionRecords: records,
            numOfInstances: instances,
            pMetricsData: data.as_mut_ptr(),
        };
        // SAFETY: there is room for as many records and values as CUPTI asked for.
        let code = unsafe { (self.flush)(&raw mut params) };
        let flushed = SassCall::FlushData.checked(code);
        let is_absurd = values.iter().any(|value| value.value > MOST_COUNTED);
        if flushed.is_ok() && !is_absurd {
            for (record, values) in data.iter().zip(values.chunks_exact(instances)) {
                // SAFETY: a C string that CUPTI allocated, and that is freed below.
                let name = unsafe { record_names::read(record.functionName) };
                for value in values {
                    each(name, value.metricId, value.value);
                }
            }
        }
        let names = data.iter().map(|record| record.functionName.cast_mut().cast()).collect();
        // SAFETY: what CUPTI allocated for us to free is nobody else's.
        unsafe { record_names::free(names) };
        flushed?;
        if is_absurd {
            return Err(FailedCall { call: SassCall::FlushData, code: UNKNOWN });
        }
        Ok(())
    }
}

//! What NVTX hands over, and proof that its layout is the one of NVIDIA's headers (nvToolsExt.h and
//! nvtxDetail/nvtxTypes.h of NVTX 3; 64 bits).
//!
//! Enumerations are plain numbers here: a program may have any.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::offset_of;

/// `NVTX_VERSION` of all releases of NVTX 3.
pub const KNOWN_VERSION: u32 = 3;

/// `NvtxExportTableID`.
pub mod table {
    /// `NVTX_ETID_CALLBACKS`.
    pub const CALLBACKS: u32 = 1;
    /// `NVTX_ETID_VERSIONINFO`.
    pub const VERSION: u32 = 3;
}

/// `NvtxCallbackModule`.
pub mod module {
    use std::ffi::c_int;

    /// `NVTX_CB_MODULE_CORE`: what has no domain.
    pub const CORE: c_int = 1;
    /// `NVTX_CB_MODULE_CORE2`: what has one.
    pub const CORE2: c_int = 5;
}

/// `NvtxCallbackIdCore`.
pub mod core {
    #![expect(missing_docs, reason = "the functions of NVTX with these names")]
    pub const MARK_EX: u32 = 1;
    pub const MARK_A: u32 = 2;
    pub const MARK_W: u32 = 3;
    pub const RANGE_START_EX: u32 = 4;
    pub const RANGE_START_A: u32 = 5;
    pub const RANGE_START_W: u32 = 6;
    pub const RANGE_END: u32 = 7;
    pub const RANGE_PUSH_EX: u32 = 8;
    pub const RANGE_PUSH_A: u32 = 9;
    pub const RANGE_PUSH_W: u32 = 10;
    pub const RANGE_POP: u32 = 11;
    pub const NAME_CATEGORY_A: u32 = 12;
    pub const NAME_CATEGORY_W: u32 = 13;
    pub const NAME_OS_THREAD_A: u32 = 14;
    pub const NAME_OS_THREAD_W: u32 = 15;
}

/// `NvtxCallbackIdCore2`.
pub mod core2 {
    #![expect(missing_docs, reason = "the functions of NVTX with these names")]
    pub const DOMAIN_MARK_EX: u32 = 1;
    pub const DOMAIN_RANGE_START_EX: u32 = 2;
    pub const DOMAIN_RANGE_END: u32 = 3;
    pub const DOMAIN_RANGE_PUSH_EX: u32 = 4;
    pub const DOMAIN_RANGE_POP: u32 = 5;
    pub const DOMAIN_NAME_CATEGORY_A: u32 = 8;
    pub const DOMAIN_NAME_CATEGORY_W: u32 = 9;
    pub const DOMAIN_REGISTER_STRING_A: u32 = 10;
    pub const DOMAIN_REGISTER_STRING_W: u32 = 11;
    pub const DOMAIN_CREATE_A: u32 = 12;
    pub const DOMAIN_CREATE_W: u32 = 13;
    pub const DOMAIN_DESTROY: u32 = 14;
}

/// `nvtxMessageType_t`.
pub mod message_type {
    /// No message.
    pub const UNKNOWN: i32 = 0;
    /// Bytes up to a zero.
    pub const ASCII: i32 = 1;
    /// Wide characters up to a zero.
    pub const UNICODE: i32 = 2;
    /// What `nvtxDomainRegisterString` gave.
    pub const REGISTERED: i32 = 3;
}

/// `nvtxPayloadType_t`.
pub mod payload_type {
    /// None.
    pub const UNKNOWN: i32 = 0;
    /// `uint64_t`.
    pub const UNSIGNED_INT64: i32 = 1;
    /// `int64_t`.
    pub const INT64: i32 = 2;
    /// `double`.
    pub const DOUBLE: i32 = 3;
    /// `uint32_t`.
    pub const UNSIGNED_INT32: i32 = 4;
    /// `int32_t`.
    pub const INT32: i32 = 5;
    /// `float`.
    pub const FLOAT: i32 = 6;
}

/// `NVTX_COLOR_ARGB` of `nvtxColorType_t`.
pub const COLOR_ARGB: i32 = 1;

/// `NVTX_NO_PUSH_POP_TRACKING`: the answer of a tool that keeps no levels.
pub const NO_PUSH_POP_TRACKING: c_int = -2;

/// `NvtxFunctionPointer`: of whatever type the function is.
pub type Function = *const c_void;

/// `NvtxGetExportTableFunc_t`.
pub type GetExportTable = unsafe extern "C" fn(u32) -> *const c_void;

/// `GetModuleFunctionTable` of [`ExportTableCallbacks`]: 0 where there is no such module.
pub type GetModuleTable =
    unsafe extern "C" fn(c_int, *mut *mut *mut Function, *mut c_uint) -> c_int;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ExportTableCallbacks {
    /// Bytes of this structure.
    pub struct_size: usize,
    /// Gives a module's table.
    pub get_module_table: Option<GetModuleTable>,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ExportTableVersion {
    /// Bytes of this structure.
    pub struct_size: usize,
    /// `NVTX_VERSION` of the program.
    pub version: u32,
    /// For alignment.
    pub reserved: u32,
    /// `SetInjectionNvtxVersion`; NVTX does nothing with it.
    pub set_injection_version: Option<unsafe extern "C" fn(u32)>,
}

/// `nvtxEventAttributes_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EventAttributes {
    /// `NVTX_VERSION` of the program.
    pub version: u16,
    /// Bytes of this structure.
    pub size: u16,
    /// The program's number for a group of events.
    pub category: u32,
    /// `nvtxColorType_t`.
    pub color_type: i32,
    /// Alpha, red, green, blue.
    pub color: u32,
    /// `nvtxPayloadType_t`.
    pub payload_type: i32,
    /// For alignment.
    pub reserved: i32,
    /// `payload_t`; the lower bytes where the type is smaller.
    pub payload: u64,
    /// `nvtxMessageType_t`.
    pub message_type: i32,
    /// `nvtxMessageValue_t`: a pointer, or what we gave for one.
    pub message: *const c_void,
}

const _: () = {
    assert!(size_of::<EventAttributes>() == 48);
    assert!(offset_of!(EventAttributes, version) == 0);
    assert!(offset_of!(EventAttributes, size) == 2);
    assert!(offset_of!(EventAttributes, category) == 4);
    assert!(offset_of!(EventAttributes, color_type) == 8);
    assert!(offset_of!(EventAttributes, color) == 12);
    assert!(offset_of!(EventAttributes, payload_type) == 16);
    assert!(offset_of!(EventAttributes, payload) == 24);
    assert!(offset_of!(EventAttributes, message_type) == 32);
    assert!(offset_of!(EventAttributes, message) == 40);
    assert!(size_of::<ExportTableCallbacks>() == 16);
    assert!(offset_of!(ExportTableCallbacks, get_module_table) == 8);
    assert!(size_of::<ExportTableVersion>() == 24);
    assert!(offset_of!(ExportTableVersion, version) == 8);
    assert!(offset_of!(ExportTableVersion, set_injection_version) == 16);
};

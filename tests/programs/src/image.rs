//! The kernels, as PTX that every driver compiles for its own device.
//!
//! They need no arguments and touch no memory but their own; the stand-in driver knows them by
//! name. `tiled` has 16 KiB of static shared memory.

use std::ffi::CStr;

pub(crate) const IMAGE: &CStr = c"
.version 6.3
.target sm_50
.address_size 64

.visible .entry tiny()
{
    ret;
}

.visible .entry saxpy()
{
    .reg .f32 %f<4>;
    mov.f32 %f1, 0f3F800000;
    mov.f32 %f2, 0f40000000;
    fma.rn.f32 %f3, %f1, %f2, %f2;
    ret;
}

.visible .entry register_heavy()
{
    ret;
}

.visible .entry tiled()
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    .shared .align 4 .b8 tile[16384];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd1, %r1, 4;
    mov.u64 %rd2, tile;
    add.s64 %rd3, %rd2, %rd1;
    st.shared.u32 [%rd3], %r1;
    ret;
}
";

//! Gives the library the name under which programs look for CUPTI.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcupti.so.13");
}

//! How the library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // CUPTI and libc keep pointers to our functions: the library must never be unmapped.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Under this name the functions for programs find it, wherever it was loaded from.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libwarpgauge_instrument.so");
    // Calls within the library stay within it, whatever the host program exports.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    // A missing symbol shows when the library is built, not in somebody's process. A sanitizer's are
    // in the program that the library is loaded into.
    if std::env::var_os("CARGO_CFG_SANITIZE").is_none() {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,defs");
    }
}

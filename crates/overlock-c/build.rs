//! Link options of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The header has parts of the locks' layout in it, so a program needs the library of the
    // version that it was compiled for.
    let version = env!("CARGO_PKG_VERSION_MAJOR");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,liboverlock.so.{version}");
    // Threads that exit call into it, even after dlclose.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}

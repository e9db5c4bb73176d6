//! Linker arguments of the shared library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Binds calls within the library to its own functions, whatever the program exports by the same
    // names. A program may wrap such a function: if our function called the wrapper, which calls
    // ours, that would not end.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}

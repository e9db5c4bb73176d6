//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Calls of our own functions are ours, whatever the program exports by the same names: one that
    // wraps such a function, and is called by ours in place of ours, would call itself without
    // end.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}

//! Links the image by its own script.

fn main() {
    let dir = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rerun-if-changed=image.ld");
    println!("cargo:rustc-link-arg-bins=-T{dir}/image.ld");
    println!("cargo:rustc-link-arg-bins=--no-pie");
}

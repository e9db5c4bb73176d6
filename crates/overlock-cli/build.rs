//! Builds the drop-in into optimised programs: `cargo install` copies nothing but the program.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "liboverlock_preload.so";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let sources = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../overlock-preload");
    // Programs for debugging take the one beside them. Only glibc's programs can load it. A package
    // of this crate alone lacks the sources.
    let is_wanted = env::var("PROFILE")? == "release" && env::var("CARGO_CFG_TARGET_ENV")? == "gnu";
    if is_wanted && sources.is_dir() {
        build(&sources, &out)?;
    } else {
        fs::write(out.join(LIBRARY), [])?;
    }
    Ok(())
}

/// Puts the library into this directory.
fn build(sources: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    // Not the directory that is locked as long as the program is built.
    let all = out.join("target");
    let target = env::var("TARGET")?;
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo
        .args(["rustc", "--quiet", "--release", "--lib"])
        .args(["--crate-type", "cdylib", "--target-dir"])
        .arg(&all)
        .args(["--target", &target])
        .current_dir(sources)
        // A checker's: it would take this build for one of its own.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    if !cargo.status()?.success() {
        return Err(format!("{} cannot be built", sources.display()).into());
    }
    let built = all.join(target).join("release");
    fs::copy(built.join(LIBRARY), out.join(LIBRARY))?;
    for manifest in ["Cargo.toml", "../../Cargo.toml", "../../Cargo.lock"] {
        println!(
            "cargo:rerun-if-changed={}",
            sources.join(manifest).display()
        );
    }
    // cargo lists the files that went into it as make does: TO: FROM FROM...
    let list = fs::read_to_string(built.join(LIBRARY).with_extension("d"))?;
    for file in list.split_whitespace().skip(1) {
        println!("cargo:rerun-if-changed={file}");
    }
    Ok(())
}

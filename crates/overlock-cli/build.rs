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
    let own = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let sources = own.join("../overlock-preload");
    // Programs for debugging take the one beside them. Only glibc's of 64 bits can load it.
    let is_wanted = env::var("PROFILE")? == "release"
        && env::var("CARGO_CFG_TARGET_OS")? == "linux"
        && env::var("CARGO_CFG_TARGET_ENV")? == "gnu"
        && env::var("CARGO_CFG_TARGET_POINTER_WIDTH")? == "64";
    if !is_wanted {
        fs::write(out.join(LIBRARY), [])?;
    } else if sources.is_dir() {
        build(&sources, &out)?;
        rebuild_after(&sources, &out)?;
    } else {
        // A package of this crate alone, as from crates.io.
        build(&dependent(&own, &out)?, &out)?;
    }
    Ok(())
}

/// A package that needs the drop-in's, which cargo fetches. It has this program's own list of
/// versions: the drop-in's crates are on it, for a target that does not exist.
fn dependent(own: &Path, out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let dir = out.join("drop-in");
    let version = env::var("CARGO_PKG_VERSION")?;
    fs::create_dir_all(dir.join("src"))?;
    fs::write(dir.join("src/lib.rs"), "")?;
    // The directory may lie in somebody's workspace, which it is not of.
    let manifest = format!(
        "[package]\nname = \"drop-in\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\noverlock-preload = \"={version}\"\n\n[workspace]\n"
    );
    fs::write(dir.join("Cargo.toml"), manifest)?;
    let list = own.join("Cargo.lock");
    if list.is_file() {
        fs::copy(list, dir.join("Cargo.lock"))?;
    }
    Ok(dir)
}

/// The directory of what `build` builds.
fn built(out: &Path) -> Result<PathBuf, env::VarError> {
    let target = env::var("TARGET")?;
    Ok(out.join("target").join(target).join("release"))
}

/// Builds the library from this package, and puts it into the other directory.
fn build(package: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo
        .args(["rustc", "--quiet", "--release", "--lib"])
        .args(["--package", "overlock-preload", "--crate-type", "cdylib"])
        // Not the directory that is locked as long as the program is built.
        .arg("--target-dir")
        .arg(out.join("target"))
        .args(["--target", &env::var("TARGET")?])
        .current_dir(package)
        // A checker's: it would take this build for one of its own.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    if !cargo.status()?.success() {
        return Err(format!("the drop-in cannot be built in {}", package.display()).into());
    }
    fs::copy(built(out)?.join(LIBRARY), out.join(LIBRARY))?;
    Ok(())
}

fn rebuild_after(sources: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    for manifest in ["Cargo.toml", "../../Cargo.toml", "../../Cargo.lock"] {
        println!(
            "cargo:rerun-if-changed={}",
            sources.join(manifest).display()
        );
    }
    // cargo lists the files that went into it as make does: TO: FROM FROM...
    let list = fs::read_to_string(built(out)?.join(LIBRARY).with_extension("d"))?;
    for file in list.split_whitespace().skip(1) {
        println!("cargo:rerun-if-changed={file}");
    }
    Ok(())
}

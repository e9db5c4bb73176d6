//! Helpers of the tests of `overlock run`: the library, and programs in C.

#![allow(dead_code)] // each test program uses a part of it

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The library, built for these tests: it is no dependency that cargo would build by itself.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let program = assert_cmd::cargo::cargo_bin!("overlock");
        let dir = program.parent().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "-q", "-p", "overlock-preload", "--target-dir"])
            .arg(dir.parent().unwrap());
        if dir.ends_with("release") {
            cargo.arg("--release");
        }
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(cargo.current_dir(manifest).status().unwrap().success());
        dir.join("liboverlock_preload.so")
    })
}

/// A program in `tests/c`, in C, or in C++ where its whole name is given, compiled. Each test has
/// its own: one does not replace what another runs.
pub fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let (variable, default, ending) = match source.ends_with(".cpp") {
        true => ("CXX", "c++", ""),
        false => ("CC", "cc", ".c"),
    };
    let file = format!("tests/c/{source}{ending}");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let status = Command::new(std::env::var(variable).unwrap_or_else(|_| default.into()))
        .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .args(["-D_GNU_SOURCE"])
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(&to)
        .status()
        .unwrap();
    assert!(status.success());
    to
}

/// `overlock run` with the library, and these options.
pub fn run(options: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("overlock"));
    command.arg("run").args(options).arg("--library");
    command.arg(library()).arg("--");
    command
}

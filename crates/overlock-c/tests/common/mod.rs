#![allow(dead_code)] // each test uses its part
//! Programs in C and C++, compiled against the header and a library, and run.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The crate's directory.
pub fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A scratch directory with the libraries, by their installed names.
pub struct Workshop(tempfile::TempDir);

/// A library to link to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Shared,
    Static,
}

impl Workshop {
    pub fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        // The libraries lie where the tests do: Cargo has built them for the tests.
        let program = env::current_exe().unwrap();
        let built = program.parent().unwrap();
        for (from, to) in [
            ("liboverlock_c.so", "liboverlock.so.0"),
            ("liboverlock_c.a", "liboverlock.a"),
        ] {
            let from = built.join(from);
            fs::copy(&from, scratch.path().join(to))
                .unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        }
        let shared = scratch.path().join("liboverlock.so");
        std::os::unix::fs::symlink("liboverlock.so.0", shared).unwrap();
        Workshop(scratch)
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Compiles without a warning.
    pub fn compile(&self, source: &str, library: Library, options: &[&str]) -> PathBuf {
        let source = home().join(source);
        let compiler = match source.extension().and_then(|name| name.to_str()) {
            Some("cpp") => "c++",
            _ => "cc",
        };
        let name = source.file_stem().unwrap().to_str().unwrap();
        let program = self.path().join(format!("{name}{}", options.concat()));
        let mut command = Command::new(compiler);
        command
            .args(["-Wall", "-Wextra", "-Werror", "-pedantic"])
            .args(options)
            .arg("-I")
            .arg(home().join("include"))
            .arg(&source)
            .arg("-o")
            .arg(&program)
            .arg("-pthread");
        match library {
            Library::Shared => command
                .arg("-L")
                .arg(self.path())
                .arg("-loverlock")
                .arg(format!("-Wl,-rpath,{}", self.path().display())),
            Library::Static => command
                .arg(self.path().join("liboverlock.a"))
                .args(["-ldl", "-lm"]),
        };
        succeed(&mut command);
        program
    }
}

/// Runs it, and returns what it printed.
pub fn succeed(command: &mut Command) -> String {
    let output = run(command);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs it, with any outcome.
pub fn run(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

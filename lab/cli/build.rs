//! Finds which build this is, for the files of `overlock-lab sim sweep`: the commit, a checksum of
//! the changes since, and the profile. A build from an archive without a repository can name the
//! commit in `OVERLOCK_COMMIT`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The sources of the program.
const SOURCES: [&str; 6] = [
    ":(top,glob)crates/*/src/**",
    ":(top,glob)crates/*/Cargo.toml",
    ":(top,glob)lab/**/src/**",
    ":(top,glob)lab/**/Cargo.toml",
    ":(top)Cargo.toml",
    ":(top)Cargo.lock",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=OVERLOCK_COMMIT");
    let named = env::var("OVERLOCK_COMMIT")
        .ok()
        .filter(|name| !name.is_empty());
    let named = named.map(|commit| (commit, None));
    let found = named.or_else(repository);
    let (commit, changes) = found.unwrap_or_else(|| ("unknown".to_owned(), None));
    println!("cargo::rustc-env=OVERLOCK_COMMIT={commit}");
    println!(
        "cargo::rustc-env=OVERLOCK_CHANGES={}",
        changes.unwrap_or_default()
    );
    println!("cargo::rustc-env=OVERLOCK_PROFILE={}", profile());
}

/// The commit of the repository, and a checksum of the changes to the sources since.
fn repository() -> Option<(String, Option<String>)> {
    // The sources may lie in a repository that does not have them.
    git(&["ls-files", "--error-unmatch", "--", "Cargo.toml"])?;
    let top = PathBuf::from(text(&["rev-parse", "--show-toplevel"])?);
    for name in ["HEAD", "logs/HEAD"] {
        watch(Path::new(&text(&["rev-parse", "--git-path", name])?));
    }
    for name in ["Cargo.toml", "Cargo.lock"] {
        watch(&top.join(name));
    }
    let packages = ["crates", "lab", "lab/guest"].map(|folder| fs::read_dir(top.join(folder)));
    for package in packages.into_iter().flatten().flatten().flatten() {
        watch(&package.path().join("Cargo.toml"));
        watch(&package.path().join("src"));
    }
    let commit = text(&["rev-parse", "HEAD"])?;
    let options = [
        "diff",
        "HEAD",
        "--binary",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
    ];
    let mut changes = git(&[&options[..], &["--"], &SOURCES].concat())?;
    let options = [
        "ls-files",
        "-z",
        "--others",
        "--exclude-standard",
        "--full-name",
        "--",
    ];
    let added = git(&[&options[..], &SOURCES].concat())?;
    for name in added
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
    {
        changes.extend(name);
        changes.extend(fs::read(top.join(String::from_utf8_lossy(name).as_ref())).ok()?);
    }
    let checksum = (!changes.is_empty()).then(|| format!("{:08x}", crc32fast::hash(&changes)));
    Some((commit, checksum))
}

/// Has cargo run this again once the file or directory changes.
fn watch(path: &Path) {
    // Cargo takes a path that does not exist for one that changes all the time.
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

fn git(arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git")
        .args(arguments)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}

fn text(arguments: &[&str]) -> Option<String> {
    let text = String::from_utf8(git(arguments)?).ok()?;
    Some(text.trim_end().to_owned())
}

/// The directory of the profile, as in `target/release/build/...`: cargo tells the name in no other
/// way.
fn profile() -> String {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let names: Vec<_> = out.iter().map(|name| name.to_string_lossy()).collect();
    let build = names.iter().rposition(|name| name == "build");
    match build.and_then(|build| names[..build].last()) {
        Some(name) if name == "debug" => "dev".to_owned(),
        Some(name) => name.to_string(),
        None => "unknown".to_owned(),
    }
}

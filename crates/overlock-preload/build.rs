//! Linker arguments of the shared library, and the versions of its functions.
//!
//! The functions carry the versions that glibc's have, so that a look-up by version finds ours like
//! any other. rustc has the linker export a list without versions, and no linker takes two lists.
//! So a script stands in for the linker, and puts ours in its place.
//!
//! The library also runs on a glibc that is older than the one at hand, in children of other roots.
//! So it refers to functions that have moved to libc.so.6 without a version, in the libraries where
//! they were. The linker finds them in stubs of these.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const TABLE: &str = "versions.txt";

/// The version of functions that are not glibc's.
const OWN: &str = "OVERLOCK_1";

/// Functions that libc.so.6 has had since 2.34 only, with the libraries that they were in. (The
/// variables of 2.35 are weak references: any library will do.)
const MOVED: [(&str, &[&str]); 2] = [
    (
        "libpthread.so.0",
        &[
            "pthread_key_create",
            "pthread_key_delete",
            "pthread_setspecific",
            "pthread_testcancel",
            "__rseq_offset",
            "__rseq_size",
        ],
    ),
    ("libdl.so.2", &["dladdr", "dladdr1"]),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={TABLE}");
    println!("cargo:rerun-if-env-changed=RUSTC_LINKER");
    // Binds calls within the library to its own functions, whatever the program exports by the same
    // names. A program may wrap such a function: if our function called the wrapper, which calls
    // ours, that would not end.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
    if env::var("CARGO_CFG_TARGET_OS")? != "linux" || env::var("CARGO_CFG_TARGET_ENV")? != "gnu" {
        return Ok(());
    }
    if ["x86_64", "aarch64"].contains(&env::var("CARGO_CFG_TARGET_ARCH")?.as_str()) {
        // See `ends`.
        println!("cargo:rustc-cdylib-link-arg=-Wl,--wrap=rust_eh_personality");
    }
    let Some(linker) = linker() else {
        println!(
            "cargo:warning=the drop-in has no symbol versions: ld.bfd, of binutils, is missing"
        );
        return Ok(());
    };
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let table = fs::read_to_string(TABLE)?;
    let versions = versions(&table, oldest()?);
    fs::write(out.join("names"), names(&table))?;
    fs::write(out.join("list"), list(&versions))?;
    fs::write(out.join("aliases"), aliases(&versions))?;
    let dir = out.join("linker");
    fs::create_dir_all(&dir)?;
    let script = dir.join("ld.bfd");
    let stubs = stubs(&out)?;
    fs::write(&script, script_for(&linker, &out, &stubs))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    // The compiler looks for its linker there first.
    println!("cargo:rustc-cdylib-link-arg=-B{}", dir.display());
    println!("cargo:rustc-cdylib-link-arg=-fuse-ld=bfd");
    Ok(())
}

/// GNU's linker for the target: others do not give a symbol several versions by assignments.
fn linker() -> Option<PathBuf> {
    let mut command = Command::new(compiler());
    let output = command.arg("-print-prog-name=ld.bfd").output().ok()?;
    let name = String::from_utf8(output.stdout).ok()?;
    let name = Path::new(name.trim());
    if name.is_absolute() {
        return name.is_file().then(|| name.to_owned());
    }
    let path = env::var_os("PATH")?;
    let mut places = env::split_paths(&path).map(|dir| dir.join(name));
    places.find(|place| place.is_file())
}

/// The first version of glibc on the target.
fn oldest() -> Result<&'static str, Box<dyn Error>> {
    Ok(match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => "2.2.5",
        _ => "2.17",
    })
}

/// Makes the stubs. Returns their paths, each in quotes.
fn stubs(out: &Path) -> Result<String, Box<dyn Error>> {
    let mut paths = String::new();
    for (library, names) in MOVED {
        let source = out.join(library).with_extension("s");
        let mut text = String::new();
        for name in names {
            let _ = writeln!(text, ".globl {name}\n{name}:");
        }
        fs::write(&source, text)?;
        let stub = out.join(library);
        let mut command = Command::new(compiler());
        command
            .args(["-shared", "-nostdlib", "-o"])
            .arg(&stub)
            .arg(format!("-Wl,-soname,{library}"))
            .arg(&source);
        if !command.status()?.success() {
            return Err(format!("{} cannot be made", stub.display()).into());
        }
        let _ = write!(paths, "'{}' ", stub.display());
    }
    Ok(paths)
}

fn compiler() -> String {
    env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".into())
}

fn number(version: &str) -> Vec<u32> {
    let parts = version.split('.');
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// The versions of each function, the default last.
fn versions(table: &str, oldest: &str) -> BTreeMap<String, Vec<String>> {
    let is_exported = |line: &&str| !line.starts_with('#') && !line.ends_with(" -");
    let lines = table.lines().filter(is_exported);
    let rows = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let mut all: Vec<_> = words
            .map(|version| match number(version) < number(oldest) {
                true => oldest,
                false => version,
            })
            .map(|version| format!("GLIBC_{version}"))
            .collect();
        all.dedup();
        if all.is_empty() {
            all.push(OWN.to_owned());
        }
        Some((name, all))
    });
    rows.collect()
}

/// All names of the table, one in each line.
fn names(table: &str) -> String {
    let names = table
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names.map(|name| format!("{name}\n")).collect()
}

/// The list of exports.
fn list(versions: &BTreeMap<String, Vec<String>>) -> String {
    let mut nodes: BTreeMap<(Vec<u32>, &str), Vec<&str>> = BTreeMap::new();
    for (name, all) in versions {
        for (place, version) in all.iter().rev().enumerate() {
            let number = number(version.rsplit('_').next().unwrap_or_default());
            let names = nodes.entry((number, version)).or_default();
            if place == 0 {
                names.push(name);
            }
        }
    }
    let mut text = String::new();
    for ((_, version), names) in &nodes {
        let global = match names.is_empty() {
            true => String::new(),
            false => format!("global: {}; ", names.join("; ")),
        };
        let _ = writeln!(text, "{version} {{ {global}}};");
    }
    text + "OVERLOCK_PRIVATE { local: *; };\n"
}

/// Assignments by which a function has its other versions.
fn aliases(versions: &BTreeMap<String, Vec<String>>) -> String {
    let of = |(name, all): (&String, &Vec<String>)| {
        let others = all.iter().rev().skip(1);
        others
            .map(|version| format!("\"{name}@{version}\" = {name};\n"))
            .collect::<String>()
    };
    versions.iter().map(of).collect()
}

/// The script that stands in for the linker. It fails where the library exports a function that is
/// not in the table: its list would hide it. (The linker fails for one that does not exist.)
fn script_for(linker: &Path, out: &Path, stubs: &str) -> String {
    let (linker, out) = (linker.display(), out.display());
    format!(
        r#"#!/bin/sh
for argument do
    shift
    case $argument in
        --version-script=*)
            sed -n 's/^ *\([A-Za-z0-9_]*\);$/\1/p' "${{argument#*=}}" | grep -vxF -f '{out}/names' | grep . >&2 && {{
                echo 'exported, but not in {TABLE}' >&2
                exit 1
            }}
            set -- "$@" '--version-script={out}/list' '{out}/aliases' ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec '{linker}' {stubs}"$@"
"#
    )
}

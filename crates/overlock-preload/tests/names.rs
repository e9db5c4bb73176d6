//! One library behind one name: plugins, handles, versions and what runs before `main`.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::path::{Path, PathBuf};

use common::{compile_as, library, ours, run, same, text};

const DEFAULT: &[(&str, &str)] = &[];
const GLIBCS: &[(&str, &str)] = &[("OVERLOCK_MUTEX", "glibc"), ("OVERLOCK_RWLOCK", "glibc")];
const GLIBCS_MUTEX: &[(&str, &str)] = &[("OVERLOCK_MUTEX", "glibc")];
const COUNTED: &[(&str, &str)] = &[("OVERLOCK_STAT", "1")];

/// Compiles a program of its own for each test: tests run at the same time.
fn program(source: &str, test: &str) -> PathBuf {
    compile_as(
        source,
        &format!("names-{test}"),
        &["-rdynamic", "-Wl,-z,lazy"],
    )
}

fn plugin(source: &str, test: &str, flags: &[&str]) -> PathBuf {
    let all = [&["-shared", "-fPIC"], flags].concat();
    compile_as(source, &format!("names-{test}.so"), &all)
}

/// Fails ("does not hold", wrong counts, or no end) where a plugin's code and the program's take
/// the same object for that of another library.
#[test]
fn a_plugin_shares_objects_with_its_host_however_it_is_loaded() {
    let program = program("apart.c", "apart");
    for (name, flags) in [
        ("lazy", &["-Wl,-z,lazy"][..]),
        ("now", &["-Wl,-z,now", "-Wl,-z,relro", "-fno-plt"]),
        ("own", &["-DOWN", "-Wl,-z,now", "-Wl,-z,relro"]),
    ] {
        let plugin = plugin("apart_plugin.c", &format!("apart-{name}"), flags);
        for how in ["plain", "deep", "apart", "lazy"] {
            let settings = &[DEFAULT, GLIBCS, GLIBCS_MUTEX];
            same(&program, &[&plugin, Path::new(how)], settings);
        }
    }
    same(
        &program,
        &[Path::new(""), Path::new("handle")],
        &[DEFAULT, GLIBCS, COUNTED],
    );
}

/// The standard error of a run with the library.
fn said(program: &Path, arguments: &[&Path]) -> String {
    let library = library();
    let output = run(
        program,
        arguments,
        &[("LD_PRELOAD", library.to_str().unwrap())],
    );
    assert!(output.status.success(), "{output:?}");
    text(&output.stderr)
}

#[test]
fn one_line_says_what_has_been_done_to_a_plugin() {
    let program = program("apart.c", "says");
    let common = plugin("apart_plugin.c", "says-common", &[]);
    let own = plugin("apart_plugin.c", "says-own", &["-DOWN"]);
    for (plugin, how, word) in [
        (&common, "plain", ""),
        (&common, "deep", "RTLD_DEEPBIND is left out"),
        (&own, "deep", "keeps RTLD_DEEPBIND"),
        (&common, "apart", "by dlmopen"),
    ] {
        let said = said(&program, &[plugin, Path::new(how)]);
        assert_eq!(
            said.lines().count(),
            usize::from(!word.is_empty()),
            "{said}"
        );
        assert!(said.contains(word), "{how}: {said}");
    }
}

/// Fails where a condition, a barrier or a semaphore stays ours.
#[test]
fn with_both_locks_glibcs_every_object_is() {
    let program = program("leaves.c", "leaves");
    same(&program, &[], &[GLIBCS]);
    let found = ours(&program, &[], DEFAULT);
    assert!(!found.contains("known: 1"), "{found}");
}

/// Fails where the settings are read from an environment that is not there yet.
#[test]
fn settings_are_known_before_the_c_library_is_initialised() {
    let program = program("before.c", "before");
    same(&program, &[], &[GLIBCS, GLIBCS_MUTEX]);
    let library = library();
    let preload = ("LD_PRELOAD", library.to_str().unwrap());
    let output = run(&program, &[], &[preload, ("OVERLOCK_LOCKDEP", "1")]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let reports = said.matches("possible circular locking dependency").count();
    assert_eq!(reports, 1, "{said}");
}

/// Fails where the table is made in the root directory, by the first lock that is counted.
#[test]
fn the_table_is_in_its_place_whoever_locks_first() {
    let program = program("before.c", "table");
    let earlier = plugin("before.c", "table-library", &["-DLIBRARY"]);
    let library = library();
    let preload = format!("{}:{}", library.display(), earlier.display());
    let tables = program.with_extension("tables");
    std::fs::create_dir_all(&tables).unwrap();
    let directory = ("OVERLOCK_STAT_DIR", tables.to_str().unwrap());
    for preload in [library.to_str().unwrap(), &preload] {
        let environment = [("LD_PRELOAD", preload), ("OVERLOCK_STAT", "1"), directory];
        assert!(run(&program, &[], &environment).status.success());
        let found = std::fs::read_dir(&tables).unwrap();
        let found: Vec<_> = found.map(|file| file.unwrap().path()).collect();
        assert_eq!(found.len(), 1, "{preload}: {found:?}");
        std::fs::remove_file(&found[0]).unwrap();
    }
    std::fs::remove_dir(&tables).unwrap();
}

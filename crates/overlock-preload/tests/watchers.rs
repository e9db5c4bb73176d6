//! Programs that compilers have instrumented, and that have the library without having been asked.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::path::PathBuf;

use common::{compile_as, library, run, text};

const SETTINGS: [&[(&str, &str)]; 3] =
    [&[], &[("OVERLOCK_LOCKDEP", "1")], &[("OVERLOCK_STAT", "1")]];

/// Runs the program with the library, in all settings: its output is the same as without. Returns
/// what each run has said on the standard error.
fn said(program: PathBuf) -> Vec<String> {
    let alone = run(&program, &[], &[]);
    if !alone.status.success() {
        // Sanitizers want a fixed part of the address space, which not every machine leaves free.
        eprintln!("not tried: {}", text(&alone.stderr));
        return Vec::new();
    }
    let library = library();
    let tables = program.with_extension("tables");
    std::fs::create_dir_all(&tables).unwrap();
    let with = SETTINGS.map(|setting| {
        let mut environment = vec![
            ("LD_PRELOAD", library.to_str().unwrap()),
            ("OVERLOCK_STAT_DIR", tables.to_str().unwrap()),
        ];
        environment.extend_from_slice(setting);
        let output = run(&program, &[], &environment);
        let said = text(&output.stderr);
        assert!(output.status.success(), "{setting:?}: {said}");
        assert_eq!(output.stdout, alone.stdout, "{setting:?}: {said}");
        said
    });
    std::fs::remove_dir_all(&tables).unwrap();
    with.to_vec()
}

/// Fails with reports of races, or with aborts in the C library, where one of a condition and its
/// mutex is ours.
#[test]
fn thread_sanitizer_finds_the_c_librarys_locks() {
    for (name, flags) in [
        ("queue-thread", &["-fsanitize=thread"][..]),
        (
            "queue-thread-static",
            &["-fsanitize=thread", "-static-libtsan", "-s"],
        ),
    ] {
        for said in said(compile_as("queue.c", name, flags)) {
            assert_eq!(
                said, "overlock: the C library's locks stay: ThreadSanitizer has to see them\n",
                "{name}"
            );
        }
    }
}

/// Fails where AddressSanitizer refuses to be loaded second.
#[test]
fn the_other_sanitizers_have_nothing_to_say() {
    for kind in ["address", "leak", "undefined"] {
        let name = format!("queue-{kind}");
        let program = compile_as("queue.c", &name, &[&format!("-fsanitize={kind}")]);
        for said in said(program) {
            assert_eq!(said, "", "{kind}");
        }
    }
}

/// Fails, with a call of address 0, where this library asks the loader by functions that the
/// program puts before the C library's, and that are themselves looked up by ours.
#[test]
fn interceptors_may_look_for_what_is_behind_them_at_any_time() {
    let program = compile_as("interceptors.c", "interceptors", &["-rdynamic"]);
    for said in said(program) {
        assert_eq!(said, "");
    }
}

//! `overlock run` in front of programs that have no use for the library, and of their parents.

mod common;
#[path = "common/preload.rs"]
mod preload;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use preload::{library, run};

const HELLO: &str = "#include <stdio.h>\nint main(void) { return puts(\"hello\") < 0; }\n";

fn hello(dir: &Path, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    compiled(dir, HELLO, compiler, flags)
}

/// A program, compiled in this directory; `None` if the compiler cannot do it.
fn compiled(dir: &Path, text: &str, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    let source = dir.join("hello.c");
    fs::write(&source, text).unwrap();
    let to = dir.join("hello");
    let mut command = Command::new(compiler);
    let command = command.args(flags).arg("-o").arg(&to).arg(&source);
    let made = command.stderr(Stdio::null()).status();
    if made.is_ok_and(|status| status.success()) {
        Some(to)
    } else {
        eprintln!("not tried: {compiler} {flags:?} does not work here");
        None
    }
}

fn compiler() -> String {
    std::env::var("CC").unwrap_or_else(|_| "cc".into())
}

/// A shell that the library is loaded into runs the program in the directory.
fn through_a_shell(dir: &Path, options: &[&str]) -> Output {
    let mut command = run(options);
    command.args(["sh", "-c", "./hello; exit $?"]);
    command.current_dir(dir).output().unwrap()
}

fn is_as_by_itself(dir: &Path, what: &str) {
    for options in [&[][..], &["--lockdep"]] {
        let output = through_a_shell(dir, options);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{what}: {said}");
        assert_eq!(output.stdout, b"hello\n", "{what}: {said}");
        if options.is_empty() {
            assert_eq!(said, "", "{what}");
        }
    }
}

/// Fails where a loader that is not this one's complains, or gives up.
#[test]
fn children_that_cannot_load_the_library_run_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let cc = compiler();
    for (compiler, flags) in [
        ("musl-gcc", &[][..]),
        (&cc, &["-static"]),
        (&cc, &["-m32"]),
        (&cc, &["-m32", "-static"]),
    ] {
        if hello(dir.path(), compiler, flags).is_some() {
            is_as_by_itself(dir.path(), &format!("{compiler} {flags:?}"));
        }
    }
}

#[test]
fn a_setuid_child_runs_without_the_library() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = hello(dir.path(), &compiler(), &[]) else {
        return;
    };
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    if chown(&program, Some(65534), Some(65534)).is_ok() {
        fs::set_permissions(&program, Permissions::from_mode(0o6755)).unwrap();
        is_as_by_itself(dir.path(), "setuid");
    }
}

/// How many lines of the maps of a child have the library.
fn loaded(command: &mut Command) -> usize {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said, "");
    let maps = String::from_utf8(output.stdout).unwrap();
    maps.lines()
        .filter(|line| line.contains("overlock_preload"))
        .count()
}

/// Fails where the loader splits the library's path, or replaces a part of it.
#[test]
fn the_librarys_path_may_have_any_characters() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a b", "a:b", "$LIB", "${ORIGIN}", "ü"] {
        let folder = dir.path().join(name);
        fs::create_dir(&folder).unwrap();
        let to = folder.join("liboverlock_preload.so");
        fs::copy(library(), &to).unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("overlock"));
        command.args(["run", "--library"]).arg(&to);
        command.args(["sh", "-c", "cat /proc/self/maps"]);
        assert_ne!(loaded(&mut command), 0, "{name}");
    }
}

/// Fails where only the user who ran `overlock` can read the folder of the library's names.
#[test]
fn children_of_other_users_have_the_library() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let to = dir.path().join("liboverlock_preload.so");
    fs::copy(library(), &to).unwrap();
    let mut command = Command::new("sh");
    let script = "umask 077; exec \"$0\" run --library \"$1\" -- \
                  setpriv --reuid=65534 --regid=65534 --clear-groups cat /proc/self/maps";
    command.args(["-c", script]);
    command.arg(assert_cmd::cargo::cargo_bin!("overlock"));
    assert_ne!(loaded(command.arg(&to)), 0);
}

#[test]
fn an_environment_that_is_emptied_has_no_library() {
    let mut command = run(&[]);
    assert_eq!(
        loaded(command.args(["env", "-i", "cat", "/proc/self/maps"])),
        0
    );
}

/// The message, in one line.
fn refused(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(126), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(output.stdout, b"");
    said
}

/// Fails where the sanitizer aborts, or finds races that are none.
#[test]
fn a_program_with_thread_sanitizer_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for flags in [
        &["-fsanitize=thread"][..],
        &["-fsanitize=thread", "-static-libtsan"],
        &["-fsanitize=thread", "-static-libtsan", "-s"],
    ] {
        let Some(program) = hello(dir.path(), &compiler(), flags) else {
            continue;
        };
        for options in [&[][..], &["--stat"], &["--lockdep"], &["--spin-only"]] {
            let said = refused(run(options).arg(&program));
            assert!(said.contains("is built with ThreadSanitizer"), "{said}");
        }
    }
}

/// Fails where the sanitizer itself refuses to start, without a word of what to do.
#[test]
fn a_program_with_options_for_address_sanitizer_is_told_which() {
    let dir = tempfile::tempdir().unwrap();
    let options = "const char *__asan_default_options(void) { return \"\"; }\n";
    let text = format!("{options}{HELLO}");
    let Some(program) = compiled(dir.path(), &text, &compiler(), &["-fsanitize=address"]) else {
        return;
    };
    let said = refused(run(&[]).env_remove("ASAN_OPTIONS").arg(&program));
    assert!(said.contains("verify_asan_link_order=0"), "{said}");
    let mut command = run(&[]);
    command.env("ASAN_OPTIONS", "verify_asan_link_order=0");
    assert_eq!(command.arg(&program).output().unwrap().stdout, b"hello\n");
}

/// Fails where the loader passes for a static program.
#[test]
fn the_loader_may_be_the_program() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5));
    let Some(loader) = paths.find(|path| path.contains("/ld-linux")) else {
        return;
    };
    let mut command = run(&[]);
    command.args([loader, "/bin/cat", "/proc/self/maps"]);
    assert_ne!(loaded(&mut command), 0);
}

#[test]
fn helgrind_and_drd_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let valgrind = dir.path().join("valgrind");
    fs::write(&valgrind, "#!/bin/sh\necho run\n").unwrap();
    fs::set_permissions(&valgrind, Permissions::from_mode(0o755)).unwrap();
    for tool in ["helgrind", "drd"] {
        let mut command = run(&[]);
        command.arg(&valgrind).arg(format!("--tool={tool}"));
        let said = refused(command.arg("./program"));
        assert!(said.contains(&format!("{tool} has to see")), "{said}");
    }
    let mut command = run(&[]);
    let output = command.arg(&valgrind).arg("./program").output().unwrap();
    assert_eq!(output.stdout, b"run\n");
}

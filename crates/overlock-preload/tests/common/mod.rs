#![allow(dead_code)] // each test uses a part of it
//! Programs in C and C++ of `tests/c`: compiles them, and runs them with the library or without.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// A setting for programs that begin under a seccomp filter, which kills them at any system call
/// that neither they nor glibc's locks make.
pub const CONFINED: (&str, &str) = ("CONFINED", "1");

/// The longest that a program may take: each takes seconds on an idle machine.
const TIMEOUT: Duration = Duration::from_secs(900);

/// The library that was built with this test.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.parent().unwrap().join(format!(
        "{}overlock_preload.so",
        std::env::consts::DLL_PREFIX
    ));
    assert!(library.exists(), "{} is not there", library.display());
    library
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c")
}

/// Compiles a program, or a library to be loaded by one.
pub fn compile(source: &str, flags: &[&str]) -> PathBuf {
    compile_as(source, &source.replace('.', "-"), flags)
}

pub fn compile_as(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let plus = source.ends_with(".cpp");
    let (variable, default) = if plus { ("CXX", "c++") } else { ("CC", "cc") };
    let compiler = std::env::var(variable).unwrap_or_else(|_| default.into());
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // Another test may run the same program.
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let new = to.with_extension(format!("{}.new", NUMBER.fetch_add(1, Relaxed)));
    let output = Command::new(&compiler)
        .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"])
        .args(if plus { &["-std=c++20"][..] } else { &[] })
        .args(flags)
        .arg(sources().join(source))
        .arg("-o")
        .arg(&new)
        .arg("-ldl")
        .output()
        .unwrap_or_else(|error| panic!("{compiler}, a compiler, is needed: {error}"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    fs::rename(new, &to).unwrap();
    to
}

/// Runs a program, which must succeed. Returns its output.
pub fn run(program: &Path, arguments: &[&Path], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The pipe holds all of the output.
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > TIMEOUT {
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            panic!("{program:?} {environment:?} does not end: {output:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a program on glibc's locks and, with each of the settings, on ours: all must print the
/// same. The settings run at the same time: most programs wait for most of their time.
pub fn same_with(source: &str, arguments: &[&Path], settings: &[&[(&str, &str)]]) {
    let program = compile(source, &[]);
    thread::scope(|scope| {
        let expected = scope.spawn(|| glibcs(&program, arguments));
        let ours: Vec<_> = settings
            .iter()
            .map(|setting| (setting, scope.spawn(|| ours(&program, arguments, setting))))
            .collect();
        let expected = expected.join().unwrap();
        for (setting, ours) in ours {
            compare(&program, setting, &ours.join().unwrap(), &expected);
        }
    });
}

/// As [`same_with`], for a program that has been compiled, and one setting after the other.
pub fn same(program: &Path, arguments: &[&Path], settings: &[&[(&str, &str)]]) {
    let expected = glibcs(program, arguments);
    for setting in settings {
        compare(
            program,
            setting,
            &ours(program, arguments, setting),
            &expected,
        );
    }
}

fn compare(program: &Path, setting: &[(&str, &str)], answered: &str, expected: &str) {
    for (number, (ours, glibcs)) in answered.lines().zip(expected.lines()).enumerate() {
        assert_eq!(ours, glibcs, "{program:?} {setting:?}, line {}", number + 1);
    }
    assert_eq!(answered, expected, "{program:?} {setting:?}");
}

/// Runs a program on glibc's locks, which must succeed. Returns its output.
fn glibcs(program: &Path, arguments: &[&Path]) -> String {
    let glibcs = run(program, arguments, &[]);
    let expected = text(&glibcs.stdout);
    assert!(
        glibcs.status.success(),
        "on glibc's locks: {expected}{}",
        text(&glibcs.stderr)
    );
    expected
}

/// Runs a program on our locks, which must succeed. Returns its output.
pub fn ours(program: &Path, arguments: &[&Path], setting: &[(&str, &str)]) -> String {
    let library = library();
    // Processes with statistics leave their tables there.
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let tables = program.with_extension(format!("tables{}", RUNS.fetch_add(1, Relaxed)));
    fs::create_dir_all(&tables).unwrap();
    let mut environment = vec![
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("OVERLOCK_STAT_DIR", tables.to_str().unwrap()),
    ];
    environment.extend_from_slice(setting);
    static CONFINES: OnceLock<PathBuf> = OnceLock::new();
    let ours = if setting.contains(&CONFINED) {
        let confines = CONFINES.get_or_init(|| compile("confine.c", &[]));
        run(confines, &[&[program], arguments].concat(), &environment)
    } else {
        run(program, arguments, &environment)
    };
    fs::remove_dir_all(&tables).unwrap();
    let answered = text(&ours.stdout);
    assert!(
        ours.status.success(),
        "{program:?} {arguments:?} {setting:?}, {}: {answered}{}",
        ours.status,
        text(&ours.stderr)
    );
    answered
}

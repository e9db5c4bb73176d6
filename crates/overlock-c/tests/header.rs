//! The header against the library: its declarations, numbers, and machine code.

mod common;

use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_void};
use std::fs;
use std::process::Command;

use common::{Library, Workshop, home, succeed};
use libc::timespec;
use overlock_c::cond::{self, Cond};
use overlock_c::mutex::{self, Mutex};
use overlock_c::rwlock::{self, RwLock};
use overlock_c::stat::{self, Visit};

#[test]
fn its_numbers_are_those_of_the_library() {
    let workshop = Workshop::new();
    let options = ["-std=c11", "-O2"];
    let program = workshop.compile("tests/programs/constants.c", Library::Shared, &options);
    let printed = succeed(&mut Command::new(program));
    let numbers: Vec<_> = (printed.lines())
        .map(|line| {
            let (name, number) = line.split_once(' ').unwrap();
            (name, number.parse::<usize>().unwrap())
        })
        .collect();
    assert_eq!(
        numbers,
        [
            ("mutex_size", size_of::<Mutex>()),
            ("mutex_align", align_of::<Mutex>()),
            ("rwlock_size", size_of::<RwLock>()),
            ("rwlock_align", align_of::<RwLock>()),
            ("cond_size", size_of::<Cond>()),
            ("cond_align", align_of::<Cond>()),
            ("held", 1),
            ("busy", 1),
            ("free", 0),
        ]
    );
}

/// Fails where the header has a warning that a careful program turns on.
#[test]
fn it_compiles_without_a_warning_in_older_dialects_too() {
    let workshop = Workshop::new();
    for dialect in ["-std=gnu89", "-std=c99", "-std=gnu99", "-std=gnu17"] {
        let options = [dialect, "-O2", "-Wconversion", "-Wcast-qual", "-Wundef"];
        workshop.compile("tests/programs/probes.c", Library::Shared, &options);
    }
}

/// Fails where the library would read a deadline of another layout. Needs GCC for 32 bits.
#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn it_refuses_times_that_the_library_does_not_read() {
    let compiles = |options: &[&str]| {
        let mut command = Command::new("cc");
        command.args(["-m32", "-fsyntax-only", "-I"]);
        command.arg(home().join("include"));
        // For machines with nothing of 32 bits but the compiler.
        command.args(["-idirafter", "/usr/include/x86_64-linux-gnu"]);
        command
            .args(options)
            .arg(home().join("tests/programs/probes.c"));
        command.output().is_ok_and(|output| output.status.success())
    };
    let wide = [
        "-include",
        "time.h",
        "-D_TIME_BITS=64",
        "-D_FILE_OFFSET_BITS=64",
    ];
    assert!(!compiles(&[]) || !compiles(&wide));
}

/// The initialisers of C are all zero.
#[test]
fn zeroed_memory_is_a_new_lock() {
    fn same<L: std::fmt::Debug>(new: L) {
        // SAFETY: the types are made of integers, for which zero is a value.
        let zeroed: L = unsafe { std::mem::zeroed() };
        assert_eq!(format!("{zeroed:?}"), format!("{new:?}"));
    }
    same(Mutex::new());
    same(RwLock::new());
    same(Cond::new());
}

/// The name of a type in C.
trait InC {
    const NAME: &'static str;
}

macro_rules! types {
    ($($rust:ty: $c:literal;)*) => {$(
        impl InC for $rust {
            const NAME: &'static str = $c;
        }
    )*};
}

types! {
    c_int: "int ";
    *const c_char: "const char *";
    *const timespec: "const struct timespec *";
    *mut c_void: "void *";
    Visit: "ovl_stat_visit_t ";
    *mut Mutex: "ovl_mutex_t *";
    *mut RwLock: "ovl_rwlock_t *";
    *mut Cond: "ovl_cond_t *";
}

/// The prototypes of the library's functions, which have these types.
macro_rules! functions {
    ($($name:path: ($($argument:ty),*) -> $result:ty;)*) => {
        BTreeSet::from([$({
            let _: unsafe extern "C" fn($($argument),*) -> $result = $name;
            let arguments: &[&str] = &[$(<$argument as InC>::NAME),*];
            let name = stringify!($name).rsplit(':').next().unwrap().trim();
            format!("{}{name}({})", <$result as InC>::NAME, arguments.join(", "))
        }),*])
    };
}

fn functions() -> BTreeSet<String> {
    functions! {
        overlock_c::ovl_version: () -> *const c_char;
        overlock_c::ovl_use_futex_alone: () -> c_int;
        mutex::ovl_mutex_init: (*mut Mutex) -> c_int;
        mutex::ovl_mutex_destroy: (*mut Mutex) -> c_int;
        mutex::ovl_mutex_after_fork: (*mut Mutex) -> c_int;
        mutex::ovl_mutex_name: (*mut Mutex, *const c_char) -> c_int;
        mutex::ovl_mutex_lock: (*mut Mutex) -> c_int;
        mutex::ovl_mutex_trylock: (*mut Mutex) -> c_int;
        mutex::ovl_mutex_timedlock: (*mut Mutex, *const timespec) -> c_int;
        mutex::ovl_mutex_unlock: (*mut Mutex) -> c_int;
        rwlock::ovl_rwlock_init: (*mut RwLock) -> c_int;
        rwlock::ovl_rwlock_destroy: (*mut RwLock) -> c_int;
        rwlock::ovl_rwlock_after_fork: (*mut RwLock, c_int) -> c_int;
        rwlock::ovl_rwlock_name: (*mut RwLock, *const c_char) -> c_int;
        rwlock::ovl_rwlock_rdlock: (*mut RwLock) -> c_int;
        rwlock::ovl_rwlock_tryrdlock: (*mut RwLock) -> c_int;
        rwlock::ovl_rwlock_timedrdlock: (*mut RwLock, *const timespec) -> c_int;
        rwlock::ovl_rwlock_rdunlock: (*mut RwLock) -> c_int;
        rwlock::ovl_rwlock_wrlock: (*mut RwLock) -> c_int;
        rwlock::ovl_rwlock_trywrlock: (*mut RwLock) -> c_int;
        rwlock::ovl_rwlock_timedwrlock: (*mut RwLock, *const timespec) -> c_int;
        rwlock::ovl_rwlock_wrunlock: (*mut RwLock) -> c_int;
        stat::ovl_stat_enable: (c_int) -> c_int;
        stat::ovl_stat_each: (Visit, *mut c_void) -> c_int;
        stat::ovl_stat_print: (c_int) -> c_int;
        cond::ovl_cond_init: (*mut Cond) -> c_int;
        cond::ovl_cond_destroy: (*mut Cond) -> c_int;
        cond::ovl_cond_after_fork: (*mut Cond) -> c_int;
        cond::ovl_cond_wait: (*mut Cond, *mut Mutex) -> c_int;
        cond::ovl_cond_timedwait: (*mut Cond, *mut Mutex, *const timespec) -> c_int;
        cond::ovl_cond_signal: (*mut Cond) -> c_int;
        cond::ovl_cond_broadcast: (*mut Cond) -> c_int;
    }
}

/// The header's prototypes, without the names of arguments.
fn declared() -> BTreeSet<String> {
    let header = fs::read_to_string(home().join("include/overlock.h")).unwrap();
    let public = header.split("Private from here on").next().unwrap();
    let prototype = |line: &str| {
        let (start, arguments) = line.strip_suffix(");")?.split_once('(')?;
        // A name begins behind the last star or space.
        let arguments = arguments.split(", ").filter_map(|argument| {
            let name = argument.rfind(['*', ' '])?;
            Some(argument[..=name].to_owned())
        });
        Some(format!(
            "{start}({})",
            arguments.collect::<Vec<_>>().join(", ")
        ))
    };
    // Lines of comments do not begin with a type.
    public
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_alphabetic()))
        .filter(|line| !line.starts_with("typedef "))
        .filter_map(prototype)
        .collect()
}

#[test]
fn it_declares_the_functions_of_the_library_with_their_types() {
    assert_eq!(declared(), functions());
}

#[test]
fn the_shared_library_exports_what_is_declared_and_no_more() {
    let workshop = Workshop::new();
    let listed = succeed(
        Command::new("nm")
            .args(["--dynamic", "--defined-only"])
            .arg(workshop.path().join("liboverlock.so")),
    );
    let exported: BTreeSet<&str> = listed
        .lines()
        .filter_map(|line| line.rsplit(' ').next())
        .collect();
    let functions = functions();
    let name = |prototype: &'_ str| {
        let start = prototype.find("ovl_").unwrap();
        prototype[start..].split('(').next().unwrap().to_owned()
    };
    let names: BTreeSet<String> = functions.iter().map(|text| name(text)).collect();
    assert_eq!(exported, names.iter().map(String::as_str).collect());
}

/// Locked instructions and calls in a function of tests/programs/probes.c.
fn count(code: &str, function: &str) -> (usize, usize) {
    let start = code.find(&format!("<{function}>:")).unwrap();
    let body = code[start..].split("\n\n").next().unwrap();
    let has =
        |line: &str, words: &[&str]| line.split_whitespace().any(|word| words.contains(&word));
    let locked = body
        .lines()
        .filter(|line| has(line, &["lock"]) || has(line, &["xchg"]) && line.contains("PTR"));
    let calls = body.lines().filter(|line| {
        // A slow path is left by a jump to another function, or called.
        has(line, &["call"]) || has(line, &["jmp"]) && line.contains("@plt")
    });
    (locked.count(), calls.count())
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_fast_paths_are_compiled_to_what_they_should_be() {
    let workshop = Workshop::new();
    let program = workshop.compile(
        "tests/programs/probes.c",
        Library::Shared,
        &["-std=c11", "-O2"],
    );
    let code = succeed(
        Command::new("objdump")
            .args(["--disassemble", "--no-show-raw-insn", "-M", "intel"])
            .arg(program),
    );
    // One compare-exchange, and the slow path; one way into the library.
    assert_eq!(count(&code, "probe_lock"), (1, 1), "{code}");
    assert_eq!(count(&code, "probe_unlock"), (1, 1), "{code}");
    assert_eq!(count(&code, "probe_trylock"), (1, 1), "{code}");
}

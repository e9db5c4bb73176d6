//! One library behind one name: plugins, handles, versions and what runs before `main`.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{compile_as, library, ours, run, same, same_with, text};

const DEFAULT: &[(&str, &str)] = &[];
const GLIBCS: &[(&str, &str)] = &[("OVERLOCK_MUTEX", "glibc"), ("OVERLOCK_RWLOCK", "glibc")];
const GLIBCS_MUTEX: &[(&str, &str)] = &[("OVERLOCK_MUTEX", "glibc")];
const COUNTED: &[(&str, &str)] = &[("OVERLOCK_STAT", "1")];

/// Compiles a program of its own for each test: tests run at the same time.
fn program(source: &str, test: &str) -> PathBuf {
    compile_as(
        source,
        &format!("names-{test}"),
        &["-rdynamic", "-Wl,-z,lazy", "-Wl,-rpath,$ORIGIN"],
    )
}

fn plugin(source: &str, test: &str, flags: &[&str]) -> PathBuf {
    let all = [&["-shared", "-fPIC"], flags].concat();
    compile_as(source, &format!("names-{test}.so"), &all)
}

/// Fails ("does not hold", wrong counts, or no end) where a plugin's code and the program's take
/// the same object for that of another library. A plugin also keeps its own functions that the
/// program or the C library has, too.
#[test]
fn a_plugin_shares_objects_with_its_host_however_it_is_loaded() {
    let program = program("apart.c", "apart");
    plugin("apart_plugin.c", "apart-library", &["-DLIBRARY"]);
    let directory = concat!("-L", env!("CARGO_TARGET_TMPDIR"));
    let needs = [
        "-DNEEDS",
        directory,
        "-Wl,--no-as-needed",
        "-l:names-apart-library.so",
        "-Wl,-rpath,$ORIGIN",
    ];
    for (name, flags) in [
        ("lazy", &["-Wl,-z,lazy"][..]),
        ("own", &["-DOWN", "-Wl,-z,now", "-Wl,-z,relro", "-fno-plt"]),
        ("starts", &["-DSTARTS", "-Wl,--hash-style=sysv"]),
        ("needs", &needs),
    ] {
        let plugin = plugin("apart_plugin.c", &format!("apart-{name}"), flags);
        for how in ["plain", "deep", "apart", "lazy", "searched"] {
            let settings: &[&[_]] = match (name, how) {
                ("starts", _) => &[DEFAULT, GLIBCS, GLIBCS_MUTEX, COUNTED],
                (_, "deep" | "apart") => &[DEFAULT, GLIBCS_MUTEX],
                _ => &[DEFAULT],
            };
            same(&program, &[&plugin, Path::new(how)], settings);
        }
    }
    same(
        &program,
        &[Path::new(""), Path::new("handle")],
        &[DEFAULT, GLIBCS, COUNTED],
    );
}

/// As PHP loads its extensions, and drivers of GPUs are loaded.
#[test]
fn the_cpp_standard_library_works_in_a_plugin() {
    let program = program("host.c", "host");
    let flags = ["-Dmain=plugin_main", "-shared", "-fPIC"];
    let plugin = compile_as("standard.cpp", "names-host-plugin.so", &flags);
    let same = |how: &str| same(&program, &[&plugin, Path::new(how)], &[DEFAULT]);
    same("deep");
    // In a second namespace the C library's own allocator aborts once in 150 runs, without us too:
    // "malloc(): mismatching next->prev_size".
    let is_same = (0..3).any(|_| std::panic::catch_unwind(|| same("apart")).is_ok());
    if !is_same {
        same("apart");
    }
}

/// Fails where a library with the older table of names is passed over.
#[test]
fn a_wrapper_behind_is_called_whichever_table_it_has() {
    let program = program("behind.c", "behind");
    let library = library();
    for style in ["gnu", "sysv"] {
        let flags = ["-DLIBRARY", &format!("-Wl,--hash-style={style}")];
        let wrapper = plugin("behind.c", &format!("behind-{style}"), &flags);
        let preload = format!("{}:{}", library.display(), wrapper.display());
        let output = run(&program, &[], &[("LD_PRELOAD", &preload)]);
        assert_eq!(
            text(&output.stdout),
            "wrapped\nslept\n",
            "{style}: {output:?}"
        );
    }
}

/// Fails (in a kill) where loading a plugin takes a system call that it does not take without us.
#[test]
fn a_program_under_a_filter_loads_plugins() {
    let program = program("confined.c", "confined");
    let plugin = plugin("apart_plugin.c", "confined-plugin", &["-DOWN"]);
    same(&program, &[&plugin], &[DEFAULT, GLIBCS, GLIBCS_MUTEX]);
}

/// Fails where the loader runs out of namespaces, and where a line is written to a file that has
/// taken the standard error's number.
#[test]
fn namespaces_are_given_back() {
    let program = program("namespaces.c", "namespaces");
    let plugin = plugin("apart_plugin.c", "namespaces-plugin", &["-DOWN"]);
    same(&program, &[&plugin], &[DEFAULT, GLIBCS, GLIBCS_MUTEX]);
}

/// Fails where the loader takes us for the caller of `dlopen` or `dlsym`.
#[test]
fn the_loader_sees_the_functions_own_caller() {
    let program = program("caller.c", "caller");
    let found = Path::new(env!("CARGO_TARGET_TMPDIR")).join("names-found");
    std::fs::create_dir_all(&found).unwrap();
    plugin("apart_plugin.c", "caller-found", &[]);
    let [from, to] = ["names-caller-found.so", "names-found/libnames-found.so"]
        .map(|name| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
    std::fs::copy(from, to).unwrap();
    let path = "-Wl,-rpath,$ORIGIN/names-found";
    let library = plugin("caller.c", "caller-library", &["-DLIBRARY", path]);
    same(&program, &[&library], &[DEFAULT, GLIBCS]);
}

/// Fails ("a lock call allocates") where a lock gets the place of a thread-local variable from the
/// loader, which has too little room for those of so many libraries.
#[test]
fn locks_allocate_nothing_however_many_libraries_are_loaded() {
    let program = program("loaded.c", "loaded");
    let library = plugin("loaded.c", "loaded-library", &["-DLIBRARY"]);
    let copies: Vec<PathBuf> = (0..40)
        .map(|number| library.with_extension(format!("{number}.so")))
        .collect();
    for copy in &copies {
        std::fs::copy(&library, copy).unwrap();
    }
    let arguments: Vec<&Path> = copies.iter().map(PathBuf::as_path).collect();
    same(
        &program,
        &arguments,
        &[DEFAULT, COUNTED, &[("OVERLOCK_LOCKDEP", "1")]],
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
    for (how, word) in [
        ("plain", ""),
        ("deep", "with RTLD_DEEPBIND; its lock functions are ours"),
        ("apart", "by dlmopen; its lock functions are ours"),
    ] {
        let said = said(&program, &[&common, Path::new(how)]);
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
    for source in ["cond.c", "others.c", "c11.c"] {
        same_with(source, &[], &[GLIBCS]);
    }
    let found = ours(&program, &[], DEFAULT);
    assert!(!found.contains("known: 1"), "{found}");
}

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/versions.txt");

/// The versions of each function, as the table has them.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(TABLE).unwrap();
    let is_exported = |line: &&str| !line.starts_with('#') && !line.ends_with(" -");
    let rows = text.lines().filter(is_exported);
    let rows = rows.map(|row| {
        let mut words = row.split_whitespace().map(str::to_owned);
        (words.next().unwrap(), words.collect())
    });
    rows.collect()
}

/// The functions that a library defines, with the versions of each. The part behind the last `_` of
/// glibc's is its number.
fn defined(library: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let symbols = ["--dyn-syms", "--wide"];
    let output = Command::new("readelf").args(symbols).arg(library).output();
    let output = text(&output.expect("readelf, of binutils, is needed").stdout);
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in output.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let Some((name, version)) = words.get(7).and_then(|name| name.split_once('@')) else {
            continue;
        };
        let number = version.trim_start_matches('@').strip_prefix("GLIBC_");
        if words[6] != "UND"
            && let Some(number) = number.filter(|&number| number != "PRIVATE")
        {
            all.entry(name.to_owned())
                .or_default()
                .insert(number.to_owned());
        }
    }
    all
}

/// The C library's objects of this process, and before 2.34 those beside it.
fn libcs() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let paths = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5));
    let libc = paths
        .map(Path::new)
        .find(|path| path.ends_with("libc.so.6"))
        .unwrap();
    let others = ["libpthread.so.0", "libdl.so.2"].map(|name| libc.with_file_name(name));
    let others = others.into_iter().filter(|path| path.exists());
    others.chain([libc.to_owned()]).collect()
}

/// Fails where glibc has a version that the table lacks: programs that were linked to it would get
/// the C library's function.
#[cfg(target_arch = "x86_64")]
#[test]
fn functions_have_the_versions_of_the_c_librarys() {
    let table = table();
    let ours = defined(&library());
    let mut theirs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, versions) in libcs().iter().flat_map(|path| defined(path)) {
        theirs.entry(name).or_default().extend(versions);
    }
    for (name, versions) in table {
        assert_eq!(
            ours.get(&name).cloned().unwrap_or_default(),
            versions,
            "{name}: ours"
        );
        let missing: Vec<_> = theirs
            .get(&name)
            .into_iter()
            .flatten()
            .filter(|&version| !versions.contains(version))
            .collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
}

/// Fails where the library needs a version that glibc 2.31 lacks: the loader would end the program.
#[test]
fn an_older_c_library_suffices() {
    let mut command = Command::new("readelf");
    let output = command
        .args(["--version-info", "--wide"])
        .arg(library())
        .output();
    let output = text(&output.expect("readelf, of binutils, is needed").stdout);
    let (_, needed) = output.split_once("Version needs section").unwrap();
    let numbers = needed.split("Name: GLIBC_").skip(1).map(|rest| {
        let number = rest.split_whitespace().next().unwrap();
        let parts = number.split('.').map(|part| part.parse().unwrap());
        parts.collect::<Vec<u32>>()
    });
    let newest = numbers.max().unwrap();
    assert!(newest <= vec![2, 31], "{newest:?}");
}

/// Fails where a look-up by version, or by a handle, finds another library than a plain one.
#[test]
fn every_look_up_finds_the_same_library() {
    let program = program("look_up.c", "look-up");
    same(&program, &[Path::new(TABLE)], &[DEFAULT, GLIBCS]);
}

/// A wrapper of the condition functions that looks them up by version, before ours and behind.
/// Fails (in an abort) where it gets the C library's before ours, and where it gets ours, without
/// end, once a plugin with `RTLD_DEEPBIND` has been loaded.
#[test]
fn a_wrapper_may_stand_on_either_side() {
    let program = program("queue.c", "queue");
    let expected = text(&run(&program, &[], &[]).stdout);
    let deep = plugin("apart_plugin.c", "queue-deep", &[]);
    let wrapper = plugin("queue_wrapper.c", "queue-wrapper", &[]);
    let library = library();
    let [ours, wrapper] = [&library, &wrapper].map(|path| path.to_str().unwrap());
    for preload in [format!("{ours}:{wrapper}"), format!("{wrapper}:{ours}")] {
        for arguments in [&[][..], &[&*deep]] {
            let output = run(&program, arguments, &[("LD_PRELOAD", &preload)]);
            assert!(output.status.success(), "{preload}: {output:?}");
            assert_eq!(text(&output.stdout), expected, "{preload}");
        }
    }
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
    let reports = said
        .matches("locks in two orders, on the only thread")
        .count();
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

//! `overlock run`: programs, as they would run by themselves.

mod common;
#[path = "common/preload.rs"]
mod preload;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use common::{ends, signal};
use preload::{compile, library, run};
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

/// The program takes our process's place, is a child, a counted child, or a counted one
/// with lockdep.
const WAYS: [&[&str]; 4] = [&[], &["--lockdep"], &["--stat"], &["--stat", "--lockdep"]];

fn output(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// The message, in one line.
fn complaint(output: &Output, code: i32) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn exit_codes_and_deadly_signals_are_the_programs() {
    for way in WAYS {
        for code in [0, 1, 3, 255] {
            let script = format!("exit {code}");
            let output = output(run(way).args(["sh", "-c", &script]));
            assert_eq!(output.status.code(), Some(code), "{way:?}");
        }
        // Not INT: a shell that runs this in the background has all below it ignore that.
        for (name, signal) in [("KILL", 9), ("TERM", 15), ("ABRT", 6), ("SEGV", 11)] {
            let script = format!("kill -{name} $$");
            let output = output(run(way).args(["sh", "-c", &script]));
            assert_eq!(output.status.signal(), Some(signal), "{way:?} {name}");
        }
    }
}

#[test]
fn arguments_and_standard_streams_are_the_programs() {
    for way in WAYS {
        let output = output(run(way).args(["printf", "%s|", "-x", "--stat", "a b", ""]));
        assert_eq!(stdout(&output), "-x|--stat|a b||");
    }
}

#[test]
fn the_environment_says_what_to_do_and_keeps_what_was_there() {
    let script = "echo $LD_PRELOAD; echo $OVERLOCK_MUTEX $OVERLOCK_RWLOCK $OVERLOCK_STAT";
    let of = |options: &[&str], preload: &str| {
        let mut command = run(options);
        command.args(["sh", "-c", script]);
        command.env("LD_PRELOAD", preload).env("OVERLOCK_STAT", "1");
        let output = output(&mut command);
        let text = stdout(&output);
        // The folder is the machine's.
        let (_, name) = text.split_once("/loaders.").unwrap();
        name.split_once('/').unwrap().1.to_owned()
    };
    const NAME: &str = "$LIB/liboverlock_preload.so";
    assert_eq!(of(&[], ""), format!("{NAME}\noverlock overlock\n"));
    assert_eq!(
        of(&["--rwlock", "glibc"], "libc.so.6"),
        format!("{NAME}:libc.so.6\noverlock glibc\n")
    );
    assert_eq!(
        of(&["--stat", "--mutex", "glibc"], ""),
        format!("{NAME}\nglibc overlock 1\n")
    );
}

#[test]
fn spin_only_leaves_the_c_librarys_locks() {
    let of = |options: &[&str]| {
        let mut command = run(options);
        command.args([
            "sh",
            "-c",
            "echo $OVERLOCK_MUTEX $OVERLOCK_RWLOCK $OVERLOCK_SPIN_ONLY $OVERLOCK_SPIN",
        ]);
        stdout(&output(command.env_remove("OVERLOCK_SPIN"))).to_owned()
    };
    assert_eq!(of(&["--spin-only"]), "glibc glibc 1\n");
    assert_eq!(of(&["--spin-only", "--spin", "20"]), "glibc glibc 1 20\n");
    assert_eq!(
        of(&["--mutex", "glibc", "--rwlock", "glibc"]),
        "glibc glibc\n"
    );
    assert_eq!(of(&["--spin", "off"]), "overlock overlock off\n");
    for options in [
        &["--spin", "fast"][..],
        &["--spin-only", "--mutex", "overlock"],
    ] {
        let refused = run(options).arg("true").output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{options:?}");
    }
}

#[test]
fn check_asks_for_the_validator() {
    let of = |options: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("overlock"));
        command
            .arg("check")
            .args(options)
            .arg("--library")
            .arg(library());
        let script = "echo $OVERLOCK_LOCKDEP $OVERLOCK_LOCKDEP_SLEEP $OVERLOCK_MUTEX";
        command.args(["--", "sh", "-c", script]);
        stdout(&output(&mut command)).to_owned()
    };
    assert_eq!(of(&[]), "1 overlock\n");
    assert_eq!(of(&["--sleep"]), "1 1 overlock\n");
}

/// Fails where names are as the linker has them, where there are no lines, and where a report has
/// frames of the validator itself.
#[test]
fn reports_have_names_and_lines_of_the_program() {
    let program = compile("shop.cpp", "shop", &[]);
    let output = output(run(&["--lockdep", "--lockdep-all"]).arg(program));
    let text = String::from_utf8(output.stderr).unwrap();
    for part in [
        "possible circular locking dependency",
        "(shop::cart)",
        "shop::stock",
        "shop::Order::cancel() shop.cpp:",
        "shop::Order::place(int) shop.cpp:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("_ZN"), "{text}");
    assert!(!text.contains("overlock_preload"), "{text}");
    assert!(!text.contains(['\x1e', '\x1f']), "{text}");
}

/// Fails where all locks that a function of the program's initialises are of one class.
#[test]
fn locks_that_one_function_makes_are_told_apart() {
    let program = compile("makes", "makes", &[]);
    let reports = |arguments: &[&str]| {
        let mut command = run(&["--lockdep", "--lockdep-all"]);
        let output = output(command.arg(&program).args(arguments));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(reports(&[]), "overlock: 3 locks of 3 classes, 0 reports\n");
    let text = reports(&["turned"]);
    assert!(text.contains("possible circular locking"), "{text}");
    assert!(text.contains("make makes.c:"), "{text}");
    assert!(text.contains(", by main makes.c:"), "{text}");
}

/// Fails where a program without locks seems to have been checked, and where a report does not
/// change the exit code.
#[test]
fn a_check_ends_with_a_sum_and_the_code_that_was_asked_for() {
    let program = compile("makes", "makes-summed", &[]);
    let check = |words: &[&std::ffi::OsStr]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("overlock"));
        command.args(["check", "--all", "--error-exitcode", "9", "--library"]);
        let output = output(command.arg(library()).arg("--").args(words));
        let text = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text)
    };
    let (code, text) = check(&[program.as_ref(), "turned".as_ref()]);
    assert_eq!(code, Some(9), "{text}");
    let last = text.lines().last();
    assert_eq!(last, Some("overlock: 3 locks of 3 classes, 1 report"));
    assert_eq!(check(&[program.as_ref()]).0, Some(0));
    let (code, text) = check(&["true".as_ref()]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("overlock: 0 locks of 0 classes"), "{text}");
    assert!(text.contains("WARNING: nothing was checked"), "{text}");
}

#[test]
fn what_the_validator_is_to_look_at_is_said_by_the_environment_too() {
    let script = "echo ${OVERLOCK_LOCKDEP-no} ${OVERLOCK_LOCKDEP_SLEEP-no}";
    let of = |options: &[&str]| {
        let mut command = run(options);
        command.args(["sh", "-c", script]);
        command.env("OVERLOCK_LOCKDEP_SLEEP", "1");
        output(&mut command)
    };
    assert_eq!(stdout(&of(&[])), "no no\n");
    assert_eq!(stdout(&of(&["--lockdep"])), "1 no\n");
    assert_eq!(stdout(&of(&["--lockdep", "--lockdep-sleep"])), "1 1\n");
    assert_eq!(of(&["--lockdep-sleep"]).status.code(), Some(2));
}

#[test]
fn what_cannot_be_run_is_told() {
    for way in WAYS {
        let missing = output(run(way).arg("no-such-program"));
        assert_eq!(
            complaint(&missing, 127),
            "overlock: no-such-program: no such program\n"
        );
        complaint(&output(run(way).arg("./no/such/program")), 127);
        complaint(&output(run(way).arg("")), 127);
        let text = complaint(&output(run(way).arg("/etc/passwd")), 126);
        assert!(text.contains("/etc/passwd: Permission denied"), "{text}");
        let text = complaint(&output(run(way).arg("/etc")), 126);
        assert!(text.contains("directory"), "{text}");
    }
}

/// In a directory of its own.
fn script(dir: &Path, interpreter: &Path) -> PathBuf {
    let path = dir.join("script");
    fs::write(&path, format!("#!{}\n", interpreter.display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn programs_that_no_library_can_be_loaded_into_are_told() {
    let program = compile("family", "family-static", &["-static"]);
    let dir = tempfile::tempdir().unwrap();
    for program in [&program, &script(dir.path(), &program)] {
        let text = complaint(&output(run(&[]).arg(program)), 126);
        assert!(
            text.contains("family-static: is statically linked"),
            "{text}"
        );
    }
    let setuid = dir.path().join("setuid");
    fs::copy("/bin/true", &setuid).unwrap();
    if std::os::unix::fs::chown(&setuid, Some(12345), None).is_ok() {
        fs::set_permissions(&setuid, fs::Permissions::from_mode(0o4755)).unwrap();
        let text = complaint(&output(run(&[]).arg(&setuid)), 126);
        assert!(text.contains("is setuid, and ignores LD_PRELOAD"), "{text}");
    }
}

/// Prints which library is loaded.
const LOADED: &str = "grep -m1 -o '/.*overlock_preload.so' /proc/self/maps";

#[test]
fn a_library_that_is_not_there_is_told() {
    let program = || Command::new(assert_cmd::cargo::cargo_bin!("overlock"));
    let given = output(program().args(["run", "--library", "/no/such.so", "true"]));
    assert!(complaint(&given, 2).contains("--library /no/such.so: No such file"));
    let dir = tempfile::tempdir().unwrap();
    let alone = dir.path().join("bin/overlock");
    fs::create_dir(alone.parent().unwrap()).unwrap();
    fs::copy(assert_cmd::cargo::cargo_bin!("overlock"), &alone).unwrap();
    let mut command = Command::new(&alone);
    // Programs for debugging have none built in.
    if cfg!(debug_assertions) {
        let text = complaint(&output(command.args(["run", "true"])), 2);
        assert!(
            text.contains("cargo build --release -p overlock-preload"),
            "{text}"
        );
    } else {
        command.env("XDG_CACHE_HOME", dir.path().join("cache"));
        let output = output(command.args(["run", "sh", "-c", LOADED]));
        let text = stdout(&output);
        let cached = dir.path().join("cache/overlock");
        assert_eq!(Path::new(text.trim()).parent(), Some(&*cached));
    }
    // The place of the library in an installation.
    let lib = dir.path().join("lib/overlock");
    fs::create_dir_all(&lib).unwrap();
    let installed = lib.join("liboverlock_preload.so");
    fs::copy(library(), &installed).unwrap();
    let mut command = Command::new(&alone);
    let output = output(command.args(["run", "sh", "-c", LOADED]));
    let installed = installed.canonicalize().unwrap();
    assert_eq!(stdout(&output).trim(), installed.to_str().unwrap());
}

#[test]
fn a_library_that_is_none_of_ours_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text.so");
    fs::write(&text, "no library").unwrap();
    let own = std::env::current_exe().unwrap();
    for path in [own, text] {
        let mut program = Command::new(assert_cmd::cargo::cargo_bin!("overlock"));
        let given = output(program.args(["run", "--library"]).arg(path).arg("true"));
        assert!(complaint(&given, 2).contains("is no such library"));
    }
}

#[test]
fn options_that_we_do_not_have_are_not_the_program() {
    let program = || Command::new(assert_cmd::cargo::cargo_bin!("overlock"));
    for rest in [&["--", "true"][..], &["true"]] {
        let refused = output(program().args(["run", "--stats"]).args(rest));
        assert!(complaint(&refused, 2).contains("'--stats'"));
    }
    // Those behind the program are its own.
    let mut command = program();
    command.args(["run", "--library"]).arg(library());
    let printed = output(command.args(["printf", "%s|", "--stat", "-h", "--", "x"]));
    assert_eq!(stdout(&printed), "--stat|-h|--|x|");
    assert!(complaint(&output(program().arg("run")), 2).contains("--help"));
}

#[test]
fn a_validator_that_would_look_at_nothing_is_refused() {
    let locks = ["--mutex", "glibc", "--rwlock", "glibc"];
    let options = [&["--lockdep"], &locks[..]].concat();
    let refused = output(run(&options).arg("true"));
    assert!(complaint(&refused, 2).contains("--lockdep looks at our locks"));
    for some in [&options[..3], &[options[0], "--rwlock", "glibc"]] {
        assert!(output(run(some).arg("true")).status.success());
    }
}

/// Fails where the message has the error's number, or a temporary file's name, or not which file it
/// is.
#[test]
fn a_report_that_cannot_be_written_is_told() {
    let told = output(run(&["--report", "/no/such/r.json"]).arg("true"));
    let message = "overlock: cannot write --report /no/such/r.json: No such file or directory\n";
    assert_eq!(complaint(&told, 2), message);
    let told = output(run(&["--svg", "/dev/full"]).arg("true"));
    let text = String::from_utf8(told.stderr).unwrap();
    let message = "overlock: cannot write --svg /dev/full: No space left on device\n";
    assert!(text.ends_with(message), "{text}");
    assert_eq!(told.status.code(), Some(1));
}

/// A child that prints a line when it is ready.
fn start(command: &mut Command) -> (Child, BufReader<std::process::ChildStdout>) {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(line(&mut lines), "ready");
    (child, lines)
}

fn line(lines: &mut impl BufRead) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    line.trim().to_owned()
}

#[test]
fn signals_get_to_the_program_once() {
    let program = compile("signals", "signals", &[]);
    for way in WAYS {
        let (mut child, mut lines) = start(run(way).arg(&program).stderr(Stdio::null()));
        for (sent, name) in [
            (Signal::INT, "INT"),
            (Signal::HUP, "HUP"),
            (Signal::QUIT, "QUIT"),
            (Signal::USR1, "USR1"),
            (Signal::TERM, "TERM"),
        ] {
            signal(&child, sent);
            assert_eq!(line(&mut lines), name, "{way:?}");
        }
        assert!(ends(&mut child).success());
        assert_eq!(line(&mut lines), "");
    }
}

/// Fails where a thread beside the first can get a signal that is the program's: it ends us, if it
/// comes while the first does not wait for one.
#[test]
fn no_other_thread_of_ours_gets_the_programs_signals() {
    let program = compile("signals", "signals-blocked", &[]);
    for way in WAYS {
        let (mut child, _lines) = start(run(way).arg(&program).stderr(Stdio::null()));
        let pid = child.id();
        for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
            let task = task.unwrap();
            if task.file_name().to_str() == Some(&pid.to_string()) {
                continue;
            }
            let status = fs::read_to_string(task.path().join("status")).unwrap();
            let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
            let blocked = u64::from_str_radix(blocked.unwrap().trim(), 16).unwrap();
            for signal in [Signal::INT, Signal::HUP, Signal::TERM, Signal::USR1] {
                assert_ne!(blocked & 1 << (signal.as_raw() - 1), 0, "{way:?}: {status}");
            }
        }
        signal(&child, Signal::TERM);
        assert!(ends(&mut child).success());
    }
}

#[test]
fn a_program_that_stops_stops_us_and_goes_on_with_us() {
    for way in &WAYS[1..] {
        let script = "echo ready; kill -STOP $$; echo again";
        let (mut child, mut lines) =
            start(run(way).args(["sh", "-c", script]).stderr(Stdio::null()));
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let status = waitpid(Some(pid), WaitOptions::UNTRACED)
            .unwrap()
            .unwrap()
            .1;
        assert!(status.stopped(), "{status:?}");
        signal(&child, Signal::CONT);
        assert_eq!(line(&mut lines), "again");
        assert!(ends(&mut child).success());
    }
}

#[test]
fn nothing_is_left_behind_where_the_tables_are() {
    let script = "ls $OVERLOCK_STAT_DIR && echo $OVERLOCK_STAT_DIR $OVERLOCK_LOCKDEP_READER";
    let output = output(run(&["--stat", "--lockdep"]).args(["sh", "-c", script]));
    let text = stdout(&output);
    assert!(text.contains("overlock-stat."), "{text}");
    let paths = text.lines().last().unwrap().split(' ');
    for path in paths {
        assert!(path.starts_with('/'), "{text}");
        assert!(!Path::new(path).exists(), "{path}");
    }
}

//! `overlock profile PID`: what BPF sees of a process that runs already. The tests pass with a line
//! where it is not allowed.

mod common;
#[path = "common/preload.rs"]
mod preload;

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use aya::programs::loaded_programs;
use overlock_profile::{Profile, Wait};
use preload::compile;

/// A program that is looked at.
struct Program(Child);

impl Program {
    fn start(cause: &str) -> Self {
        static COMPILED: OnceLock<PathBuf> = OnceLock::new();
        let program = COMPILED.get_or_init(|| compile("attached", "attached", &[]));
        let mut child = Command::new(program)
            .arg(cause)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn overlock() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("overlock"))
}

/// One at a time, where BPF is allowed at all: one of the tests looks whether any is left.
fn allowed() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    static IS_ALLOWED: OnceLock<bool> = OnceLock::new();
    IS_ALLOWED.get_or_init(is_allowed).then_some(one)
}

fn is_allowed() -> bool {
    let program = Program::start("none");
    let output = overlock()
        .args(["profile", "--seconds=0.1", "--json=-", &program.id()])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    if output.status.code() == Some(126) {
        assert_eq!(text.lines().count(), 1, "{text}");
        eprintln!("skipped: {text}");
        return false;
    }
    assert!(output.status.success(), "{text}");
    true
}

fn profile(program: &Program) -> Profile {
    let output = overlock()
        .args([
            "profile",
            "--seconds=2",
            "--json=-",
            "--events",
            &program.id(),
        ])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The waits of the waiter for the lock that the holder has.
fn waits(profile: &Profile) -> Vec<&Wait> {
    let is_it = |wait: &&Wait| {
        profile.locks[wait.lock as usize].name == "pool"
            && profile.threads[wait.thread as usize].name == "waiter"
            && wait.wait_ns > 20_000_000
    };
    let waits: Vec<&Wait> = profile.waits.iter().filter(is_it).collect();
    assert!(waits.len() >= 5, "{} waits", waits.len());
    waits
}

fn functions(profile: &Profile, stack: u32) -> Vec<&str> {
    let frames = profile.stacks[stack as usize].0.iter();
    let name = |&at: &u32| profile.frames[at as usize].function.as_str();
    frames.map(name).collect()
}

/// That nine of ten waits have at least nine tenths of this part. On a busy machine each thread is
/// preempted too, which is no part of that.
fn assert_cause(profile: &Profile, part: impl Fn(&Wait) -> u64) {
    let waits = waits(profile);
    let is_right = |wait: &&&Wait| {
        let busy = wait.parts.preempted_ns + wait.parts.no_cpu_ns + wait.parts.handover_ns;
        part(wait) > 0 && part(wait) * 10 >= (wait.wait_ns - busy) * 9
    };
    let right = waits.iter().filter(is_right).count();
    assert!(right * 10 >= waits.len() * 9, "{right} of {waits:#?}");
}

fn blocked(wait: &Wait, by: &str) -> u64 {
    let all = wait.parts.blocked.iter();
    all.filter(|blocked| blocked.by == by)
        .map(|blocked| blocked.ns)
        .sum()
}

#[test]
fn a_wait_behind_a_write_names_the_holder_and_the_call() {
    let Some(_one) = allowed() else { return };
    let profile = profile(&Program::start("write"));
    assert_eq!(profile.run.source, "bpf");
    assert_cause(&profile, |wait| blocked(wait, "write"));
    for wait in waits(&profile) {
        assert_eq!(wait.parts.total_ns(), wait.wait_ns);
    }
    let named = |wait: &&&Wait| {
        let holder = wait
            .holder
            .map(|at| profile.threads[at as usize].name.as_str());
        let stack = wait.holder_stack.map(|at| functions(&profile, at));
        holder == Some("holder")
            && stack.is_some_and(|stack| stack.contains(&"section"))
            && functions(&profile, wait.stack).contains(&"waiter")
    };
    let waits = waits(&profile);
    let right = waits.iter().filter(named).count();
    assert!(right * 10 >= waits.len() * 9, "{right} of {}", waits.len());
}

#[test]
fn a_wait_behind_a_computation_is_for_a_thread_that_ran() {
    let Some(_one) = allowed() else { return };
    let profile = profile(&Program::start("compute"));
    assert_cause(&profile, |wait| wait.parts.ran_ns);
    let ran: u64 = waits(&profile).iter().map(|wait| wait.parts.ran_ns).sum();
    assert!(ran > 50_000_000, "{ran}");
}

#[test]
fn a_wait_behind_another_wait_has_its_link() {
    let Some(_one) = allowed() else { return };
    let profile = profile(&Program::start("chain"));
    assert_cause(&profile, |wait| blocked(wait, "lock disk"));
    let linked = waits(&profile).into_iter().filter(|wait| {
        wait.behind.is_some_and(|at| {
            let next = &profile.waits[at as usize];
            profile.locks[next.lock as usize].name == "disk" && Some(next.thread) == wait.holder
        })
    });
    assert!(linked.count() >= 4);
}

/// Fails where the longest waits are those of threads without work.
#[test]
fn a_thread_without_work_waits_for_an_event() {
    let Some(_one) = allowed() else { return };
    let program = Program::start("sleep");
    let dir = tempfile::tempdir().unwrap();
    let output = overlock()
        .args(["profile", "--seconds=0.5", &program.id()])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains(" for pool") && !text.contains(" for work"),
        "{text}"
    );
    let profile = profile(&program);
    let lock = |name: &str| (profile.locks.iter()).find(|lock| lock.name.starts_with(name));
    let work = lock("work").unwrap();
    assert!(work.is_event && work.kind == "cond", "{work:?}");
    let pool = lock("pool").unwrap();
    assert!(!pool.is_event && pool.kind == "mutex", "{pool:?}");
    assert_cause(&profile, |wait| blocked(wait, "clock_nanosleep"));
}

/// The process as others see it.
fn made_of(program: &Program) -> String {
    let of = |file| fs::read_to_string(format!("/proc/{}/{file}", program.id())).unwrap();
    let ranges = |maps: String| -> Vec<String> {
        let heads = maps.lines().map(|line| line.split_once(' ').unwrap().0);
        heads.map(str::to_owned).collect()
    };
    let status = of("status");
    let tracer = status.lines().find(|line| line.starts_with("TracerPid"));
    format!("{:?} {tracer:?}", ranges(of("maps")))
}

fn is_loaded() -> bool {
    let names = ["switches", "wakes"];
    let mut programs = loaded_programs().flatten();
    programs.any(|program| {
        program
            .name_as_str()
            .is_some_and(|name| names.contains(&name))
    })
}

#[test]
fn nothing_is_left_of_a_look_that_was_killed() {
    let Some(_one) = allowed() else { return };
    let program = Program::start("sleep");
    let before = made_of(&program);
    let mut look = overlock()
        .args(["profile", "--json=-", &program.id()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while !is_loaded() {
        assert!(begin.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(10));
    }
    look.kill().unwrap();
    look.wait().unwrap();
    let begin = Instant::now();
    while is_loaded() {
        assert!(begin.elapsed() < Duration::from_secs(10));
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(made_of(&program), before);
}

#[test]
fn what_cannot_be_looked_at_is_refused_in_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |command: &mut Command, code, says: &str| {
        let output = command.current_dir(dir.path()).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(says) && text.lines().count() == 1, "{text}");
    };
    refused(overlock().args(["profile", "4194305"]), 2, "is not there");
    let mut late = overlock();
    late.args(["profile", "4194305", "--seconds=1"]);
    refused(&mut late, 2, "options stand before");
    let program = Program::start("sleep");
    let tasks = fs::read_dir(format!("/proc/{}/task", program.id())).unwrap();
    let mut ids = tasks.map(|task| task.unwrap().file_name().into_string().unwrap());
    let thread = ids.find(|id| *id != program.id()).unwrap();
    let says = format!("is a thread of process {}", program.id());
    refused(overlock().args(["profile", &thread]), 2, &says);
    // Only root can be somebody else.
    if rustix::process::geteuid().is_root() {
        let mut other = overlock();
        other
            .args(["profile", "--json=-", &program.id()])
            .uid(65534)
            .gid(65534);
        refused(&mut other, 126, "CAP_BPF");
    }
}

//! `overlock profile PID`: what BPF sees of a process that runs already. The tests pass with a line
//! where it is not allowed.

#[path = "common/attach.rs"]
mod attach;
#[path = "common/preload.rs"]
mod preload;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use aya::maps::loaded_maps;
use aya::programs::{loaded_links, loaded_programs};
use overlock_profile::{Profile, Wait};

use attach::{allowed, objects, overlock, until};
use preload::compile;

/// A program that is looked at.
struct Program(Child);

impl Program {
    fn start(cause: &str) -> Self {
        static COMPILED: OnceLock<PathBuf> = OnceLock::new();
        let program = COMPILED.get_or_init(|| compile("attached", "attached", &[]));
        Self::of(program, cause)
    }

    fn of(program: &Path, cause: &str) -> Self {
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

/// With five waits at least: on a busy machine that takes its time.
fn profile(program: &Program) -> Profile {
    let mut looks = ["1", "5", "25"]
        .iter()
        .map(|time| profile_for(program, time));
    let has_waits = |profile: &Profile| long(profile).len() >= 5;
    looks.find(has_waits).expect("five waits")
}

fn profile_for(program: &Program, seconds: &str) -> Profile {
    let output = overlock()
        .args(["profile", "--seconds", seconds, "--json=-", "--events"])
        .arg(program.id())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The waits of the waiter for the lock that the holder has.
fn long(profile: &Profile) -> Vec<&Wait> {
    let is_it = |wait: &&Wait| {
        profile.locks[wait.lock as usize].name == "pool"
            && profile.threads[wait.thread as usize].name == "waiter"
            && wait.wait_ns > 20_000_000
    };
    profile.waits.iter().filter(is_it).collect()
}

fn functions(profile: &Profile, stack: u32) -> Vec<&str> {
    let frames = profile.stacks[stack as usize].0.iter();
    let name = |&at: &u32| profile.frames[at as usize].function.as_str();
    frames.map(name).collect()
}

/// That nine of ten waits have at least nine tenths of this part. On a busy machine each thread is
/// preempted too, or throttled, which is no part of that.
fn assert_cause(profile: &Profile, part: impl Fn(&Wait) -> u64) {
    let waits = long(profile);
    let is_right = |wait: &&&Wait| {
        let parts = &wait.parts;
        let busy = parts.preempted_ns + parts.throttled_ns + parts.no_cpu_ns + parts.handover_ns;
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
    for wait in long(&profile) {
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
    let waits = long(&profile);
    let right = waits.iter().filter(named).count();
    assert!(right * 10 >= waits.len() * 9, "{right} of {}", waits.len());
}

#[test]
fn a_wait_behind_a_computation_is_for_a_thread_that_ran() {
    let Some(_one) = allowed() else { return };
    let profile = profile(&Program::start("compute"));
    assert_cause(&profile, |wait| wait.parts.ran_ns);
    let ran: u64 = long(&profile).iter().map(|wait| wait.parts.ran_ns).sum();
    assert!(ran > 50_000_000, "{ran}");
}

#[test]
fn a_wait_behind_another_wait_has_its_link() {
    let Some(_one) = allowed() else { return };
    let profile = profile(&Program::start("chain"));
    assert_cause(&profile, |wait| blocked(wait, "lock disk"));
    let linked = long(&profile).into_iter().filter(|wait| {
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
    let is_told = ["0.5", "5", "25"].iter().any(|seconds| {
        let output = overlock()
            .args(["profile", "--seconds", seconds, &program.id()])
            .current_dir(dir.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains(" for work"), "{text}");
        text.contains(" for pool")
    });
    assert!(is_told);
    let profile = profile(&program);
    let is = |name: &str, kind, is_event| {
        let mut locks = profile.locks.iter();
        locks.any(|lock| {
            lock.name.starts_with(name) && lock.kind == kind && lock.is_event == is_event
        })
    };
    assert!(is("work", "cond", true) && is("pool", "mutex", false));
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

/// Those of these objects that the kernel has still.
fn left(objects: &[(String, u32)]) -> Vec<&(String, u32)> {
    let programs: Vec<u32> = loaded_programs().flatten().map(|one| one.id()).collect();
    let maps: Vec<u32> = loaded_maps().flatten().map(|one| one.id()).collect();
    let links: Vec<u32> = loaded_links().flatten().map(|one| one.id()).collect();
    let is_there = |(kind, id): &&(String, u32)| match kind.as_str() {
        "prog_id" => programs.contains(id),
        "map_id" => maps.contains(id),
        _ => links.contains(id),
    };
    objects.iter().filter(is_there).collect()
}

/// Fails where a look that is killed, early or late, leaves something in the kernel or the process.
#[test]
fn nothing_is_left_of_a_look_that_was_killed() {
    let Some(_one) = allowed() else { return };
    let program = Program::start("sleep");
    let before = made_of(&program);
    // With so many objects there.
    for stage in [1, 6, 11] {
        let mut look = overlock()
            .args(["profile", "--json=-", &program.id()])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        until("the look begins", || objects(look.id()).len() >= stage);
        let had = objects(look.id());
        look.kill().unwrap();
        look.wait().unwrap();
        assert!(had.len() >= stage);
        until("all is gone", || left(&had).is_empty());
    }
    assert_eq!(made_of(&program), before);
}

/// Fails where a wait is seen only if it begins during the look, or where the words of a kind of
/// lock are not understood.
#[test]
fn waits_from_before_the_look_have_their_holders() {
    let Some(_one) = allowed() else { return };
    let compiled = compile("owners", "owners", &[]);
    for kind in ["plain", "recursive", "robust", "inherit", "read", "write"] {
        let program = Program::of(&compiled, kind);
        let profile = profile_for(&program, "0.3");
        let name = |at: u32| profile.threads[at as usize].name.as_str();
        let waits: Vec<&Wait> = profile.waits.iter().collect();
        let [wait] = waits[..] else {
            panic!("{kind}: {waits:#?}")
        };
        let lock = &profile.locks[wait.lock as usize];
        let is_rwlock = ["read", "write"].contains(&kind);
        assert_eq!(lock.name, if is_rwlock { "rwlock" } else { "mutex" });
        assert_eq!(lock.kind, if is_rwlock { kind } else { "mutex" });
        assert!(functions(&profile, wait.stack).contains(&"wants"), "{kind}");
        assert_eq!(name(wait.thread), "waiter", "{kind}");
        assert_eq!(wait.holder.map(name), Some("holder"), "{kind}: {wait:?}");
        // The holder has been there since before, too.
        assert_eq!(wait.parts.blocked[0].by, "pause", "{kind}: {wait:?}");
        assert_eq!(wait.parts.blocked[0].ns, wait.wait_ns, "{kind}: {wait:?}");
        assert!(wait.wait_ns >= 290_000_000 && wait.began_ns >= profile.run.began_ns);
    }
}

/// Fails where a file is looked for by a path that leads nowhere now.
#[test]
fn a_program_whose_file_is_gone_has_its_names() {
    let Some(_one) = allowed() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("gone");
    fs::copy(compile("owners", "owners-gone", &[]), &file).unwrap();
    let program = Program::of(&file, "plain");
    fs::remove_file(&file).unwrap();
    let profile = profile_for(&program, "0.2");
    let stack = profile.waits[0].stack;
    assert!(functions(&profile, stack).contains(&"wants"));
    let mut modules = profile
        .frames
        .iter()
        .filter_map(|frame| frame.module.as_deref());
    assert!(modules.any(|module| Path::new(module) == file));
    assert_eq!(profile.locks[0].name, "mutex");
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

//! `overlock profile PID`: a wait of each cause, made on purpose, is told by what BPF sees. The
//! tests pass with a line where it is not allowed.

#[path = "common/attach.rs"]
mod attach;
#[path = "common/group.rs"]
mod group;
#[path = "common/preload.rs"]
mod preload;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use overlock_profile::{Parts, Profile, Wait};
use rustix::process::{Pid, Signal, kill_process};

use attach::{allowed, finished, look, until};
use group::Group;
use preload::compile;

/// How long the waits take, in one attempt after another: a machine that stops takes some of it.
const HOLDS_MS: [u64; 5] = [40, 40, 120, 360, 1080];

/// A stopped process that becomes `causes` once it goes on, in a control group if there is one.
/// Each of its waits takes so long.
fn stopped(name: &str, cause: &str, group: Option<&Path>, hold_ms: u64) -> Child {
    let program = compile("causes", &format!("attached-{name}"), &[]);
    let script = "[ -z \"$2\" ] || echo $$ >\"$2/cgroup.procs\"; kill -STOP $$; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(program).arg(cause);
    command.args(group).stdout(Stdio::null());
    command.env("HOLD_MS", hold_ms.to_string());
    let child = command.spawn().unwrap();
    until("it stops", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.contains(") T ")
    });
    child
}

/// A look at all waits for one cause. `None` where the machine does not allow to make it.
fn seen(name: &str, cause: &str, group: Option<&Path>, hold_ms: u64) -> Option<Profile> {
    let mut program = stopped(name, cause, group, hold_ms);
    let look = look(&["--json=-", "--events"], program.id());
    let pid = i32::try_from(program.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.unwrap(), Signal::CONT).unwrap();
    let status = program.wait().unwrap();
    let output = finished(look);
    if status.code() == Some(77) {
        eprintln!("{name}: not possible here");
        return None;
    }
    assert!(status.success(), "{:?}", status.signal());
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// That in one of some attempts nine in ten waits have the part for at least half of the time that
/// was made.
fn attributed(name: &str, cause: &str, group: Option<&Path>, part: impl Fn(&Parts) -> u64) {
    let mut wrong = Vec::new();
    for hold_ms in HOLDS_MS {
        let Some(profile) = seen(name, cause, group, hold_ms) else {
            return;
        };
        let least_ns = hold_ms * 1_000_000 / 2;
        let is_long = |wait: &&Wait| {
            profile.locks[wait.lock as usize].name == "lock" && wait.wait_ns > least_ns
        };
        let waits: Vec<&Wait> = profile.waits.iter().filter(is_long).collect();
        assert!(waits.len() >= 9, "{} in {:#?}", waits.len(), profile.waits);
        are_whole(&profile, &waits);
        let right = waits.iter().filter(|wait| part(&wait.parts) >= least_ns);
        let right = right.count();
        if right * 10 >= waits.len() * 9 {
            return;
        }
        wrong.push(format!("{right}: {waits:#?}"));
    }
    panic!("{wrong:#?}");
}

/// That these waits of `waiter` are named, and have a holder and all their parts.
fn are_whole(profile: &Profile, waits: &[&Wait]) {
    assert_eq!(profile.run.locks, "glibc");
    let named = |wait: &&&Wait| {
        let stack = &profile.stacks[wait.stack as usize].0;
        let mut frames = stack.iter().map(|&at| &profile.frames[at as usize]);
        let caller = frames.find(|frame| !frame.is_wrapper);
        caller.is_some_and(|frame| frame.function == "waiter")
    };
    let named = waits.iter().filter(named).count();
    assert!(
        named * 10 >= waits.len() * 9,
        "{named}: {:#?}",
        profile.frames
    );
    for wait in waits {
        assert_eq!(wait.parts.total_ns(), wait.wait_ns, "{wait:?}");
        assert!(wait.holder.is_some_and(|holder| holder != wait.thread));
    }
}

fn blocked(parts: &Parts, by: &str) -> u64 {
    let of = parts.blocked.iter().filter(|blocked| blocked.by == by);
    of.map(|blocked| blocked.ns).sum()
}

#[test]
fn a_holder_that_runs_is_told() {
    let Some(_one) = allowed() else { return };
    attributed("compute", "compute", None, |parts| parts.ran_ns);
}

#[test]
fn a_holder_that_sleeps_is_told() {
    let Some(_one) = allowed() else { return };
    attributed("sleep", "sleep", None, |parts| {
        blocked(parts, "clock_nanosleep")
    });
}

#[test]
fn a_holder_in_a_write_to_a_full_pipe_is_told() {
    let Some(_one) = allowed() else { return };
    attributed("write", "write", None, |parts| blocked(parts, "write"));
}

#[test]
fn a_holder_in_a_page_fault_is_told() {
    let Some(_one) = allowed() else { return };
    attributed("fault", "fault", None, |parts| blocked(parts, "page fault"));
}

#[test]
fn a_holder_that_is_stopped_is_told() {
    let Some(_one) = allowed() else { return };
    attributed("stop", "stop", None, |parts| blocked(parts, "stopped"));
}

#[test]
fn a_holder_without_a_cpu_is_told() {
    let Some(_one) = allowed() else { return };
    attributed("preempt", "preempt", None, |parts| parts.preempted_ns);
}

#[test]
fn a_waiter_that_has_no_cpu_when_it_is_woken_is_told() {
    let Some(_one) = allowed() else { return };
    attributed("wake", "wake", None, |parts| {
        parts.no_cpu_ns + parts.throttled_ns
    });
}

#[test]
fn a_holder_that_waits_itself_is_told() {
    let Some(_one) = allowed() else { return };
    attributed("lock", "lock", None, |parts| blocked(parts, "lock inner"));
}

/// Fails where the time of a used-up quota is taken for that of a busy machine.
#[test]
fn a_holder_that_its_quota_throttles_is_told() {
    let Some(_one) = allowed() else { return };
    let Some(group) = Group::new() else {
        eprintln!("quota: no control group can be made here");
        return;
    };
    attributed("quota", "quota", Some(group.path()), |parts| {
        parts.throttled_ns
    });
}

//! `overlock profile -- PROGRAM`: single waits, their holders, and why they were long.

#[path = "common/preload.rs"]
mod preload;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use overlock_profile::{Profile, Wait};
use preload::{compile, library};

/// `overlock profile` with these options, of a program with these arguments.
fn profile(options: &[&str], program: &Path, arguments: &[&str], json: &Path) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("overlock"));
    command.arg("profile").args(options);
    command.arg("--json").arg(json).arg("--library");
    command
        .arg(library())
        .arg("--")
        .arg(program)
        .args(arguments);
    command
}

fn read(json: &Path) -> Profile {
    serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap()
}

/// Runs one cause of `causes`. `None` where the machine does not allow it.
fn cause(options: &[&str], name: &str, arguments: &[&str]) -> Option<(Profile, Output)> {
    let program = compile("causes", &format!("causes-{name}"), &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("p.json");
    let output = profile(options, &program, arguments, &json)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        eprintln!("{name}: not possible here");
        return None;
    }
    assert!(output.status.success(), "{text}");
    Some((read(&json), output))
}

/// The waits for the variable `lock`.
fn waits(profile: &Profile) -> Vec<&Wait> {
    let of_lock = |wait: &&Wait| profile.locks[wait.lock as usize].name == "lock";
    profile.waits.iter().filter(of_lock).collect()
}

fn functions(profile: &Profile, stack: u32) -> Vec<&str> {
    let frames = profile.stacks[stack as usize].0.iter();
    let frames = frames.map(|&frame| &profile.frames[frame as usize]);
    frames.map(|frame| frame.function.as_str()).collect()
}

fn has_waits(options: &[&str], name: &str) -> Profile {
    let (profile, output) = cause(options, name, &["sleep"]).unwrap();
    let waits = waits(&profile);
    assert_eq!(waits.len(), 10);
    for wait in &waits {
        let (thread, holder) = (wait.thread as usize, wait.holder.unwrap() as usize);
        assert_ne!(profile.threads[thread].tid, profile.threads[holder].tid);
        assert!(wait.wait_ns > 30_000_000, "{wait:?}");
        let released = wait.released_ns.unwrap();
        let ended = wait.began_ns + wait.wait_ns;
        assert!(released > wait.began_ns && released <= ended, "{wait:?}");
        assert!(functions(&profile, wait.stack).contains(&"waiter"));
        assert_eq!(wait.parts.total_ns(), wait.wait_ns);
    }
    let of_lock = |lock: u32| profile.locks[lock as usize].name == "lock";
    let sums = profile.sums.iter().filter(|sum| of_lock(sum.lock));
    assert_eq!(sums.map(|sum| sum.waits).sum::<u64>(), 10);
    // Those who wait for each other at the barrier do not wait for a lock.
    let is_event = |wait: &Wait| profile.locks[wait.lock as usize].is_event;
    assert!(!profile.waits.iter().any(is_event));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("wrote "), "{text}");
    assert_eq!(output.stdout, b"10\n");
    profile
}

#[test]
fn each_wait_has_its_thread_its_holder_and_its_release() {
    let profile = has_waits(&[], "ours");
    let meet = profile
        .locks
        .iter()
        .find(|lock| lock.name == "meet")
        .unwrap();
    assert!(meet.is_event && meet.distribution.count() > 0);
}

#[test]
fn waits_for_the_c_librarys_locks_have_holders_too() {
    has_waits(&["--locks", "glibc"], "glibcs");
}

#[test]
fn waits_below_the_threshold_are_only_numbered() {
    let (profile, _) = cause(&["--threshold", "10s"], "threshold", &["sleep"]).unwrap();
    assert!(profile.waits.is_empty() && profile.sums.is_empty());
    assert!(profile.lost.short_waits >= 10);
    assert_eq!(profile.run.threshold_ns, 10_000_000_000);
}

/// Fails where a child's waits are taken for its parent's, or are lost.
#[test]
fn children_show_waits_of_their_own() {
    let program = compile("causes", "causes-children", &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("p.json");
    let script = "\"$0\" sleep & \"$0\" sleep & wait";
    let arguments = ["-c", script, program.to_str().unwrap()];
    let status = profile(&[], Path::new("/bin/sh"), &arguments, &json).status();
    assert!(status.unwrap().success());
    let profile = read(&json);
    assert_eq!(waits(&profile).len(), 20);
    let process = |wait: &&Wait| profile.threads[wait.thread as usize].process;
    let mut processes: Vec<u32> = waits(&profile).iter().map(process).collect();
    processes.sort_unstable();
    processes.dedup();
    assert_eq!(processes.len(), 2);
}

#[test]
fn a_program_is_ended_after_the_given_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("p.json");
    let began = std::time::Instant::now();
    let options = ["--seconds", "0.3"];
    let status = profile(&options, Path::new("sleep"), &["60"], &json)
        .status()
        .unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(15));
    assert!(began.elapsed().as_secs() < 30);
    assert_eq!(read(&json).run.command, ["sleep", "60"]);
}

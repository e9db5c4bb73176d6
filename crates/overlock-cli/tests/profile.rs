//! `overlock profile -- PROGRAM`: single waits, their holders, and why they were long.

#[path = "common/group.rs"]
mod group;
#[path = "common/preload.rs"]
mod preload;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use group::Group;
use overlock_profile::{Parts, Profile, Wait};
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
    run_cause(options, &program, arguments, HOLDS_MS[0])
}

/// How long the program's waits take, in one attempt after another. Looks from outside tell their
/// parts, and are late where the CPUs are busy: there only long waits are seen well.
const HOLDS_MS: [u64; 5] = [40, 40, 120, 360, 1080];

fn run_cause(
    options: &[&str],
    program: &Path,
    arguments: &[&str],
    hold_ms: u64,
) -> Option<(Profile, Output)> {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("p.json");
    let output = profile(options, program, arguments, &json)
        .env("HOLD_MS", hold_ms.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        eprintln!("{arguments:?}: not possible here");
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
        let holder = wait.holder_stack.unwrap();
        assert!(functions(&profile, holder).contains(&"holder"));
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
fn single_waits_for_events_are_there_if_they_are_asked_for() {
    let (profile, _) = cause(&["--events"], "events", &["sleep"]).unwrap();
    let is_event = |wait: &&Wait| profile.locks[wait.lock as usize].name == "meet";
    let events: Vec<&Wait> = profile.waits.iter().filter(is_event).collect();
    let sums = profile.sums.iter();
    let sums = sums.filter(|sum| profile.locks[sum.lock as usize].name == "meet");
    let counted: u64 = sums.map(|sum| sum.waits).sum();
    assert!(counted > 0);
    assert_eq!(events.len() as u64, counted);
    assert!(
        events
            .iter()
            .all(|wait| wait.wait_ns > 0 && wait.holder.is_none())
    );
    assert_eq!(waits(&profile).len(), 10);
}

#[test]
fn waits_below_the_threshold_are_only_numbered() {
    let (profile, _) = cause(&["--threshold", "10s"], "threshold", &["sleep"]).unwrap();
    assert!(profile.waits.is_empty() && profile.sums.is_empty());
    assert!(profile.lost.short_waits >= 10);
    assert_eq!(profile.run.threshold_ns, 10_000_000_000);
}

/// That one of some attempts shows a cause as it should be. Some of it each attempt has to show.
fn attributed(
    name: &str,
    arguments: &[&str],
    options: &[&str],
    is_right: impl Fn(&Profile, &str, u64) -> Result<(), String>,
) {
    let file = ["causes-", name, &options.concat()].concat();
    let program = compile("causes", &file, &[]);
    let advice = match arguments[0] {
        "write" => "the section does I/O, by the system call write",
        "sleep" => "the section sleeps",
        "fault" => "pages of memory",
        "quota" => "throttles the holder",
        "lock" => "waited for inner itself",
        _ => "(sampled): ",
    };
    let mut wrong = Vec::new();
    for hold_ms in HOLDS_MS {
        let Some((profile, output)) = run_cause(options, &program, arguments, hold_ms) else {
            return;
        };
        let text = String::from_utf8(output.stderr).unwrap();
        let waits = waits(&profile);
        assert_eq!(waits.len(), 10, "{text}");
        for wait in &waits {
            assert_eq!(wait.parts.total_ns(), wait.wait_ns, "{wait:?}");
        }
        assert!(text.contains("Look at lock, acquired in waiter"), "{text}");
        assert!(text.contains("The longest waits:"), "{text}");
        match is_right(&profile, &text, hold_ms) {
            Ok(()) if text.replace('\n', "").contains(advice) => return,
            Ok(()) => wrong.push(text),
            Err(why) => wrong.push(why),
        }
    }
    panic!("{options:?}: {wrong:#?}");
}

/// That of the waits nine in ten have at least half of the time in a part.
fn nine_in_ten(
    profile: &Profile,
    hold_ms: u64,
    part: impl Fn(&Parts) -> u64,
) -> Result<(), String> {
    let waits = waits(profile);
    let is_right = |wait: &&&Wait| part(&wait.parts) >= hold_ms * 1_000_000 / 2;
    let right = waits.iter().filter(is_right).count();
    let is_right = right * 10 >= waits.len() * 9;
    is_right
        .then_some(())
        .ok_or_else(|| format!("{right} of {waits:#?}"))
}

/// With our locks, and with the C library's.
fn attributed_with_both(name: &str, part: impl Fn(&Parts) -> u64) {
    for options in [&[][..], &["--locks", "glibc"]] {
        attributed(name, &[name], options, |profile, _, hold_ms| {
            nine_in_ten(profile, hold_ms, &part)
        });
    }
}

fn blocked(parts: &Parts, by: &str) -> u64 {
    let of = parts.blocked.iter().filter(|blocked| blocked.by == by);
    of.map(|blocked| blocked.ns).sum()
}

#[test]
fn a_holder_that_runs_is_told() {
    attributed_with_both("compute", |parts| parts.ran_ns);
}

#[test]
fn a_holder_that_sleeps_is_told() {
    attributed_with_both("sleep", |parts| blocked(parts, "clock_nanosleep"));
}

#[test]
fn a_holder_in_a_write_to_a_full_pipe_is_told() {
    attributed_with_both("write", |parts| blocked(parts, "write"));
}

#[test]
fn a_holder_in_a_page_fault_is_told() {
    attributed_with_both("fault", |parts| blocked(parts, "page fault"));
}

#[test]
fn a_holder_that_is_stopped_is_told() {
    attributed_with_both("stop", |parts| blocked(parts, "stopped"));
}

#[test]
fn a_holder_without_a_cpu_is_told() {
    attributed_with_both("preempt", |parts| parts.preempted_ns);
}

#[test]
fn a_waiter_that_has_no_cpu_when_it_is_woken_is_told() {
    attributed_with_both("wake", |parts| parts.no_cpu_ns);
}

/// Fails where the wait behind a wait is not found.
#[test]
fn a_holder_that_waits_itself_is_told_with_the_chain() {
    attributed_with_both("lock", |parts| blocked(parts, "lock inner"));
    attributed("chain", &["lock"], &[], |profile, text, _| {
        let waits = waits(profile);
        let behind = waits.iter().filter(|wait| {
            let behind = wait.behind.map(|behind| &profile.waits[behind as usize]);
            behind.is_some_and(|behind| profile.locks[behind.lock as usize].name == "inner")
        });
        let behind = behind.count();
        let text = text.replace("\n ", "");
        let is_told = text.contains(" for lock, held by ")
            && text.contains(", which waited for inner, held by ");
        (behind >= 9 && is_told)
            .then_some(())
            .ok_or_else(|| format!("{behind}: {waits:#?}\n{text}"))
    });
}

/// Fails where the parts are of the thread that held the lock at the beginning, and not of the one
/// that holds it at each look.
#[test]
fn a_holder_that_passed_by_the_waiter_is_looked_at() {
    let program = compile("passes", "passes", &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("p.json");
    for options in [&[][..], &["--locks", "glibc"]] {
        // Looks are late where the CPUs are busy, but hardly in each of some runs.
        let mut wrong = Vec::new();
        let is_right = (0..20).any(|_| {
            let output = profile(options, &program, &[], &json).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let passed: usize = String::from_utf8(output.stdout)
                .unwrap()
                .trim()
                .parse()
                .unwrap();
            let profile = read(&json);
            // It was slept for 20 ms, and then computed for 60.
            let waits = waits(&profile);
            let computed = |wait: &&&Wait| wait.parts.ran_ns + wait.parts.preempted_ns > 20_000_000;
            let right = waits.iter().filter(computed).count();
            wrong.push(format!("{passed}: {waits:#?}"));
            right * 2 >= passed
        });
        assert!(is_right, "{options:?} {wrong:#?}");
    }
}

#[test]
fn a_holder_that_its_quota_throttles_is_told() {
    let Some(group) = Group::new() else {
        eprintln!("quota: no control group can be made here");
        return;
    };
    let path = group.path().to_str().unwrap();
    attributed("quota", &["quota", path], &[], |profile, _, hold_ms| {
        nine_in_ten(profile, hold_ms, |parts| parts.throttled_ns)
    });
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

/// Fails where each process that has ended keeps the memory of its files, or is in no profile.
#[test]
fn files_of_processes_that_have_ended_take_no_room() {
    let program = compile("brood", "brood-profile", &[]);
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("p.json");
    let output = profile(&[], &program, &[], &json).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let most = String::from_utf8(output.stdout).unwrap();
    let most: u32 = most.trim().parse().unwrap();
    assert!(most < 150, "{most} files at one time");
    let profile = read(&json);
    let process = |wait: &&Wait| profile.threads[wait.thread as usize].process;
    let mut waited: Vec<u32> = waits(&profile).iter().map(process).collect();
    waited.sort_unstable();
    waited.dedup();
    assert_eq!(waited.len(), 300, "of {}", profile.processes.len());
    assert!(profile.processes.len() >= 300);
    let named = waits(&profile)
        .into_iter()
        .filter(|wait| functions(&profile, wait.stack).contains(&"waiter"));
    assert!(named.count() >= waited.len());
    assert!(
        said.contains(" more processes; --report writes them."),
        "{said}"
    );
}

#[test]
fn a_program_is_ended_after_the_given_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("p.json");
    let began = std::time::Instant::now();
    let options = ["--seconds", "0.3"];
    let status = profile(&options, Path::new("sleep"), &["600"], &json)
        .status()
        .unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(15));
    assert!(began.elapsed().as_secs() < 300);
    assert_eq!(read(&json).run.command, ["sleep", "600"]);
}

/// Fails where the short form is another path: the table alone, or a file that nobody named.
#[test]
fn run_with_stat_is_the_short_form() {
    let program = compile("causes", "causes-short", &[]);
    let dir = tempfile::tempdir().unwrap();
    let short = |options: &[&str]| {
        let mut command = preload::run(options);
        let output = command.arg(&program).arg("sleep").current_dir(&dir);
        let output = output.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    };
    let said = short(&["--stat"]);
    assert!(said.contains("The longest waits:"), "{said}");
    assert!(said.contains("Look at lock, acquired in waiter"), "{said}");
    assert!(fs::read_dir(&dir).unwrap().next().is_none(), "{said}");
    let said = short(&["--json=p.json", "--report=r.json", "--threshold=1us"]);
    assert!(said.contains("wrote p.json"), "{said}");
    let profile = read(&dir.path().join("p.json"));
    assert_eq!(waits(&profile).len(), 10);
    assert_eq!(profile.run.threshold_ns, 1000);
    assert!(dir.path().join("r.json").exists());
    // Both would write it.
    let output = preload::run(&["--json=x", "--report=./x"])
        .arg("true")
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

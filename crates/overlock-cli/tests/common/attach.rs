//! Helpers of the tests of `overlock profile PID`.

#![allow(dead_code)] // each test program uses a part of it

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The program.
pub fn overlock() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("overlock"))
}

/// One at a time, where BPF is allowed at all: they share the CPUs.
pub fn allowed() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    static IS_ALLOWED: OnceLock<bool> = OnceLock::new();
    IS_ALLOWED.get_or_init(is_allowed).then_some(one)
}

fn is_allowed() -> bool {
    let mut sleep = Command::new("sleep").arg("600").spawn().unwrap();
    let output = overlock()
        .args(["profile", "--seconds=0.1", "--json=-"])
        .arg(sleep.id().to_string())
        .output()
        .unwrap();
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    if output.status.code() == Some(126) {
        assert_eq!(text.lines().count(), 1, "{text}");
        eprintln!("skipped: {text}");
        return false;
    }
    assert!(output.status.success(), "{text}");
    true
}

/// Waits until something is so.
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(300), "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// The objects of the kernel's BPF that a process has: each one's kind, as `prog_id`, and its id.
pub fn objects(pid: u32) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo"));
    for file in files.into_iter().flatten().flatten() {
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        // A link names its program too.
        let id = text.lines().find_map(|line| {
            let (kind, id) = line.split_once(":\t")?;
            let is_id = ["link_id", "prog_id", "map_id"].contains(&kind);
            Some((kind.to_owned(), id.trim().parse().ok()?)).filter(|_| is_id)
        });
        found.extend(id);
    }
    found
}

/// A look that has begun: its programs see what happens from now on.
pub fn look(options: &[&str], pid: u32) -> Child {
    let look = overlock()
        .arg("profile")
        .args(options)
        .arg(pid.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let links = || {
        let all = objects(look.id());
        all.iter().filter(|(kind, _)| kind == "link_id").count()
    };
    until("the look begins", || links() >= 2);
    look
}

/// The output of a look that went well.
pub fn finished(look: Child) -> Output {
    let output = look.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    output
}

//! `overlock-lab vm` as its users meet it. Tests that run a guest are skipped without /dev/kvm, or
//! without the image, which `scripts/guest --build` builds.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use assert_cmd::Command;
use predicates::str::contains;
use rustix::process::Signal;
use serde_json::Value;

use common::{ends, overlock_lab, refused, signal};

/// The image, if guests can run in ring 3.
fn image() -> Option<PathBuf> {
    let device = OpenOptions::new().read(true).write(true).open("/dev/kvm");
    if let Err(error) = device {
        eprintln!("skipped: /dev/kvm: {error}");
        return None;
    }
    let path = "../../target/guest/x86_64-unknown-none/release/overlock-guest";
    let image = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    if !image.is_file() {
        eprintln!("skipped: no image; scripts/guest --build builds it");
        return None;
    }
    Some(image)
}

/// A run in ring 3.
fn ring3(image: &PathBuf, args: &[&str]) -> Command {
    let mut command = overlock_lab();
    command.args(["vm", "--hypervisor", "kvm-ring3", "--image"]);
    command.arg(image).args(args);
    command
}

#[test]
fn a_run_has_the_rows_of_a_benchmark() {
    let Some(image) = image() else { return };
    let args = "--vcpus 2 --ms 20 --rounds 3 --locks unfair,hybrid --json -";
    let args: Vec<&str> = args.split(' ').collect();
    let output = ring3(&image, &args).assert().success();
    let document: Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    let guest = &document["machine"]["guest"];
    assert_eq!(
        (&guest["hypervisor"], &guest["vcpus"]),
        (&"kvm-ring3".into(), &3.into())
    );
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row["rounds"].as_array().unwrap().len(), 3);
        assert_eq!(row["threads"], 2);
        let counts = &row["guest"];
        let count = |name: &str| counts[name].as_u64().unwrap();
        assert_eq!(count("halts"), count("kicks") + count("unkicked"));
    }
    // The tables are on the standard error, since the document has the standard output.
    output
        .stderr(contains("2 vCPUs on"))
        .stderr(contains("halts"));
}

/// Fails where a guest's fault is no failure of the run, or nothing says what its vCPUs did.
#[test]
fn a_lost_kick_is_found_and_shown() {
    let Some(image) = image() else { return };
    let args = "--vcpus 4 --ms 10 --rounds 1000 --hang 1 --locks faulty_lost_kick";
    let args: Vec<&str> = args.split(' ').collect();
    let run = ring3(&image, &args).assert().code(1);
    run.stderr(contains(
        "faulty_lost_kick: no progress, with 4 vCPUs under kvm-ring3",
    ))
    .stderr(contains("  vCPU 1 "))
    .stderr(contains("  vCPU 4 "))
    .stderr(contains(" waits for the lock, halts on 0x"))
    .stderr(contains(" in overlock_guest::"))
    .stderr(contains("no vCPU holds the lock"));
}

#[test]
fn a_run_ends_by_its_limit() {
    let Some(image) = image() else { return };
    let args = "--vcpus 2 --ms 60000 --rounds 1 --locks mcs --time-limit 0.5";
    let args: Vec<&str> = args.split(' ').collect();
    ring3(&image, &args)
        .assert()
        .code(1)
        .stderr(contains("has not ended within 0.5 s"))
        .stderr(contains("vCPU 2 runs at"));
}

/// Starts a run that takes a minute under a hypervisor.
fn long(hypervisor: &str, image: &PathBuf) -> Child {
    std::process::Command::new(assert_cmd::cargo::cargo_bin!("overlock-lab"))
        .args("vm --vcpus 2 --ms 60000 --rounds 1 --locks mcs --hypervisor".split(' '))
        .arg(hypervisor)
        .arg("--image")
        .arg(image)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ctrl_c_ends_a_guest() {
    let Some(image) = image() else { return };
    let mut child = long("kvm-ring3", &image);
    let tasks = format!("/proc/{}/task", child.id());
    let is_vcpu = |task: fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        name.starts_with("vcpu ")
    };
    wait_until("it has no vCPUs", || {
        let tasks = fs::read_dir(&tasks).into_iter().flatten().flatten();
        tasks.filter_map(|task| is_vcpu(task).then_some(())).count() == 3
    });
    signal(&child, Signal::INT);
    assert_eq!(ends(&mut child).code(), Some(130));
}

/// The child of a process that is QEMU, if it runs.
fn qemu_of(child: &Child) -> Option<u32> {
    let path = format!("/proc/{0}/task/{0}/children", child.id());
    let children = fs::read_to_string(path).ok()?;
    let pid = children.split_whitespace().next()?.parse().ok()?;
    name_of(pid).starts_with("qemu").then_some(pid)
}

/// The name of a process that has not ended.
fn name_of(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let is_dead = status.lines().any(|line| line.starts_with("State:\tZ"));
    let name = status
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("Name:\t"));
    name.filter(|_| !is_dead).unwrap_or_default().to_owned()
}

/// Fails where QEMU outlives the program that has started it.
#[test]
fn no_emulator_is_left() {
    let Some(image) = image() else { return };
    if !overlock_lists_tcg() {
        eprintln!("skipped: no QEMU");
        return;
    }
    for (how, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let mut child = long("tcg", &image);
        wait_until("it starts no QEMU", || qemu_of(&child).is_some());
        let qemu = qemu_of(&child).unwrap();
        signal(&child, how);
        assert_eq!(ends(&mut child).code(), code);
        wait_until("QEMU is left", || !name_of(qemu).starts_with("qemu"));
    }
}

/// Whether QEMU is there, as the program finds.
fn overlock_lists_tcg() -> bool {
    let list = common::text(overlock_lab().args(["vm", "--list"]));
    assert!(
        list.contains("kvm-ring3") && list.contains("pv_queued"),
        "{list}"
    );
    !list.contains("there is no qemu-system-x86_64")
}

#[test]
fn bad_use_is_one_line() {
    for (args, says) in [
        (&["--hypervisor", "vmware"][..], "kvm-ring3"),
        (&["--locks", "std"], "no guest runs a lock 'std'"),
        (&["--vcpus", "0"], "--vcpus 0"),
        (&["--image", "/no/such/file"], "--image /no/such/file: "),
        (&["--hang", "0"], "--hang 0: must be seconds"),
    ] {
        refused(overlock_lab().arg("vm").args(args).assert(), &[says]);
    }
}

/// Fails where a hypervisor is tried without what it needs.
#[test]
fn a_hypervisor_that_is_not_there_is_refused() {
    let Some(image) = image() else { return };
    let mut command = overlock_lab();
    command
        .args(["vm", "--hypervisor", "tcg", "--image"])
        .arg(image);
    command.env("PATH", "/no/such/place");
    refused(command.assert(), &["Debian: qemu-system-x86"]);
}

//! Folded stacks, flame graphs and pprof's files of the same profile.

mod common;

use std::fs;
use std::process::Command;

use common::{LARGE, SMALL, WILD, profile};
use overlock_profile::{By, Profile, Shown, flame, folded, json, pprof};

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The time in all waits for locks.
fn total(profile: &Profile, events: bool) -> u64 {
    let sums = profile.sums.iter();
    sums.filter(|sum| events || !profile.locks[sum.lock as usize].is_event)
        .map(|sum| sum.wait_ns)
        .sum()
}

fn shown(by: By) -> Shown {
    Shown {
        by,
        ..Shown::default()
    }
}

#[test]
fn folded_stacks_have_all_of_the_time_and_no_wrapper() {
    let profile = profile(LARGE, 1.0);
    for by in [By::Waiter, By::Holder] {
        let text = text(|out| folded::write(out, &profile, shown(by)));
        let times = text.lines().map(|line| line.rsplit_once(' ').unwrap().1);
        let sum: u64 = times.map(|ns| ns.parse::<u64>().unwrap()).sum();
        assert_eq!(sum, total(&profile, false));
        let wrapped = text.lines().filter(|line| line.contains("uv_mutex_lock"));
        // The stack of nothing else keeps it.
        assert!(
            wrapped
                .into_iter()
                .all(|line| line.starts_with("server;uv_mutex_lock;")
                    || line.starts_with("worker <&> \"quoted\";uv_mutex_lock;"))
        );
        assert_eq!(text.contains("(holder unknown)"), by == By::Holder);
        assert!(text.contains("server;main;serve<&T>;"), "{text}");
        assert!(!text.contains("(cond)"));
        // A line is a stack and a number, whatever is in a name.
        let wild = WILD.replace(';', ":");
        assert!(text.lines().any(|line| line.contains(&format!(";{wild};"))));
    }
    let all = Shown {
        wrappers: true,
        events: true,
        ..Shown::default()
    };
    let text = text(|out| folded::write(out, &profile, all));
    assert!(text.contains(";uv_mutex_lock;lock_4 (cond) "));
}

#[test]
fn flame_graphs_are_whole_and_empty_ones_say_so() {
    let profile = profile(SMALL, 1.0);
    let svg = text(|out| flame::write(out, &profile, shown(By::Waiter)));
    assert!(svg.contains("Time in waits for locks, by waiter: server"));
    assert!(svg.contains("serve&lt;&amp;T&gt;"), "{svg}");
    assert!(!svg.contains("<b>"));
    let us = total(&profile, false) / 1000;
    let digits: String = svg.chars().filter(|&c| c != ',').collect();
    let is_all = |us| digits.contains(&format!("all ({us} us 100%)"));
    // It may be rounded up.
    assert!(is_all(us) || is_all(us + 1), "no {us} us");
    let svg = text(|out| flame::write(out, &Profile::default(), shown(By::Waiter)));
    assert!(svg.contains("No thread waited for a lock."));
    assert_eq!(
        text(|out| folded::write(out, &Profile::default(), shown(By::Holder))),
        ""
    );
}

/// Go's reader checks the file, and has all of the time.
#[test]
fn go_reads_the_pprof_file() {
    if Command::new("go").arg("version").output().is_err() {
        println!("skipped: go is not installed");
        return;
    }
    let profile = profile(SMALL, 1.0);
    for by in [By::Waiter, By::Holder] {
        let mut out = Vec::new();
        pprof::write(&mut out, &profile, shown(by)).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), out).unwrap();
        let go = |options: &[&str]| {
            let mut command = Command::new("go");
            command
                .args(["tool", "pprof"])
                .args(options)
                .arg(file.path());
            let output = command.output().unwrap();
            let errors = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{errors}");
            String::from_utf8(output.stdout).unwrap()
        };
        let raw = go(&["-raw"]);
        for line in [
            "contentions/count delay/nanoseconds[dflt]",
            "/usr/sbin/server 00ff00ff [FN][FL][LN][IN]",
            "kind:[mutex]",
        ] {
            assert!(raw.contains(line), "no {line} in {raw}");
        }
        let top = go(&["-top", "-unit=ns", "-nodecount=1000", "-nodefraction=0"]);
        let ns = total(&profile, false);
        assert!(top.contains(&format!("100% of {ns}ns total")), "{top}");
        let top = go(&[
            "-top",
            "-sample_index=contentions",
            "-nodefraction=0",
            "-nodecount=1000",
        ]);
        let waits = profile.sums.iter();
        let waits = waits.filter(|sum| !profile.locks[sum.lock as usize].is_event);
        let waits: u64 = waits.map(|sum| sum.waits).sum();
        assert!(top.contains(&format!("100% of {waits} total")), "{top}");
        assert!(!top.contains("uv_mutex_lock (inline)"));
        assert!(top.contains("pool::get<7> (inline)"), "{top}");
    }
}

#[test]
fn documents_read_back_and_damaged_ones_are_refused() {
    let profile = profile(SMALL, 1.0);
    let kept = text(|out| json::write(out, &profile));
    assert_eq!(Profile::read(kept.as_bytes()).unwrap(), profile);
    let refused = |text: &str, says: &str| {
        let error = Profile::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    refused("{}", "no profile: missing field");
    refused(
        &kept.replace("\"version\":1", "\"version\":99"),
        "version 99",
    );
    type Damage = fn(&mut Profile);
    let damages: [(Damage, &str); 9] = [
        (|it| it.threads[0].process = 9, "a process"),
        (|it| it.locks[0].process = 9, "a process"),
        (|it| it.locks[0].init = Some(999), "a stack"),
        (|it| it.stacks[0].0.push(999), "a frame"),
        (|it| it.sums[0].lock = 999, "a lock"),
        (|it| it.sums[0].holder_stack = Some(999), "a stack"),
        (|it| it.waits[0].thread = 999, "a thread"),
        (|it| it.waits[0].holder = Some(999), "a thread"),
        (|it| it.waits[0].behind = Some(999), "a wait"),
    ];
    for (damage, says) in damages {
        let mut damaged = profile.clone();
        damage(&mut damaged);
        refused(&text(|out| json::write(out, &damaged)), says);
    }
}

//! Threads with real-time priorities. Without a right to them nothing is tested.

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::path::Path;

use common::{compile, compile_as, library, run, text};

fn run_on_ours(program: &Path, arguments: &[&Path]) -> Option<String> {
    let library = library();
    let environment = [("LD_PRELOAD", library.to_str().unwrap())];
    let output = run(program, arguments, &environment);
    let said = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said:?}");
    (!said.1.starts_with("skipped")).then_some(said.0)
}

/// On the C library's locks it is the same, but in the last scene the first writer comes first.
#[test]
fn waiters_are_served_by_priority() {
    let Some(answer) = run_on_ours(&compile("ranks.c", &[]), &[]) else {
        return;
    };
    let lines: Vec<_> = answer.lines().collect();
    let (last, scenes) = lines.split_last().unwrap();
    assert_eq!((*last, scenes.len()), ("done", 13));
    for scene in scenes {
        assert!(scene.ends_with(": 30 20 20 10 0"), "{answer}");
    }
}

/// Fails where a real-time thread waits for a free lock behind a writer that has no CPU.
#[test]
fn a_writer_without_a_cpu_does_not_close_a_lock_for_real_time_threads() {
    let program = compile_as("starved.c", "starved-behind", &[]);
    if let Some(answer) = run_on_ours(&program, &[Path::new("behind")]) {
        assert_eq!(answer, "done\n");
    }
}

//! `overlock run --lockdep`: the reports of several processes, and the sum at the end.

mod common;
#[path = "common/preload.rs"]
mod preload;

use std::collections::HashSet;

use preload::{compile, run};

const LINE: &str = "======================================================================";

/// Fails where a report is written in pieces, between which another process writes.
#[test]
fn reports_of_several_processes_are_whole() {
    let program = compile("several", "several", &["-O1"]);
    let output = run(&["--lockdep"]).arg(program).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let parts: Vec<&str> = text.split(LINE).collect();
    // Before the first, between two, and the sum at the end.
    let reports: Vec<&str> = parts.iter().copied().skip(1).step_by(2).collect();
    assert_eq!(reports.len(), 4 * 7, "{text}");
    let mut seen = HashSet::new();
    for report in reports {
        let mut threads = report
            .lines()
            .filter_map(|line| line.strip_prefix("several/")?.split(' ').next());
        let thread = threads.next().unwrap();
        for part in [
            format!("1 lock held by several/{thread}:"),
            format!("by thread {thread}, of locks "),
        ] {
            assert!(report.contains(&part), "{part}: {report}");
        }
        // In each trace, the callers that are kept.
        let is_caller = |line: &&str| line.trim_start().starts_with("deep several.c:");
        assert_eq!(report.lines().filter(is_caller).count(), 26, "{report}");
        seen.insert(thread.to_owned());
    }
    assert_eq!(seen.len(), 4);
    assert!(text.ends_with(" 0 reports, 28 warnings\n"), "{text}");
}

/// The sum of a scene of the library's own tests.
fn sum_of(scene: &str, options: &[&str]) -> String {
    let program = compile(
        "../../../overlock-preload/tests/c/harmless",
        &format!("sum-{scene}"),
        &["-U_GNU_SOURCE"],
    );
    let output = run(options).arg(program).arg(scene).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    text.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn cycles_of_one_thread_alone_are_in_the_sum_unless_they_are_reported() {
    let scene = "alone_among_others";
    let sum = "overlock: 4 locks of 4 classes";
    assert_eq!(
        sum_of(scene, &["--lockdep"]),
        format!("{sum}, 0 reports; 1 cycle of one thread, or of threads that never met (--all)")
    );
    let all = sum_of(scene, &["--lockdep", "--lockdep-all"]);
    assert_eq!(all, format!("{sum}, 1 report"));
    let two = sum_of("second_thread", &["--lockdep"]);
    assert_eq!(two, "overlock: 5 locks of 5 classes, 1 report");
    let first = sum_of("alone_at_first", &["--lockdep"]);
    assert_eq!(first, "overlock: 5 locks of 5 classes, 1 report, 1 warning");
}

#[test]
fn a_cycle_under_a_common_lock_is_in_the_sum() {
    let program = compile("gated", "gated", &["-O1"]);
    let output = run(&["--lockdep"]).arg(program).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        text,
        "overlock: 3 locks of 3 classes, 0 reports; 1 cycle harmless, under a common lock\n"
    );
}

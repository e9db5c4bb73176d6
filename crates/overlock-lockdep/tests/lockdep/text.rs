//! A whole report.

use overlock_lockdep::{self as lockdep, How, Site};

use crate::alone;

/// Removes what differs from run to run: numbers of threads, and the backtraces.
fn steady(text: &str) -> String {
    let traced = |line: &str| line.contains("+0x") || line.contains("backtrace:");
    let lines = text.lines().filter(|line| !traced(line));
    let mut steady = String::new();
    for line in lines {
        let task = line.split_whitespace().find(|word| word.contains('/'));
        let task = task.map(|task| task.trim_end_matches(':'));
        let line = match task {
            Some(task) if !task.contains(".rs") => line.replace(task, "THREAD"),
            _ => line.to_string(),
        };
        let line = match line.split_once("by thread ").zip(line.split_once(", of")) {
            Some(((before, _), (_, after))) => format!("{before}by THREAD, of{after}"),
            None => line,
        };
        steady.push_str(&line);
        steady.push('\n');
    }
    steady
}

#[test]
fn a_circle_of_three_in_full() {
    let said = alone!(|| {
        let [a, b, c] = ["a", "b", "c"].map(lockdep::class_named);
        let [a, b, c] = [(0xa0, a), (0xb0, b), (0xc0, c)];
        for (number, locks) in [[a, b], [b, c], [c, a]].iter().enumerate() {
            for (place, (lock, class)) in locks.iter().enumerate() {
                let site = Site::code(0x10 * (number + 1) + place);
                lockdep::acquire(*lock, *class, How::EXCLUSIVE, site);
                lockdep::acquired(*lock, *class, How::EXCLUSIVE, site);
            }
            for (lock, _) in locks {
                lockdep::release(*lock);
            }
        }
    });
    assert_eq!(steady(&said.0), include_str!("circle.txt"));
}

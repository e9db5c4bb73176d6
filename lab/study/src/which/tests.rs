//! Cells, and what is said of them.

use overlock_bench::registry::Family;

use super::*;
use crate::case::tests::options;
use crate::{locks, vary};

/// A cell with locks of these ranges.
fn cell(locks: &[(&str, f64, f64)]) -> Cell {
    let standing = |&(lock, low, high): &(&str, f64, f64)| Standing {
        lock: lock.to_owned(),
        ops_per_sec: high,
        varied: Range { low, high },
        range: Range { low, high },
        settled: Some(true),
    };
    Cell {
        place: "8",
        cpus: 8,
        section: "short",
        level: 2.0,
        threads: 16,
        class: Class::Overcommit,
        locks: locks.iter().map(standing).collect(),
        failed: Vec::new(),
    }
}

#[test]
fn a_cell_has_all_locks_and_the_ranges_of_the_best() {
    let lock = |name| locks::named(Family::Exclusive, name).unwrap();
    let all = ["ticket", "unfair", "mcs"].map(lock);
    let mut count = 0;
    let cells = cells(&["8".to_owned()], &all, &options(100), |_, _, _| count += 1).unwrap();
    assert_eq!(cells.len(), LEVELS.len() * SECTIONS.len());
    assert_eq!(count, cells.len() * (3 + VARIED * vary::COUNT));
    for cell in &cells {
        assert_eq!((cell.locks.len(), cell.failed.len()), (3, 0));
        for (place, lock) in cell.locks.iter().enumerate() {
            let Range { low, high } = lock.varied;
            assert!((low..=high).contains(&lock.ops_per_sec), "{lock:?}");
            assert!(place < VARIED || low >= high, "{lock:?}");
            assert!(lock.range.low <= low && lock.range.high >= high, "{lock:?}");
        }
    }
}

#[test]
fn a_cell_says_what_is_level_and_what_is_near_a_change_of_regime() {
    let ahead = cell(&[("a", 4e6, 5e6), ("b", 1e6, 1.2e6)]);
    assert_eq!(best(&ahead), "a: 4.00 to 5.00");
    let level = cell(&[("a", 4e6, 9e6), ("b", 2e6, 5e6), ("c", 1e6, 3e6)]);
    let regime = "; near a change of regime: a, b";
    assert_eq!(best(&level), format!("any but c: 4.00 to 9.00{regime}"));
    let mut all = cell(&[("a", 8e6, 9e6), ("b", 7e6, 8e6)]);
    all.locks[1].settled = Some(false);
    assert_eq!(best(&all), "any: 8.00 to 9.00; not settled: b");
    assert_eq!(best(&cell(&[])), "none");
}

#[test]
fn the_table_counts_how_often_a_lock_is_behind() {
    // The second has more threads than `b` takes.
    let both = cell(&[("a", 4e6, 9e6), ("b", 1e6, 3e6)]);
    let text = describe(Form::Markdown, &[both, cell(&[("a", 4e6, 9e6)])]);
    for row in [
        "| one socket, 8 CPUs | 16 (2x) | a: 4.00 to 9.00",
        "| b | 0 of 0 | 0 of 0 | 1 of 1 | 0 of 0 |",
    ] {
        assert!(text.contains(row), "{text}");
    }
}

/// `.ci/simulator --write` makes both anew.
#[test]
fn the_page_is_that_of_the_score_and_of_these_classes() {
    let page = include_str!("../../../../docs/evidence/which-lock.md");
    let has = |text: &str, times: usize| assert_eq!(page.matches(text).count(), times, "{text}");
    for class in Class::ALL {
        has(&scored(class, known::of(class).unwrap().error), 1);
    }
    for (place, about, machine) in PLACES {
        has(&format!("| {about} | "), LEVELS.len());
        let cpus = Machine::named(machine).unwrap().cpus();
        assert!(
            place.parse().map_or(true, |named: usize| named == cpus),
            "{place}"
        );
    }
    for (section, about, _) in SECTIONS {
        has(&format!(" {section}: {about} |"), 1);
    }
    for lock in LOCKS {
        has(&format!("\n| {lock} | "), 1);
    }
    let (place, section, lines) = DRAWN;
    assert!(!about(&PLACES, place).is_empty() && !about(&SECTIONS, section).is_empty());
    assert!(lines.iter().all(|lock| LOCKS.contains(lock)));
}

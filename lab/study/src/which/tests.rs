//! Cells, and what is said of them.

use overlock_bench::registry::{self, Family};

use super::*;
use crate::case::tests::{case, options, rate};
use crate::vary;

/// A cell whose locks have these ranges, which the error of the score widens by a factor of 1.25.
fn cell(locks: &[(&'static str, f64, f64)]) -> Cell {
    let standing = |&(lock, low, high): &(_, f64, f64)| {
        let mut standing = Standing::new(lock, rate(high));
        standing.range = Some(Range { low, high });
        standing
    };
    let mut advice = Advice::of(&case("micro", "mcs", 16).place);
    advice.locks = locks.iter().map(standing).collect();
    advice.error = Some(1.25_f64.ln());
    advice.compare();
    let (place, section, level) = ("8", "short", 2.0);
    Cell {
        place,
        section,
        level,
        advice,
    }
}

#[test]
fn a_cell_has_all_locks_and_the_ranges_of_the_best() {
    let lock = |name| registry::simulated(Family::Exclusive, name).unwrap();
    let all = ["ticket", "unfair", "mcs"].map(lock);
    let mut count = 0;
    let cells = cells(&["8".to_owned()], &all, &options(100), |_, _, _| count += 1).unwrap();
    assert_eq!(cells.len(), LEVELS.len() * rows(SECTIONS).count());
    assert_eq!(count, cells.len() * (3 + VARIED * vary::COUNT));
    for cell in &cells {
        assert_eq!((cell.advice.locks.len(), cell.advice.failed.len()), (3, 0));
        for (place, lock) in cell.advice.locks.iter().enumerate() {
            let (Range { low, high }, widened) = (lock.varied(), lock.widened(cell.advice.error));
            assert!(
                (low..=high).contains(&lock.measured.ops_per_sec),
                "{lock:?}"
            );
            assert!(place < VARIED || low >= high, "{lock:?}");
            assert!(widened.low <= low && widened.high >= high, "{lock:?}");
        }
    }
}

#[test]
fn a_cell_says_what_is_level_and_what_is_near_a_change_of_regime() {
    let ahead = cell(&[("a", 4e6, 5e6), ("b", 1e6, 1.2e6)]);
    assert_eq!(best(&ahead), "a: 3.20 to 6.25");
    let level = cell(&[("a", 4e6, 6e6), ("b", 2e6, 4e6), ("c", 2e6, 2.5e6)]);
    let regime = "; near a change of regime: a, b";
    assert_eq!(best(&level), format!("any but c: 3.20 to 7.50{regime}"));
    let mut all = cell(&[("a", 6e6, 7e6), ("b", 5e6, 6e6)]);
    all.advice.locks[1].measured.simulation.settled = Some(false);
    assert_eq!(best(&all), "any: 4.80 to 8.75; not settled: b");
    all.advice.failed = vec![("c", "it hangs".to_owned())];
    assert_eq!(best(&all), "any but c: 4.80 to 8.75; not settled: b");
    assert_eq!(best(&cell(&[])), "none");
    // The second has more threads than `b` takes.
    let text = describe(Form::Markdown, &[ahead, cell(&[("a", 4e6, 5e6)]), all]);
    for row in [
        "| one socket, 8 CPUs | 16 (2x) | a: 3.20 to 6.25 | a: 3.20 to 6.25 | any but c",
        "\n- c failed (8, 16 threads, short): it hangs\n",
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
        has(&scored(class).unwrap(), 1);
    }
    for [_, about, _] in rows(PLACES) {
        has(&format!("| {about} | "), LEVELS.len());
    }
    for [section, about, _] in rows(SECTIONS) {
        has(&format!(" {section}: {about} |"), 1);
    }
}

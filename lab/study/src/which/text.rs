//! The table of [`cells`](super::cells), for people and as a page has it.

use std::fmt::Write;

use itertools::Itertools;
use overlock_report::numbers::rate;

use super::{Cell, LEVELS, PLACES, SECTIONS, Standing};
use crate::score::known;
use crate::score::text::{Form, rows};
use crate::score::{Class, Known};
use crate::vary::Range;

/// The table, how often each lock is behind, and what a range is.
pub fn describe(form: Form, cells: &[Cell]) -> String {
    let sections = SECTIONS.map(|(section, about, _)| format!("{section}: {about}"));
    let titles: Vec<&str> = ["machine", "threads"]
        .into_iter()
        .chain(sections.iter().map(String::as_str))
        .collect();
    let lines = cells.chunk_by(|a, b| (a.place, a.threads) == (b.place, b.threads));
    let lines = lines.map(|line| {
        let places = PLACES.iter();
        let mut places = places.filter(|(place, _, _)| *place == line[0].place);
        let about = places.next().map_or("", |(_, about, _)| about);
        let threads = format!("{} ({}x)", line[0].threads, line[0].level);
        let begin = [about.to_owned(), threads];
        begin.into_iter().chain(line.iter().map(best))
    });
    let mut text = rows(form, &titles, |_| false, lines);
    text += "\n";
    text += &behind(form, cells);
    text += "\n";
    for class in Class::ALL {
        if let Some(Known { error, .. }) = known::of(class) {
            text += &scored(class, error);
        }
    }
    for cell in cells {
        for (lock, why) in &cell.failed {
            let (place, threads, section) = (cell.place, cell.threads, cell.section);
            let _ = writeln!(
                text,
                "{lock} failed ({place}, {threads} threads, {section}): {why}"
            );
        }
    }
    text
}

fn scored(class: Class, error: f64) -> String {
    format!("- Error of the score, {class}: {error:.2}.\n")
}

/// The best locks of a cell, the range of the best one, and what else to know of them.
fn best(cell: &Cell) -> String {
    let Some(best) = cell.locks.first() else {
        return "none".to_owned();
    };
    let named =
        |locks: &mut dyn Iterator<Item = &Standing>| locks.map(|lock| &lock.lock).join(", ");
    let behind: Vec<&Standing> = cell.behind().collect();
    let level = cell.locks.len() - behind.len();
    let locks = match behind.len() {
        0 if level > 1 => "any".to_owned(),
        count if level > count => format!("any but {}", named(&mut behind.into_iter())),
        _ => named(&mut cell.level()),
    };
    let Range { low, high } = best.range;
    let mut text = format!("{locks}: {} to {}", rate(low), rate(high));
    let mut told = |what: &str, is_so: fn(&Standing) -> bool| {
        let locks = named(&mut cell.level().filter(|lock| is_so(lock)));
        if !locks.is_empty() {
            text += &format!("; {what}: {locks}");
        }
    };
    told("near a change of regime", |lock| {
        lock.varied.is_regime_change()
    });
    told("not settled", |lock| lock.settled == Some(false));
    text
}

/// In how many cells each lock is behind, by the threads for each CPU.
fn behind(form: Form, cells: &[Cell]) -> String {
    let levels = LEVELS.map(|level| format!("{level}x"));
    let titles: Vec<&str> = std::iter::once("behind, with threads for each CPU of")
        .chain(levels.iter().map(String::as_str))
        .collect();
    let count = |name: &str, level: f64| {
        let has = |cell: &&Cell| cell.locks.iter().any(|lock| lock.lock == name);
        let mine = || {
            let cells = cells.iter().filter(has);
            cells.filter(|cell| (cell.level - level).abs() < 1e-9)
        };
        let behind = mine().filter(|cell| cell.behind().any(|lock| lock.lock == name));
        format!("{} of {}", behind.count(), mine().count())
    };
    let locks = cells.iter().flat_map(|cell| &cell.locks);
    let lines = locks.map(|lock| &lock.lock).unique().map(|name| {
        let counts = LEVELS.map(|level| count(name, level));
        std::iter::once(name.clone()).chain(counts).collect_vec()
    });
    let lines = lines.sorted();
    rows(form, &titles, |column| column > 0, lines)
}

#[cfg(test)]
mod tests {
    use super::super::LOCKS;
    use super::super::tests::cell;
    use super::*;

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

    /// `.ci/simulator --write` makes both anew.
    #[test]
    fn the_page_is_that_of_the_score_and_of_these_classes() {
        let page = include_str!("../../../../docs/evidence/which-lock.md");
        for class in Class::ALL {
            let error = known::of(class).unwrap().error;
            assert!(page.contains(&scored(class, error)), "{class} {error}");
        }
        for about in PLACES.map(|(_, about, _)| about) {
            let rows = page.matches(&format!("| {about} | ")).count();
            assert_eq!(rows, LEVELS.len(), "{about}");
        }
        for (section, about, _) in SECTIONS {
            assert!(
                page.contains(&format!(" {section}: {about} |")),
                "{section}"
            );
        }
        for lock in LOCKS {
            assert!(page.contains(&format!("\n| {lock} | ")), "{lock}");
        }
    }

    #[test]
    fn the_table_counts_how_often_a_lock_is_behind() {
        let both = cell(&[("a", 4e6, 9e6), ("b", 1e6, 3e6)]);
        // The second has more threads than `b` takes.
        let cells = [both, cell(&[("a", 4e6, 9e6)])];
        let text = describe(Form::Markdown, &cells);
        assert!(
            text.contains("| one socket, 8 CPUs | 16 (2x) | a: 4.00 to 9.00"),
            "{text}"
        );
        assert!(
            text.contains("| b | 0 of 0 | 0 of 0 | 1 of 1 | 0 of 0 |"),
            "{text}"
        );
    }
}

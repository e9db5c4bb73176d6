//! Advice for people.

use std::fmt::Write;

use itertools::Itertools;
use overlock_report::columns::{NOTHING, table};
use overlock_report::numbers::{rate, significant, time};

use super::{Advice, BEST, Standing};
use crate::score::known;
use crate::vary::Range;

/// A range whose ends differ by less than this factor is one figure.
const ONE: f64 = 1.05;

/// The answer: the three best locks, what each costs, and how sure it is.
pub fn describe(advice: &Advice) -> String {
    let Advice {
        machine,
        cpus,
        host,
        workload,
        threads,
        class,
        ..
    } = advice;
    let mut text = format!(
        "{machine}; host {host}\n{threads} threads on {cpus} CPUs ({class}), {workload}\n\n"
    );
    let titles = [
        "lock",
        "Mop/s",
        "Jain",
        "CPU s/Mop",
        "longest wait",
        "how sure",
    ];
    let best = advice.locks.iter().take(BEST);
    text += &table(titles, best.map(row), |column| (1..5).contains(&column));
    let others = advice.locks.iter().skip(BEST);
    let others = others
        .map(|other| format!("{} {}", other.lock, operations(other)))
        .join(", ");
    if !others.is_empty() {
        let _ = writeln!(text, "\nThe others, in Mop/s: {others}.");
    }
    for (lock, why) in &advice.failed {
        let _ = writeln!(text, "{lock} failed: {why}");
    }
    text += "\nA range is that of constants a tenth smaller and larger. Locks are level where their \
             ranges meet.\n";
    text + &known::told(*class)
}

/// A figure, or its range.
fn cell(figure: Option<f64>, range: Option<Range>, write: fn(f64) -> String) -> String {
    match range {
        Some(Range { low, high }) if high > ONE * low => {
            format!("{} to {}", write(low), write(high))
        }
        _ => figure.map_or(NOTHING.to_owned(), write),
    }
}

fn operations(standing: &Standing) -> String {
    let range = standing.ranges.map(|ranges| ranges.ops_per_sec);
    cell(Some(standing.ops_per_sec), range, rate)
}

fn row(standing: &Standing) -> Vec<String> {
    let ranges = standing.ranges.as_ref();
    let sure = match (ranges, standing.level_with.as_slice()) {
        (None, _) => "not at all: it fails with other constants".to_owned(),
        (Some(_), []) => "ahead of all below it".to_owned(),
        (Some(_), others) => format!("level with {}", others.join(", ")),
    };
    let regime = match ranges {
        Some(ranges) if ranges.ops_per_sec.is_regime_change() => "; near a change of regime",
        _ => "",
    };
    let unsettled = match standing.settled {
        Some(false) => "; not settled",
        _ => "",
    };
    vec![
        standing.lock.clone(),
        operations(standing),
        cell(
            standing.jain,
            ranges.and_then(|ranges| ranges.jain),
            |jain| format!("{jain:.2}"),
        ),
        cell(
            standing.cpu_s_per_mop,
            ranges.and_then(|ranges| ranges.cpu_s_per_mop),
            significant,
        ),
        cell(
            standing.longest_ns,
            ranges.and_then(|ranges| ranges.longest_ns),
            time,
        ),
        sure + regime + unsettled,
    ]
}

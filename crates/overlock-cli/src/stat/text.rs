//! The table for people.

use std::fmt::Write;

use overlock_bench::report::columns::{Column, NOTHING, blocks, optional};
use overlock_bench::report::text::{count, time};

use super::process::Process;
use super::rows::Row;

/// How many rows a table has.
const MOST_ROWS: usize = 20;

/// How many processes have one.
const MOST_PROCESSES: usize = 5;

/// The longest names that leave room for something beside them.
const MOST_LETTERS: usize = 44;

/// What is said of a row behind the lock's name.
const WAITS: &[Column<Row>] = &[
    Column {
        title: "acquired at",
        text: |row| short(&row.site.to_string()),
    },
    Column {
        title: "kind",
        text: |row| row.kind.0.name().to_owned(),
    },
    Column {
        title: "acquired",
        text: |row| count(row.acquisitions as f64),
    },
    Column {
        title: "waits",
        text: |row| some(row.contentions, |waits| count(waits as f64)),
    },
    Column {
        title: "gave up",
        text: |row| some(row.gave_up, |waits| count(waits as f64)),
    },
    Column {
        title: "wait total",
        text: |row| some(row.wait.total_ns, |ns| time(ns as f64)),
    },
    Column {
        title: "avg",
        text: |row| optional(row.wait.avg_ns, time),
    },
    Column {
        title: "max",
        text: |row| some(row.wait.max_ns, |ns| time(ns as f64)),
    },
];

const HOLDS: &[Column<Row>] = &[
    Column {
        title: "hold avg",
        text: |row| optional(row.hold.avg_ns, time),
    },
    Column {
        title: "hold max",
        text: |row| some(row.hold.max_ns, |ns| time(ns as f64)),
    },
    Column {
        title: "passed avg",
        text: |row| optional(row.passed_avg, |passed| format!("{passed:.1}")),
    },
    Column {
        title: "passed max",
        text: |row| some(row.passed_max, |passed| count(passed as f64)),
    },
    Column {
        title: "held by",
        text: top_holder,
    },
];

fn some(value: u64, text: fn(u64) -> String) -> String {
    optional(Some(value).filter(|&value| value > 0), text)
}

/// Who made the others wait for the most time, and for how much of it.
fn top_holder(row: &Row) -> String {
    let Some(holder) = row.holders.first() else {
        return NOTHING.to_owned();
    };
    let share = holder.wait_ns as f64 / row.wait.total_ns.max(1) as f64;
    let site = holder
        .site
        .as_ref()
        .map_or_else(|| "unknown".to_owned(), |site| short(&site.to_string()));
    format!("{:.0} % {site}", share.min(1.0) * 100.0)
}

/// A name that is too long for a table, without its middle.
fn short(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= MOST_LETTERS {
        return name.to_owned();
    }
    let half = MOST_LETTERS / 2;
    let (start, end) = (&letters[..half], &letters[letters.len() - half + 1..]);
    start.iter().chain(&['…']).chain(end).collect()
}

/// A row's lock.
pub fn name(row: &Row) -> String {
    short(&row.lock)
}

/// Tables of the processes, for a terminal of `width` columns, or for a file if there is none.
pub fn describe(processes: &[Process], width: Option<u16>) -> String {
    let mut text = String::new();
    for process in processes.iter().take(MOST_PROCESSES) {
        let total = process.wait_ns();
        let _ = writeln!(
            text,
            "{} (process {}): {} waited for locks",
            process.program,
            process.pid,
            time(total as f64)
        );
        let rows = &process.locks[..process.locks.len().min(MOST_ROWS)];
        text += &blocks(rows, name, &[WAITS, HOLDS], width);
        if process.locks.len() > MOST_ROWS {
            let rest = &process.locks[MOST_ROWS..];
            let waits: u64 = rest.iter().map(|row| row.wait.total_ns).sum();
            let _ = writeln!(
                text,
                "And {} more, with waits of {}; --report writes all.\n",
                rest.len(),
                time(waits as f64)
            );
        }
        if process.lost > 0 {
            let _ = writeln!(
                text,
                "{} acquisitions and waits found no room among the call sites, and are not counted.\n",
                count(process.lost as f64)
            );
        }
    }
    if let Some(more) = processes.len().checked_sub(MOST_PROCESSES + 1) {
        let _ = writeln!(
            text,
            "And {} more processes; --report writes all.",
            more + 1
        );
    }
    if processes.is_empty() {
        text += "overlock: no acquisition was recorded\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(short("brief"), "brief");
        let long = format!("begin{}end", "x".repeat(100));
        let short = short(&long);
        assert_eq!(short.chars().count(), MOST_LETTERS);
        assert!(short.starts_with("begin") && short.ends_with("end"));
    }
}

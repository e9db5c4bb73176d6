//! The table for people.

use std::fmt::Write;

use overlock_report::columns::{Column, NOTHING, blocks, optional};
use overlock_report::numbers::{count, time};
use overlock_shared::SAMPLE;

use super::process::Process;
use super::rows::{Event, Row, Spins};

/// How many rows a table has.
const MOST_ROWS: usize = 20;

/// How many the one behind it has, of waits for events.
const MOST_EVENTS: usize = 10;

/// How many processes have one.
const MOST_PROCESSES: usize = 5;

/// The longest names that leave room for something beside them.
const MOST_LETTERS: usize = 44;

/// The columns behind the lock's name.
const WAITS: &[Column<Row>] = &[
    Column("acquired at", |row| short(&row.site.to_string())),
    Column("kind", |row| row.kind.name().to_owned()),
    Column("acquired", |row| {
        optional(row.acquisitions, |acquired| count(acquired as f64))
    }),
    Column("waits", |row| {
        some(row.contentions, |waits| count(waits as f64))
    }),
    Column("gave up", |row| {
        some(row.gave_up, |waits| count(waits as f64))
    }),
    Column("wait total", |row| {
        some(row.wait.total_ns, |ns| time(ns as f64))
    }),
    Column("avg", |row| optional(row.wait.avg_ns, time)),
    Column("max", |row| some(row.wait.max_ns, |ns| time(ns as f64))),
];

const HOLDS: &[Column<Row>] = &[
    Column("hold avg", |row| optional(row.hold.avg_ns, time)),
    Column("hold max", |row| {
        some(row.hold.max_ns, |ns| time(ns as f64))
    }),
    Column("unfair", |row| {
        optional(row.unfair_share, |share| format!("{:.0} %", share * 100.0))
    }),
    Column("passed avg", |row| {
        optional(row.passed_avg, |passed| format!("{passed:.1}"))
    }),
    Column("passed max", |row| {
        some(row.passed_max.unwrap_or_default(), |passed| {
            count(passed as f64)
        })
    }),
    Column("held by", top_holder),
];

/// The columns behind the event's name.
const EVENTS: &[Column<Event>] = &[
    Column("waits at", |event| {
        optional(event.site.as_ref(), |site| short(&site.to_string()))
    }),
    Column("kind", |event| event.kind.name().to_owned()),
    Column("waits", |event| count(event.waits as f64)),
    Column("gave up", |event| {
        some(event.gave_up, |waits| count(waits as f64))
    }),
    Column("wait total", |event| time(event.wait.total_ns as f64)),
    Column("avg", |event| optional(event.wait.avg_ns, time)),
    Column("max", |event| time(event.wait.max_ns as f64)),
];

/// Costs of their spins and sleeps.
const SPINS: &[Column<Event>] = &[
    Column("spins", |event| {
        some(event.spins.count, |spins| count(spins as f64))
    }),
    Column("in time", |event| {
        let Spins { count, in_time, .. } = event.spins;
        let share = (count > 0).then(|| in_time as f64 / count as f64);
        optional(share, |share| format!("{:.0} %", share * 100.0))
    }),
    Column("spun", |event| {
        some(event.spins.total_ns, |ns| time(ns as f64))
    }),
    Column("saved", |event| {
        some(event.spins.saved_ns, |ns| time(ns as f64))
    }),
    Column("wake-up", |event| optional(event.wake_avg_ns, time)),
];

fn some(value: u64, text: fn(u64) -> String) -> String {
    optional(Some(value).filter(|&value| value > 0), text)
}

/// The holder that made the others wait for the most time, and its share.
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
pub fn short(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= MOST_LETTERS {
        return name.to_owned();
    }
    let half = MOST_LETTERS / 2;
    let (start, end) = (&letters[..half], &letters[letters.len() - half + 1..]);
    start.iter().chain(&['…']).chain(end).collect()
}

/// Tables of the processes, for a terminal of `width` columns, or for a file if there is none.
pub fn describe(processes: &[Process], width: Option<u16>) -> String {
    let mut text = String::new();
    for process in processes.iter().take(MOST_PROCESSES) {
        if process.is_empty() {
            text += &nothing(process);
            continue;
        }
        let _ = writeln!(
            text,
            "{} (process {}): {} waited for locks",
            process.program,
            process.pid,
            time(process.wait_ns() as f64)
        );
        let rows = &process.locks;
        if !rows.is_empty() {
            text += &table("lock", rows, MOST_ROWS, &[WAITS, HOLDS], width, |row| {
                (&row.lock, row.wait.total_ns)
            });
        }
        if !process.events.is_empty() {
            let total = time(process.events_ns() as f64);
            let _ = writeln!(text, "{total} waited for events, which is no contention");
            let events = &process.events;
            text += &table(
                "event",
                events,
                MOST_EVENTS,
                &[EVENTS, SPINS],
                width,
                |event| (&event.name, event.wait.total_ns),
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
        text += "overlock: there is no table\n";
    }
    text
}

/// Why there is no table of a process.
fn nothing(process: &Process) -> String {
    let Process { program, pid, .. } = process;
    match process.took_locks {
        true => format!(
            "{program} (process {pid}): no thread waited for a lock, and none of the acquisitions was looked at: one in {SAMPLE} is\n"
        ),
        false => format!(
            "{program} (process {pid}) took no mutex and no reader-writer lock of the C library.\n\
             The locks of Rust, Go and Java themselves are others, and are not seen.\n"
        ),
    }
}

/// The first `most` rows, and a line about the others; `of` gives a row's name and the time spent
/// waiting.
fn table<R>(
    title: &str,
    rows: &[R],
    most: usize,
    groups: &[&[Column<R>]],
    width: Option<u16>,
    of: fn(&R) -> (&str, u64),
) -> String {
    let (first, rest) = rows.split_at(rows.len().min(most));
    let mut text = blocks(title, first, |row| short(of(row).0), groups, width);
    if !rest.is_empty() {
        let waits: u64 = rest.iter().map(|row| of(row).1).sum();
        let _ = writeln!(
            text,
            "And {} more, with waits of {}; --report writes all.\n",
            rest.len(),
            time(waits as f64)
        );
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

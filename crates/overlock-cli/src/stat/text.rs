//! The table for people.

use std::fmt::Write;

use overlock_profile::advice::NO_PROBLEM;
use overlock_report::columns::{NOTHING, optional};
use overlock_report::numbers::{count, time};
use overlock_shared::{ObjectKind, SAMPLE};

use super::layout::{Column, WIDTH, fitting};
use super::process::Process;
use super::rows::{Event, Kept, Object, Row, Spins};

/// How many rows a table has.
const MOST_ROWS: usize = 20;

/// How many the one behind it has, of waits for events.
const MOST_EVENTS: usize = 10;

/// How many processes have one.
const MOST_PROCESSES: usize = 5;

/// The mark of figures that are estimated from samples.
const SAMPLED: &str = "~";

/// Of acquisitions so many are all looked at for those that overtook others.
const ALL: u64 = 1024;

/// The columns behind the lock's name.
fn of_locks(rows: &[Row]) -> [Vec<Column>; 3] {
    let is_sampled = |row: &Row, text: String| match row.sampled && text != NOTHING {
        true => format!("{SAMPLED}{text}"),
        false => text,
    };
    [
        vec![
            Column::of_names("acquired at", rows, |row| row.site.to_string()),
            Column::new("waits", rows, |row| {
                some(row.contentions, |waits| count(waits as f64))
            }),
            Column::new("wait total", rows, |row| {
                some(row.wait.total_ns, |ns| time(ns as f64))
            }),
            Column::new("avg", rows, |row| optional(row.wait.avg_ns, time)),
            Column::new("max", rows, |row| {
                some(row.wait.max_ns, |ns| time(ns as f64))
            }),
        ],
        vec![
            Column::of_names("held by", rows, top_holder),
            Column::new("kind", rows, kind),
            Column::new("locks", rows, |row| several(&row.objects)),
            Column::new("acquired", rows, |row| {
                is_sampled(
                    row,
                    optional(row.acquisitions, |acquired| count(acquired as f64)),
                )
            }),
        ],
        vec![
            Column::new("gave up", rows, |row| {
                some(row.gave_up, |waits| count(waits as f64))
            }),
            Column::new("hold avg", rows, |row| {
                is_sampled(row, optional(row.hold.avg_ns, time))
            }),
            Column::new("hold max", rows, |row| {
                is_sampled(row, some(row.hold.max_ns, |ns| time(ns as f64)))
            }),
            Column::new("overtook", rows, |row| {
                let share = |share| format!("{:.0} %", share * 100.0);
                match row.unfair.unwrap_or_default() >= ALL {
                    true => format!("{SAMPLED}{}", optional(row.unfair_share, share)),
                    false => optional(row.unfair_share, share),
                }
            }),
            Column::new("overtaken avg", rows, |row| {
                optional(row.passed_avg, |passed| format!("{passed:.1}"))
            }),
            Column::new("max", rows, |row| {
                some(row.passed_max.unwrap_or_default(), |passed| {
                    count(passed as f64)
                })
            }),
        ],
    ]
}

/// In the words of programmers.
fn kind(row: &Row) -> String {
    match row.kind {
        ObjectKind::Cond => "cond as lock".to_owned(),
        ObjectKind::Sem => "sem as lock".to_owned(),
        kind => kind.name().to_owned(),
    }
}

/// The columns behind the event's name.
fn of_events(events: &[Event]) -> [Vec<Column>; 2] {
    [
        vec![
            Column::of_names("waits at", events, |event| {
                optional(event.site.as_ref(), |site| site.to_string())
            }),
            Column::new("kind", events, |event| event.kind.name().to_owned()),
            Column::new("waits", events, |event| count(event.waits as f64)),
            Column::new("wait total", events, |event| {
                time(event.wait.total_ns as f64)
            }),
            Column::new("avg", events, |event| optional(event.wait.avg_ns, time)),
            Column::new("max", events, |event| time(event.wait.max_ns as f64)),
        ],
        vec![
            Column::new("objects", events, |event| several(&event.objects)),
            Column::new("gave up", events, |event| {
                some(event.gave_up, |waits| count(waits as f64))
            }),
            Column::new("spins", events, |event| {
                some(event.spins.count, |spins| count(spins as f64))
            }),
            Column::new("in time", events, |event| {
                let Spins { count, in_time, .. } = event.spins;
                let share = (count > 0).then(|| in_time as f64 / count as f64);
                optional(share, |share| format!("{:.0} %", share * 100.0))
            }),
            Column::new("spun", events, |event| {
                some(event.spins.total_ns, |ns| time(ns as f64))
            }),
            Column::new("saved", events, |event| {
                some(event.spins.saved_ns, |ns| time(ns as f64))
            }),
            Column::new("wake-up", events, |event| optional(event.wake_avg_ns, time)),
        ],
    ]
}

/// How many objects there were, if that is not one.
fn several(objects: &[Object]) -> String {
    let number = Some(objects.len() as u64).filter(|&number| number > 1);
    optional(number, |number| count(number as f64))
}

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
        .map_or_else(|| "unknown".to_owned(), |site| site.to_string());
    format!("{:.0} % {site}", share.min(1.0) * 100.0)
}

/// Tables of the processes, for a terminal of `width` columns, or for a file if there is none. With
/// `objects` also of single locks.
pub fn describe(processes: &[Process], width: Option<u16>, objects: bool) -> String {
    let width = width.map_or(WIDTH, usize::from);
    let mut text = String::new();
    for process in processes.iter().take(MOST_PROCESSES) {
        if process.is_empty() {
            text += &nothing(process);
            continue;
        }
        text += &of_process(process, width, objects);
    }
    if let Some(more) = processes.len().checked_sub(MOST_PROCESSES + 1) {
        let _ = writeln!(
            text,
            "And {} more processes; --report writes them.",
            more + 1
        );
    }
    if processes.is_empty() {
        text += "overlock: there is no table\n";
    }
    text
}

fn of_process(process: &Process, width: usize, objects: bool) -> String {
    let mut text = format!(
        "{} (process {}): {} waited for locks{}\n",
        process.program,
        process.pid,
        time(process.wait_ns() as f64),
        share(process)
    );
    let rows = &process.locks[..process.locks.len().min(MOST_ROWS)];
    if !rows.is_empty() {
        let names = Column::of_names("lock", rows, |row| row.lock.clone());
        text += &fitting(&names, &of_locks(rows), width);
        let rest = process.locks[rows.len()..].iter();
        text += &others(rest.map(|row| row.wait.total_ns));
        if objects {
            text += &single(&process.locks, width);
        }
    }
    if process.lost > 0 {
        let _ = writeln!(
            text,
            "+ {} acquisitions and waits at more places than there is room for\n",
            count(process.lost as f64)
        );
    }
    if is_no_problem(process) {
        text += "Threads wait for locks for so little time: locks are not your problem.\n\n";
    }
    text += &kept(&process.kept);
    let (futexes, events): (Vec<Event>, Vec<Event>) =
        (process.events.iter().cloned()).partition(|event| event.kind == ObjectKind::Futex);
    if !futexes.is_empty() {
        let total: u64 = futexes.iter().map(|event| event.wait.total_ns).sum();
        let _ = writeln!(
            text,
            "{} waited by the system call futex: locks and conditions that are not pthread's\n\
             (of Rust, parking_lot, GLib and others). Which of both it was is not known.",
            time(total as f64)
        );
        text += &events_table("futex", &futexes, width);
    }
    if !events.is_empty() {
        let total: u64 = events.iter().map(|event| event.wait.total_ns).sum();
        let _ = writeln!(
            text,
            "{} waited for events, which is no contention",
            time(total as f64)
        );
        text += &events_table("event", &events, width);
    }
    if process.is_go {
        text += GO;
    }
    text
}

const GO: &str =
    "This is a program in Go: its own locks call the kernel directly and are not seen.\n";

fn events_table(title: &'static str, events: &[Event], width: usize) -> String {
    let first = &events[..events.len().min(MOST_EVENTS)];
    let names = Column::of_names(title, first, |event| event.name.clone());
    let rest = events[first.len()..].iter();
    fitting(&names, &of_events(first), width) + &others(rest.map(|event| event.wait.total_ns))
}

/// A line about the rows that are not shown.
fn others(waits: impl ExactSizeIterator<Item = u64>) -> String {
    let more = waits.len();
    let total: u64 = waits.sum();
    match more {
        0 => String::new(),
        more => format!(
            "And {more} more, with waits of {}; --report writes all.\n\n",
            time(total as f64)
        ),
    }
}

/// The locks of all rows one by one, the longest waits first.
fn single(rows: &[Row], width: usize) -> String {
    let mut all: Vec<(&Row, &Object)> = rows
        .iter()
        .flat_map(|row| row.objects.iter().map(move |object| (row, object)))
        .collect();
    all.sort_by_key(|(_, object)| std::cmp::Reverse(object.wait_ns));
    let shown = &all[..all.len().min(MOST_ROWS)];
    let names = Column::of_names("single lock", shown, |(row, object)| {
        object.name.clone().unwrap_or_else(|| row.lock.clone())
    });
    let group = vec![
        Column::new("address", shown, |(_, object)| object.address.clone()),
        Column::of_names("acquired at", shown, |(row, _)| row.site.to_string()),
        Column::new("waits", shown, |(_, object)| count(object.waits as f64)),
        Column::new("wait total", shown, |(_, object)| {
            time(object.wait_ns as f64)
        }),
    ];
    let rest = all[shown.len()..].iter().map(|(_, object)| object.wait_ns);
    fitting(&names, &[group], width) + &others(rest)
}

/// The share of the threads' busy time that the waits for locks are.
fn share_of(process: &Process) -> Option<f64> {
    let busy = process.busy_ns().filter(|&busy| busy > 0)?;
    Some(process.wait_ns() as f64 / busy as f64)
}

fn share(process: &Process) -> String {
    let threads = match process.threads {
        1 => "its thread's".to_owned(),
        threads => format!("{threads} threads'"),
    };
    share_of(process).map_or_else(String::new, |share| match share * 100.0 {
        percent if percent < 10.0 => format!(", {percent:.1} % of {threads} time"),
        percent => format!(", {percent:.0} % of {threads} time"),
    })
}

/// Whether faster locks could make no difference, as far as all waits are seen.
fn is_no_problem(process: &Process) -> bool {
    let is_unseen = |event: &Event| event.kind == ObjectKind::Futex;
    share_of(process).is_some_and(|share| share < NO_PROBLEM)
        && process.kept.is_empty()
        && process.lost == 0
        && !process.is_go
        && !process.events.iter().any(is_unseen)
}

/// Objects that are not counted.
fn kept(kept: &[Kept]) -> String {
    let mut text = String::new();
    if kept.is_empty() {
        return text;
    }
    text += "Not counted, since they stay the C library's:\n";
    for one in kept.iter().take(MOST_EVENTS) {
        let why = match one.kind {
            ObjectKind::KeptShared => "shared between processes",
            ObjectKind::KeptRobust => "robust",
            _ => "bound to priorities",
        };
        let objects = match one.objects {
            1 => "1 object".to_owned(),
            objects => format!("{} objects", count(objects as f64)),
        };
        let at = (one.site.as_ref()).map_or_else(String::new, |site| format!(", of {site}"));
        let _ = writeln!(text, " {objects} {why}{at}");
    }
    text += &match kept.len().saturating_sub(MOST_EVENTS) {
        0 => "\n".to_owned(),
        more => format!(" and those of {more} more places; --report writes all\n\n"),
    };
    text
}

/// Why there is no table of a process.
fn nothing(process: &Process) -> String {
    let Process { program, pid, .. } = process;
    let text = match process.took_locks {
        true => format!(
            "{program} (process {pid}): no thread waited for a lock, and none of the acquisitions was looked at: one in {SAMPLE} is\n"
        ),
        false => format!(
            "{program} (process {pid}) took no mutex and no reader-writer lock of the C library,\n\
             and no thread waited by the function syscall. Locks that call the kernel directly, as\n\
             those of Go do, are not seen.\n"
        ),
    };
    match process.is_go {
        true => text + GO,
        false => text,
    }
}

//! The table of a profile's locks.

use std::collections::HashMap;
use std::fmt::Write;

use overlock_profile::{Lock, Profile, Shown, Sum};
use overlock_report::columns::NOTHING;
use overlock_report::numbers::{count, time};

use crate::stat::{Column, WIDTH, fitting};

/// How many rows the table has.
const MOST_ROWS: usize = 20;

/// A lock, and its waits.
struct Row<'a> {
    lock: &'a Lock,
    waits: u64,
    wait_ns: u64,
    max_ns: u64,
    waiter: String,
    holder: String,
}

/// The locks with the longest waits, and what is not in the profile, for a terminal of `width`
/// columns or for a file.
pub fn describe(profile: &Profile, shown: Shown, width: Option<u16>) -> String {
    let rows = rows(profile, shown);
    let total: u64 = rows.iter().map(|row| row.wait_ns).sum();
    let waits: u64 = rows.iter().map(|row| row.waits).sum();
    let program = profile.run.command.first().map_or("", String::as_str);
    let mut text = match program.rsplit('/').next() {
        Some(name) if !name.is_empty() => format!("{}: ", plain(name)),
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "{} in {} waits for locks, of {:.1} s and {} threads",
        time(total as f64),
        count(waits as f64),
        profile.run.seconds,
        profile.threads.len()
    );
    if !rows.is_empty() {
        text += &table(&rows[..rows.len().min(MOST_ROWS)], width);
    }
    if let Some(more) = rows.len().checked_sub(MOST_ROWS + 1) {
        let _ = writeln!(text, "And {} more locks; the files have all.", more + 1);
    }
    text + &lost(profile)
}

fn table(rows: &[Row], width: Option<u16>) -> String {
    let first = Column::of_names("lock", rows, |row| name(row.lock));
    let quantile = |row: &Row, share| match row.lock.distribution.count() {
        0 => NOTHING.to_owned(),
        // Lengths in it are rounded up.
        _ => time(row.lock.distribution.quantile(share).min(row.max_ns) as f64),
    };
    let groups = [
        vec![
            Column::of_names("acquired at", rows, |row| row.waiter.clone()),
            Column::new("waits", rows, |row| count(row.waits as f64)),
            Column::new("wait total", rows, |row| time(row.wait_ns as f64)),
            Column::new("max", rows, |row| time(row.max_ns as f64)),
        ],
        vec![
            Column::of_names("held by", rows, |row| row.holder.clone()),
            Column::new("kind", rows, |row| plain(&row.lock.kind)),
            Column::new("p50", rows, |row| quantile(row, 0.5)),
            Column::new("p99", rows, |row| quantile(row, 0.99)),
        ],
    ];
    fitting(&first, &groups, width.map_or(WIDTH, usize::from))
}

fn rows(profile: &Profile, shown: Shown) -> Vec<Row<'_>> {
    let mut sums: HashMap<u32, Vec<&Sum>> = HashMap::new();
    for sum in shown.sums(profile).filter(|sum| sum.waits > 0) {
        sums.entry(sum.lock).or_default().push(sum);
    }
    let row = |(lock, sums): (u32, Vec<&Sum>)| Row {
        lock: &profile.locks[lock as usize],
        waits: sums.iter().map(|sum| sum.waits).sum(),
        wait_ns: sums.iter().map(|sum| sum.wait_ns).sum(),
        max_ns: sums.iter().map(|sum| sum.max_ns).max().unwrap_or(0),
        waiter: most(profile, shown, &sums, |sum| Some(sum.stack)),
        holder: most(profile, shown, &sums, |sum| sum.holder_stack),
    };
    let mut rows: Vec<_> = sums.into_iter().map(row).collect();
    rows.sort_by(|a, b| (b.wait_ns, &b.lock.name).cmp(&(a.wait_ns, &a.lock.name)));
    rows
}

/// The function with the most of the time.
fn most(
    profile: &Profile,
    shown: Shown,
    sums: &[&Sum],
    stack: impl Fn(&Sum) -> Option<u32>,
) -> String {
    let mut times: HashMap<String, u64> = HashMap::new();
    for sum in sums {
        let Some(stack) = stack(sum) else { continue };
        *times
            .entry(shown.function(profile, Some(stack)))
            .or_default() += sum.wait_ns;
    }
    let most = times
        .into_iter()
        .max_by_key(|(name, ns)| (*ns, name.clone()));
    most.map_or_else(|| NOTHING.to_owned(), |(name, _)| name)
}

fn name(lock: &Lock) -> String {
    if lock.name.is_empty() {
        format!("{:#x}", lock.address)
    } else {
        plain(&lock.name)
    }
}

/// Without what would move the terminal's cursor.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn lost(profile: &Profile) -> String {
    let lost = &profile.lost;
    let mut text = String::new();
    let mut say = |number, what: &str| {
        if number > 0 {
            let _ = writeln!(text, "+ {} {what}", count(number as f64));
        }
    };
    say(lost.waits, "waits that are in no row");
    say(
        lost.single_waits,
        "waits that are in the sums, and not single",
    );
    say(lost.short_waits, "waits below the threshold");
    say(lost.stacks, "stacks that found no room");
    say(lost.events, "events that came too fast");
    text
}

//! A sweep as a part of a page in Markdown: what it says of each lock, then all cells.

use std::fmt::Write;

use super::cells::{Cell, Standing, cells};
use super::merge::Merged;
use super::summary::{LEVEL, Summary, locks, peaks, summary};
use overlock_report::columns::{NOTHING, optional};
use overlock_report::numbers::{factor, rate, significant, time, trimmed};

/// The tables.
pub fn render(merged: &Merged) -> String {
    let cells = cells(merged);
    let locks = locks(&cells);
    let mut machines: Vec<&str> = cells.iter().map(|cell| cell.machine.as_str()).collect();
    machines.dedup();
    let mut text = headline(merged, cells.len());
    text += &standings(&cells, &locks);
    text += &steadiness(&cells, &locks, &machines);
    text += &choices(&cells, &locks, &machines);
    for machine in machines {
        text += &details(&cells, &locks, machine);
    }
    text
}

fn headline(merged: &Merged, cells: usize) -> String {
    let seeds: Vec<String> = merged.grid.seeds.iter().map(u64::to_string).collect();
    let mut text = format!(
        "{} simulations of {} s with {}, {cells} cells, by {}.",
        merged.lines.len(),
        merged.grid.round.as_secs_f64(),
        match seeds.split_last() {
            Some((last, rest)) if !rest.is_empty() =>
                format!("the seeds {} and {last}", rest.join(", ")),
            _ => format!("seed {}", seeds.concat()),
        },
        merged.build,
    );
    if !merged.missing.is_empty() {
        let _ = write!(text, " **{} are missing.**", merged.missing.len());
    }
    let failures = merged.failures().count();
    if failures > 0 {
        let _ = write!(text, " **{failures} failed.**");
    }
    text + "\n\n"
}

/// A row for each lock: where it is the best, where it is level, its worst cell.
fn standings(cells: &[Cell], locks: &[&str]) -> String {
    let mut text = row(&[
        "lock",
        "best in",
        "level in",
        "of the best, mean",
        "worst cell",
        "least Jain",
        "longest wait",
        "CPU of an operation over the least, median",
    ]);
    text += &rule(8);
    for lock in locks {
        text.extend(summary(cells, lock).as_ref().map(standing));
    }
    let level = factor(LEVEL);
    text + &format!("\nLevel is {level} of the best lock's operations or more.\n\n")
}

fn standing(lock: &Summary<'_>) -> String {
    let share = |count: usize| {
        let percent = 100.0 * count as f64 / lock.cells as f64;
        format!("{count} of {}, {percent:.0} %", lock.cells)
    };
    let somewhere = |what: Option<(&Cell, f64)>, text: fn(f64) -> String| match what {
        Some((cell, value)) => format!("{}: {cell}", text(value)),
        None => NOTHING.to_owned(),
    };
    row(&[
        lock.lock,
        &share(lock.best),
        &share(lock.level),
        &factor(lock.mean),
        &somewhere(Some(lock.worst), factor),
        &somewhere(lock.least_jain, |jain| format!("{jain:.3}")),
        &somewhere(lock.longest_ns, time),
        &optional(lock.cpu.is_finite().then_some(lock.cpu), factor),
    ])
}

/// A row for each lock: how it keeps its peak on each machine.
fn steadiness(cells: &[Cell], locks: &[&str], machines: &[&str]) -> String {
    let all = |lock: &str| {
        let of = machines.iter();
        of.map(|machine| peaks(cells, machine, lock))
            .collect::<Vec<_>>()
    };
    let rows: Vec<_> = locks.iter().map(|lock| (*lock, all(lock))).collect();
    if rows.iter().all(|(_, all)| all.iter().all(Vec::is_empty)) {
        return String::new();
    }
    let mut text = row(&[&["lock", "within 10 %"], machines].concat());
    text += &rule(2 + machines.len());
    for (lock, of_machines) in &rows {
        let peaks = || of_machines.iter().flatten();
        let kept = peaks().filter(|peak| peak.kept >= LEVEL).count();
        let within = format!("{kept} of {}", peaks().count());
        let worst = of_machines.iter().map(|peaks| {
            let worst = peaks.iter().min_by(|a, b| a.kept.total_cmp(&b.kept));
            worst.map_or_else(
                || NOTHING.to_owned(),
                |worst| {
                    let (kept, load) = (factor(worst.kept), &worst.least.load);
                    let [from, to] = [worst.at, worst.least].map(|cell| trimmed(cell.overcommit()));
                    format!("{kept}: {load}, {from}x to {to}x")
                },
            )
        });
        let fields: Vec<String> = [(*lock).to_owned(), within]
            .into_iter()
            .chain(worst)
            .collect();
        text += &row(&fields);
    }
    text + "\nOf a lock's most operations with one load, what is left with as many vCPUs or more: the least, and \
            from how many vCPUs for each CPU to how many. Within 10 %: the loads of which 0.90 or more is left.\n\n"
}

/// A row for each machine: the locks that come closest to the best one over all loads.
fn choices(cells: &[Cell], locks: &[&str], machines: &[&str]) -> String {
    let mut text = row(&["machine", "CPUs", "up to a vCPU for each CPU", "more vCPUs"]);
    text += &rule(4);
    for machine in machines {
        let (few, many): (Vec<Cell>, Vec<Cell>) = cells
            .iter()
            .filter(|cell| cell.machine == *machine)
            .cloned()
            .partition(|cell| cell.overcommit() <= 1.0);
        let cpus = few.iter().chain(&many).next().map(|cell| cell.cpus);
        text += &row(&[
            (*machine).to_owned(),
            optional(cpus, |cpus| cpus.to_string()),
            closest(&few, locks),
            closest(&many, locks),
        ]);
    }
    text + &format!(
        "\nThe {CLOSEST} locks with the highest geometric mean of their share of the best, with the \
         mean and the least.\n\n"
    )
}

/// So many locks are named for each machine.
const CLOSEST: usize = 4;

fn closest(cells: &[Cell], locks: &[&str]) -> String {
    let mut all: Vec<Summary<'_>> = locks
        .iter()
        .filter_map(|lock| summary(cells, lock))
        .collect();
    all.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    let named = all.iter().take(CLOSEST).map(|lock| {
        let (mean, least) = (factor(lock.mean), factor(lock.worst.1));
        format!("{} {mean} ({least})", lock.lock)
    });
    let named: Vec<String> = named.collect();
    optional((!named.is_empty()).then(|| named.join(", ")), |named| named)
}

/// All cells of a machine, to unfold.
fn details(cells: &[Cell], locks: &[&str], machine: &str) -> String {
    let first = locks.first().copied().unwrap_or_default();
    let own = ["Jain", "longest wait", "CPU s/Mop"].map(|what| format!("{first}: {what}"));
    let head = ["load", "vCPUs", "best", "Mop/s", "margin"];
    let fields: Vec<&str> = head
        .into_iter()
        .chain(locks.iter().copied())
        .chain(own.iter().map(String::as_str))
        .collect();
    let mine = || cells.iter().filter(|cell| cell.machine == machine);
    let cpus = mine().next().map_or(0, |cell| cell.cpus);
    let mut text = format!("<details><summary>{machine}: {cpus} CPUs, all cells</summary>\n\n");
    text += &row(&fields);
    text += &rule(fields.len());
    for cell in mine() {
        text += &row(&fields_of(cell, locks, first));
    }
    text + "\n</details>\n\n"
}

fn fields_of(cell: &Cell, locks: &[&str], first: &str) -> Vec<String> {
    let (best, second) = cell.best().unzip();
    let best: Option<&Standing> = best;
    let margin = second
        .flatten()
        .map(|second| format!("{:.0} %", 100.0 * (1.0 / second.of_best - 1.0)));
    let overcommit = trimmed(cell.overcommit());
    let mut fields = vec![
        cell.load.clone(),
        format!("{} ({overcommit}x)", cell.vcpus),
        optional(best, |best| best.lock.clone()),
        optional(best.and_then(|best| best.figures), |figures| {
            rate(figures.ops_per_sec)
        }),
        optional(margin, |margin| margin),
    ];
    fields.extend(locks.iter().map(|lock| match cell.lock(lock) {
        None => NOTHING.to_owned(),
        Some(Standing { figures: None, .. }) => "failed".to_owned(),
        Some(standing) => factor(standing.of_best),
    }));
    let own = cell.lock(first).and_then(|standing| standing.figures);
    fields.push(optional(own.and_then(|own| own.jain), |jain| {
        format!("{jain:.3}")
    }));
    fields.push(optional(own.and_then(|own| own.longest_ns), time));
    fields.push(optional(own.and_then(|own| own.cpu_s_per_mop), significant));
    fields
}

fn row(fields: &[impl AsRef<str>]) -> String {
    let fields: Vec<&str> = fields.iter().map(AsRef::as_ref).collect();
    format!("| {} |\n", fields.join(" | "))
}

fn rule(columns: usize) -> String {
    format!("|{}\n", "---|".repeat(columns))
}

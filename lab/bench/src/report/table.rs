//! The table for people: that of the microbenchmark in hybrid-pvqspinlock, and what it leaves out.

use std::fmt::Write;

use overlock_report::columns::{Column, NOTHING, blocks, optional};
use overlock_report::numbers::{count, factor, rate, seconds, significant, time, trimmed};
use overlock_sim::account::State;

use super::Row;
use super::simulation::Summary;
use crate::guest::Counts;
use crate::machine::Machine;
use crate::settings::Settings;

const OPERATIONS: &[Column<Row>] = &[
    Column("build", |row| optional(row.build_s, seconds)),
    Column("min/avg/max a thread", spread_of_threads),
    Column("total", |row| count(row.total)),
    Column("Mop/s", |row| rate(row.ops_per_sec)),
    Column("settled", |row| match row.settled {
        Some(false) => "no".to_owned(),
        _ => NOTHING.to_owned(),
    }),
    Column("of rounds", |row| match row.rounds.len() {
        1 => NOTHING.to_owned(),
        _ => format!(
            "{}-{}",
            rate(row.ops_per_sec_min),
            rate(row.ops_per_sec_max)
        ),
    }),
    Column("Mbit/s", |row| optional(row.mbit_per_sec, significant)),
    Column("dropped/s", |row| optional(row.dropped_per_sec, count)),
    Column("x peer", |row| optional(row.vs_best_peer, factor)),
    Column("x limit", |row| optional(row.vs_limit, factor)),
];

const WAITS: &[Column<Row>] = &[
    Column("Jain", |row| {
        let jain = (row.total > 0.0).then_some(row.jain);
        optional(jain, |jain| format!("{jain:.3}"))
    }),
    Column("CPU s/Mop", |row| optional(row.cpu_s_per_mop, significant)),
    Column("p50", |row| optional(together(row, row.p50_ns), time)),
    Column("p99", |row| optional(together(row, row.p99_ns), time)),
    Column("p99.9", |row| optional(together(row, row.p999_ns), time)),
    Column("longest", |row| optional(together(row, row.max_ns), time)),
    Column("read p50", |row| optional(row.read_p50_ns, time)),
    Column("read p99", |row| optional(row.read_p99_ns, time)),
    Column("read p99.9", |row| optional(row.read_p999_ns, time)),
    Column("read longest", |row| optional(row.read_max_ns, time)),
    Column("write p50", |row| optional(row.write_p50_ns, time)),
    Column("write p99", |row| optional(row.write_p99_ns, time)),
    Column("write p99.9", |row| optional(row.write_p999_ns, time)),
    Column("write longest", |row| optional(row.write_max_ns, time)),
];

/// Figures that only a simulation has, in a table of their own.
const SIMULATION: &[Column<Row>] = &[
    Column("preempted", |row| times(row, |told| told.preemptions)),
    Column("holders", |row| times(row, |told| told.preempted_holders)),
    Column("waiters", |row| times(row, |told| told.preempted_waiters)),
    Column("halts", |row| times(row, |told| told.halts)),
    Column("kicks", |row| times(row, |told| told.kicks)),
    Column("pause exits", |row| times(row, |told| told.pause_exits)),
    Column("queued", |row| times(row, |told| told.queued)),
    Column("unfair", |row| times(row, |told| told.unfair)),
    Column("work", |row| share(row, State::Work)),
    Column("memory", |row| share(row, State::Memory)),
    Column("spin", |row| share(row, State::Spin)),
    Column("host", |row| share(row, State::Host)),
    Column("no CPU", |row| share(row, State::Ready)),
    Column("asleep", |row| share(row, State::Asleep)),
    Column("ended", |row| share(row, State::Ended)),
];

/// Counts that only a guest has, in a table of their own.
const GUEST: &[Column<Row>] = &[
    Column("halts", |row| counted(row, |counts| counts.halts)),
    Column("kicks", |row| counted(row, |counts| counts.kicks)),
    Column("not kicked", |row| counted(row, |counts| counts.unkicked)),
    Column("preempted", |row| counted(row, |counts| counts.preempted)),
];

/// How often something happened in a guest.
fn counted(row: &Row, pick: fn(&Counts) -> u64) -> String {
    optional(row.guest.as_ref().map(pick), |times| count(times as f64))
}

/// How often something happened, if ever.
fn times(row: &Row, pick: fn(&Summary) -> u64) -> String {
    let times = row.simulation.as_ref().map(pick);
    optional(times.filter(|&times| times > 0), |times| {
        count(times as f64)
    })
}

/// The part of the vCPUs' time in a state, if it was any.
fn share(row: &Row, state: State) -> String {
    let share = row.simulation.as_ref().map(|told| told.time.of(state));
    optional(share.filter(|&share| share > 0.0), |share| {
        format!("{:.1} %", share * 100.0)
    })
}

/// The waits of readers and writers together say little where each are there by themselves.
fn together(row: &Row, wait: Option<f64>) -> Option<f64> {
    wait.filter(|_| row.read_waits.is_none())
}

/// All tables, for a terminal of `width` columns, or for a file if there is none.
pub fn render(machine: &Machine, settings: &Settings, rows: &[Row], width: Option<u16>) -> String {
    let mut text = format!("{}\n{}\n\n", machine.summary(), summary(settings, rows));
    for cell in rows.chunk_by(|a, b| a.threads == b.threads) {
        heading(&mut text, &cell[0]);
        text += &blocks("lock", cell, name, &[OPERATIONS, WAITS], width);
        if cell.iter().any(|row| row.simulation.is_some()) {
            text += &blocks("lock", cell, name, &[SIMULATION], width);
        }
        if cell.iter().any(|row| row.guest.is_some()) {
            text += &blocks("lock", cell, name, &[GUEST], width);
        }
        counters(&mut text, cell);
    }
    text + &legend(settings, rows)
}

/// Says what the columns mean that a table of these rows has, and no others.
fn legend(settings: &Settings, rows: &[Row]) -> String {
    let mut text = "\
Operations a thread are those of one round; all are medians over the rounds."
        .to_owned();
    let has = |columns: &[Column<Row>], titles: &[&str]| {
        let mut columns = columns.iter().filter(|column| titles.contains(&column.0));
        columns.any(|column| rows.iter().any(|row| (column.1)(row) != NOTHING))
    };
    if has(OPERATIONS, &["x peer"]) {
        let rivals = settings.rivals.join(", ");
        let _ = write!(
            text,
            "\nx peer: against the best of {rivals} with as many threads."
        );
    }
    text.push('\n');
    if has(OPERATIONS, &["settled"]) {
        text += "\
not settled: the windows of a round disagree, or not all vCPUs have had a CPU before. Such a figure tells little.
";
    }
    if has(OPERATIONS, &["x limit"]) {
        text += "\
x limit: against the same loop without a lock, capped by what the critical section lets run at one time.
";
    }
    if has(SIMULATION, &["preempted"]) {
        text += "\
preempted: vCPUs that lost their CPU to others; holders, waiters: those that held or awaited a lock then.
";
    }
    if has(SIMULATION, &["queued", "unfair"]) {
        text += "queued, unfair: acquisitions in the lock's queue, and past it.\n";
    }
    if rows.iter().any(|row| row.simulation.is_some()) {
        text += "\
work to ended: where the vCPUs' time went. Counts are of all rounds. The machine is a model, and its figures are the model's.
";
    }
    if rows.iter().any(|row| row.guest.is_some()) {
        text += "\
not kicked: halts that ended by a deadline or an interrupt. preempted: vCPUs without a CPU, seen every 2 ms.
All of these are of all rounds, warm-ups included.
";
    }
    text
}

/// The settings, in one line.
fn summary(settings: &Settings, rows: &[Row]) -> String {
    let mut text = settings.workload.to_owned();
    let set = settings.parameters;
    if let (Some(cs), Some(ncs)) = (set.cs_ns, set.ncs_ns) {
        let measured = |wanted: f64, measured: Option<f64>| match measured {
            Some(measured) if wanted > 0.0 => format!("{wanted} ns (measured {measured:.1})"),
            _ => format!("{wanted} ns"),
        };
        let row = rows.first();
        let _ = write!(
            text,
            ", critical section {}, between {}",
            measured(cs, row.and_then(|row| row.cs_measured_ns)),
            measured(ncs, row.and_then(|row| row.ncs_measured_ns)),
        );
    }
    text += &set.describe();
    let pinned = if settings.pin { ", pinned" } else { "" };
    let _ = write!(
        text,
        "; {} {} of {} s",
        settings.runs,
        if settings.runs == 1 {
            "round"
        } else {
            "rounds"
        },
        significant(settings.seconds)
    );
    if settings.latency_runs > 0 {
        let _ = write!(text, ", {} for the waits", settings.latency_runs);
    }
    if let Some(simulation) = &settings.simulation {
        let _ = write!(text, ", seed {}", simulation.seed);
        if simulation.others > 0 {
            let _ = write!(text, ", beside {} vCPUs of other guests", simulation.others);
        }
    }
    text + pinned
}

/// The locks' events over all rounds, with `--stat`.
fn counters(text: &mut String, rows: &[Row]) {
    for row in rows {
        if let Some(stat) = &row.stat {
            let _ = writeln!(
                text,
                "{}, {} threads, all rounds:\n{}",
                row.lock,
                row.threads,
                stat.describe()
            );
        }
    }
}

fn heading(text: &mut String, row: &Row) {
    let are_vcpus = row.simulation.is_some() || row.guest.is_some();
    let threads = match (are_vcpus, row.threads) {
        (false, 1) => "thread",
        (false, _) => "threads",
        (true, 1) => "vCPU",
        (true, _) => "vCPUs",
    };
    let cpus = if row.cpus == 1.0 { "CPU" } else { "CPUs" };
    let _ = write!(
        text,
        "{}x: {} {threads} on {} {cpus}",
        trimmed(row.overcommit),
        row.threads,
        trimmed(row.cpus)
    );
    if let Some(peer) = row.best_peer {
        let _ = write!(text, ", best peer {peer}");
    }
    text.push('\n');
}

fn name(row: &Row) -> String {
    row.origin().title(row.lock).to_owned()
}

fn spread_of_threads(row: &Row) -> String {
    format!("{}/{}/{}", count(row.min), count(row.avg), count(row.max))
}

//! The results for people: medians over the seeds.

use overlock_sim::account::State;

use super::record::{Measured, Outcome, Record};
use overlock_bench::probe::Times;
use overlock_bench::stats::median;
use overlock_report::columns::{Column, NOTHING, blocks, optional};
use overlock_report::numbers::{count, rate, seconds, significant, time};

/// A lock in one place: all seeds.
struct Row {
    lock: String,
    failed: usize,
    measured: Vec<Measured>,
}

const OPERATIONS: &[Column<Row>] = &[
    Column("failed", |row| match row.failed {
        0 => NOTHING.to_owned(),
        failed => failed.to_string(),
    }),
    Column("unsettled", |row| {
        let unsettled = |m: &&Measured| m.simulation.settled == Some(false);
        match row.measured.iter().filter(unsettled).count() {
            0 => NOTHING.to_owned(),
            count => count.to_string(),
        }
    }),
    Column("build", |row| row.optional(|m| m.build_s, seconds)),
    Column("min/avg/max a vCPU", |row| {
        let each = [
            row.median(|m| m.min as f64),
            row.median(|m| m.avg),
            row.median(|m| m.max as f64),
        ];
        each.map(|value| optional(value, count)).join("/")
    }),
    Column("Mop/s", |row| row.text(|m| m.ops_per_sec, rate)),
    Column("of seeds", Row::spread),
    Column("Mbit/s", |row| {
        row.optional(|m| m.mbit_per_sec, significant)
    }),
    Column("dropped/s", |row| {
        row.optional(|m| m.dropped_per_sec, count)
    }),
    Column("queued %", |row| {
        let share = |m: &Measured| {
            let (queued, unfair) = (m.simulation.queued, m.simulation.unfair);
            let all = queued + unfair;
            (all > 0).then(|| 100.0 * queued as f64 / all as f64)
        };
        row.optional(share, significant)
    }),
];

const WAITS: &[Column<Row>] = &[
    Column("Jain", |row| {
        row.optional(Measured::fairness, |jain| format!("{jain:.3}"))
    }),
    Column("CPU s/Mop", |row| {
        row.optional(|m| m.cpu_s_per_mop, significant)
    }),
    Column("spinning %", |row| row.share(State::Spin)),
    Column("preempted %", |row| row.share(State::Ready)),
    Column("asleep %", |row| row.share(State::Asleep)),
    Column("p50", |row| row.wait(|waits| waits.p50_ns)),
    Column("p99", |row| row.wait(|waits| waits.p99_ns)),
    Column("p99.9", |row| row.wait(|waits| waits.p999_ns)),
    Column("longest", |row| row.wait(|waits| waits.max_ns)),
];

impl Row {
    fn median(&self, value: impl Fn(&Measured) -> f64) -> Option<f64> {
        let some = !self.measured.is_empty();
        some.then(|| median(self.measured.iter().map(value)))
    }

    fn text(&self, value: impl Fn(&Measured) -> f64, text: fn(f64) -> String) -> String {
        optional(self.median(value), text)
    }

    /// Of what every seed has, or none.
    fn optional(
        &self,
        value: impl Fn(&Measured) -> Option<f64>,
        text: fn(f64) -> String,
    ) -> String {
        let all: Option<Vec<f64>> = self.measured.iter().map(value).collect();
        let some = all.filter(|all| !all.is_empty());
        optional(some.map(median), text)
    }

    fn share(&self, state: State) -> String {
        self.text(
            |m| 100.0 * m.simulation.time.of(state),
            |percent| format!("{percent:.1}"),
        )
    }

    fn wait(&self, pick: fn(&Times) -> f64) -> String {
        self.optional(|m| m.waits.as_ref().map(pick), time)
    }

    /// The slowest seed and the fastest one.
    fn spread(&self) -> String {
        let all = || self.measured.iter().map(|m| m.ops_per_sec);
        let lowest = all().fold(f64::INFINITY, f64::min);
        let highest = all().fold(0.0, f64::max);
        match self.measured.len() {
            0 | 1 => NOTHING.to_owned(),
            _ => format!("{}-{}", rate(lowest), rate(highest)),
        }
    }
}

/// All tables, one for each machine, host, workload and number of vCPUs, for a terminal of `width`
/// columns, or for a file if there is none. The lines are in the grid's order.
pub fn render(lines: &[Record], width: Option<u16>) -> String {
    let place = |line: &Record| line.key.place();
    let mut text = String::new();
    for lines in lines.chunk_by(|a, b| place(a) == place(b)) {
        text += &(place(&lines[0]) + "\n");
        let rows: Vec<Row> = lines
            .chunk_by(|a, b| a.key.lock == b.key.lock)
            .map(row)
            .collect();
        let name = |row: &Row| row.lock.clone();
        text += &blocks("lock", &rows, name, &[OPERATIONS, WAITS], width);
    }
    text + "Operations are those of one simulation; all are medians over the seeds.\n"
}

fn row(lines: &[Record]) -> Row {
    let measured: Vec<Measured> = lines
        .iter()
        .filter_map(|line| match &line.outcome {
            Outcome::Measured(measured) => Some(Measured::clone(measured)),
            Outcome::Failed { .. } => None,
        })
        .collect();
    Row {
        lock: lines[0].key.lock.clone(),
        failed: lines.len() - measured.len(),
        measured,
    }
}

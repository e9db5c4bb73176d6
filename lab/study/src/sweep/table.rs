//! The results for people: medians over the seeds.

use itertools::Itertools;
use overlock_bench::probe::Times;
use overlock_bench::stats::median;
use overlock_report::columns::{Column, NOTHING, blocks, optional};
use overlock_report::numbers::{count, rate, seconds, significant, time};
use overlock_sim::account::State;

use super::{Key, Sweep};
use crate::case::{Measured, Outcome};

/// A lock in one place: all seeds.
struct Row {
    lock: String,
    failed: usize,
    measured: Vec<Measured>,
}

const OPERATIONS: &[Column<Row>] = &[
    Column("failed", |row| some(row.failed)),
    Column("unsettled", |row| {
        let unsettled = |m: &&Measured| m.simulation.settled == Some(false);
        some(row.measured.iter().filter(unsettled).count())
    }),
    Column("build", |row| row.median(|m| m.build_s, seconds)),
    Column("min/avg/max a vCPU", |row| {
        let least = row.median(|m| Some(m.min as f64), count);
        let average = row.median(|m| Some(m.avg), count);
        let most = row.median(|m| Some(m.max as f64), count);
        format!("{least}/{average}/{most}")
    }),
    Column("Mop/s", |row| row.median(|m| Some(m.ops_per_sec), rate)),
    Column("of seeds", |row| {
        let rates = row.measured.iter().map(|m| m.ops_per_sec);
        match rates.minmax().into_option() {
            Some((slowest, fastest)) if row.measured.len() > 1 => {
                format!("{}-{}", rate(slowest), rate(fastest))
            }
            _ => NOTHING.to_owned(),
        }
    }),
    Column("Mbit/s", |row| row.median(|m| m.mbit_per_sec, significant)),
    Column("dropped/s", |row| row.median(|m| m.dropped_per_sec, count)),
    Column("queued %", |row| {
        row.median(|m| m.queued_percent(), significant)
    }),
];

const WAITS: &[Column<Row>] = &[
    Column("Jain", |row| {
        row.median(Measured::fairness, |jain| format!("{jain:.3}"))
    }),
    Column("CPU s/Mop", |row| {
        row.median(|m| m.cpu_s_per_mop, significant)
    }),
    Column("spinning %", |row| row.share(State::Spin)),
    Column("preempted %", |row| row.share(State::Ready)),
    Column("asleep %", |row| row.share(State::Asleep)),
    Column("p50", |row| row.wait(|waits| waits.p50_ns)),
    Column("p99", |row| row.wait(|waits| waits.p99_ns)),
    Column("p99.9", |row| row.wait(|waits| waits.p999_ns)),
    Column("longest", |row| row.wait(|waits| waits.max_ns)),
];

/// A count, unless there is nothing to count.
fn some(count: usize) -> String {
    optional((count > 0).then_some(count), |count| count.to_string())
}

impl Row {
    fn new(lines: &[(&Key, &Outcome)]) -> Self {
        let measured = lines
            .iter()
            .filter_map(|(_, outcome)| outcome.measured().ok());
        let measured: Vec<Measured> = measured.cloned().collect();
        Self {
            lock: lines[0].0.lock.clone(),
            failed: lines.len() - measured.len(),
            measured,
        }
    }

    /// The median of what every seed has.
    fn median(&self, value: impl Fn(&Measured) -> Option<f64>, text: fn(f64) -> String) -> String {
        let all: Option<Vec<f64>> = self.measured.iter().map(value).collect();
        optional(all.filter(|all| !all.is_empty()).map(median), text)
    }

    fn share(&self, state: State) -> String {
        let percent = |m: &Measured| Some(100.0 * m.simulation.time.of(state));
        self.median(percent, |percent| format!("{percent:.1}"))
    }

    fn wait(&self, pick: fn(&Times) -> f64) -> String {
        self.median(|m| m.waits.as_ref().map(pick), time)
    }
}

/// All tables, one for each machine, host, workload and number of vCPUs, for a terminal of `width`
/// columns, or for a file if there is none.
pub fn render(sweep: &Sweep, width: Option<u16>) -> String {
    let mut text = String::new();
    let lines: Vec<(&Key, &Outcome)> = sweep.known().collect();
    for lines in lines.chunk_by(|(a, _), (b, _)| a.place() == b.place()) {
        text += &(lines[0].0.place() + "\n");
        let rows = lines.chunk_by(|(a, _), (b, _)| a.lock == b.lock);
        let rows: Vec<Row> = rows.map(Row::new).collect();
        let name = |row: &Row| row.lock.clone();
        text += &blocks("lock", &rows, name, &[OPERATIONS, WAITS], width);
    }
    text + "Operations are those of one simulation; all are medians over the seeds.\n"
}

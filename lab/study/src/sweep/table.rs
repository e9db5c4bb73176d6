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
        some(row.measured.iter().filter(|m| m.is_unsettled()).count())
    }),
    Column("build", |row| row.median(|m| m.build_s, seconds)),
    Column("min/avg/max a vCPU", |row| {
        let figures: [fn(&Measured) -> f64; 3] = [|m| m.min as f64, |m| m.avg, |m| m.max as f64];
        let text = |of: fn(&Measured) -> f64| row.median(|m| Some(of(m)), count);
        figures.map(text).join("/")
    }),
    Column("Mop/s", |row| row.median(|m| Some(m.ops_per_sec), rate)),
    Column("of seeds", |row| {
        let rates = row.measured.iter().map(|m| m.ops_per_sec).minmax();
        let ends = rates.into_option().filter(|_| row.measured.len() > 1);
        optional(ends, |(slowest, fastest)| {
            format!("{}-{}", rate(slowest), rate(fastest))
        })
    }),
    Column("Mbit/s", |row| row.median(|m| m.mbit_per_sec, significant)),
    Column("dropped/s", |row| row.median(|m| m.dropped_per_sec, count)),
    Column("queued %", |row| {
        row.median(Measured::queued_percent, significant)
    }),
];

const WAITS: &[Column<Row>] = &[
    Column("Jain", |row| {
        row.median(|m| m.jain, |jain| format!("{jain:.3}"))
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
    match count {
        0 => NOTHING.to_owned(),
        count => count.to_string(),
    }
}

impl Row {
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
        let rows = rows.map(|lines| {
            let measured = lines.iter().flat_map(|(_, outcome)| outcome.iter());
            let measured = measured.cloned().collect_vec();
            Row {
                lock: lines[0].0.lock.clone(),
                failed: lines.len() - measured.len(),
                measured,
            }
        });
        let name = |row: &Row| row.lock.clone();
        text += &blocks(
            "lock",
            &rows.collect_vec(),
            name,
            &[OPERATIONS, WAITS],
            width,
        );
    }
    text + "Operations are those of one simulation; all are medians over the seeds.\n"
}

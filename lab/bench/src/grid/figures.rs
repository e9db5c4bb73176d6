//! From rounds to figures: what each lock did in a cell, and how ours compares with each other one.

use std::time::Duration;

use serde::Serialize;

use super::run::{Cell, Outcome};
use crate::registry::Origin;
use crate::stats::{jain, median};
use crate::workload::Sample;
use crate::world::native::Native;

/// A cell, for reports.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// The family of locks.
    pub family: &'static str,
    /// The shape's name.
    pub shape: &'static str,
    /// Whether it is a tight loop.
    pub tight: bool,
    /// The number of threads.
    pub threads: usize,
    /// The lock that is judged.
    pub lock: &'static str,
    /// The lowest ratio of its operations to those of another lock.
    pub ratio: Option<f64>,
    /// To which one.
    pub worst_peer: Option<&'static str>,
    /// The operations a second of the loop without a lock, capped by what the sections let run.
    pub limit_ops_per_sec: Option<f64>,
    /// Ours over that.
    pub vs_limit: Option<f64>,
    /// Ours first, the limit last.
    pub rows: Vec<Row>,
}

/// A lock in a cell. Medians over the throughput rounds; waits of all latency rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The lock.
    pub lock: &'static str,
    /// Ours, a peer, or the limit.
    pub kind: &'static str,
    /// Operations of all threads a second.
    pub ops_per_sec: f64,
    /// The same of each round.
    pub rounds: Vec<f64>,
    /// Operations a second of the slowest thread.
    pub slowest_ops_per_sec: f64,
    /// Jain's index of fairness over the threads.
    pub jain: f64,
    /// CPU seconds for a million operations.
    pub cpu_s_per_mop: Option<f64>,
    /// Context switches of all threads a second.
    pub switches_per_sec: f64,
    /// 999 of 1000 waits were no longer.
    pub p999_ns: Option<f64>,
    /// The longest wait of all.
    pub longest_ns: Option<f64>,
    /// How the judged lock compares with this one; not for itself nor for the limit.
    pub versus: Option<Versus>,
}

/// The judged lock over another one. The first three are of the paired ratios of the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Versus {
    /// Operations: the median.
    pub ratio: Option<f64>,
    /// The lowest of the rounds.
    pub ratio_min: Option<f64>,
    /// The highest.
    pub ratio_max: Option<f64>,
    /// CPU time for an operation: the median.
    pub cpu: Option<f64>,
    /// The slowest thread's operations: the median.
    pub slowest: Option<f64>,
    /// The wait that 999 of 1000 do not exceed.
    pub p999: Option<f64>,
    /// The longest wait.
    pub longest: Option<f64>,
}

/// Figure of the one over that of the other, round by round: rounds of one number were neighbours
/// in time, so what the machine did meanwhile hits both. A round in which the other has none is
/// left out.
pub fn paired<'a>(
    one: &'a [Sample],
    other: &'a [Sample],
    figure: impl Fn(&Sample) -> Option<f64> + 'a,
) -> impl Iterator<Item = f64> + 'a {
    one.iter().zip(other).filter_map(move |(one, other)| {
        let (one, other) = (figure(one)?, figure(other)?);
        (other > 0.0).then_some(one / other)
    })
}

/// CPU seconds for an operation.
pub(super) fn cpu(sample: &Sample) -> Option<f64> {
    let total = sample.total();
    (total > 0).then(|| sample.cpu.as_secs_f64() / total as f64)
}

/// Operations a second of the thread that had the fewest.
fn slowest(sample: &Sample) -> f64 {
    let least = sample.operations.iter().min().copied().unwrap_or(0);
    per_second(least, sample.elapsed)
}

fn per_second(count: u64, elapsed: Duration) -> f64 {
    count as f64 / elapsed.as_secs_f64()
}

/// The median, if there is any value.
fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    Some(median(values)).filter(|value| value.is_finite())
}

/// All cells, the worst first: those whose lowest ratio is the lowest. Those without any are last.
pub fn judge(outcome: &Outcome, world: &Native) -> Vec<Judged> {
    let mut cells: Vec<Judged> = outcome.cells.iter().map(|cell| cell.judge(world)).collect();
    worst_first(&mut cells);
    cells
}

/// Sorts so, and keeps the order of equals.
pub fn worst_first(cells: &mut [Judged]) {
    cells.sort_by(|a, b| {
        let key = |cell: &Judged| cell.ratio.unwrap_or(f64::INFINITY);
        key(a).total_cmp(&key(b))
    });
}

impl Cell {
    fn judge(&self, world: &Native) -> Judged {
        let rows: Vec<Row> = (0..self.results.len())
            .map(|at| self.row(at, world))
            .collect();
        let worst = rows
            .iter()
            .filter_map(|row| Some((row.versus?.ratio?, row.lock)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let limit = self.place.limit().map(|at| rows[at].ops_per_sec);
        let limit = limit.map(|limit| self.cap.map_or(limit, |cap| limit.min(cap)));
        Judged {
            family: self.place.shape.family.word(),
            shape: self.place.shape.name,
            tight: self.place.shape.tight,
            threads: self.place.threads,
            lock: rows[0].lock,
            ratio: worst.map(|(ratio, _)| ratio),
            worst_peer: worst.map(|(_, peer)| peer),
            limit_ops_per_sec: limit,
            vs_limit: limit
                .filter(|&limit| limit > 0.0)
                .map(|limit| rows[0].ops_per_sec / limit),
            rows,
        }
    }

    fn row(&self, at: usize, world: &Native) -> Row {
        let entry = self.place.locks[at];
        let results = &self.results[at];
        let of_rounds = |figure: fn(&Sample) -> f64| median(results.samples.iter().map(figure));
        let times = results.waits.as_ref().filter(|waits| waits.count() > 0);
        let times = times.map(|waits| waits.times(world));
        Row {
            lock: entry.name,
            kind: match entry.origin {
                Origin::Ours => "ours",
                Origin::Peer => "peer",
                Origin::Model => "model",
                Origin::Added => "added",
                Origin::Limit => "limit",
            },
            ops_per_sec: of_rounds(Sample::ops_per_sec),
            rounds: results.samples.iter().map(Sample::ops_per_sec).collect(),
            slowest_ops_per_sec: of_rounds(slowest),
            jain: of_rounds(|sample| jain(&sample.operations)),
            cpu_s_per_mop: middle(results.samples.iter().filter_map(cpu)).map(|cpu| cpu * 1e6),
            switches_per_sec: of_rounds(|sample| per_second(sample.switches, sample.elapsed)),
            p999_ns: times.map(|times| times.p999_ns),
            longest_ns: times.map(|times| times.max_ns),
            versus: (at > 0 && entry.origin != Origin::Limit).then(|| self.versus(at)),
        }
    }

    fn versus(&self, at: usize) -> Versus {
        let (ours, theirs) = (&self.results[0], &self.results[at]);
        let pairs = |figure: fn(&Sample) -> Option<f64>| {
            paired(&ours.samples, &theirs.samples, figure).collect::<Vec<f64>>()
        };
        let rates = pairs(|sample| Some(sample.ops_per_sec()));
        let waits = |figure: fn(&crate::probe::Waits) -> u64| {
            let (ours, theirs) = (ours.waits.as_ref()?, theirs.waits.as_ref()?);
            let both = ours.count() > 0 && theirs.count() > 0 && figure(theirs) > 0;
            both.then(|| figure(ours) as f64 / figure(theirs) as f64)
        };
        Versus {
            ratio: middle(rates.iter().copied()),
            ratio_min: rates.iter().copied().min_by(f64::total_cmp),
            ratio_max: rates.iter().copied().max_by(f64::total_cmp),
            cpu: middle(pairs(cpu).into_iter()),
            slowest: middle(pairs(|sample| Some(slowest(sample))).into_iter()),
            p999: waits(|waits| waits.quantile(0.999)),
            longest: waits(crate::probe::Waits::longest),
        }
    }
}

impl Judged {
    /// The row of the lock that is judged.
    pub fn ours(&self) -> &Row {
        &self.rows[0]
    }

    /// The row of the lock to which the ratio is the lowest.
    pub fn worst(&self) -> Option<&Row> {
        let peer = self.worst_peer?;
        self.rows.iter().find(|row| row.lock == peer)
    }

    /// The locks that it is compared with.
    pub fn peers(&self) -> impl Iterator<Item = (&Row, &Versus)> {
        self.rows
            .iter()
            .filter_map(|row| Some((row, row.versus.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::plan::places;
    use crate::grid::run::Results;
    use crate::grid::shape::find;
    use crate::grid::{Choice, contestants};
    use crate::registry::Family;
    use crate::workload::Extra;

    /// A round of two threads in which so many operations were done in a second.
    fn sample(operations: [u64; 2]) -> Sample {
        Sample {
            operations: operations.to_vec(),
            elapsed: Duration::from_secs(1),
            cpu: Duration::from_secs(2),
            switches: 10,
            windows: Vec::new(),
            waits: None,
            roles: None,
            extra: Extra::None,
        }
    }

    /// Ours, std, usync and the limit, each with its rounds.
    fn cell(threads: usize, rounds: [&[[u64; 2]]; 4]) -> Cell {
        let locks = |family| {
            contestants(
                family,
                &Choice::Named(vec!["std".to_owned(), "usync".to_owned()]),
            )
        };
        let shape = find(&[Family::Exclusive], "65/330").unwrap();
        let results = rounds.map(|rounds| Results {
            samples: rounds.iter().map(|&round| sample(round)).collect(),
            waits: None,
        });
        Cell {
            place: places(&[shape], &[threads], locks).remove(0),
            results: results.into(),
            cap: Some(500.0),
        }
    }

    fn world() -> Native {
        Native::new(vec![0], std::sync::Arc::default(), |_, _| panic!("hangs"))
    }

    /// The machine halves its speed after the first round: what counts is each round by itself. The
    /// ratio of the medians would be 1 here.
    #[test]
    fn ratios_are_paired_by_round() {
        let ours: &[[u64; 2]] = &[[90, 90], [45, 45], [40, 50]];
        let std: &[[u64; 2]] = &[[100, 100], [50, 50], [45, 45]];
        let usync: &[[u64; 2]] = &[[10, 10], [5, 5], [0, 0]];
        let limit: &[[u64; 2]] = &[[300, 300], [300, 300], [300, 300]];
        let judged = cell(2, [ours, std, usync, limit]).judge(&world());
        assert_eq!(judged.lock, "overlock-mutex");
        assert_eq!((judged.ratio, judged.worst_peer), (Some(0.9), Some("std")));
        let versus = judged.rows[1].versus.unwrap();
        assert_eq!(versus.ratio_max, Some(1.0));
        // As many CPU seconds for fewer operations.
        assert!((versus.cpu.unwrap() - 1.0 / 0.9).abs() < 1e-9);
        // A round in which the other did nothing has no ratio.
        assert_eq!(judged.rows[2].versus.unwrap().ratio, Some(9.0));
        // The limit is capped and no rival.
        assert_eq!(judged.limit_ops_per_sec, Some(500.0));
        assert_eq!(judged.vs_limit, Some(90.0 / 500.0));
        assert_eq!(judged.rows[3].versus, None);
        assert_eq!(judged.ours().slowest_ops_per_sec, 45.0);
    }

    #[test]
    fn the_worst_cell_is_the_first() {
        let fast: &[[u64; 2]] = &[[100, 100]];
        let slow: &[[u64; 2]] = &[[50, 50]];
        let none: &[[u64; 2]] = &[[0, 0]];
        let cells = vec![
            cell(1, [fast, none, none, fast]),
            cell(2, [fast, slow, fast, fast]),
            cell(4, [slow, fast, slow, fast]),
        ];
        let outcome = Outcome {
            cells,
            skipped: Vec::new(),
            end: crate::grid::run::End::Complete,
            elapsed: Duration::ZERO,
        };
        let judged = judge(&outcome, &world());
        let order: Vec<(usize, Option<f64>)> = judged
            .iter()
            .map(|cell| (cell.threads, cell.ratio))
            .collect();
        assert_eq!(order, [(4, Some(0.5)), (2, Some(1.0)), (1, None)]);
        assert_eq!(judged[0].worst().unwrap().lock, "std");
    }
}

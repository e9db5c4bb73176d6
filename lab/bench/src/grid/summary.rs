//! Summary of the cells: for each peer the geometric mean, the worst cell, and how many are good.

use serde::Serialize;

use super::figures::{Judged, Row, Versus};
use crate::registry::Family;
use crate::stats::median;

/// A ratio of 0 would make every geometric mean 0.
const LEAST: f64 = 1e-3;

/// Ours against one peer, over some of the cells.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Which cells: `all`, `without tight loops`, `32 threads and more`, or a family.
    pub cells: &'static str,
    /// The peer.
    pub peer: &'static str,
    /// How many cells there are.
    pub count: usize,
    /// Geometric mean of the cells' ratios.
    pub geometric_mean: f64,
    /// The lowest of them.
    pub worst: f64,
    /// The cell of that ratio.
    pub worst_cell: String,
    /// The share of the cells whose ratio is at least 0.97.
    pub at_least_097: f64,
    /// At least 0.95.
    pub at_least_095: f64,
    /// The lowest Jain's index of ours.
    pub jain_min: f64,
    /// The lowest Jain's index of the peer.
    pub peer_jain_min: f64,
    /// Median of the ratios of the waits that 999 of 1000 do not exceed.
    pub p999_median: Option<f64>,
    /// Median of the ratios of the longest waits.
    pub longest_median: Option<f64>,
    /// Median of the ratios of CPU time for an operation.
    pub cpu_median: Option<f64>,
}

/// Whether a cell belongs to a group.
type Has = fn(&Judged) -> bool;

/// The groups of cells, the one that says the most first.
const GROUPS: [(&str, Has); 6] = [
    ("without tight loops", |cell| !cell.tight),
    ("all", |_| true),
    ("32 threads and more", |cell| cell.threads >= 32),
    ("mutex", |cell| cell.family == Family::Exclusive.word()),
    ("rwlock", |cell| cell.family == Family::ReaderWriter.word()),
    ("condvar", |cell| cell.family == Family::Condvar.word()),
];

/// By group, then by peer in the order of the lists. A group that says the same as one before it,
/// since it has the same cells, is left out.
pub fn summarise(cells: &[Judged]) -> Vec<Summary> {
    let mut seen = Vec::new();
    let mut summaries = Vec::new();
    for (name, has) in GROUPS {
        let of_it: Vec<&Judged> = cells.iter().filter(|cell| has(cell)).collect();
        let names: Vec<String> = of_it.iter().map(|cell| cell.name()).collect();
        if of_it.is_empty() || seen.contains(&names) {
            continue;
        }
        seen.push(names);
        for peer in peers(&of_it) {
            summaries.extend(summary(name, peer, &of_it));
        }
    }
    summaries
}

/// All locks that ours is compared with somewhere.
fn peers(cells: &[&Judged]) -> Vec<&'static str> {
    let mut all: Vec<(usize, &'static str)> = Vec::new();
    for cell in cells {
        for (place, (row, _)) in cell.peers().enumerate() {
            if !all.iter().any(|(_, name)| *name == row.lock) {
                all.push((place, row.lock));
            }
        }
    }
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, name)| name).collect()
}

fn summary(cells: &'static str, peer: &'static str, of_it: &[&Judged]) -> Option<Summary> {
    let pairs: Vec<(&Judged, &Row, &Versus, f64)> = of_it
        .iter()
        .filter_map(|cell| {
            let (row, versus) = cell.peers().find(|(row, _)| row.lock == peer)?;
            Some((*cell, row, versus, versus.ratio?))
        })
        .collect();
    let (worst, _, _, ratio) = *pairs.iter().min_by(|a, b| a.3.total_cmp(&b.3))?;
    let count = pairs.len();
    let share =
        |least: f64| pairs.iter().filter(|pair| pair.3 >= least).count() as f64 / count as f64;
    let logarithms = pairs.iter().map(|pair| pair.3.max(LEAST).ln());
    let least = |values: &mut dyn Iterator<Item = f64>| values.fold(1.0, f64::min);
    let middle = |values: Vec<f64>| Some(median(values)).filter(|value| value.is_finite());
    Some(Summary {
        cells,
        peer,
        count,
        geometric_mean: (logarithms.sum::<f64>() / count as f64).exp(),
        worst: ratio,
        worst_cell: worst.name(),
        at_least_097: share(0.97),
        at_least_095: share(0.95),
        jain_min: least(&mut pairs.iter().map(|pair| pair.0.ours().jain)),
        peer_jain_min: least(&mut pairs.iter().map(|pair| pair.1.jain)),
        p999_median: middle(pairs.iter().filter_map(|pair| pair.2.p999).collect()),
        longest_median: middle(pairs.iter().filter_map(|pair| pair.2.longest).collect()),
        cpu_median: middle(pairs.iter().filter_map(|pair| pair.2.cpu).collect()),
    })
}

impl Judged {
    /// `mutex 65/330, 8 threads`
    pub fn name(&self) -> String {
        let threads = if self.threads == 1 {
            "thread"
        } else {
            "threads"
        };
        format!("{} {}, {} {threads}", self.family, self.shape, self.threads)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row of ours, or of a lock that ours makes so much of.
    pub fn row(lock: &'static str, jain: f64, ratio: Option<f64>) -> Row {
        Row {
            lock,
            kind: if ratio.is_some() { "peer" } else { "ours" },
            ops_per_sec: 1e6,
            rounds: vec![1e6],
            slowest_ops_per_sec: 1e5,
            jain,
            cpu_s_per_mop: Some(1.0),
            switches_per_sec: 100.0,
            p999_ns: Some(1e4),
            longest_ns: Some(1e6),
            versus: ratio.map(|ratio| Versus {
                ratio: Some(ratio),
                ratio_min: Some(ratio),
                ratio_max: Some(ratio),
                cpu: Some(1.0),
                slowest: Some(1.0),
                p999: Some(2.0),
                longest: Some(0.5),
            }),
        }
    }

    /// A cell with these ratios to std and usync.
    pub fn cell(shape: &'static str, threads: usize, ratios: [f64; 2]) -> Judged {
        Judged {
            family: "mutex",
            shape,
            tight: shape == "0/0",
            threads,
            lock: "overlock-mutex",
            ratio: Some(ratios[0].min(ratios[1])),
            worst_peer: Some(if ratios[0] < ratios[1] {
                "std"
            } else {
                "usync"
            }),
            limit_ops_per_sec: Some(2e6),
            vs_limit: Some(0.5),
            rows: vec![
                row("overlock-mutex", 0.9, None),
                row("std", 0.8, Some(ratios[0])),
                row("usync", 1.0, Some(ratios[1])),
            ],
        }
    }

    #[test]
    fn each_peer_is_judged_by_itself() {
        let cells = [
            cell("65/330", 8, [0.5, 1.0]),
            cell("65/330", 2, [2.0, 0.96]),
            cell("0/0", 8, [4.0, 4.0]),
        ];
        let all = summarise(&cells);
        let find = |group, peer| {
            let mut found = all
                .iter()
                .filter(|one| one.cells == group && one.peer == peer);
            found.next().unwrap()
        };
        let std = find("without tight loops", "std");
        assert_eq!((std.count, std.worst), (2, 0.5));
        assert!((std.geometric_mean - 1.0).abs() < 1e-9);
        assert_eq!(std.worst_cell, "mutex 65/330, 8 threads");
        assert_eq!(
            (std.at_least_097, std.jain_min, std.peer_jain_min),
            (0.5, 0.9, 0.8)
        );
        assert_eq!((std.longest_median, std.cpu_median), (Some(0.5), Some(1.0)));
        let usync = find("without tight loops", "usync");
        assert_eq!((usync.at_least_097, usync.at_least_095), (0.5, 1.0));
        assert_eq!(find("all", "std").count, 3);
        // All cells are of mutexes: nothing is said twice.
        assert!(all.iter().all(|one| one.cells != "mutex"));
    }
}

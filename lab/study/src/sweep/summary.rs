//! The verdict of a sweep on each lock: the cells in which it is the best or level, its worst cell,
//! and whether it keeps its own peak as threads are added.

use super::cells::{Cell, Standing};
use overlock_bench::stats::median;

/// A lock is level with the best from this share of its operations on.
pub const LEVEL: f64 = 0.9;

/// The verdict of all cells on a lock.
#[derive(Clone, Debug)]
pub struct Summary<'a> {
    /// Its name.
    pub lock: &'a str,
    /// The cells that it is in.
    pub cells: usize,
    /// Those in which no lock has more operations.
    pub best: usize,
    /// Those in which it has [`LEVEL`] of the best or more.
    pub level: usize,
    /// The geometric mean of its share of the best; 0 if it failed anywhere.
    pub mean: f64,
    /// The cell in which it has the smallest share of the best, and that share.
    pub worst: (&'a Cell, f64),
    /// The smallest index of fairness, if it has operations anywhere.
    pub least_jain: Option<(&'a Cell, f64)>,
    /// The longest wait.
    pub longest_ns: Option<(&'a Cell, f64)>,
    /// Its CPU time of an operation over the least of the cell: the median.
    pub cpu: f64,
}

/// A lock's own peak while nothing but the number of vCPUs changes, and how much is kept of it.
#[derive(Clone, Debug)]
pub struct Peak<'a> {
    /// The cell with the most operations.
    pub at: &'a Cell,
    /// Of the cells with as many vCPUs or more, the one with the fewest operations.
    pub least: &'a Cell,
    /// Its share of the peak.
    pub kept: f64,
}

/// The locks of all cells, each once, in the grid's order.
pub fn locks(cells: &[Cell]) -> Vec<&str> {
    let mut locks: Vec<&str> = Vec::new();
    for standing in cells.iter().flat_map(|cell| &cell.locks) {
        if !locks.contains(&standing.lock.as_str()) {
            locks.push(&standing.lock);
        }
    }
    locks
}

/// The verdict of the cells on a lock; `None` if it is in none.
pub fn summary<'a>(cells: &'a [Cell], lock: &'a str) -> Option<Summary<'a>> {
    let mine: Vec<(&Cell, &Standing)> = cells
        .iter()
        .filter_map(|cell| Some((cell, cell.lock(lock)?)))
        .collect();
    let shares = || {
        mine.iter()
            .map(|(cell, standing)| (*cell, standing.of_best))
    };
    let figures = || {
        mine.iter()
            .filter_map(|(cell, standing)| Some((*cell, standing.figures?)))
    };
    let logarithms: f64 = shares().map(|(_, share)| share.ln()).sum();
    Some(Summary {
        lock,
        cells: mine.len(),
        best: shares().filter(|(_, share)| *share >= 1.0).count(),
        level: shares().filter(|(_, share)| *share >= LEVEL).count(),
        mean: (logarithms / mine.len() as f64).exp(),
        worst: least(shares())?,
        least_jain: least(figures().filter_map(|(cell, figures)| Some((cell, figures.jain?)))),
        longest_ns: figures()
            .filter_map(|(cell, figures)| Some((cell, figures.longest_ns?)))
            .max_by(|a, b| a.1.total_cmp(&b.1)),
        cpu: median(mine.iter().filter_map(|(cell, standing)| {
            Some(standing.figures?.cpu_s_per_mop? / least_cpu(cell)?)
        })),
    })
}

/// The least CPU time that a lock of the cell takes for a million operations.
pub fn least_cpu(cell: &Cell) -> Option<f64> {
    let all = cell.locks.iter();
    all.filter_map(|lock| lock.figures?.cpu_s_per_mop)
        .min_by(f64::total_cmp)
}

fn least<'a>(of: impl Iterator<Item = (&'a Cell, f64)>) -> Option<(&'a Cell, f64)> {
    of.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// A lock's peaks on a machine, for each load with several numbers of vCPUs. A lock
/// that fails has no operations.
pub fn peaks<'a>(cells: &'a [Cell], machine: &str, lock: &str) -> Vec<Peak<'a>> {
    let mine: Vec<&Cell> = cells
        .iter()
        .filter(|cell| cell.machine == machine)
        .collect();
    mine.chunk_by(|a, b| a.load == b.load)
        .filter_map(|cells| peak(cells, lock))
        .collect()
}

fn peak<'a>(cells: &[&'a Cell], lock: &str) -> Option<Peak<'a>> {
    let operations = |cell: &&'a Cell| {
        let figures = cell.lock(lock)?.figures;
        Some((*cell, figures.map_or(0.0, |figures| figures.ops_per_sec)))
    };
    let all: Vec<(&Cell, f64)> = cells.iter().filter_map(operations).collect();
    let (at, most) = *all.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let later = all.iter().filter(|(cell, _)| cell.vcpus >= at.vcpus);
    let (least, fewest) = least(later.copied())?;
    (all.len() > 1 && most > 0.0).then_some(Peak {
        at,
        least,
        kept: fewest / most,
    })
}

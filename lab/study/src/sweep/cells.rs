//! Locks against each other: each cell of a sweep, which is a machine, a host, a workload and a
//! number of vCPUs, with the medians of all locks over the seeds.

use std::collections::HashMap;
use std::fmt;

use super::grid::machine_name;
use super::merge::Merged;
use super::record::{Measured, Outcome, Record};
use overlock_bench::stats::median;
use overlock_bench::workload::Workload;

/// A cell. Its locks are in the grid's order.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The machine.
    pub machine: String,
    /// Its CPUs.
    pub cpus: usize,
    /// The host, the other guests and the workload.
    pub load: String,
    /// The vCPUs.
    pub vcpus: usize,
    /// The locks that were simulated.
    pub locks: Vec<Standing>,
}

/// A lock in a cell.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Its name.
    pub lock: String,
    /// Its figures; `None` if it failed with any seed.
    pub figures: Option<Figures>,
    /// Its operations a second over those of the best lock of the cell; 0 if it failed.
    pub of_best: f64,
}

/// The figures of a lock in a cell: medians over the seeds.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Operations of all vCPUs a second.
    pub ops_per_sec: f64,
    /// Jain's index, if there were operations.
    pub jain: Option<f64>,
    /// The longest wait.
    pub longest_ns: Option<f64>,
    /// CPU time for a million operations.
    pub cpu_s_per_mop: Option<f64>,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {} vCPUs", self.machine, self.load, self.vcpus)
    }
}

impl Cell {
    /// vCPUs for each CPU.
    pub fn overcommit(&self) -> f64 {
        self.vcpus as f64 / self.cpus as f64
    }

    /// The lock with the most operations, and the next; failed locks are neither.
    pub fn best(&self) -> Option<(&Standing, Option<&Standing>)> {
        let mut order: Vec<&Standing> = self
            .locks
            .iter()
            .filter(|lock| lock.of_best > 0.0)
            .collect();
        order.sort_by(|a, b| b.of_best.total_cmp(&a.of_best));
        let first = order.first()?;
        Some((first, order.get(1).copied()))
    }

    /// A lock of this cell.
    pub fn lock(&self, name: &str) -> Option<&Standing> {
        self.locks.iter().find(|standing| standing.lock == name)
    }
}

/// The cells of a sweep, in the grid's order.
pub fn cells(merged: &Merged) -> Vec<Cell> {
    let machines = merged.grid.machines.iter();
    let cpus: HashMap<String, usize> = machines
        .map(|machine| (machine_name(machine), machine.cpus()))
        .collect();
    let place = |line: &Record| line.key.place();
    let cells = merged.lines.chunk_by(|a, b| place(a) == place(b));
    cells.map(|lines| cell(lines, &cpus)).collect()
}

fn cell(lines: &[Record], cpus: &HashMap<String, usize>) -> Cell {
    let key = &lines[0].key;
    let mut locks: Vec<Standing> = lines
        .chunk_by(|a, b| a.key.lock == b.key.lock)
        .map(|lines| Standing {
            lock: lines[0].key.lock.clone(),
            figures: figures(lines),
            of_best: 0.0,
        })
        .collect();
    let ops = |lock: &Standing| lock.figures.map_or(0.0, |figures| figures.ops_per_sec);
    let best = locks.iter().map(ops).fold(0.0, f64::max);
    for lock in &mut locks {
        lock.of_best = if best > 0.0 { ops(lock) / best } else { 0.0 };
    }
    let others = match key.others {
        0 => String::new(),
        others => format!(" beside {others} of others"),
    };
    Cell {
        machine: key.machine.clone(),
        cpus: cpus[&key.machine],
        load: format!("{}{others}, {}", key.host, shape(&key.workload)),
        vcpus: key.vcpus,
        locks,
    }
}

/// A workload in few words: its sections are "65/330".
fn shape(workload: &str) -> String {
    let Ok(workload) = workload.parse::<Workload>() else {
        return workload.to_owned();
    };
    let set = workload.parameters();
    let sections = match (set.cs_ns, set.ncs_ns) {
        (Some(cs), Some(ncs)) => Some(format!("{cs}/{ncs}")),
        _ => None,
    };
    let name = (workload.name() != "micro").then(|| workload.name().to_owned());
    let words: Vec<String> = name.into_iter().chain(sections).collect();
    words.join(" ") + &set.describe()
}

/// The medians of the seeds, if none has failed.
fn figures(lines: &[Record]) -> Option<Figures> {
    let seeds: Vec<&Measured> = lines
        .iter()
        .map(|line| match &line.outcome {
            Outcome::Measured(measured) => Some(measured.as_ref()),
            Outcome::Failed { .. } => None,
        })
        .collect::<Option<_>>()?;
    let of = |value: fn(&Measured) -> f64| median(seeds.iter().map(|seed| value(seed)));
    let optional = |value: fn(&Measured) -> Option<f64>| {
        let values: Option<Vec<f64>> = seeds.iter().map(|seed| value(seed)).collect();
        values.map(median)
    };
    Some(Figures {
        ops_per_sec: of(|seed| seed.ops_per_sec),
        jain: optional(Measured::fairness),
        longest_ns: optional(|seed| seed.waits.as_ref().map(|waits| waits.max_ns)),
        cpu_s_per_mop: optional(|seed| seed.cpu_s_per_mop),
    })
}

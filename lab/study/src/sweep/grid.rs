//! The points of a sweep, and their order.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use itertools::{Itertools, iproduct};
use overlock_sim::MOST_VCPUS;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::load::Load;
use overlock_bench::registry::{Entry, Family};
use overlock_bench::workload::Workload;

/// The most points of a grid: a week's work for a large cluster.
pub const MOST_POINTS: usize = 1_000_000;

/// Between the name of a machine and the number of its cores.
const CORES: &str = ":cores=";

/// The simulations: every combination.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The machines, with all or some of their cores. Their names say which keys differ from a
    /// preset.
    pub machines: Vec<Machine>,
    pub hosts: Vec<Host>,
    /// vCPUs of other guests, which want a CPU all the time.
    pub others: Vec<usize>,
    /// The workloads, all of one family.
    pub workloads: Vec<Workload>,
    pub vcpus: Vec<Load>,
    /// The locks, which are simulated ones, of the workloads' family.
    pub locks: Vec<&'static Entry>,
    pub seeds: Vec<u64>,
    pub round: Duration,
}

/// A simulation.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    pub machine: &'a Machine,
    pub host: &'a Host,
    /// vCPUs of other guests beside them.
    pub others: usize,
    pub workload: Workload,
    pub vcpus: usize,
    /// In how many guests of equal size, each of which runs the workload.
    pub guests: usize,
    pub lock: &'static Entry,
    pub seed: u64,
}

/// A point by its names, as files have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    pub machine: String,
    pub host: String,
    pub others: usize,
    pub workload: String,
    pub vcpus: usize,
    pub lock: String,
    pub seed: u64,
}

/// A grid by its names, as files have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Names {
    machines: Vec<String>,
    hosts: Vec<String>,
    others: Vec<usize>,
    workloads: Vec<String>,
    vcpus: Vec<Load>,
    locks: Vec<String>,
    seeds: Vec<u64>,
    seconds: f64,
}

/// A grid that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadGrid {
    /// Nothing to do.
    #[error("nothing to simulate: no lock takes so many vCPUs")]
    Empty,
    /// The workloads are for different families of locks.
    #[error("{0} and {1} are for different kinds of locks, and need a sweep each")]
    Families(&'static str, &'static str),
    /// A lock does not run on a simulated machine, or is not for these workloads.
    #[error("{0} does not run on a simulated machine")]
    Lock(&'static str),
    /// Too many points.
    #[error("more than {MOST_POINTS} simulations")]
    Points,
    /// So many vCPUs on a machine.
    #[error("{0} vCPUs on {1} are more than the simulator has room for: 1 to {MOST_VCPUS}")]
    Vcpus(usize, String),
    /// A name that this program does not know.
    #[error("this program does not know '{0}'")]
    Unknown(String),
}

impl Grid {
    /// Checks that the grid can be, and leaves out what it has twice.
    pub fn check(mut self) -> Result<Self, BadGrid> {
        unique(&mut self.machines, machine_name);
        unique(&mut self.hosts, |host| host.name.clone());
        unique(&mut self.others, |&others| others);
        unique(&mut self.workloads, Workload::to_string);
        unique(&mut self.vcpus, Load::to_string);
        unique(&mut self.locks, |lock| lock.name);
        unique(&mut self.seeds, |&seed| seed);
        if let [first, rest @ ..] = self.workloads.as_slice()
            && let Some(other) = rest.iter().find(|other| other.family() != first.family())
        {
            return Err(BadGrid::Families(first.name(), other.name()));
        }
        if let Some(lock) = self.locks.iter().find(|lock| lock.simulated.is_none()) {
            return Err(BadGrid::Lock(lock.name));
        }
        for machine in &self.machines {
            if let Some(&vcpus) = self.vcpus_on(machine).iter().max()
                && vcpus > MOST_VCPUS
            {
                return Err(BadGrid::Vcpus(vcpus, machine_name(machine)));
            }
        }
        let sizes = [
            self.machines.len(),
            self.hosts.len(),
            self.others.len(),
            self.workloads.len(),
            self.vcpus.len(),
            self.locks.len(),
            self.seeds.len(),
        ];
        let points = sizes.into_iter().try_fold(1_usize, usize::checked_mul);
        if points.is_none_or(|points| points > MOST_POINTS) {
            return Err(BadGrid::Points);
        }
        if self.points().is_empty() {
            return Err(BadGrid::Empty);
        }
        Ok(self)
    }

    /// All points in their order: seeds change first, then locks, vCPUs, workloads, other guests,
    /// hosts, machines. A lock that does not take so many vCPUs has none.
    pub fn points(&self) -> Vec<Point<'_>> {
        let mut points = Vec::new();
        for machine in &self.machines {
            let Self {
                hosts,
                others,
                workloads,
                locks,
                seeds,
                ..
            } = self;
            let vcpus = self.vcpus_on(machine);
            let all = iproduct!(hosts, others, workloads, vcpus, locks, seeds);
            let all = all.filter(|&(_, _, _, vcpus, lock, _)| takes(lock, vcpus));
            points.extend(
                all.map(|(host, &others, &workload, vcpus, &lock, &seed)| Point {
                    machine,
                    host,
                    others,
                    workload,
                    vcpus,
                    guests: 1,
                    lock,
                    seed,
                }),
            );
        }
        points
    }

    /// The numbers of vCPUs on a machine, each once.
    fn vcpus_on(&self, machine: &Machine) -> Vec<usize> {
        self.vcpus
            .iter()
            .map(|load| load.on(machine))
            .unique()
            .collect()
    }

    /// The locks that do not take all the numbers of vCPUs, and the most that each takes.
    pub fn limited(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.locks.iter().filter_map(|lock| {
            let most = lock.most_threads?;
            let mut all = self
                .machines
                .iter()
                .flat_map(|machine| self.vcpus_on(machine));
            all.any(|vcpus| vcpus > most).then_some((lock.name, most))
        })
    }

    /// The grid by its names.
    pub fn names(&self) -> Names {
        Names {
            machines: texts(&self.machines, machine_name),
            hosts: texts(&self.hosts, |host| host.name.clone()),
            others: self.others.clone(),
            workloads: texts(&self.workloads, Workload::to_string),
            vcpus: self.vcpus.clone(),
            locks: texts(&self.locks, |lock| lock.name),
            seeds: self.seeds.clone(),
            seconds: self.round.as_secs_f64(),
        }
    }
}

fn takes(lock: &Entry, vcpus: usize) -> bool {
    lock.most_threads.is_none_or(|most| vcpus <= most)
}

/// Keeps the first of each.
fn unique<T, K: Eq + Hash>(values: &mut Vec<T>, key: impl FnMut(&T) -> K) {
    *values = std::mem::take(values).into_iter().unique_by(key).collect();
}

fn texts<T, S: Into<String>>(values: &[T], text: impl Fn(&T) -> S) -> Vec<String> {
    values.iter().map(|value| text(value).into()).collect()
}

impl Names {
    /// The grid that has these names.
    ///
    /// # Errors
    ///
    /// [`BadGrid`], where names are of another version of this program.
    pub fn grid(&self) -> Result<Grid, BadGrid> {
        let workloads: Vec<Workload> = find(&self.workloads, |name| name.parse().ok())?;
        let family = workloads.first().ok_or(BadGrid::Empty)?.family();
        let round = Duration::try_from_secs_f64(self.seconds)
            .map_err(|_| BadGrid::Unknown(self.seconds.to_string()))?;
        Grid {
            machines: find(&self.machines, machine)?,
            hosts: find(&self.hosts, |name| Host::named(name).ok())?,
            others: self.others.clone(),
            locks: find(&self.locks, |name| lock(family, name))?,
            workloads,
            vcpus: self.vcpus.clone(),
            seeds: self.seeds.clone(),
            round,
        }
        .check()
    }

    /// The first thing in which two grids differ: what it is, and what it is in `self`.
    pub fn difference(&self, other: &Self) -> Option<(String, String)> {
        let fields = |names: &Self| match json!(names) {
            Value::Object(fields) => fields,
            _ => unreachable!("a structure has fields"),
        };
        let theirs = fields(other);
        let mut ours = fields(self).into_iter();
        let (what, ours) = ours.find(|(what, ours)| theirs[what] != *ours)?;
        let text = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        let texts = match &ours {
            Value::Array(values) => values.iter().map(text).collect(),
            value => vec![text(value)],
        };
        Some((what, texts.join(",")))
    }
}

fn find<T>(names: &[String], known: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, BadGrid> {
    let find = |name: &String| known(name).ok_or_else(|| BadGrid::Unknown(name.clone()));
    names.iter().map(find).collect()
}

/// Its name, and the number of its cores where it has lost some.
fn machine_name(machine: &Machine) -> String {
    let whole = Machine::named(&machine.name).map(|whole| whole.all_cores());
    match machine.all_cores() {
        cores if Ok(cores) == whole => machine.name.to_string(),
        cores => format!("{}{CORES}{cores}", machine.name),
    }
}

/// The other way round.
fn machine(text: &str) -> Option<Machine> {
    let machine = Machine::named(text).ok()?;
    (machine_name(&machine) == text).then_some(machine)
}

fn lock(family: Family, name: &str) -> Option<&'static Entry> {
    family.locks().iter().find(|entry| entry.name == name)
}

impl Point<'_> {
    /// The point by its names.
    pub fn key(&self) -> Key {
        Key {
            machine: machine_name(self.machine),
            host: self.host.name.to_string(),
            others: self.others,
            workload: self.workload.to_string(),
            vcpus: self.vcpus,
            lock: self.lock.name.to_owned(),
            seed: self.seed,
        }
    }
}

impl Key {
    /// The machine, host and workload: all but the lock and the seed.
    pub fn place(&self) -> String {
        let (machine, host, workload, vcpus) =
            (&self.machine, &self.host, &self.workload, self.vcpus);
        let others = match self.others {
            0 => String::new(),
            others => format!(" beside {others} of others"),
        };
        format!("{machine}, {host}, {workload}, {vcpus} vCPUs{others}")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, seed {}", self.place(), self.lock, self.seed)
    }
}

//! The points of a sweep, and their order.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use itertools::{Itertools, iproduct};
use overlock_bench::registry::Entry;
use overlock_bench::workload::Workload;
use overlock_sim::MOST_VCPUS;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::case::Case;

/// The most points of a grid: a week's work for a large cluster.
pub const MOST_POINTS: usize = 1_000_000;

/// The simulations: every combination, by names, as files have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// The machines, as [`machine_name`] writes them.
    pub machines: Vec<String>,
    pub hosts: Vec<String>,
    /// vCPUs of other guests, which want a CPU all the time.
    pub others: Vec<usize>,
    /// The workloads, all of one family.
    pub workloads: Vec<String>,
    pub vcpus: Vec<Load>,
    /// The locks, which are simulated ones, of the workloads' family.
    pub locks: Vec<String>,
    pub seeds: Vec<u64>,
    /// The simulated length of each.
    pub seconds: f64,
}

/// A simulation by its names, as files have it.
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

impl Grid {
    /// All points in their order: seeds change first, then locks, vCPUs, workloads, other guests,
    /// hosts, machines. A lock that does not take so many vCPUs has none.
    ///
    /// # Errors
    ///
    /// Says why there cannot be such a grid. Names may be of another version of this program.
    pub fn points(&self) -> Result<Vec<(Key, Case)>, String> {
        let counts = [
            ("machines", self.machines.len()),
            ("hosts", self.hosts.len()),
            ("others", self.others.len()),
            ("workloads", self.workloads.len()),
            ("vcpus", self.vcpus.len()),
            ("locks", self.locks.len()),
            ("seeds", self.seeds.len()),
        ];
        if let Some((what, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(format!("nothing to simulate: the list of {what} is empty"));
        }
        let machines = find(&self.machines, |name| {
            let machine = Machine::named(name).ok()?;
            (machine_name(&machine) == name).then(|| Arc::new(machine))
        })?;
        let hosts = find(&self.hosts, |name| Host::named(name).ok().map(Arc::new))?;
        let workloads: Vec<Workload> = find(&self.workloads, |name| name.parse().ok())?;
        let first = &workloads[0];
        let other = workloads.iter().find(|one| one.family() != first.family());
        if let Some(other) = other {
            let both = format!("{} and {}", first.name(), other.name());
            return Err(format!(
                "{both} are for different kinds of locks, and need a sweep each"
            ));
        }
        let locks: Vec<&'static Entry> = find(&self.locks, |name| {
            let mut locks = first.family().locks().iter();
            locks.find(|lock| lock.name == name && lock.simulated.is_some())
        })?;
        if Duration::try_from_secs_f64(self.seconds).is_err() {
            return Err(unknown(self.seconds));
        }
        let (others, vcpus, seeds) = (&self.others, &self.vcpus, &self.seeds);
        let all = iproduct!(&machines, &hosts, others, &workloads, vcpus, &locks, seeds);
        let count = all.size_hint().1;
        if count.is_none_or(|count| count > MOST_POINTS) {
            return Err(format!("more than {MOST_POINTS} simulations"));
        }
        let mut points = Vec::new();
        for (machine, name) in machines.iter().zip(&self.machines) {
            let vcpus: Result<Vec<usize>, _> = vcpus.iter().map(|load| load.on(machine)).collect();
            let vcpus = vcpus?.into_iter().unique().collect_vec();
            if let Some(many) = vcpus.iter().max().filter(|&&many| many > MOST_VCPUS) {
                return Err(format!(
                    "{many} vCPUs on {name} are more than the simulator has room for: 1 to \
                     {MOST_VCPUS}"
                ));
            }
            let all = iproduct!(&hosts, others, &workloads, vcpus, &locks, seeds);
            let all = all.filter(|(_, _, _, vcpus, lock, _)| lock.takes(*vcpus));
            points.extend(all.map(|(host, &others, workload, vcpus, lock, &seed)| {
                let key = Key {
                    machine: name.clone(),
                    host: host.name.to_string(),
                    others,
                    workload: workload.to_string(),
                    vcpus,
                    lock: lock.name.to_owned(),
                    seed,
                };
                let case = Case {
                    machine: Arc::clone(machine),
                    host: Arc::clone(host),
                    others,
                    workload: *workload,
                    lock,
                    threads: vcpus,
                    guests: 1,
                };
                (key, case)
            }));
        }
        match points.is_empty() {
            true => Err("nothing to simulate: no lock takes so many vCPUs".to_owned()),
            false => Ok(points),
        }
    }

    /// The first thing in which two grids differ: what it is, and what it is in `self`.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let (ours, theirs) = (json!(self), json!(other));
        let mut ours = ours.as_object()?.iter();
        let (what, ours) = ours.find(|(what, ours)| theirs[what] != **ours)?;
        let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
        let texts = match ours {
            Value::Array(values) => values.iter().map(text).join(","),
            value => text(value),
        };
        Some(format!("{what} {texts}"))
    }
}

fn unknown(name: impl fmt::Display) -> String {
    format!("this program does not know '{name}'")
}

fn find<T>(names: &[String], known: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let find = |name: &String| known(name).ok_or_else(|| unknown(name));
    names.iter().map(find).collect()
}

/// Its name, with the keys that differ from a preset and the number of its cores where it has lost
/// some.
pub fn machine_name(machine: &Machine) -> String {
    let whole = Machine::named(&machine.name).map(|whole| whole.all_cores());
    match machine.all_cores() {
        cores if Ok(cores) == whole => machine.name.to_string(),
        cores => format!("{}:cores={cores}", machine.name),
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

/// More vCPUs for each CPU than any machine has a use for.
const MANY: f64 = 1e6;

/// A number of vCPUs, perhaps one that depends on the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Load {
    /// So many.
    Vcpus(usize),
    /// So many for each CPU of the machine, such as "2x".
    Overcommit(String),
}

impl Load {
    /// How many those are on this machine, at least one.
    pub fn on(&self, machine: &Machine) -> Result<usize, String> {
        match self {
            Self::Vcpus(0) => level("0").map(|_| 0),
            Self::Vcpus(vcpus) => Ok(*vcpus),
            Self::Overcommit(text) => {
                let vcpus = level(text)? * machine.cpus() as f64;
                Ok((vcpus.round() as usize).max(1))
            }
        }
    }
}

fn level(text: &str) -> Result<f64, String> {
    let level = text
        .strip_suffix(['x', 'X'])
        .and_then(|level| level.parse().ok());
    let level = level.filter(|&level| level > 0.0 && level <= MANY);
    level.ok_or_else(|| {
        format!(
            "must be a number of vCPUs, or vCPUs for each CPU, above 0x and up to {MANY}x, such \
             as 0.25x or 2x"
        )
    })
}

impl FromStr for Load {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().parse() {
            Ok(vcpus) if vcpus > 0 => Ok(Self::Vcpus(vcpus)),
            _ => Ok(Self::Overcommit(format!("{}x", level(text.trim())?))),
        }
    }
}

/// A part of a grid, for one of several machines: the points at every so-manieth place. Neighbours
/// in a grid cost about the same, so this balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    index: usize,
    count: usize,
}

impl Shard {
    /// Its share of so many points, by their numbers.
    pub fn of(self, points: usize) -> impl Iterator<Item = usize> {
        (self.index - 1..points).step_by(self.count)
    }
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let parts = text.trim().split_once('/');
        match parts.map(|(index, count)| (index.parse(), count.parse())) {
            Some((Ok(index), Ok(count))) if (1..=count).contains(&index) => {
                Ok(Self { index, count })
            }
            _ => Err(
                "must be a part and the number of parts, such as 3/16; parts are counted \
                      from 1",
            ),
        }
    }
}

//! Many simulations: a grid of machines, hosts, workloads, vCPUs, locks and seeds, spread over the
//! cores of this machine, or over several.
//!
//! The results are a file: a line of JSON that says what the file is, then one for each simulation
//! that has ended. Lines are only ever appended, each in one piece. A process that is killed in
//! between leaves half a line at the end, which the next one removes; the rest is whole.

pub mod table;
#[cfg(test)]
mod tests;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::{error, fmt};

use indexmap::IndexMap;
use itertools::{Itertools, iproduct};
use overlock_bench::error::Error;
use overlock_bench::interrupt::Interrupt;
use overlock_bench::registry;
use overlock_bench::workload::Workload;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use serde::{Deserialize, Serialize};

use crate::case::{self, Case, Measured, Outcome, Place};

/// The most simulations of a grid: a week's work for a large cluster.
pub const MOST_POINTS: usize = 1_000_000;
/// The beginning of the first line, by which a file is known. The number changes with the meaning
/// of the lines.
const BEGIN: &str = r#"{"format":"overlock sweep 6","#;
/// A build without a repository says so.
const UNKNOWN: &str = "commit unknown";

/// The simulations: every combination, by names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grid {
    /// The machines, each with its numbers of vCPUs.
    pub machines: Vec<(String, Vec<usize>)>,
    pub hosts: Vec<String>,
    /// vCPUs of other guests, which want a CPU all the time.
    pub others: Vec<usize>,
    /// The workloads, all of one family.
    pub workloads: Vec<String>,
    /// The locks, which are simulated ones, of the workloads' family.
    pub locks: Vec<String>,
    pub seeds: Vec<u64>,
    /// The simulated length of each.
    pub seconds: f64,
}

/// The first line of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "format", rename = "overlock sweep 6")]
struct Header {
    /// The build that simulates: two that are equal have the same results.
    build: String,
    grid: Grid,
}

/// A simulation by its names.
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

/// Any other line. Nothing in it depends on the machine that simulates, or on how long that takes.
#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(flatten)]
    key: Key,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    measured: Option<Measured>,
}

/// A grid with the results that are known.
#[derive(Clone, Debug)]
pub struct Sweep {
    header: Header,
    /// All simulations in the grid's order, with their outcomes as far as these are known.
    pub results: IndexMap<Key, Option<Outcome>>,
}

impl Grid {
    /// All keys in their order: seeds change first, then locks, vCPUs, workloads, other guests,
    /// hosts, machines. A lock that does not take so many vCPUs has none.
    fn keys(&self) -> Result<Vec<Key>, String> {
        let workload = self.workloads.first().map(|load| load.parse::<Workload>());
        let workload = workload.ok_or("nothing to simulate: there is no workload")?;
        let family = workload?.family();
        let locks = self
            .locks
            .iter()
            .map(|name| registry::simulated(family, name));
        let locks: Vec<_> = locks.collect::<Result<_, String>>()?;
        let (hosts, others, workloads) = (&self.hosts, &self.others, &self.workloads);
        let of = |vcpus| iproduct!(hosts, others, workloads, vcpus, &locks, &self.seeds);
        let mut sizes = (self.machines.iter()).map(|(_, vcpus)| of(vcpus).size_hint().1);
        let count = sizes.try_fold(0_usize, |sum, size| sum.checked_add(size?));
        if count.is_none_or(|count| count > MOST_POINTS) {
            return Err(format!("more than {MOST_POINTS} simulations"));
        }
        let keys = self.machines.iter().flat_map(|(machine, vcpus)| {
            let all = of(vcpus).filter(|(.., vcpus, lock, _)| lock.takes(**vcpus));
            all.map(|(host, &others, workload, &vcpus, lock, &seed)| Key {
                machine: machine.clone(),
                host: host.clone(),
                others,
                workload: workload.clone(),
                vcpus,
                lock: lock.name.to_owned(),
                seed,
            })
        });
        let keys = keys.collect_vec();
        match keys.is_empty() {
            true => Err("nothing to simulate: no lock takes so many vCPUs".to_owned()),
            false => Ok(keys),
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

    /// The simulation of that name.
    ///
    /// # Panics
    ///
    /// If there is none. A program knows the names of its own grid.
    pub fn case(&self) -> Case {
        let workload: Workload = self.workload.parse().expect("a workload");
        let machine = Machine::named(&self.machine).expect("a machine");
        let host = Host::named(&self.host).expect("a host");
        let mut place = Place::new(machine, host, workload, self.vcpus);
        place.others = self.others;
        place.with(registry::simulated(workload.family(), &self.lock).expect("a lock"))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, seed {}", self.place(), self.lock, self.seed)
    }
}

/// A line of a file.
fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("names and numbers can be written") + "\n"
}

/// The line of a result.
fn record(key: &Key, outcome: &Outcome) -> String {
    line(&Record {
        key: key.clone(),
        error: outcome.clone().err(),
        measured: outcome.clone().ok(),
    })
}

/// The lines of a file that are whole.
fn whole(content: &[u8]) -> Result<&str, String> {
    // A sweep that was killed may have left half of its first line.
    let mut begin = BEGIN.bytes().zip(content);
    if !begin.all(|(begin, byte)| begin == *byte) {
        return Err("is no file of this version of `overlock-lab sim sweep`".to_owned());
    }
    let end = content.iter().rposition(|&byte| byte == b'\n');
    let whole = &content[..end.map_or(0, |end| end + 1)];
    std::str::from_utf8(whole).map_err(|error| format!("is damaged: {error}"))
}

impl Header {
    /// The first of lines that are [`whole`].
    fn read(text: &str) -> Result<Self, String> {
        let first = text.lines().next().unwrap_or_default();
        serde_json::from_str(first).map_err(|why| format!("line 1 is damaged: {why}"))
    }

    /// Complains unless `part` is of the same grid and build. Nobody knows whether two builds that
    /// are unknown are the same.
    fn expect(&self, part: &Self) -> Result<(), String> {
        let (ours, theirs) = (&self.build, &part.build);
        if ours != theirs {
            return Err(format!(
                "is of {theirs}, whose results are not those of {ours}"
            ));
        }
        if ours.contains(UNKNOWN) {
            return Err(format!("is of {ours}: it may be another build"));
        }
        match self.grid == part.grid {
            true => Ok(()),
            false => Err(format!("is of another grid: {}", line(&part.grid).trim())),
        }
    }
}

impl Sweep {
    /// A sweep without results.
    ///
    /// # Errors
    ///
    /// Says why there cannot be such a grid. Names may be of another version of this program.
    pub fn new(build: String, grid: Grid) -> Result<Self, String> {
        let keys = grid.keys()?;
        Ok(Self {
            header: Header { build, grid },
            results: keys.into_iter().map(|key| (key, None)).collect(),
        })
    }

    /// Joins the results of files, in any order. A file without a whole first line has none yet.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, is of another kind, or contradicts another one, or if none has any
    /// results. Simulations depend on nothing but their settings and the build.
    pub fn merge(paths: &[PathBuf]) -> Result<Self, String> {
        let mut merged: Option<Self> = None;
        let mut join = |path: &Path| -> Result<(), Box<dyn error::Error>> {
            let content = fs::read(path)?;
            let text = whole(&content)?;
            if text.is_empty() {
                return Ok(());
            }
            let header = Header::read(text)?;
            let merged = match &mut merged {
                Some(merged) => {
                    merged.header.expect(&header)?;
                    merged
                }
                None => merged.insert(Self::new(header.build, header.grid)?),
            };
            Ok(merged.take(text)?)
        };
        for path in paths {
            join(path).map_err(|why| format!("{}: {why}", path.display()))?;
        }
        merged.ok_or_else(|| "no part has any results".to_owned())
    }

    /// Takes over the results of a file.
    fn take(&mut self, text: &str) -> Result<(), String> {
        for (number, line) in (1..).zip(text.lines()).skip(1) {
            let damaged = |why: &dyn fmt::Display| format!("line {number} is damaged: {why}");
            let record: Record = serde_json::from_str(line).map_err(|error| damaged(&error))?;
            let key = record.key;
            let outcome = record.error.map(Err).or(record.measured.map(Ok));
            let outcome = outcome.ok_or_else(|| damaged(&"there are no figures"))?;
            let Some(known) = self.results.get_mut(&key) else {
                return Err(format!("line {number} is not of this grid: {key}"));
            };
            if known.as_ref().is_some_and(|known| *known != outcome) {
                return Err(format!(
                    "line {number} contradicts an earlier one of the same build: {key}"
                ));
            }
            *known = Some(outcome);
        }
        Ok(())
    }

    /// Writes all results as a file, in the grid's order.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        out.write_all(line(&self.header).as_bytes())?;
        for (key, outcome) in self.known() {
            out.write_all(record(key, outcome).as_bytes())?;
        }
        Ok(())
    }

    /// Opens its file, or makes it, and takes over the results that are there already.
    ///
    /// # Errors
    ///
    /// If the file is of something else or of another build, or was changed. If it cannot be
    /// written, or another process writes it now.
    pub fn open(&mut self, path: &Path) -> Result<File, String> {
        let opened = self.opened(path);
        opened.map_err(|why| format!("{}: {why}", path.display()))
    }

    fn opened(&mut self, path: &Path) -> Result<File, Box<dyn error::Error>> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path)?;
        if !file.metadata()?.is_file() {
            return Err("results need a file".into());
        }
        // Some file systems of clusters have no locks: there the user must give each shard its
        // file.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err("another sweep writes to it now".into());
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        let (text, first) = (whole(&content)?, line(&self.header));
        if !text.is_empty() {
            self.header.expect(&Header::read(text)?)?;
            self.take(text)?;
        } else if !first.as_bytes().starts_with(&content) {
            return Err("has half of the first line of another sweep".into());
        }
        file.set_len(text.len() as u64)?;
        file.seek(io::SeekFrom::End(0))?;
        if text.is_empty() {
            file.write_all(first.as_bytes())?;
        }
        Ok(file)
    }

    /// The results that are known.
    pub fn known(&self) -> impl Iterator<Item = (&Key, &Outcome)> {
        let all = self.results.iter();
        all.filter_map(|(key, outcome)| Some((key, outcome.as_ref()?)))
    }

    /// The simulations that failed, and how they did.
    pub fn failures(&self) -> impl Iterator<Item = (&Key, &String)> {
        let known = self.known();
        known.filter_map(|(key, outcome)| Some((key, outcome.as_ref().err()?)))
    }

    /// A part of the grid for one of several machines: the simulations at every so-manieth place,
    /// counted from 1. Neighbours in a grid cost about the same, so this balances.
    pub fn part(
        &self,
        (index, parts): (usize, usize),
    ) -> impl Iterator<Item = (&Key, &Option<Outcome>)> {
        self.results.iter().skip(index - 1).step_by(parts)
    }

    /// The simulations of a part that have no results.
    pub fn missing(&self, part: (usize, usize)) -> impl Iterator<Item = &Key> {
        let mine = self.part(part);
        mine.filter_map(|(key, outcome)| outcome.is_none().then_some(key))
    }

    /// Simulates the missing results of a part, so many at a time, until `interrupt` is raised.
    /// Appends each to the file as it ends, and calls `ended` with how many have ended, and the
    /// last of them.
    ///
    /// # Errors
    ///
    /// If a result cannot be written, or this machine has no room for a simulation. The simulations
    /// that run then are dropped.
    pub fn run(
        &mut self,
        part: (usize, usize),
        jobs: usize,
        file: &mut File,
        interrupt: &Interrupt,
        simulate: impl Fn(&Key) -> Result<Measured, Error> + Sync,
        mut ended: impl FnMut(usize, &Key),
    ) -> Result<(), String> {
        let left = self.missing(part).cloned().collect_vec();
        let mut count = 0;
        case::run(left, jobs, interrupt, simulate, |key, outcome| {
            let outcome = outcome.map_err(|lacking| lacking.to_string())?;
            let written = file.write_all(record(&key, &outcome).as_bytes());
            written.map_err(|error| format!("the result cannot be written: {error}"))?;
            count += 1;
            ended(count, &key);
            self.results.insert(key, Some(outcome));
            Ok(())
        })
    }
}

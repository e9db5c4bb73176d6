//! Folders of published measurements.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use csv::{DeserializeError, ErrorKind, Position, StringRecord};
use overlock_bench::registry::Entry;
use overlock_bench::workload::Workload;
use overlock_sim::MOST_VCPUS;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use overlock_sim::spec::{self, Spec};
use serde::{Deserialize, Serialize};

use super::unit::Unit;
use crate::locks;

/// The use that a figure has.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Half {
    /// Constants may be chosen by it.
    Calibrate,
    /// It is scored, and nothing else.
    Score,
}

/// So many lines that are wrong are told.
const MOST_TOLD: usize = 20;

/// The columns that a file must have.
const NEEDED: [&str; 8] = [
    "group", "source", "machine", "workload", "lock", "threads", "figure", "unit",
];
/// Those that it may have.
const OTHERS: [&str; 6] = ["half", "seen", "host", "guests", "over", "note"];

/// A row of a file, as it is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Figures of one document, machine and benchmark.
    pub group: String,
    /// The half that the group belongs to; without one it is only scored.
    #[serde(default)]
    pub half: Option<Half>,
    pub source: String,
    /// `read`, or `excerpt` if only a part of the document was.
    #[serde(default)]
    pub seen: String,
    /// The machine: a preset, or a file of the folder, perhaps with changed keys.
    pub machine: String,
    /// The host; `threads` without one.
    #[serde(default)]
    pub host: String,
    /// The workload with its keys.
    pub workload: String,
    /// The lock, by the name that people use.
    pub lock: String,
    /// Threads, or vCPUs of all guests.
    pub threads: usize,
    /// The guests that share them; one without a number.
    #[serde(default)]
    pub guests: Option<usize>,
    /// The lock whose figure it is divided by, if it is a ratio.
    #[serde(default)]
    pub over: Option<String>,
    pub figure: f64,
    pub unit: String,
    /// Anything else that a reader should know.
    #[serde(default)]
    pub note: String,
}

/// A figure with what it takes to simulate it.
#[derive(Clone, Debug)]
pub struct Figure {
    pub row: Row,
    pub unit: Unit,
    /// The simulation, or for a ratio that of its dividend.
    pub case: Case,
    /// The divisor's simulation.
    pub over: Option<Case>,
}

/// A simulation.
#[derive(Clone, Debug)]
pub struct Case {
    pub machine: Machine,
    pub host: Host,
    pub workload: Workload,
    pub lock: &'static Entry,
    pub threads: usize,
    pub guests: usize,
}

impl Case {
    /// All of it, by names.
    pub fn key(&self) -> String {
        let cores = self.machine.all_cores();
        format!(
            "{} ({cores} cores), {}, {}, {}, {} threads in {}",
            self.machine.name,
            self.host.name,
            self.workload,
            self.lock.name,
            self.threads,
            self.guests
        )
    }
}

impl Figure {
    /// The same with another value of a key of its machine, or of its host.
    ///
    /// # Errors
    ///
    /// Says what is valid.
    pub fn with(&self, key: &str, value: &str) -> Result<Self, spec::Error> {
        let changed = |case: &Case| -> Result<Case, spec::Error> {
            let (machine, host) = (case.machine.clone(), case.host.clone());
            let is_host = Host::keys().iter().any(|other| other.name == key);
            let (machine, host) = match is_host {
                true => (machine, spec::with(host, key, value)?),
                false => (spec::with(machine, key, value)?, host),
            };
            Ok(Case {
                machine,
                host,
                ..case.clone()
            })
        };
        Ok(Self {
            case: changed(&self.case)?,
            over: self.over.as_ref().map(changed).transpose()?,
            ..self.clone()
        })
    }

    /// The half that it belongs to.
    pub fn half(&self) -> Half {
        self.row.half.unwrap_or(Half::Score)
    }
}

/// A folder that cannot be used, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadFolder(String);

/// A folder of figures in CSV, with files of machines.
#[derive(Clone, Debug)]
pub enum Folder {
    /// That of this project.
    Published,
    /// Another one.
    At(PathBuf),
}

macro_rules! published {
    ($($file:literal)*) => { &[$(($file, include_str!(concat!("../../published/", $file)))),*] };
}

/// The files of the project's folder.
const PUBLISHED: &[(&str, &str)] = published! {
    "seeds.csv" "cna.csv" "parking_lot.csv" "swift.csv" "flexguard.csv" "overcommit.csv"
    "hierarchy.csv" "spinlocks.csv" "counters.csv"
    "e5-2680v4.toml" "e5-2699v4.toml" "e7-8895v3.toml" "epyc-9454p.toml" "gold-5320.toml"
    "gold-6148.toml" "graviton2.toml" "i5-1035g4.toml" "i5-3450.toml" "i7-3770.toml"
    "i7-6.toml" "i7-6700hq.toml" "i9-18.toml" "ultra5-226v.toml" "w-2135.toml"
    "xeon-8488c.toml" "xeon-d-2191.toml"
};

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Published => f.write_str("lab/study/published"),
            Self::At(path) => path.display().fmt(f),
        }
    }
}

impl Folder {
    /// Reads all figures of all its files in CSV.
    ///
    /// # Errors
    ///
    /// Names each line that is wrong, with its file.
    pub fn figures(&self) -> Result<Vec<Figure>, BadFolder> {
        let (mut figures, mut wrong) = (Vec::new(), Vec::new());
        for file in self.tables()? {
            let text = self.text(&file).map_err(BadFolder)?;
            let mut reader = csv::ReaderBuilder::new()
                .trim(csv::Trim::All)
                .flexible(true)
                .from_reader(text.as_bytes());
            let titles = reader.headers();
            let titles = titles.map_err(|error| BadFolder(format!("{self}/{file}: {error}")))?;
            let titles = titles.clone();
            if let Err(why) = columns(&titles) {
                wrong.push(format!("{self}/{file}:1: {why}"));
                continue;
            }
            for record in reader.records() {
                let line = |record: &StringRecord| record.position().map_or(0, Position::line);
                let read = match &record {
                    Ok(record) => self
                        .read(record, &titles)
                        .map_err(|why| (line(record), why)),
                    Err(error) => Err((
                        error.position().map_or(0, Position::line),
                        error.to_string(),
                    )),
                };
                match read {
                    Ok(figure) => figures.push(figure),
                    Err((line, why)) => wrong.push(format!("{self}/{file}:{line}: {why}")),
                }
            }
        }
        let more = wrong.len().saturating_sub(MOST_TOLD);
        wrong.truncate(MOST_TOLD);
        if more > 0 {
            wrong.push(format!("{more} more lines are wrong"));
        }
        if !wrong.is_empty() {
            return Err(BadFolder(wrong.join("\n")));
        }
        halves(&figures).map_err(|why| BadFolder(format!("{self}: {why}")))?;
        Ok(figures)
    }

    /// The figure of a line.
    fn read(&self, record: &StringRecord, titles: &StringRecord) -> Result<Figure, String> {
        if record.len() != titles.len() {
            let (has, wanted) = (record.len(), titles.len());
            return Err(format!("{has} columns, where the first line has {wanted}"));
        }
        let row: Row = record
            .deserialize(Some(titles))
            .map_err(|error| match error.kind() {
                ErrorKind::Deserialize { err, .. } => column(err, titles),
                _ => error.to_string(),
            })?;
        let group = row.group.clone();
        self.figure(row)
            .map_err(|why| format!("group {group}: {why}"))
    }

    /// Its files in CSV, in their order.
    fn tables(&self) -> Result<Vec<String>, BadFolder> {
        let is_table = |name: &String| name.ends_with(".csv");
        let Self::At(path) = self else {
            let names = PUBLISHED.iter().map(|(name, _)| (*name).to_owned());
            return Ok(names.filter(is_table).collect());
        };
        let unreadable = |error| BadFolder(format!("{self}: {error}"));
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            names.extend(entry.map_err(unreadable)?.file_name().into_string());
        }
        names.retain(is_table);
        names.sort();
        match names.is_empty() {
            true => Err(BadFolder(format!("{self} has no file that ends in .csv"))),
            false => Ok(names),
        }
    }

    fn text(&self, name: &str) -> Result<Cow<'static, str>, String> {
        match self {
            Self::Published => {
                let mut files = PUBLISHED.iter();
                let file = files.find(|(file, _)| *file == name);
                let file = file.ok_or_else(|| format!("there is no file {name}"))?;
                Ok(Cow::Borrowed(file.1))
            }
            Self::At(path) => {
                let path = path.join(name);
                let text = fs::read_to_string(&path);
                text.map(Cow::Owned)
                    .map_err(|error| format!("{}: {error}", path.display()))
            }
        }
    }

    fn figure(&self, row: Row) -> Result<Figure, String> {
        let bad = |error: spec::Error| error.to_string();
        let contents = |name: &str| {
            let text = self.text(name).map_err(spec::Error::new)?;
            Ok(text.into_owned())
        };
        let machine = spec::read_in(&row.machine, &[], contents).map_err(bad)?;
        let host = match row.host.as_str() {
            "" => Host::threads(),
            host => spec::read_in(host, &[], contents).map_err(bad)?,
        };
        let workload: Workload = row.workload.parse().map_err(bad)?;
        let unit: Unit = row.unit.parse()?;
        if !(row.figure.is_finite() && row.figure > 0.0) {
            return Err(format!("the figure {} is not above 0", row.figure));
        }
        if (unit == Unit::Ratio) != row.over.is_some() {
            return Err(format!(
                "a ratio, and nothing else, has a lock in the column over; the unit is {}",
                row.unit
            ));
        }
        if !(1..=MOST_VCPUS).contains(&row.threads) {
            return Err(format!("{} threads are not 1 to {MOST_VCPUS}", row.threads));
        }
        let guests = row.guests.unwrap_or(1);
        if guests == 0 || !row.threads.is_multiple_of(guests) {
            return Err(format!("{} threads in {guests} guests", row.threads));
        }
        let case = |name: &str| {
            let family = workload.family();
            let lock = locks::named(family, name);
            let lock = lock.ok_or_else(|| locks::unknown(family, name))?;
            match lock.most_threads {
                Some(most) if row.threads > most => {
                    Err(format!("{name} takes at most {most} threads"))
                }
                _ => Ok(Case {
                    machine: Machine::clone(&machine),
                    host: host.clone(),
                    workload,
                    lock,
                    threads: row.threads,
                    guests,
                }),
            }
        };
        Ok(Figure {
            case: case(&row.lock)?,
            over: row.over.as_deref().map(case).transpose()?,
            unit,
            row,
        })
    }
}

/// Checks the titles of a file.
fn columns(titles: &StringRecord) -> Result<(), String> {
    let has = |name: &str| titles.iter().any(|title| title == name);
    if let Some(none) = NEEDED.into_iter().find(|name| !has(name)) {
        return Err(format!("there is no column '{none}'"));
    }
    let known = |title: &&str| NEEDED.contains(title) || OTHERS.contains(title);
    match titles.iter().find(|title| !known(title)) {
        None => Ok(()),
        Some(other) => Err(format!(
            "unknown column '{other}'; the columns are {}, and perhaps {}",
            NEEDED.join(", "),
            OTHERS.join(", ")
        )),
    }
}

/// The error in a cell.
fn column(error: &DeserializeError, titles: &StringRecord) -> String {
    let title = error.field().and_then(|field| titles.get(field as usize));
    match title {
        Some(title) => format!("column {title}: {}", error.kind()),
        None => error.kind().to_string(),
    }
}

/// Checks that each group is in one half.
fn halves(figures: &[Figure]) -> Result<(), String> {
    for figure in figures {
        let row = &figure.row;
        let mut others = figures.iter().filter(|other| other.row.group == row.group);
        if others.any(|other| other.row.half != row.half) {
            return Err(format!("the group {} is in both halves", row.group));
        }
    }
    Ok(())
}

//! Folders of published measurements.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::iter;
use std::path::PathBuf;
use std::sync::Arc;

use csv::{DeserializeErrorKind, ErrorKind, Position, StringRecord};
use itertools::Itertools;
use overlock_bench::workload::Workload;
use overlock_sim::MOST_VCPUS;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use overlock_sim::spec::{self, Spec};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Measured};
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

/// After the unit of a rate that is one of each thread.
const A_THREAD: &str = " a thread";

/// So many lines that are wrong are told.
const MOST_TOLD: usize = 20;

/// The columns that a file needs, and those that it may have.
const COLUMNS: [&[&str]; 2] = [
    &[
        "group", "source", "machine", "workload", "lock", "threads", "figure", "unit",
    ],
    &["half", "seen", "host", "guests", "over", "note"],
];

/// A row of a file, as it is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// A unit of figures.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    pub name: &'static str,
    /// Whether two locks can be ordered by it: 1 if more is better, -1 if less is, or else 0.
    pub better: f64,
    /// The figure that a simulation brings.
    of: fn(&Measured) -> Option<f64>,
}

const fn unit(name: &'static str, better: f64, of: fn(&Measured) -> Option<f64>) -> Unit {
    Unit { name, better, of }
}

/// All units. To those by which more is better ` a thread` may be added.
const UNITS: [Unit; 13] = [
    unit(RATIO, 0.0, |m| Some(m.ops_per_sec)),
    unit("throughput ratio", 0.0, |m| Some(m.ops_per_sec)),
    unit("ns", -1.0, |m| Some(1e9 / m.ops_per_sec)),
    unit("op/s", 1.0, |m| Some(m.ops_per_sec)),
    unit("kop/s", 1.0, |m| Some(m.ops_per_sec / 1e3)),
    unit("Mop/s", 1.0, |m| Some(m.ops_per_sec / 1e6)),
    unit("Hz", 1.0, |m| Some(m.ops_per_sec)),
    unit("kHz", 1.0, |m| Some(m.ops_per_sec / 1e3)),
    unit("MHz", 1.0, |m| Some(m.ops_per_sec / 1e6)),
    unit("10 M operations in 30 s", 1.0, |m| {
        Some(m.ops_per_sec / (1e7 / 30.0))
    }),
    unit("Mbit/s", 1.0, |m| m.mbit_per_sec),
    unit("most over least", 0.0, |m| {
        Some(m.max as f64 / m.min.max(1) as f64)
    }),
    unit("queued %", 0.0, Measured::queued_percent),
];
const RATIO: &str = "ratio";

impl Unit {
    fn named(text: &str) -> Result<Self, String> {
        let name = text.strip_suffix(A_THREAD);
        let mut units = UNITS.into_iter();
        let unit = units.find(|unit| match name {
            Some(name) => unit.name == name && unit.better > 0.0,
            None => unit.name == text,
        });
        unit.ok_or_else(|| {
            let names = UNITS.map(|unit| unit.name).join(", ");
            format!("unknown unit '{text}'; the units are {names}, those of rates perhaps with '{A_THREAD}'")
        })
    }
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

impl Figure {
    /// Its simulations.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        iter::once(&self.case).chain(&self.over)
    }

    /// The figure of one of its simulations, if there is anything to compare.
    pub fn of(&self, measured: &Measured) -> Option<f64> {
        let figure = (self.unit.of)(measured)?;
        let is_of_each = self.row.unit.ends_with(A_THREAD);
        let figure = figure
            / if is_of_each {
                self.row.threads as f64
            } else {
                1.0
            };
        (figure.is_finite() && figure > 0.0).then_some(figure)
    }

    /// The same with another value of a key of its machine, or of its host.
    ///
    /// # Errors
    ///
    /// Says what is valid.
    pub fn with(&self, key: &str, value: &str) -> Result<Self, String> {
        let over = self.over.as_ref().map(|case| case.with(key, value));
        Ok(Self {
            case: self.case.with(key, value)?,
            over: over.transpose()?,
            ..self.clone()
        })
    }

    /// The half that it belongs to.
    pub fn half(&self) -> Half {
        self.row.half.unwrap_or(Half::Score)
    }
}

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
    "e5-2680v4.toml" "e5-2699v4.toml" "e7-8895v3.toml" "epyc-7502.toml" "epyc-7571.toml"
    "epyc-9454p.toml" "gold-5320.toml" "gold-6148.toml" "graviton2.toml" "i5-1035g4.toml"
    "i5-3450.toml" "i7-3770.toml" "i7-6.toml" "i7-6700hq.toml" "i9-18.toml"
    "threadripper-1950x.toml" "ultra5-226v.toml" "w-2135.toml" "xeon-8488c.toml"
    "xeon-d-2191.toml"
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
    pub fn figures(&self) -> Result<Vec<Figure>, String> {
        let (mut figures, mut wrong) = (Vec::new(), Vec::new());
        let tables = self.tables().map_err(|error| format!("{self}: {error}"))?;
        if tables.is_empty() {
            return Err(format!("{self} has no file that ends in .csv"));
        }
        for file in tables {
            let text = self.text(&file)?;
            let mut reader = csv::ReaderBuilder::new();
            let mut reader = reader.trim(csv::Trim::All).from_reader(text.as_bytes());
            let titles = reader.headers().cloned();
            let titles = titles.map_err(|error| error.to_string());
            let titles = match titles.and_then(checked) {
                Ok(titles) => titles,
                // A column that is wrong is wrong in each line.
                Err(why) => {
                    wrong.push(format!("{self}/{file}:1: {why}"));
                    continue;
                }
            };
            for record in reader.records() {
                let line = |position: Option<&Position>| position.map_or(0, Position::line);
                let row = record.and_then(|record| {
                    let row = record.deserialize::<Row>(Some(&titles))?;
                    Ok((line(record.position()), row))
                });
                let (line, figure) = match row {
                    Ok((line, row)) => (line, self.figure(row, &figures)),
                    Err(error) => (line(error.position()), Err(fault(&error, &titles))),
                };
                match figure {
                    Ok(figure) => figures.push(figure),
                    Err(why) => wrong.push(format!("{self}/{file}:{line}: {why}")),
                }
            }
        }
        let more = wrong.len().saturating_sub(MOST_TOLD);
        wrong.truncate(MOST_TOLD);
        if more > 0 {
            wrong.push(format!("{more} more lines are wrong"));
        }
        if !wrong.is_empty() {
            return Err(wrong.join("\n"));
        }
        match figures.is_empty() {
            true => Err(format!("{self} has no figures")),
            false => Ok(figures),
        }
    }

    /// Its files in CSV, in their order.
    fn tables(&self) -> std::io::Result<Vec<String>> {
        let mut names = Vec::new();
        match self {
            Self::Published => names.extend(PUBLISHED.iter().map(|(name, _)| (*name).to_owned())),
            Self::At(path) => {
                for entry in fs::read_dir(path)? {
                    names.extend(entry?.file_name().into_string());
                }
                names.sort();
            }
        }
        names.retain(|name| name.ends_with(".csv"));
        Ok(names)
    }

    fn text(&self, name: &str) -> Result<Cow<'static, str>, String> {
        match self {
            Self::Published => {
                let file = PUBLISHED.iter().find(|(file, _)| *file == name);
                let file = file.ok_or_else(|| format!("there is no file {name}"))?;
                Ok(Cow::Borrowed(file.1))
            }
            Self::At(path) => {
                let path = path.join(name);
                let text = fs::read_to_string(&path).map(Cow::Owned);
                text.map_err(|error| format!("{}: {error}", path.display()))
            }
        }
    }

    /// The machine or the host of that name.
    fn spec<T: Spec>(&self, text: &str) -> Result<T, String> {
        spec::read_in(text, &[], |name| self.text(name).map(Cow::into_owned))
    }

    /// The figure of a row, which is in the same half as those of its group among `others`.
    fn figure(&self, row: Row, others: &[Figure]) -> Result<Figure, String> {
        let group = row.group.clone();
        let figure = self.mapped(row).and_then(|figure| {
            let mut others = others.iter().filter(|other| other.row.group == group);
            match others.find(|other| other.half() != figure.half()) {
                Some(_) => Err("it is in both halves".to_owned()),
                None => Ok(figure),
            }
        });
        figure.map_err(|why| format!("group {group}: {why}"))
    }

    fn mapped(&self, row: Row) -> Result<Figure, String> {
        let machine: Arc<Machine> = Arc::new(self.spec(&row.machine)?);
        let host: Arc<Host> = Arc::new(match row.host.as_str() {
            "" => Host::threads(),
            host => self.spec(host)?,
        });
        let workload = row.workload.parse::<Workload>();
        let workload = workload.map_err(|error| error.to_string())?;
        let (threads, guests) = (row.threads, row.guests.unwrap_or(1));
        let unit = Unit::named(&row.unit)?;
        if !(row.figure.is_finite() && row.figure > 0.0) {
            return Err(format!(
                "the figure {} is not a finite number above 0",
                row.figure
            ));
        }
        if unit.name.ends_with(RATIO) != row.over.is_some() {
            return Err(format!(
                "a ratio, and nothing else, has a lock in the column over; the unit is {}",
                row.unit
            ));
        }
        if !(1..=MOST_VCPUS).contains(&threads) {
            return Err(format!("{threads} threads are not 1 to {MOST_VCPUS}"));
        }
        if guests == 0 || !threads.is_multiple_of(guests) {
            return Err(format!("{threads} threads in {guests} guests"));
        }
        let case = |name: &str| {
            let lock = locks::named(workload.family(), name)?;
            match lock.most_threads.filter(|&most| threads > most) {
                Some(most) => Err(format!("{name} takes at most {most} threads")),
                None => Ok(Case {
                    machine: Arc::clone(&machine),
                    host: Arc::clone(&host),
                    others: 0,
                    workload,
                    lock,
                    threads,
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

/// The titles of the columns, if they are those of figures.
fn checked(titles: StringRecord) -> Result<StringRecord, String> {
    let [needed, others] = COLUMNS;
    let mut missing = needed.iter().filter(|name| !titles.iter().contains(*name));
    let mut unknown = titles
        .iter()
        .filter(|title| !needed.contains(title) && !others.contains(title));
    // An unknown title may be a missing one that is misspelt.
    if let Some(title) = unknown.next() {
        let names = COLUMNS.concat().join(", ");
        return Err(format!("unknown column '{title}'; the columns are {names}"));
    }
    if let Some(name) = missing.next() {
        return Err(format!("there is no column '{name}'"));
    }
    match titles.iter().duplicates().next() {
        Some(title) => Err(format!("the column '{title}' is there twice")),
        None => Ok(titles),
    }
}

/// The fault of a line in CSV.
fn fault(error: &csv::Error, titles: &StringRecord) -> String {
    let err = match error.kind() {
        ErrorKind::Deserialize { err, .. } => err,
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => return format!("{len} columns, where the first line has {expected_len}"),
        _ => return error.to_string(),
    };
    let why = match err.kind() {
        DeserializeErrorKind::ParseInt(_) => "must be a whole number above 0".to_owned(),
        kind => kind.to_string(),
    };
    match err.field().and_then(|field| titles.get(field as usize)) {
        Some(title) => format!("column {title}: {why}"),
        None => why,
    }
}

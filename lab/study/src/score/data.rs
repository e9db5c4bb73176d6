//! Folders of published measurements.

use std::fs;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

use csv::{Position, ReaderBuilder, Trim};
use itertools::Itertools;
use overlock_bench::registry;
use overlock_bench::workload::Workload;
use overlock_sim::MOST_VCPUS;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use overlock_sim::spec::{self, Spec};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Measured, Place};

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

/// A row of a file, as it is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Figures of one document, machine and benchmark.
    pub group: String,
    /// The half that the group belongs to; without one it is only scored.
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
    pub guests: Option<usize>,
    /// The lock whose figure it is divided by, if it is a ratio.
    pub over: Option<String>,
    pub figure: f64,
    pub unit: String,
    /// Anything else that a reader should know.
    #[serde(default)]
    pub note: String,
}

impl Row {
    /// The half that it belongs to.
    pub fn half(&self) -> Half {
        self.half.unwrap_or(Half::Score)
    }
}

/// A unit: its name, whether more of it is better (1), less is (-1), or it orders no locks (0), and
/// the figure that a simulation brings.
pub type Unit = (&'static str, f64, fn(&Measured) -> Option<f64>);

/// All units. To those by which more is better [`A_THREAD`] may be added.
const UNITS: [Unit; 11] = [
    (RATIO, 0.0, |m| Some(m.ops_per_sec)),
    ("ns", -1.0, |m| Some(1e9 / m.ops_per_sec)),
    ("op/s", 1.0, |m| Some(m.ops_per_sec)),
    ("kop/s", 1.0, |m| Some(m.ops_per_sec / 1e3)),
    ("Mop/s", 1.0, |m| Some(m.ops_per_sec / 1e6)),
    ("Hz", 1.0, |m| Some(m.ops_per_sec)),
    ("kHz", 1.0, |m| Some(m.ops_per_sec / 1e3)),
    ("MHz", 1.0, |m| Some(m.ops_per_sec / 1e6)),
    ("Mbit/s", 1.0, |m| m.mbit_per_sec),
    ("most over least", 0.0, |m| {
        Some(m.max as f64 / m.min.max(1) as f64)
    }),
    ("queued %", 0.0, Measured::queued_percent),
];
const RATIO: &str = "ratio";
/// After the unit of a rate that is one of each thread.
const A_THREAD: &str = " a thread";

/// The unit of that name.
fn unit(text: &str) -> Result<Unit, String> {
    let name = text.strip_suffix(A_THREAD);
    let fits = |(unit, better, _): &Unit| match name {
        Some(name) => *unit == name && *better > 0.0,
        None => *unit == text,
    };
    UNITS.into_iter().find(fits).ok_or_else(|| {
        let names = UNITS.map(|(unit, ..)| unit).join(", ");
        format!(
            "unknown unit '{text}'; the units are {names}, those of rates perhaps with '{A_THREAD}'"
        )
    })
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
        let share = match self.row.unit.ends_with(A_THREAD) {
            true => self.row.threads as f64,
            false => 1.0,
        };
        let figure = (self.unit.2)(measured)? / share;
        (figure.is_finite() && figure > 0.0).then_some(figure)
    }
}

macro_rules! published {
    ($($file:literal)*) => { [$((
        concat!("lab/study/published/", $file),
        include_str!(concat!("../../published/", $file)),
    )),*] };
}

/// A folder of figures in CSV, with files of machines.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    /// Files of figures, and of machines unless these are read when a row names them.
    files: Vec<(PathBuf, String)>,
}

impl Folder {
    /// That of this project.
    pub fn published() -> Self {
        let files = published! {
            "seeds.csv" "cna.csv" "parking_lot.csv" "swift.csv" "flexguard.csv" "overcommit.csv"
            "hierarchy.csv" "spinlocks.csv" "counters.csv"
            "e5-2680v4.toml" "e5-2699v4.toml" "e7-8895v3.toml" "epyc-7502.toml" "epyc-7571.toml"
            "epyc-9454p.toml" "gold-5320.toml" "gold-6148.toml" "graviton2.toml" "i5-1035g4.toml"
            "i5-3450.toml" "i7-3770.toml" "i7-6.toml" "i7-6700hq.toml" "i9-18.toml"
            "threadripper-1950x.toml" "ultra5-226v.toml" "w-2135.toml" "xeon-8488c.toml"
            "xeon-d-2191.toml"
        };
        Self {
            path: "lab/study/published".into(),
            files: files.map(|(name, text)| (name.into(), text.into())).into(),
        }
    }

    /// Another one; or a file in CSV, with the machines of its folder.
    ///
    /// # Errors
    ///
    /// Names the file that cannot be read.
    pub fn read(path: &Path) -> Result<Self, String> {
        let paths = match is_table(path) {
            true => Ok(vec![path.to_owned()]),
            false => path.read_dir().and_then(|files| {
                let files = files.map(|file| Ok(file?.path()));
                files.collect::<io::Result<Vec<_>>>()
            }),
        };
        let paths = paths.map_err(|why| {
            let wanted = "must be a folder, or a file whose name ends in .csv";
            format!("{}: {why}; it {wanted}", path.display())
        })?;
        let mut files = Vec::new();
        for file in paths.into_iter().filter(|file| is_table(file)).sorted() {
            let text = fs::read_to_string(&file);
            let text = text.map_err(|why| format!("{}: {why}", file.display()))?;
            files.push((file, text));
        }
        let path = path.to_owned();
        Ok(Self { path, files })
    }

    /// All figures of all its files in CSV, in their order.
    ///
    /// # Errors
    ///
    /// Names the first line that cannot be simulated, with its file.
    pub fn figures(&self) -> Result<Vec<Figure>, String> {
        let mut figures = Vec::new();
        for (file, text) in self.files.iter().filter(|(file, _)| is_table(file)) {
            let refused = |why: csv::Error| format!("{}: {why}", file.display());
            let mut reader = ReaderBuilder::new();
            let mut reader = reader.trim(Trim::All).from_reader(text.as_bytes());
            let titles = reader.headers().map_err(refused)?.clone();
            for record in reader.records() {
                let record = record.map_err(refused)?;
                let row = record.deserialize(Some(&titles)).map_err(refused)?;
                let line = record.position().map_or(0, Position::line);
                let figure = self.figure(file, row, &figures);
                figures.push(figure.map_err(|why| format!("{}:{line}: {why}", file.display()))?);
            }
        }
        match figures.is_empty() {
            true => Err(format!(
                "{} has no figures: no row of a file whose name ends in .csv",
                self.path.display()
            )),
            false => Ok(figures),
        }
    }

    /// The machine or the host of that name in a file of figures.
    fn spec<T: Spec>(&self, table: &Path, text: &str) -> Result<T, String> {
        spec::read_in(text, &[], |name| {
            let path = table.with_file_name(name);
            let file = self.files.iter().find(|(file, _)| *file == path);
            file.map_or_else(|| spec::contents(&path), |(_, text)| Ok(text.clone()))
        })
    }

    /// The figure of a row of that file, which is in the same half as those of its group among
    /// `others`.
    fn figure(&self, table: &Path, row: Row, others: &[Figure]) -> Result<Figure, String> {
        if row.group.is_empty() || row.source.is_empty() {
            return Err("the columns group and source must not be empty".to_owned());
        }
        let mut others = others.iter().filter(|other| other.row.group == row.group);
        if others.any(|other| other.row.half() != row.half()) {
            return Err(format!("{} is in both halves", row.group));
        }
        let machine: Machine = self.spec(table, &row.machine)?;
        let host = match row.host.as_str() {
            "" => Host::threads(),
            host => self.spec(table, host)?,
        };
        let workload: Workload = row.workload.parse()?;
        let (threads, guests, figure) = (row.threads, row.guests.unwrap_or(1), row.figure);
        let unit = unit(&row.unit)?;
        if !(figure.is_finite() && figure > 0.0) {
            return Err(format!(
                "the figure {figure} is not a finite number above 0"
            ));
        }
        if (unit.0 == RATIO) != row.over.is_some() {
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
        let mut place = Place::new(machine, host, workload, threads);
        place.guests = guests;
        let case = |name: &str| {
            let lock = registry::simulated(workload.family(), name)?;
            match lock.most_threads.filter(|&most| threads > most) {
                Some(most) => Err(format!("{name} takes at most {most} threads")),
                None => Ok(place.with(lock)),
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

fn is_table(file: &Path) -> bool {
    file.extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("csv"))
}

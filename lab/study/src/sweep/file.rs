//! The file of results: a line of JSON that says what the file is, then one for each simulation
//! that has ended.
//!
//! Lines are only ever appended, each in one piece as its simulation ends. A process that is killed
//! in between leaves half a line at the end, which the next one removes; the rest is whole.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Sweep;
use super::grid::{Grid, Key};
use crate::case::Outcome;

/// The format of the first line, by which a file is known.
const FORMAT: &str = "overlock sweep";
/// Changes with the meaning of the lines.
const VERSION: u32 = 4;
/// The commit of a build without a repository.
const UNKNOWN: &str = "unknown";

/// The build of the program that simulates: two that are equal have the same results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The version of the program.
    pub program: String,
    /// The commit of its sources, or `unknown`.
    pub commit: String,
    /// A checksum of the changes to the sources since that commit, if there are any.
    pub changes: Option<String>,
    /// The profile of cargo.
    pub profile: String,
    /// Whether its locks check for misuse.
    pub checks: bool,
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, commit, profile) = (&self.program, &self.commit, &self.profile);
        let changes = self.changes.iter();
        let changes: String = changes.map(|sum| format!(" with changes {sum}")).collect();
        let checks = if self.checks {
            ", with checks for misuse"
        } else {
            ""
        };
        write!(
            f,
            "overlock {program} (commit {commit}{changes}, profile {profile}{checks})"
        )
    }
}

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header<B, G> {
    format: String,
    version: u32,
    build: B,
    grid: G,
}

/// Any other line. Nothing in it depends on the machine that simulates, or on how long that takes.
#[derive(Serialize, Deserialize)]
struct Record<K, O> {
    #[serde(flatten)]
    key: K,
    #[serde(flatten)]
    outcome: O,
}

/// The message that a file is wrong.
pub(super) fn about(path: &Path, why: impl fmt::Display) -> String {
    format!("{}: {why}", path.display())
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("names and numbers can be written") + "\n"
}

impl Sweep {
    /// Reads a file; `None` if it does not even have a whole first line.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is of another kind or version, or contradicts itself.
    pub fn read(path: &Path) -> Result<Option<Self>, String> {
        let content = fs::read(path).map_err(|error| about(path, error))?;
        Ok(Self::parse(path, &content)?.map(|(sweep, _)| sweep))
    }

    /// The same, of its content, and the bytes up to the end of the last line that is whole.
    fn parse(path: &Path, content: &[u8]) -> Result<Option<(Self, usize)>, String> {
        let refused = |why: String| about(path, why);
        let mark = format!("{{\"format\":\"{FORMAT}\",\"version\":");
        let length = content.len().min(mark.len());
        if content[..length] != mark.as_bytes()[..length] {
            return Err(refused("is no file of `overlock-lab sim sweep`".to_owned()));
        }
        let Some(end) = content.iter().rposition(|&byte| byte == b'\n') else {
            return Ok(None);
        };
        let whole = std::str::from_utf8(&content[..end])
            .map_err(|error| refused(format!("is damaged: {error}")))?;
        let version = whole[mark.len()..].split(',').next().unwrap_or_default();
        if version != VERSION.to_string() {
            return Err(refused(format!(
                "line 1 is of format {version}, and this program has format {VERSION}"
            )));
        }
        let mut lines = (1..).zip(whole.split('\n'));
        let (_, first) = lines.next().unwrap_or_default();
        let header: Header<Build, Grid> = serde_json::from_str(first)
            .map_err(|error| refused(format!("line 1 is damaged: {error}")))?;
        let mut sweep = Self::new(path, header.build, header.grid)
            .map_err(|error| refused(format!("line 1 is of no grid: {error}")))?;
        let keys = sweep.points.iter().map(|(key, _)| key.clone());
        let numbers: HashMap<Key, usize> = keys.zip(0..).collect();
        for (line, text) in lines {
            let refused = |why: String| refused(format!("line {line} {why}"));
            let record = serde_json::from_str(text);
            let record: Record<Key, Outcome> =
                record.map_err(|error| refused(format!("is damaged: {error}")))?;
            let Some(&number) = numbers.get(&record.key) else {
                return Err(refused(format!("is not of this grid: {}", record.key)));
            };
            match &sweep.outcomes[number] {
                None => sweep.outcomes[number] = Some(record.outcome),
                Some(before) if *before == record.outcome => {}
                Some(_) => {
                    return Err(refused(format!("contradicts one before: {}", record.key)));
                }
            }
        }
        Ok(Some((sweep, end + 1)))
    }

    /// The first line of its file.
    fn header(&self) -> String {
        line(&Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            build: &self.build,
            grid: &self.grid,
        })
    }

    /// Writes all results as a file, in the grid's order.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        out.write_all(self.header().as_bytes())?;
        for (key, outcome) in self.known() {
            out.write_all(line(&Record { key, outcome }).as_bytes())?;
        }
        Ok(())
    }

    /// Opens its file, or makes it, and takes over the results that are there already.
    ///
    /// # Errors
    ///
    /// If the file is of something else or of another build, or was changed. If it cannot be
    /// written, or another process writes it now.
    pub fn open(&mut self) -> Result<Store, String> {
        let path = self.path.clone();
        let io = |error: io::Error| about(&path, error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(io)?;
        if !file.metadata().map_err(io)?.is_file() {
            return Err(about(&path, "results need a file"));
        }
        // Some file systems of clusters have no locks: there the user must give each shard its
        // file.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(about(&path, "another sweep writes to it now"));
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(io)?;
        let mut whole = 0;
        if let Some((part, end)) = Self::parse(&path, &content)? {
            part.expect(self)?;
            (self.outcomes, whole) = (part.outcomes, end as u64);
        }
        file.set_len(whole).map_err(io)?;
        file.seek(SeekFrom::Start(whole)).map_err(io)?;
        if whole == 0 {
            file.write_all(self.header().as_bytes()).map_err(io)?;
        }
        Ok(Store { path, file })
    }

    /// Complains unless it is a part of `whole`, of the same build. A build that is unknown is the
    /// same as itself only.
    pub(super) fn expect(&self, whole: &Self) -> Result<(), String> {
        let (theirs, ours) = (&self.build, &whole.build);
        let unknown = ours.commit == UNKNOWN && theirs.commit == UNKNOWN;
        let why = if unknown {
            format!("line 1 is of {theirs}: it may be another build than {ours}")
        } else if theirs != ours {
            format!("line 1 is of {theirs}, whose results are not those of {ours}")
        } else if let Some(difference) = self.grid.difference(&whole.grid) {
            format!("is of another grid, with {difference}")
        } else {
            return Ok(());
        };
        Err(about(&self.path, why))
    }
}

/// A file that results are appended to.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
}

impl Store {
    /// Appends a result.
    pub fn append(&mut self, key: &Key, outcome: &Outcome) -> Result<(), String> {
        let line = line(&Record { key, outcome });
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|error| about(&self.path, error))
    }
}

//! The file of results: a line of JSON that says what the file is, then one for each simulation
//! that has ended.
//!
//! Lines are only ever appended, each in one piece as its simulation ends. A process that is killed
//! in between leaves half a line at the end, which the next one removes; the rest is whole.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::build::Build;
use super::error::Error;
use super::grid::{Grid, Key, Names};
use super::record::Record;

/// How a file begins.
const MARK: &str = r#"{"format":"overlock sweep","#;
/// Changes with the meaning of the lines.
const VERSION: u32 = 4;

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
    build: Build,
    grid: Names,
}

/// The first line, without its end.
pub(super) fn header(build: &Build, grid: &Grid) -> String {
    let header = Header {
        format: "overlock sweep".to_owned(),
        version: VERSION,
        build: build.clone(),
        grid: grid.names(),
    };
    serde_json::to_string(&header).expect("names and numbers can be written")
}

/// The line of a result, without its end.
pub(super) fn line(record: &Record) -> String {
    serde_json::to_string(record).expect("names and numbers can be written")
}

/// The content of a file.
#[derive(Debug)]
pub struct Part {
    pub path: PathBuf,
    /// The build that has simulated.
    pub build: Build,
    /// The grid that it has when it is done, perhaps together with other parts.
    pub grid: Grid,
    /// The results, in their order.
    pub lines: Vec<Record>,
    /// Bytes up to the end of the last line that is whole.
    whole: u64,
}

impl Part {
    /// Reads a file; `None` if it does not even have a whole first line.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is of another kind or version, or contradicts itself.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let content = fs::read(path).map_err(Error::io(path))?;
        Self::parse(path, &content)
    }

    pub(super) fn parse(path: &Path, content: &[u8]) -> Result<Option<Self>, Error> {
        let refused = |why: String| Error::refused(path, why);
        let length = content.len().min(MARK.len());
        if content[..length] != MARK.as_bytes()[..length] {
            return Err(refused("is no file of `overlock-lab sim sweep`".to_owned()));
        }
        let Some(end) = content.iter().rposition(|&byte| byte == b'\n') else {
            return Ok(None);
        };
        let whole = std::str::from_utf8(&content[..end])
            .map_err(|error| refused(format!("is damaged: {error}")))?;
        let mut lines = whole.split('\n');
        let (build, grid) = first(lines.next().unwrap_or_default()).map_err(refused)?;
        let mut part = Self {
            path: path.to_owned(),
            build,
            grid,
            lines: Vec::new(),
            whole: end as u64 + 1,
        };
        part.fill(lines)?;
        Ok(Some(part))
    }

    fn fill<'a>(&mut self, lines: impl Iterator<Item = &'a str>) -> Result<(), Error> {
        let points = self.grid.points();
        let mut found: HashMap<Key, Option<Record>> =
            points.iter().map(|point| (point.key(), None)).collect();
        for (index, text) in lines.enumerate() {
            let refused = |why: String| {
                let number = index + 2;
                Error::refused(&self.path, format!("line {number} {why}"))
            };
            let record: Record = serde_json::from_str(text)
                .map_err(|error| refused(format!("is damaged: {error}")))?;
            let Some(place) = found.get_mut(&record.key) else {
                return Err(refused(format!("is not of this grid: {}", record.key)));
            };
            match place.replace(record.clone()) {
                None => self.lines.push(record),
                Some(other) if other == record => {}
                Some(_) => {
                    return Err(refused(format!("contradicts one before: {}", record.key)));
                }
            }
        }
        Ok(())
    }

    /// Complains unless it is a part of `grid`, simulated by `build`.
    pub(super) fn expect(&self, build: &Build, grid: &Grid) -> Result<(), Error> {
        if let Some(why) = build.refuses(&self.build) {
            return Err(Error::refused(&self.path, format!("line 1 {why}")));
        }
        match self.grid.names().difference(&grid.names()) {
            None => Ok(()),
            Some((what, theirs)) => Err(Error::refused(
                &self.path,
                format!("is of another grid, with {what} {theirs}"),
            )),
        }
    }
}

/// The build and the grid of a file, by its first line.
fn first(line: &str) -> Result<(Build, Grid), String> {
    /// The header field of every version.
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let damaged = |error: serde_json::Error| format!("line 1 is damaged: {error}");
    let Version { version } = serde_json::from_str(line).map_err(damaged)?;
    if version != VERSION {
        return Err(format!(
            "line 1 is of format {version}, and this program has format {VERSION}"
        ));
    }
    let header: Header = serde_json::from_str(line).map_err(damaged)?;
    let grid = header.grid.grid();
    let grid = grid.map_err(|error| format!("line 1 is of no grid: {error}"))?;
    Ok((header.build, grid))
}

/// A file that results are appended to.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
}

impl Store {
    /// Opens the file at `path` for the results of `build` on `grid`, or makes it, and returns the
    /// results that are there already.
    ///
    /// # Errors
    ///
    /// If the file is of something else or of another build, or was changed. If it cannot be
    /// written, or another process writes it now.
    pub fn open(path: &Path, build: &Build, grid: &Grid) -> Result<(Self, Vec<Record>), Error> {
        let io = || Error::io(path);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io())?;
        if !file.metadata().map_err(io())?.is_file() {
            return Err(Error::refused(path, "results need a file"));
        }
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(Error::refused(path, "another sweep writes to it now"));
            }
            // Some file systems of clusters have no locks: there the user must give each shard its
            // file.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(io())?;
        let part = Part::parse(path, &content)?;
        if let Some(part) = &part {
            part.expect(build, grid)?;
        }
        let whole = part.as_ref().map_or(0, |part| part.whole);
        file.set_len(whole).map_err(io())?;
        file.seek(SeekFrom::Start(whole)).map_err(io())?;
        let mut store = Self {
            path: path.to_owned(),
            file,
        };
        let lines = match part {
            Some(part) => part.lines,
            None => {
                store.write(header(build, grid))?;
                Vec::new()
            }
        };
        Ok((store, lines))
    }

    /// Appends a result.
    pub fn append(&mut self, record: &Record) -> Result<(), Error> {
        self.write(line(record))
    }

    fn write(&mut self, mut text: String) -> Result<(), Error> {
        text.push('\n');
        let written: io::Result<()> = self.file.write_all(text.as_bytes());
        written
            .and_then(|()| self.file.flush())
            .map_err(Error::io(&self.path))
    }
}

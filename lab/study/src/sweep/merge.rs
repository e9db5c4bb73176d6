//! Several files made one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};
use std::path::PathBuf;

use super::build::Build;
use super::error::Error;
use super::grid::{Grid, Key, Point};
use super::record::{Outcome, Record};
use super::store::{Part, header, line};

/// All parts together.
#[derive(Debug)]
pub struct Merged {
    /// The build that has simulated all parts.
    pub build: Build,
    pub grid: Grid,
    /// The results, in the grid's order.
    pub lines: Vec<Record>,
    /// The points that no part has, in the same order.
    pub missing: Vec<Key>,
    /// Results that were there more than once.
    pub duplicates: usize,
}

/// Joins parts. Their order does not matter; `None` for no part at all.
///
/// # Errors
///
/// If parts are of different grids or builds, or disagree about a point. Simulations depend on
/// nothing but their settings and the build.
pub fn merge(parts: impl IntoIterator<Item = Part>) -> Result<Option<Merged>, Error> {
    let mut found: HashMap<Key, (Record, PathBuf)> = HashMap::new();
    let (mut merged, mut duplicates) = (None, 0);
    for part in parts {
        match &merged {
            None => merged = Some((part.build.clone(), part.grid.clone())),
            // A build that is unknown is the same as itself only.
            Some((build, grid)) => part.expect(build, grid)?,
        }
        for record in part.lines {
            match found.entry(record.key.clone()) {
                Entry::Vacant(place) => {
                    place.insert((record, part.path.clone()));
                }
                Entry::Occupied(other) if other.get().0 == record => duplicates += 1,
                Entry::Occupied(other) => {
                    let (origin, key) = (other.get().1.display(), &record.key);
                    return Err(Error::refused(
                        &part.path,
                        format!("contradicts {origin}, although both are of one build ({key})"),
                    ));
                }
            }
        }
    }
    let Some((build, grid)) = merged else {
        return Ok(None);
    };
    let (mut lines, mut missing) = (Vec::new(), Vec::new());
    for key in grid.points().iter().map(Point::key) {
        match found.remove(&key) {
            Some((record, _)) => lines.push(record),
            None => missing.push(key),
        }
    }
    Ok(Some(Merged {
        build,
        grid,
        lines,
        missing,
        duplicates,
    }))
}

impl Merged {
    /// The lines of simulations that failed, and how they did.
    pub fn failures(&self) -> impl Iterator<Item = (&Key, &str)> {
        failures(&self.lines)
    }

    /// Writes all of it as a file of results.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "{}", header(&self.build, &self.grid))?;
        for record in &self.lines {
            writeln!(out, "{}", line(record))?;
        }
        Ok(())
    }
}

/// Those of `lines` that failed, and how they did.
pub fn failures(lines: &[Record]) -> impl Iterator<Item = (&Key, &str)> {
    lines.iter().filter_map(|record| match &record.outcome {
        Outcome::Failed { error } => Some((&record.key, error.as_str())),
        Outcome::Measured(_) => None,
    })
}

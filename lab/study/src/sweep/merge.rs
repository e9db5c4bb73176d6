//! Several files made one.

use std::collections::HashMap;
use std::io::{self, Write};

use super::build::Build;
use super::error::Error;
use super::grid::{Grid, Key};
use super::record::{Outcome, Record};
use super::store::{Part, header, line};

/// All parts together.
#[derive(Debug)]
pub struct Merged {
    /// The build that has simulated all parts.
    pub build: Build,
    /// The grid of the parts.
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
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else {
        return Ok(None);
    };
    let (build, grid) = (first.build.clone(), first.grid.clone());
    let mut found: HashMap<Key, (Record, String)> = HashMap::new();
    let mut duplicates = 0;
    let mut alone = true;
    for part in std::iter::once(first).chain(parts) {
        // A build that is unknown is the same as itself only.
        if !std::mem::take(&mut alone) {
            part.expect(&build, &grid)?;
        }
        for record in part.lines {
            match found.get(&record.key) {
                None => {
                    let origin = part.path.display().to_string();
                    found.insert(record.key.clone(), (record, origin));
                }
                Some((other, _)) if *other == record => duplicates += 1,
                Some((_, origin)) => {
                    let key = &record.key;
                    return Err(Error::refused(
                        &part.path,
                        format!("contradicts {origin}, although both are of one build ({key})"),
                    ));
                }
            }
        }
    }
    let mut merged = Merged {
        lines: Vec::with_capacity(found.len()),
        missing: Vec::new(),
        duplicates,
        build,
        grid,
    };
    for point in merged.grid.points() {
        let key = point.key();
        match found.remove(&key) {
            Some((record, _)) => merged.lines.push(record),
            None => merged.missing.push(key),
        }
    }
    Ok(Some(merged))
}

impl Merged {
    /// The lines of simulations that failed, and how they did.
    pub fn failures(&self) -> impl Iterator<Item = (&Key, &str)> {
        failures(&self.lines)
    }

    /// Writes all of it as a file of results.
    ///
    /// # Errors
    ///
    /// Those of `out`.
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

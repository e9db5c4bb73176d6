//! All simulations that are left to do, on several threads.

use std::cell::Cell;
use std::collections::HashSet;
use std::thread;

use super::error::Error;
use super::grid::{Key, Point};
use super::record::{Measured, Outcome, Record};
use super::store::Store;
use crate::pool;
use overlock_bench::error::Error as Failure;
use overlock_bench::interrupt::Interrupt;

/// Of `points`, those that have no line yet.
pub fn left<'a>(points: impl IntoIterator<Item = Point<'a>>, done: &[Record]) -> Vec<Point<'a>> {
    let done: HashSet<&Key> = done.iter().map(|record| &record.key).collect();
    points
        .into_iter()
        .filter(|point| !done.contains(&point.key()))
        .collect()
}

/// Simulates all `points`, so many at once, and appends each to the store as it ends. Before each
/// point, calls `begin` with how many have ended. Returns their lines, which are fewer than the
/// points if `interrupt` was raised.
///
/// # Errors
///
/// If a result cannot be written, or this machine has no room for a simulation. The simulations
/// that run then are dropped.
pub fn run(
    points: &[Point<'_>],
    jobs: usize,
    store: &mut Store,
    interrupt: &Interrupt,
    simulate: impl Fn(&Point<'_>) -> Result<Measured, Failure> + Sync,
    mut begin: impl FnMut(usize, &Key),
) -> Result<Vec<Record>, Error> {
    let ended = Cell::new(0);
    let waiting = points
        .iter()
        .take_while(|_| !interrupt.is_raised())
        .inspect(|point| begin(ended.get(), &point.key()));
    pool::each(waiting, jobs, simulate, |results| {
        let mut lines = Vec::new();
        for (point, result) in results {
            let outcome = match outcome(result).inspect_err(|_| interrupt.raise())? {
                Some(outcome) => outcome,
                None => continue,
            };
            let key = point.key();
            let record = Record { key, outcome };
            // The other simulations would be lost.
            store.append(&record).inspect_err(|_| interrupt.raise())?;
            lines.push(record);
            ended.set(lines.len());
        }
        Ok(lines)
    })
}

/// The result of a simulation, unless it was interrupted.
///
/// # Errors
///
/// A failure that says nothing about the lock, but something about this machine.
fn outcome(result: thread::Result<Result<Measured, Failure>>) -> Result<Option<Outcome>, Error> {
    let error = match result {
        Ok(Ok(measured)) => return Ok(Some(Outcome::Measured(Box::new(measured)))),
        Ok(Err(Failure::Interrupted)) => return Ok(None),
        Ok(Err(failure @ Failure::Spawn { .. })) => return Err(Error::Machine(failure)),
        Ok(Err(failure)) => failure.to_string(),
        Err(panic) => Failure::panicked(&*panic).to_string(),
    };
    Ok(Some(Outcome::Failed { error }))
}

//! The reports of a grid, for people and programs: the worst cells first.

pub mod map;
pub mod markdown;
pub mod svg;
pub mod text;

use serde::Serialize;

use super::check::Loop;
use super::figures::{Judged, judge};
use super::run::{End, Outcome};
use super::summary::{Summary, summarise};
use crate::machine::Machine;
use crate::world::native::Native;

/// The version of the JSON document. It changes when a figure changes its name or its meaning, or
/// is gone; not when there is a new one.
pub const VERSION: u32 = 1;

/// All there is to report, also as JSON.
#[derive(Debug, Serialize)]
pub struct Report {
    /// [`VERSION`]
    pub version: u32,
    /// The machine that ran the grid.
    pub machine: Machine,
    /// The request.
    pub settings: Settings,
    /// Whether the loops cost the same around every lock.
    pub check: Vec<Loop>,
    /// Shapes that the machine does not allow.
    pub skipped: Vec<Skipped>,
    /// Summaries over the cells.
    pub summary: Vec<Summary>,
    /// The cells, the worst first.
    pub cells: Vec<Judged>,
}

/// The request of a grid, defaults filled in.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// `grid` or `short`.
    pub form: &'static str,
    /// The command that makes it again.
    pub command: String,
    /// Throughput rounds of each cell.
    pub rounds: usize,
    /// Rounds of each cell that time the waits.
    pub latency_rounds: usize,
    /// Seconds of a round, before it is stretched.
    pub seconds: f64,
    /// Seed of the random choices.
    pub seed: u64,
    /// The clock that waits were timed with.
    pub clock: &'static str,
    /// `complete`, `interrupted` or `failed`.
    pub end: &'static str,
    /// Seconds that it took.
    pub elapsed_s: f64,
}

/// A shape that was not measured.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    /// Its family.
    pub family: &'static str,
    /// The shape.
    pub shape: &'static str,
    /// The reason.
    pub why: String,
}

impl Report {
    /// The report of a run. Completes `settings` from the run's results.
    pub fn new(
        machine: Machine,
        settings: Settings,
        check: Vec<Loop>,
        outcome: &Outcome,
        world: &Native,
    ) -> Self {
        let cells = judge(outcome, world);
        let rounds = cells.iter().map(|cell| cell.ours().rounds.len()).min();
        let end = match outcome.end {
            End::Complete => "complete",
            End::Interrupted => "interrupted",
            End::Failed(_) => "failed",
        };
        let skipped = outcome.skipped.iter().map(|(shape, why)| Skipped {
            family: shape.family.word(),
            shape: shape.name,
            why: why.clone(),
        });
        Self {
            version: VERSION,
            machine,
            settings: Settings {
                rounds: rounds.unwrap_or(0),
                end,
                elapsed_s: outcome.elapsed.as_secs_f64(),
                clock: world.clock().name(),
                ..settings
            },
            check,
            skipped: skipped.collect(),
            summary: summarise(&cells),
            cells,
        }
    }

    /// The settings, in one line.
    fn headline(&self) -> String {
        let Settings {
            rounds,
            seconds,
            latency_rounds,
            elapsed_s,
            end,
            ..
        } = &self.settings;
        let cells = self.cells.len();
        let end = match *end {
            "complete" => String::new(),
            end => format!(" ({end}: not all that was asked for)"),
        };
        let waits = match latency_rounds {
            0 => String::new(),
            count => format!(" and {count} for the waits"),
        };
        format!(
            "{cells} {} in {:.0} s{end}: {rounds} {} of {seconds:.2} s and more{waits}, interleaved.",
            if cells == 1 { "cell" } else { "cells" },
            elapsed_s,
            if *rounds == 1 { "round" } else { "rounds" },
        )
    }
}

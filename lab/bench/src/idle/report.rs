//! The reports of threads that wait for long, for people and programs.

use serde::Serialize;

use super::Row;
use crate::machine::Machine;
use overlock_report::columns::{Column, blocks};
use overlock_report::numbers::{count, factor, significant};

/// The version of the JSON document; see [`crate::grid::report::VERSION`].
pub const VERSION: u32 = 1;

/// All there is to report, also as JSON.
#[derive(Debug, Serialize)]
pub struct Report {
    /// [`VERSION`]
    pub version: u32,
    /// The machine that ran it.
    pub machine: Machine,
    /// The request.
    pub settings: Settings,
    /// The objects, in the order of the list.
    pub rows: Vec<Row>,
}

/// The request, defaults filled in.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Threads that waited.
    pub threads: usize,
    /// Seconds that they were watched.
    pub seconds: f64,
    /// Seconds before that.
    pub settle_s: f64,
    /// `complete` or `interrupted`.
    pub end: &'static str,
}

const COLUMNS: &[Column<Row>] = &[
    Column("CPU %", |row| cpu(row.cpu_percent)),
    Column("switches/s", |row| count(row.switches_per_sec)),
    Column("all through after", |row| {
        format!("{} ms", significant(row.drain_ms))
    }),
    Column("owner slower by", |row| {
        format!("{} x", factor(row.owner_slowdown))
    }),
];

/// Percent of one CPU.
fn cpu(percent: f64) -> String {
    format!("{percent:.2}")
}

impl Report {
    /// The table for people, the most expensive of ours in front.
    pub fn render(&self, width: Option<u16>) -> String {
        let Settings {
            threads,
            seconds,
            settle_s,
            ..
        } = self.settings;
        let mut text = format!(
            "{}\n{threads} threads blocked for {seconds} s, after {settle_s} s to come to rest.\n",
            self.machine.summary()
        );
        let ours = self.rows.iter().filter(|row| row.ours);
        if let Some(worst) = ours.max_by(|a, b| a.cpu_percent.total_cmp(&b.cpu_percent)) {
            text += &format!(
                "The worst of ours: {} {} at {} % of a CPU and {} switches a second.\n",
                worst.what,
                worst.lock,
                cpu(worst.cpu_percent),
                count(worst.switches_per_sec)
            );
        }
        text.push('\n');
        for kind in self.rows.chunk_by(|a, b| a.what == b.what) {
            let title = kind[0].what;
            text += &blocks(title, kind, |row| row.lock.to_owned(), &[COLUMNS], width);
        }
        text + "CPU %: of all threads that wait, in percent of one CPU; switches: theirs. Zero is \
                what they should be.\nall through after: from the release until the last thread \
                had its turn. owner slower by: time of the\nowner's own work while they wait, over \
                its time alone.\n"
    }
}

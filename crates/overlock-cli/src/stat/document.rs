//! Everything, for programs. The schema is `schema/run.schema.json`.

use serde::Serialize;

use super::process::Process;

/// The whole document.
#[derive(Debug, Serialize)]
pub struct Document {
    /// This program's version.
    pub overlock: &'static str,
    /// The command; empty where it is not known.
    pub command: Vec<String>,
    /// Which locks it had.
    pub mutex: Option<String>,
    /// And which for readers and writers.
    pub rwlock: Option<String>,
    /// How long it ran, in seconds, where that is known.
    pub seconds: Option<f64>,
    /// Those of its processes that used locks.
    pub processes: Vec<Process>,
}

impl Document {
    /// Of tables of which no more is known.
    pub fn of(processes: Vec<Process>) -> Self {
        Self {
            overlock: env!("CARGO_PKG_VERSION"),
            command: Vec::new(),
            mutex: None,
            rwlock: None,
            seconds: None,
            processes,
        }
    }
}

//! All that a run of `overlock check` has found.

use std::fmt;

use serde::Serialize;

use super::Report;
use crate::run::Tally;

/// The document for a file.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    /// The version that has written it.
    pub overlock: &'static str,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Counts of all processes.
    pub sum: &'a Tally,
    /// Those of their reports that could be read, suppressed ones too.
    pub reports: &'a [Report],
}

impl fmt::Display for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for report in self
            .reports
            .iter()
            .filter(|report| report.suppressed.is_none())
        {
            f.write_str(&report.text)?;
            writeln!(f, "suppress it with: {}", report.suppress_with)?;
        }
        writeln!(f, "overlock: {}", self.sum)
    }
}

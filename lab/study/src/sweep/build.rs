//! The build of the program that simulates. Results of two builds do not belong in one file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The commit of a build without a repository.
pub const UNKNOWN: &str = "unknown";

/// A build: two that are equal have the same results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The version of the program.
    pub program: String,
    /// The commit of its sources, or [`UNKNOWN`].
    pub commit: String,
    /// A checksum of the changes to the sources since that commit, if there are any.
    pub changes: Option<String>,
    /// The profile of cargo.
    pub profile: String,
    /// Whether its locks check for misuse.
    pub checks: bool,
}

impl Build {
    /// Why results of `other` are not results of this build; `None` if both are the same.
    pub(super) fn refuses(&self, other: &Self) -> Option<String> {
        if self.commit == UNKNOWN && other.commit == UNKNOWN {
            return Some(format!(
                "is of {other}: it may be another build than {self}"
            ));
        }
        (self != other).then(|| format!("is of {other}, whose results are not those of {self}"))
    }
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "overlock {} (commit {}", self.program, self.commit)?;
        if let Some(changes) = &self.changes {
            write!(f, " with changes {changes}")?;
        }
        write!(f, ", profile {}", self.profile)?;
        if self.checks {
            f.write_str(", with checks for misuse")?;
        }
        f.write_str(")")
    }
}

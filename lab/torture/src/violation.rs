//! Violations: what a lock must not do.

use std::fmt;

use serde::Serialize;

use crate::canary::Torn;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ViolationKind {
    /// Two were inside that should not have been.
    Exclusion,
    /// The count of writes is not what the canary holds.
    Count,
    /// Threads stand still.
    Hang,
    /// A thread was bypassed beyond its lock's bound.
    Starvation,
    /// A waiter gave up without a reason.
    GaveUp,
    /// Nobody uses the lock, and its state does not say so.
    State,
    /// A lock panicked.
    Panic,
}

/// An error of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    pub kind: ViolationKind,
    pub message: String,
    /// The threads' operations at that time, a line each.
    pub details: Vec<String>,
}

impl Violation {
    /// A violation that needs one line.
    pub fn new(kind: ViolationKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: Vec::new(),
        }
    }

    /// `who` has found `torn` under lock `lock`.
    pub fn torn(who: &str, lock: usize, torn: Torn) -> Self {
        Self::new(
            ViolationKind::Exclusion,
            format!("does not exclude: {who} found, under lock {lock}, that {torn}"),
        )
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for line in &self.details {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

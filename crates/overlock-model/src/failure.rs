//! What a checker says when a check fails.

use std::fmt;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A check in a scenario or in a lock did not hold.
    Panic,
    /// No thread can go on, and not all have ended: a lost wake-up, or a real deadlock.
    Deadlock,
    /// The execution does not end.
    NoProgress,
}

/// A failed execution.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What went wrong.
    pub kind: Kind,
    /// The details, for people.
    pub text: String,
    /// The choices that lead there, where the checker can replay them.
    pub path: Option<Vec<u8>>,
    /// What happened, step by step, where the checker can tell.
    pub trace: Vec<String>,
}

impl Failure {
    /// A failure without a path.
    pub fn new(kind: Kind, text: String) -> Self {
        Failure {
            kind,
            text,
            path: None,
            trace: Vec::new(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::Panic => "a check failed",
            Kind::Deadlock => "nobody can go on",
            Kind::NoProgress => "no end in sight",
        };
        write!(f, "{kind}\n{}", self.text)
    }
}

/// A source file's name without the folders above the crate's.
pub(crate) fn short(file: &str) -> &str {
    file.rsplit_once("src/").map_or(file, |(_, name)| name)
}

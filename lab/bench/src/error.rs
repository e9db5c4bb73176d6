//! Errors of a run.

use std::any::Any;
use std::fmt;

use crate::lock::CreateError;

/// Why a run ended without a result.
#[derive(Debug)]
pub enum Error {
    /// The protected data are not what the operations add up to.
    NotExclusive {
        /// The sum of the operations.
        expected: u64,
        /// The sum in the protected data.
        found: u64,
    },
    /// A worker saw the protected data between two states.
    Torn {
        /// How many read them.
        reads: u64,
        /// How many of the reads saw that.
        torn: u64,
    },
    /// A lock could not be created.
    Create(CreateError),
    /// The machine did not give us the threads.
    Spawn {
        /// Threads wanted.
        wanted: usize,
        /// Threads that could be started.
        got: usize,
        /// The system's reason.
        why: String,
    },
    /// A simulation did not end.
    Simulation(String),
    /// A thread panicked, with this message.
    Panicked(String),
    /// Ctrl-C.
    Interrupted,
}

impl Error {
    /// Of a panic.
    pub fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(text), _) => *text,
            (_, Some(text)) => text.as_str(),
            _ => "for no known reason",
        };
        Self::Panicked(text.to_owned())
    }
}

impl From<CreateError> for Error {
    fn from(error: CreateError) -> Self {
        Self::Create(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotExclusive { expected, found } => {
                write!(
                    f,
                    "does not exclude: {expected} operations left {found} in the protected data"
                )
            }
            Self::Torn { reads, torn } => {
                write!(
                    f,
                    "does not exclude: {torn} of {reads} reads of the protected data found them half changed"
                )
            }
            Self::Create(error) => write!(f, "cannot be created: {error}"),
            Self::Spawn { wanted, got, why } => {
                write!(
                    f,
                    "this machine started {got} of {wanted} threads and no more: {why}"
                )
            }
            Self::Simulation(why) => write!(f, "did not end: {why}"),
            Self::Panicked(why) => write!(f, "panicked: {why}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

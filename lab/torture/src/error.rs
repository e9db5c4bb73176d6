//! Why a run ended without a result.

use std::fmt;

use overlock_core::raw::CreateError;

/// Why a run ended without a result.
#[derive(Debug)]
pub enum Error {
    /// A lock could not be created.
    Create(CreateError),
    /// The machine did not give us the threads.
    Spawn {
        /// Threads asked for.
        wanted: usize,
        /// Threads that could be started.
        got: usize,
        /// The system's reason.
        why: String,
    },
    /// The user asked to stop.
    Interrupted,
}

impl From<CreateError> for Error {
    fn from(error: CreateError) -> Self {
        Self::Create(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(error) => write!(f, "a lock cannot be created: {error}"),
            Self::Spawn { wanted, got, why } => {
                write!(
                    f,
                    "this machine started {got} of {wanted} threads and no more: {why}"
                )
            }
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

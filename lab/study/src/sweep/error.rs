//! Why a sweep ends without results.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use overlock_bench::error::Error as Failure;

/// Why a file of results cannot be used, or a sweep cannot go on.
#[derive(Debug)]
pub enum Error {
    /// Reading or writing it failed.
    Io(PathBuf, io::Error),
    /// It is not what it has to be, and why.
    Refused(PathBuf, String),
    /// This machine cannot run a simulation, which is no result.
    Machine(Failure),
}

impl Error {
    /// Maps an I/O error of `path`.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |error| Self::Io(path, error)
    }

    /// `path` is not what it has to be.
    pub(super) fn refused(path: &Path, why: impl Into<String>) -> Self {
        Self::Refused(path.to_owned(), why.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Refused(path, why) => write!(f, "{}: {why}", path.display()),
            Self::Machine(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

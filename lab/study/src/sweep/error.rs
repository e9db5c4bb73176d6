//! Why a sweep ends without results.

use std::io;
use std::path::{Path, PathBuf};

use overlock_bench::error::Error as Failure;

/// Why a file of results cannot be used, or a sweep cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading or writing it failed.
    #[error("{}: {error}", .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    /// It is not what it has to be, and why.
    #[error("{}: {error}", .0.display(), error = .1)]
    Refused(PathBuf, String),
    /// This machine cannot run a simulation, which is no result.
    #[error("{0}")]
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

//! What a lock must offer to be measured.

use std::fmt;

/// A lock as the workloads see it.
///
/// Workloads are generic over this trait, so that a lock's fast path is inlined into the measured loop
/// the way it would be into a user's program. The data that workloads protect are atomic words that
/// they read and write without read-modify-write operations: a lock that does not exclude shows up as
/// a wrong sum, not as undefined behaviour.
pub trait BenchLock: Send + Sync + Sized + 'static {
    /// Releases the lock when dropped.
    type Guard<'a>;

    /// Whether it excludes anybody. Only [`Nothing`] does not.
    const EXCLUDES: bool = true;

    /// A new, unlocked lock.
    ///
    /// # Errors
    ///
    /// Where the lock needs a resource that is used up.
    fn create() -> Result<Self, CreateError>;

    /// Acquires the lock, waiting for as long as it takes.
    fn lock(&self) -> Self::Guard<'_>;
}

/// A lock could not be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateError(pub String);

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CreateError {}

/// No lock at all: what the loop around the lock can do by itself. The upper limit of every lock in
/// the same cell, never a choice for anything.
#[derive(Debug)]
pub struct Nothing;

impl BenchLock for Nothing {
    type Guard<'a> = ();

    const EXCLUDES: bool = false;

    fn create() -> Result<Self, CreateError> {
        Ok(Self)
    }

    #[inline]
    fn lock(&self) {}
}

//! The traits of locks that can be measured.

use std::fmt;

/// A lock as the workloads see it.
///
/// Workloads are generic over this trait, so that a lock's fast path is inlined into the measured
/// loop the way it would be into a user's program. The data that workloads protect are atomic words
/// that they read and write without read-modify-write operations: a lock that does not exclude
/// shows up as a wrong sum, not as undefined behaviour.
pub trait BenchLock: Send + Sync + Sized + 'static {
    /// Releases the lock when dropped.
    type Guard<'a>;

    /// Whether it excludes anybody. Only [`Nothing`] does not.
    const EXCLUDES: bool = true;

    /// A new, unlocked lock.
    ///
    /// # Errors
    ///
    /// If the lock needs a resource that is used up.
    fn create() -> Result<Self, CreateError>;

    /// Acquires the lock, waiting for as long as it takes.
    fn lock(&self) -> Self::Guard<'_>;
}

/// A reader-writer lock as the workloads see it; what [`BenchLock`] says of data holds here too.
pub trait BenchRwLock: Send + Sync + Sized + 'static {
    /// Releases a reader's acquisition when dropped.
    type Read<'a>;

    /// Releases a writer's acquisition when dropped.
    type Write<'a>;

    /// Whether it excludes anybody. Only [`Nothing`] does not.
    const EXCLUDES: bool = true;

    /// A new, unlocked lock.
    ///
    /// # Errors
    ///
    /// If the lock needs a resource that is used up.
    fn create() -> Result<Self, CreateError>;

    /// Acquires the lock together with other readers, waiting for as long as it takes.
    fn read(&self) -> Self::Read<'_>;

    /// Acquires the lock alone, waiting for as long as it takes.
    fn write(&self) -> Self::Write<'_>;
}

/// A condition variable and the mutex that goes with it.
///
/// They are two types, since a mutex often has more than one condition.
pub trait BenchCondvar: Send + Sync + Sized + 'static {
    /// The lock that waiters hold when they begin to wait, and again when they return.
    type Mutex: BenchLock;

    /// A new condition variable that nobody waits for. It is used with one mutex.
    ///
    /// # Errors
    ///
    /// If it needs a resource that is used up.
    fn create() -> Result<Self, CreateError>;

    /// Releases the lock, sleeps until notified, and acquires the lock again. May return for no
    /// reason.
    fn wait<'a>(&self, guard: Held<'a, Self>) -> Held<'a, Self>;

    /// Wakes one of those that wait, if there are any.
    fn notify_one(&self);

    /// Wakes all that wait.
    fn notify_all(&self);
}

/// The guard of a condition variable's mutex.
pub type Held<'a, V> = <<V as BenchCondvar>::Mutex as BenchLock>::Guard<'a>;

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

impl BenchRwLock for Nothing {
    type Read<'a> = ();
    type Write<'a> = ();

    const EXCLUDES: bool = false;

    fn create() -> Result<Self, CreateError> {
        Ok(Self)
    }

    #[inline]
    fn read(&self) {}

    #[inline]
    fn write(&self) {}
}

/// A mutual-exclusion lock in the place of a reader-writer lock: readers exclude each other.
#[derive(Debug)]
pub struct AllAlone<L>(L);

impl<L: BenchLock> BenchRwLock for AllAlone<L> {
    type Read<'a> = L::Guard<'a>;
    type Write<'a> = L::Guard<'a>;

    fn create() -> Result<Self, CreateError> {
        L::create().map(Self)
    }

    #[inline]
    fn read(&self) -> L::Guard<'_> {
        self.0.lock()
    }

    #[inline]
    fn write(&self) -> L::Guard<'_> {
        self.0.lock()
    }
}

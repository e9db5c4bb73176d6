//! A checker's world for scenarios, beyond the platform: threads, and data to guard.

use std::cell::Cell;

use overlock_core::FutexPlatform;
use overlock_core::sleep::rt_mutex::PiPlatform;
use overlock_family::FamilyPlatform;

/// A checker's world.
pub trait World: FamilyPlatform + FutexPlatform + PiPlatform {
    /// Its name in tables and options.
    const NAME: &'static str;
    /// Data whose every access it can judge.
    type Data: Data;
    /// A thread that was started.
    type Handle: Send + 'static;

    /// Starts a thread.
    fn spawn(body: impl FnOnce() + Send + 'static) -> Self::Handle;

    /// Waits until a thread has ended; what it did lies before the return.
    fn join(handle: Self::Handle);

    /// A moment at which other threads may come.
    fn breathe();
}

thread_local! {
    /// The threads of the execution that have a rank, a bit each.
    static RANKED: Cell<u64> = const { Cell::new(0) };
}

/// The rank of a thread.
pub(crate) fn rank(thread: Option<usize>) -> u32 {
    thread.map_or(0, |thread| (RANKED.get() >> thread & 1) as u32)
}

/// Performs something with a rank.
pub fn ranked<W: World, R>(perform: impl FnOnce() -> R) -> R {
    let bit = W::slot().map_or(0, |thread| 1 << thread);
    RANKED.set(RANKED.get() | bit);
    let result = perform();
    RANKED.set(RANKED.get() & !bit);
    result
}

/// An execution begins: nobody has a rank.
pub(crate) fn forget_ranks() {
    RANKED.set(0);
}

/// Data that a lock guards.
pub trait Data: Send + Sync + 'static {
    /// Nobody has accessed it yet.
    fn new() -> Self;

    /// An access that excludes all others. Panics where another one is not ordered with it.
    fn write(&self);

    /// An access that excludes those that write. Panics where one of them is not ordered with it.
    fn read(&self);
}

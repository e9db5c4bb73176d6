//! A checker's world for scenarios, beyond the platform: threads, and data to guard.

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

/// Data that a lock guards.
pub trait Data: Send + Sync + 'static {
    /// Nobody has accessed it yet.
    fn new() -> Self;

    /// An access that excludes all others. Panics where another one is not ordered with it.
    fn write(&self);

    /// An access that excludes those that write. Panics where one of them is not ordered with it.
    fn read(&self);
}

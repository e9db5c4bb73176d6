//! What the user has chosen: environment variables, read once.
//!
//! | variable | values |
//! |---|---|
//! | `OVERLOCK_MUTEX` | the lock behind `pthread_mutex_t`: `overlock` (default), `mutex`, `glibc` |
//! | `OVERLOCK_RWLOCK` | the lock behind `pthread_rwlock_t`: `overlock` (default), `rwsem`, `glibc` |
//! | `OVERLOCK_STAT` | `1`: count contention |
//! | `OVERLOCK_LOCKDEP` | `1`: check the order of locks |
//! | `OVERLOCK_LOCKDEP_SLEEP` | `1`: and warn of locks that are held in sleep of any kind |
//! | `OVERLOCK_LOCKDEP_READER` | a FIFO, on which `overlock run` reads the reports |
//! | `OVERLOCK_STAT_DIR` | the directory for the table of contention: see `stat` |
//! | `OVERLOCK_FUTEX_ALONE` | `1`: the process begins under a seccomp filter that allows no more: see [`overlock::Linux::use_futex_alone`] |
//!
//! A value that is not known counts as the default; `overlock run` refuses it before.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use overlock_linux::__private::variable;

use crate::fork;

/// Which lock a mutex is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutexLock {
    /// The recommended one.
    Overlock,
    /// The kernel's mutex.
    Mutex,
    /// The C library's.
    Glibc,
}

/// Which lock a reader-writer lock is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RwLock {
    /// The recommended one.
    Overlock,
    /// The kernel's reader-writer semaphore.
    Rwsem,
    /// The C library's.
    Glibc,
}

/// All of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The lock behind `pthread_mutex_t`.
    pub mutex: MutexLock,
    /// The lock behind `pthread_rwlock_t`.
    pub rwlock: RwLock,
    /// Contention is counted.
    pub stat: bool,
    /// The order of locks is checked.
    pub lockdep: bool,
    /// And sleep of any kind.
    pub lockdep_sleep: bool,
}

const MUTEXES: [(&CStr, MutexLock); 3] = [
    (c"overlock", MutexLock::Overlock),
    (c"mutex", MutexLock::Mutex),
    (c"glibc", MutexLock::Glibc),
];

const RWLOCKS: [(&CStr, RwLock); 3] = [
    (c"overlock", RwLock::Overlock),
    (c"rwsem", RwLock::Rwsem),
    (c"glibc", RwLock::Glibc),
];

const KNOWN: u32 = 1 << 31;
const STAT: u32 = 1 << 30;
const LOCKDEP: u32 = 1 << 29;
const LOCKDEP_SLEEP: u32 = 1 << 28;

/// The configuration in bits; 0 until it is known.
static CONFIG: AtomicU32 = AtomicU32::new(0);

/// No object's generation: sends everybody the general way.
const NEVER: u32 = u32::MAX - 1;

/// The generation of those mutexes that may be acquired, or released, in the shortest way: see
/// [`crate::mutex`].
static LOCK_GENERATION: AtomicU32 = AtomicU32::new(NEVER);
static UNLOCK_GENERATION: AtomicU32 = AtomicU32::new(NEVER);
static STAT_GENERATION: AtomicU32 = AtomicU32::new(NEVER);

/// The same for reader-writer locks.
static RW_GENERATION: AtomicU32 = AtomicU32::new(NEVER);
static RW_STAT_GENERATION: AtomicU32 = AtomicU32::new(NEVER);
static RW_UNLOCK_GENERATION: AtomicU32 = AtomicU32::new(NEVER);

#[inline(always)]
pub(crate) fn lock_generation() -> u32 {
    // Relaxed, as all here: the values are all there is to see.
    LOCK_GENERATION.load(Relaxed)
}

/// With statistics, the shortest way is another one.
#[inline(always)]
pub(crate) fn stat_generation() -> u32 {
    STAT_GENERATION.load(Relaxed)
}

#[inline(always)]
pub(crate) fn unlock_generation() -> u32 {
    UNLOCK_GENERATION.load(Relaxed)
}

#[inline(always)]
pub(crate) fn rw_generation() -> u32 {
    RW_GENERATION.load(Relaxed)
}

#[inline(always)]
pub(crate) fn rw_stat_generation() -> u32 {
    RW_STAT_GENERATION.load(Relaxed)
}

#[inline(always)]
pub(crate) fn rw_unlock_generation() -> u32 {
    RW_UNLOCK_GENERATION.load(Relaxed)
}

/// The configuration.
#[inline]
pub fn get() -> Config {
    let mut bits = CONFIG.load(Relaxed);
    if bits == 0 {
        bits = read();
    }
    let mutex = (bits & 0xff) as usize % MUTEXES.len();
    let rwlock = (bits >> 8 & 0xff) as usize % RWLOCKS.len();
    Config {
        mutex: MUTEXES[mutex].1,
        rwlock: RWLOCKS[rwlock].1,
        stat: bits & STAT != 0,
        lockdep: bits & LOCKDEP != 0,
        lockdep_sleep: bits & (LOCKDEP | LOCKDEP_SLEEP) == LOCKDEP | LOCKDEP_SLEEP,
    }
}

#[cold]
fn read() -> u32 {
    fn index<T>(name: &CStr, known: &[(&CStr, T)]) -> u32 {
        let value = variable(name);
        let found = known.iter().position(|&(known, _)| Some(known) == value);
        found.unwrap_or(0) as u32
    }
    let on = |name, bit| match variable(name) {
        Some(value) if value == c"1" => bit,
        _ => 0,
    };
    let bits = KNOWN
        | index(c"OVERLOCK_MUTEX", &MUTEXES)
        | index(c"OVERLOCK_RWLOCK", &RWLOCKS) << 8
        | on(c"OVERLOCK_STAT", STAT)
        | on(c"OVERLOCK_LOCKDEP", LOCKDEP)
        | on(c"OVERLOCK_LOCKDEP_SLEEP", LOCKDEP_SLEEP);
    CONFIG.store(bits, Relaxed);
    generation_changed();
    bits
}

/// The shortest ways are for objects of the process's generation.
pub(crate) fn generation_changed() {
    let config = get();
    let plain = config.mutex == MutexLock::Overlock && !config.lockdep;
    let shortest = |plain| if plain { fork::generation() } else { NEVER };
    UNLOCK_GENERATION.store(shortest(plain), Relaxed);
    LOCK_GENERATION.store(shortest(plain && !config.stat), Relaxed);
    STAT_GENERATION.store(shortest(plain && config.stat), Relaxed);
    let plain = config.rwlock == RwLock::Overlock && !config.lockdep;
    RW_UNLOCK_GENERATION.store(shortest(plain), Relaxed);
    RW_GENERATION.store(shortest(plain && !config.stat), Relaxed);
    RW_STAT_GENERATION.store(shortest(plain && config.stat), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_variables_all_is_the_default() {
        let config = get();
        assert_eq!(config.mutex, MutexLock::Overlock);
        assert_eq!(config.rwlock, RwLock::Overlock);
        assert!(!config.stat && !config.lockdep && !config.lockdep_sleep);
        assert_eq!(lock_generation(), 0);
    }
}

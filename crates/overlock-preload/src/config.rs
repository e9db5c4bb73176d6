//! The configuration: environment variables, read once.
//!
//! | variable | values |
//! |---|---|
//! | `OVERLOCK_MUTEX` | the lock behind `pthread_mutex_t`: `overlock` (default), `glibc` |
//! | `OVERLOCK_RWLOCK` | the lock behind `pthread_rwlock_t`: `overlock` (default), `glibc` |
//! | `OVERLOCK_SPIN` | spins before sleeps: `auto` (default), `off`, or the longest in microseconds |
//! | `OVERLOCK_SPIN_ONLY` | `1`: with both locks glibc's, the other objects stay ours, to spin before their sleeps |
//! | `OVERLOCK_STAT` | `1`: count contention |
//! | `OVERLOCK_LOCKDEP` | `1`: check the order of locks |
//! | `OVERLOCK_LOCKDEP_ALL` | `1`: also report cycles that one thread alone has made |
//! | `OVERLOCK_LOCKDEP_SLEEP` | `1`: also warn of locks that are held during sleeps of any kind |
//! | `OVERLOCK_LOCKDEP_READER` | a FIFO, on which `overlock run` reads the reports |
//! | `OVERLOCK_LOCKDEP_TALLY` | a file of 24 bytes, in which the validator counts |
//! | `OVERLOCK_SUMMARY` | the id of the process that says in a line how many locks were replaced |
//! | `OVERLOCK_PROFILE` | with `OVERLOCK_STAT`: also show single waits of so many nanoseconds and more |
//! | `OVERLOCK_STAT_AGAIN` | `0`: do not count waits for a mutex at the end of a wait for a condition, which are not seen of the C library's |
//! | `OVERLOCK_STAT_DIR` | the directory for the table of contention: see `stat` |
//! | `OVERLOCK_FUTEX_ALONE` | `1`: the process begins under a seccomp filter that allows `futex` only: see [`overlock::Linux::use_futex_alone`] |
//!
//! Unknown values count as the default; `overlock run` refuses them.
//!
//! With both locks glibc's, so are conditions, semaphores, barriers and spinlocks, and no thread
//! spins: nothing of ours is behind any object.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use overlock_linux::__private::variable;

use crate::{fork, mutex, order, stat, thread, watchers};

/// The lock behind a function of pthread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The recommended one.
    Overlock,
    /// The C library's.
    Glibc,
}

/// The whole configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The lock behind `pthread_mutex_t`.
    pub mutex: Lock,
    /// The lock behind `pthread_rwlock_t`.
    pub rwlock: Lock,
    /// The same for all other objects, and before waits for futexes and events.
    pub others: Lock,
    /// Whether contention is counted.
    pub stat: bool,
    /// Whether that is so after waits for conditions.
    pub stat_again: bool,
    /// Whether single waits are shown, too.
    pub profile: bool,
    /// Whether a tool like helgrind watches the accesses to the C library's objects.
    pub watched: bool,
    /// Whether the order of locks is checked.
    pub lockdep: bool,
    /// Whether locks held during sleeps of any kind are reported.
    pub lockdep_sleep: bool,
}

const KNOWN: u32 = 1 << 31;
const STAT: u32 = 1 << 30;
const LOCKDEP: u32 = 1 << 29;
const LOCKDEP_SLEEP: u32 = 1 << 28;
const GLIBC_MUTEX: u32 = 1;
const GLIBC_RWLOCK: u32 = 1 << 1;
const GLIBC_OTHERS: u32 = 1 << 2;
const SPIN_ONLY: u32 = 1 << 3;
const PROFILE: u32 = 1 << 4;
const NOT_AGAIN: u32 = 1 << 5;
const WATCHED: u32 = 1 << 6;

/// The configuration in bits; 0 before it is read.
static CONFIG: AtomicU32 = AtomicU32::new(0);

/// Not the generation of any object: disables a fast path.
const NEVER: u32 = u32::MAX - 1;

/// The generation of the mutexes that may be acquired, or released, on the fast path: see
/// [`crate::mutex`].
static LOCK_GENERATION: AtomicU32 = AtomicU32::new(NEVER);
static UNLOCK_GENERATION: AtomicU32 = AtomicU32::new(NEVER);
static STAT_GENERATION: AtomicU32 = AtomicU32::new(NEVER);
static CHECK_GENERATION: AtomicU32 = AtomicU32::new(NEVER);

/// The same for reader-writer locks.
static RW_GENERATION: AtomicU32 = AtomicU32::new(NEVER);
static RW_STAT_GENERATION: AtomicU32 = AtomicU32::new(NEVER);
static RW_UNLOCK_GENERATION: AtomicU32 = AtomicU32::new(NEVER);
static RW_CHECK_GENERATION: AtomicU32 = AtomicU32::new(NEVER);

#[inline(always)]
pub(crate) fn lock_generation() -> u32 {
    // Relaxed, as all here: no other data depends on the values.
    LOCK_GENERATION.load(Relaxed)
}

/// The generation for the fast paths with statistics, which are off until the first acquisition.
#[inline(always)]
pub(crate) fn stat_generation() -> u32 {
    STAT_GENERATION.load(Relaxed)
}

/// The generation for the fast paths with the validator.
#[inline(always)]
pub(crate) fn check_generation() -> u32 {
    CHECK_GENERATION.load(Relaxed)
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
pub(crate) fn rw_check_generation() -> u32 {
    RW_CHECK_GENERATION.load(Relaxed)
}

#[inline(always)]
pub(crate) fn rw_unlock_generation() -> u32 {
    RW_UNLOCK_GENERATION.load(Relaxed)
}

#[inline]
pub fn get() -> Config {
    let mut bits = CONFIG.load(Relaxed);
    if bits == 0 {
        bits = read();
    }
    let lock = |glibcs| match bits & glibcs {
        0 => Lock::Overlock,
        _ => Lock::Glibc,
    };
    Config {
        mutex: lock(GLIBC_MUTEX),
        rwlock: lock(GLIBC_RWLOCK),
        others: lock(GLIBC_OTHERS),
        stat: bits & STAT != 0,
        stat_again: bits & NOT_AGAIN == 0,
        profile: bits & (STAT | PROFILE) == STAT | PROFILE,
        watched: bits & WATCHED != 0,
        lockdep: bits & LOCKDEP != 0,
        lockdep_sleep: bits & (LOCKDEP | LOCKDEP_SLEEP) == LOCKDEP | LOCKDEP_SLEEP,
    }
}

/// [`Config::profile`] once the configuration is read: for fast paths, which call nothing.
#[inline(always)]
pub(crate) fn is_profiled() -> bool {
    CONFIG.load(Relaxed) & (STAT | PROFILE) == STAT | PROFILE
}

/// Whether conditions, semaphores, barriers and spinlocks are glibc's, and nothing spins.
#[inline]
pub(crate) fn leaves_others() -> bool {
    get().others == Lock::Glibc
}

#[cold]
fn read() -> u32 {
    let bit = |name, value, bit| match variable(name) == Some(value) {
        true => bit,
        false => 0,
    };
    let wanted = || {
        bit(c"OVERLOCK_MUTEX", c"glibc", GLIBC_MUTEX)
            | bit(c"OVERLOCK_RWLOCK", c"glibc", GLIBC_RWLOCK)
            | bit(c"OVERLOCK_STAT", c"1", STAT)
            | bit(c"OVERLOCK_LOCKDEP", c"1", LOCKDEP)
            | bit(c"OVERLOCK_LOCKDEP_SLEEP", c"1", LOCKDEP_SLEEP)
            | bit(c"OVERLOCK_SPIN_ONLY", c"1", SPIN_ONLY)
            | bit(c"OVERLOCK_STAT_AGAIN", c"0", NOT_AGAIN)
            | variable(c"OVERLOCK_PROFILE").map_or(0, |_| PROFILE)
    };
    let mut bits = KNOWN
        | match watchers::present() {
            Some(_) => GLIBC_MUTEX | GLIBC_RWLOCK | WATCHED,
            None => wanted(),
        };
    if bits & (GLIBC_MUTEX | GLIBC_RWLOCK | SPIN_ONLY) == GLIBC_MUTEX | GLIBC_RWLOCK {
        bits |= GLIBC_OTHERS;
    }
    if bits & STAT != 0 {
        stat::set_up(bits & PROFILE != 0);
    }
    CONFIG.store(bits, Relaxed);
    if bits & LOCKDEP != 0 {
        order::set_up();
    }
    if bits & GLIBC_MUTEX == 0 {
        // Not by a system call: a program may begin under a filter.
        thread::look_for_libcs_id(mutex::owner_of_a_glibcs());
    }
    generation_changed();
    bits
}

/// Enables the fast paths for objects of the process's generation.
pub(crate) fn generation_changed() {
    let config = get();
    let counted = config.stat && stat::is_used();
    let ours = config.mutex == Lock::Overlock;
    let plain = ours && !config.lockdep;
    let shortest = |plain| if plain { fork::generation() } else { NEVER };
    CHECK_GENERATION.store(shortest(ours && config.lockdep && !config.stat), Relaxed);
    UNLOCK_GENERATION.store(shortest(plain), Relaxed);
    LOCK_GENERATION.store(shortest(plain && !config.stat), Relaxed);
    STAT_GENERATION.store(shortest(plain && counted), Relaxed);
    let ours = config.rwlock == Lock::Overlock;
    let plain = ours && !config.lockdep;
    RW_CHECK_GENERATION.store(shortest(ours && config.lockdep && !config.stat), Relaxed);
    RW_UNLOCK_GENERATION.store(shortest(plain), Relaxed);
    RW_GENERATION.store(shortest(plain && !config.stat), Relaxed);
    RW_STAT_GENERATION.store(shortest(plain && counted), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_variables_the_configuration_is_the_default() {
        let config = get();
        assert_eq!(config.mutex, Lock::Overlock);
        assert_eq!(config.rwlock, Lock::Overlock);
        assert_eq!(config.others, Lock::Overlock);
        assert!(!config.stat && !config.lockdep && !config.lockdep_sleep);
        assert_eq!(lock_generation(), 0);
    }
}

//! The static probes of the C library, by its names and with its arguments, so that tools which
//! know them go on working: `bpftrace`, `perf`, SystemTap, `gdb` (`info probes`).
//!
//! A probe is an instruction that does nothing, and a note that is not loaded. Nobody pays for one
//! until a tool writes a breakpoint there.
//!
//! Two are here more often than in glibc. A wait for a condition releases its mutex and acquires it
//! again with `mutex_release` and `mutex_acquired`. And a mutex that stays glibc's has them here
//! too, since many distributions build glibc without probes.

macro_rules! probes {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident),*);)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        pub(crate) fn $name($($argument: usize),*) {
            probe::probe!(libc, $name, $($argument),*);
        }
    )*};
}

probes! {
    /// It has been initialised.
    fn mutex_init(mutex);
    /// It is about to be destroyed.
    fn mutex_destroy(mutex);
    /// `pthread_mutex_lock` begins.
    fn mutex_entry(mutex);
    /// It has acquired the mutex.
    fn mutex_acquired(mutex);
    /// `pthread_mutex_timedlock` begins.
    fn mutex_timedlock_entry(mutex, at);
    /// `pthread_mutex_clocklock` begins.
    fn mutex_clocklock_entry(mutex, clock, at);
    /// One of these two has acquired the mutex.
    fn mutex_timedlock_acquired(mutex);
    /// The mutex is about to be released. (glibc's is behind the release, where the mutex may be
    /// another thread's already.)
    fn mutex_release(mutex);
    /// A lock is about to be destroyed.
    fn rwlock_destroy(lock);
    /// `pthread_rwlock_rdlock` begins.
    fn rdlock_entry(lock);
    /// It has acquired the lock.
    fn rdlock_acquire_read(lock);
    /// `pthread_rwlock_wrlock` begins.
    fn wrlock_entry(lock);
    /// It has acquired the lock.
    fn wrlock_acquire_write(lock);
    /// `pthread_rwlock_unlock` begins.
    fn rwlock_unlock(lock);
    /// A condition has been initialised with these attributes.
    fn cond_init(cond, attributes);
    /// It is about to be destroyed.
    fn cond_destroy(cond);
    /// A wait for it, limited or not, begins.
    fn cond_wait(cond, mutex);
    /// `pthread_cond_signal` begins.
    fn cond_signal(cond);
    /// `pthread_cond_broadcast` begins.
    fn cond_broadcast(cond);
}

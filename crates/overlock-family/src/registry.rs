//! The lists of all locks: the family's, and the recommended ones of [`overlock_core`] that the
//! same tests, checkers and benchmarks run on. A new lock is its file with its
//! [row](overlock_core::facts) and its tests, its module, and one line here. The model checkers
//! list its sources, a file its mutants, and the book's page of the family has its section.

/// Calls `$callback!` with one line a spinlock: `name: Type, kind, abilities;`. The kind says what
/// is known of the type: `plain` (no token), `node` (a node or slot of the thread is the token),
/// `fallible` (the lock needs a resource of its own: created by
/// [`Create::create`](overlock_core::raw::Create::create), which may fail, and never a constant;
/// it has a token). The abilities are what the lock can do beyond
/// [`RawLock`](overlock_core::raw::RawLock): `basic` (nothing), `timed` (it gives up at a
/// deadline), `full` (also when it is cancelled, and it has a fair release). Code that runs on the
/// lists has a function of each of these names, bound to the traits.
///
/// ```
/// macro_rules! count {
///     ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => { [$(stringify!($name)),*].len() };
/// }
/// assert!(overlock_family::spin_locks!(count) > 0);
/// ```
#[macro_export]
macro_rules! spin_locks {
    ($callback:ident) => {
        $callback! {
            ticket: Ticket, plain, basic;
            backoff_ticket: BackoffTicket, plain, basic;
            pv_ticket: PvTicket, plain, basic;
            pv_ticket_small: PvTicketSmall, plain, basic;
            pv_ticket_tail_flag: PvTicketTailFlag, plain, basic;
            mcs: Mcs, node, basic;
            hemlock: Hemlock, node, basic;
            fast_queue: FastQueue, fallible, basic;
            queued: Queued, plain, basic;
            unfair: Unfair, plain, timed;
            pv_queued: PvQueued, plain, basic;
            hybrid: Hybrid, plain, basic;
            hybrid_short: HybridShort, plain, basic;
        }
    };
}

/// The mutual-exclusion locks whose waiters sleep, in the form of
/// [`spin_locks`](crate::spin_locks); the types are in [`sleep`](crate::sleep).
#[macro_export]
macro_rules! sleep_locks {
    ($callback:ident) => {
        $callback! {
            overlock: Overlock, plain, full;
            kernel_mutex: KernelMutex, plain, full;
            kernel_mutex_inside: KernelMutexInside, plain, full;
            kernel_mutex_none: KernelMutexNone, plain, full;
        }
    };
}

/// Calls `$callback!` with one line a reader-writer lock: `name: module::Type, abilities;`, the
/// module being one of this crate's. The abilities are `basic` (nothing), `timed` (deadlines and
/// downgrades), `full` (also upgradable readers and a fair release).
#[macro_export]
macro_rules! rw_locks {
    ($callback:ident) => {
        $callback! {
            overlock_rw: rw::OverlockRw, full;
            percpu_rwsem: rw::PerCpuRwSem, timed;
            qrwlock: rw::Qrwlock, basic;
            rwsem: sleep::RwSem, timed;
            rwsem_none: sleep::RwSemNone, timed;
            rwsem_count: sleep::RwSemCounted, timed;
        }
    };
}

#[cfg(test)]
mod tests {
    use overlock_core::toy::Toy;
    use overlock_core::toy::wall_clock::{
        lock_follows_the_wall_clock, rwlock_follows_the_wall_clock,
    };

    #[test]
    fn locks_follow_the_wall_clock() {
        lock_follows_the_wall_clock::<crate::sleep::KernelMutex<Toy>>();
        lock_follows_the_wall_clock::<crate::spin::Unfair<Toy>>();
        rwlock_follows_the_wall_clock::<crate::sleep::RwSem<Toy>>();
    }
}

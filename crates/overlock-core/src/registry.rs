//! The lists of all locks. Adding a lock means adding one line here; the tests, `lock_api`'s
//! traits, the checkers and the benchmarks run on the lists.

/// Calls `$callback!` with one line a lock: `name: Type, kind;`. The kind says what is known of the
/// type: `plain` (no token), `node` (a queue node is the token), `fallible` (the lock needs a
/// resource of its own: created by [`RawLock::create`](crate::raw::RawLock::create), which may fail, and never
/// a constant; it has a token).
///
/// ```
/// macro_rules! count {
///     ($($name:ident: $lock:ident, $kind:ident;)*) => { [$(stringify!($name)),*].len() };
/// }
/// assert!(overlock_core::spin_locks!(count) > 0);
/// ```
#[macro_export]
macro_rules! spin_locks {
    ($callback:ident) => {
        $callback! {
            overlock: Overlock, plain;
            overlock_exchange: OverlockExchange, plain;
            overlock_fixed: OverlockFixed, plain;
            overlock_owner_cpu: OverlockOwnerCpu, plain;
            ticket: Ticket, plain;
            backoff_ticket: BackoffTicket, plain;
            pv_ticket: PvTicket, plain;
            pv_ticket_small: PvTicketSmall, plain;
            pv_ticket_tail_flag: PvTicketTailFlag, plain;
            mcs: Mcs, node;
            fast_queue: FastQueue, fallible;
            queued: Queued, plain;
            unfair: Unfair, plain;
            pv_queued: PvQueued, plain;
            hybrid: Hybrid, plain;
            hybrid_short: HybridShort, plain;
        }
    };
}

/// The mutual-exclusion locks whose waiters sleep, in the form of [`spin_locks`](crate::spin_locks); the types are in
/// [`sleep`](crate::sleep).
#[macro_export]
macro_rules! sleep_locks {
    ($callback:ident) => {
        $callback! {
            mutex: Mutex, plain;
            mutex_inside: MutexInside, plain;
            mutex_none: MutexNone, plain;
        }
    };
}

/// Calls `$callback!` with one line a reader-writer lock: `name: module::Type;`, the module being one of this crate's.
#[macro_export]
macro_rules! rw_locks {
    ($callback:ident) => {
        $callback! {
            overlock_rw: rw::OverlockRw;
            overlock_rw_counted: rw::OverlockRwCounted;
            percpu_rwsem: rw::PerCpuRwSem;
            qrwlock: rw::Qrwlock;
            rwsem: sleep::RwSem;
            rwsem_none: sleep::RwSemNone;
            rwsem_count: sleep::RwSemCounted;
        }
    };
}

macro_rules! const_lock {
    ($($name:ident: $lock:ident, $kind:ident;)*) => {
        $(const_lock!(@ $lock, $kind);)*
    };
    (@ $lock:ident, fallible) => {};
    (@ $lock:ident, $kind:ident) => {
        impl<P: crate::ConstPlatform> crate::raw::ConstLock for crate::spin::$lock<P> {
            #[allow(clippy::declare_interior_mutable_const)] // each use is a new lock, as intended
            const INIT: Self = crate::spin::$lock::new();
        }
    };
}

crate::spin_locks!(const_lock);
const_lock!(@ LazyFastQueue, node);

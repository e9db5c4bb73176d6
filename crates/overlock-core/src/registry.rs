//! The lists of all locks. The tests, `lock_api`'s traits, the checkers and the benchmarks run on
//! the lists. A new lock is its file with its [row](crate::facts) and its tests, its module, one
//! line here, its file of mutants, and its page in docs/locks.

use core::marker::PhantomData;

/// Calls `$callback!` with one line a lock: `name: Type, kind;`. The kind says what is known of the
/// type: `plain` (no token), `node` (a node or slot of the thread is the token), `fallible` (the
/// lock needs a resource of its own: created by [`RawLock::create`](crate::raw::RawLock::create),
/// which may fail, and never a constant; it has a token).
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
            ticket: Ticket, plain;
            backoff_ticket: BackoffTicket, plain;
            pv_ticket: PvTicket, plain;
            pv_ticket_small: PvTicketSmall, plain;
            pv_ticket_tail_flag: PvTicketTailFlag, plain;
            mcs: Mcs, node;
            hemlock: Hemlock, node;
            fast_queue: FastQueue, fallible;
            queued: Queued, plain;
            unfair: Unfair, plain;
            pv_queued: PvQueued, plain;
            hybrid: Hybrid, plain;
            hybrid_short: HybridShort, plain;
        }
    };
}

/// The mutual-exclusion locks whose waiters sleep, in the form of
/// [`spin_locks`](crate::spin_locks); the types are in [`sleep`](crate::sleep).
#[macro_export]
macro_rules! sleep_locks {
    ($callback:ident) => {
        $callback! {
            overlock: Overlock, plain;
            mutex: Mutex, plain;
            mutex_inside: MutexInside, plain;
            mutex_none: MutexNone, plain;
        }
    };
}

/// Calls `$callback!` with one line a reader-writer lock: `name: module::Type;`, the module being
/// one of this crate's.
#[macro_export]
macro_rules! rw_locks {
    ($callback:ident) => {
        $callback! {
            overlock_rw: rw::OverlockRw;
            percpu_rwsem: rw::PerCpuRwSem;
            qrwlock: rw::Qrwlock;
            rwsem: sleep::RwSem;
            rwsem_none: sleep::RwSemNone;
            rwsem_count: sleep::RwSemCounted;
        }
    };
}

/// A probe for the abilities of the lock `L`: see [`abilities`](crate::abilities). `W` is for locks
/// that run on several platforms.
#[derive(Clone, Copy, Debug)]
pub struct Probe<L, W = ()>(PhantomData<fn(L, W)>);

impl<L, W> Probe<L, W> {
    /// A probe of a lock type.
    #[must_use]
    pub const fn new() -> Self {
        Probe(PhantomData)
    }
}

impl<L, W> Default for Probe<L, W> {
    fn default() -> Self {
        Self::new()
    }
}

/// Finds out what a lock can do beyond its first trait, for code that runs on the lists above: they
/// do not say, the compiler does.
///
/// First the trait that all the locks have, then one line an ability: the names of two traits to
/// declare, that of their method, the trait that the ability comes with, and the type and value of
/// what the method gives: `Some` of it where the lock has the trait, else `None`. The
/// method is called as `(&Probe::<Lock>::new()).until()`, with both traits in scope, on a type that
/// is named, not a parameter.
///
/// ```
/// use overlock_core::Instant;
/// use overlock_core::raw::{RawFairLock, RawLock, RawTimedLock};
///
/// overlock_core::abilities! {
///     [L: RawLock]
///     Timed, Untimed, until, RawTimedLock, fn(&L, Instant) -> Option<L::Token>, L::lock_until;
///     Fair, Unfair, fair, RawFairLock, unsafe fn(&L, L::Token), L::unlock_fair;
/// }
/// ```
#[macro_export]
macro_rules! abilities {
    (@ [$lock:ident: $base:path $(, $world:ident: $of:path)?]
        $with:ident, $without:ident, $find:ident, $bound:path, $type:ty, $value:expr) => {
        #[doc(hidden)]
        pub trait $with<$lock: $base $(, $world: $of)?> {
            fn $find(&self) -> Option<$type>;
        }

        // Method lookup tries this one first, since it needs no further reference.
        impl<$lock: $bound $(, $world: $of)?> $with<$lock $(, $world)?>
            for $crate::registry::Probe<$lock $(, $world)?>
        {
            fn $find(&self) -> Option<$type> {
                Some($value)
            }
        }

        #[doc(hidden)]
        pub trait $without<$lock: $base $(, $world: $of)?> {
            fn $find(&self) -> Option<$type> {
                None
            }
        }

        impl<$lock: $base $(, $world: $of)?> $without<$lock $(, $world)?>
            for &$crate::registry::Probe<$lock $(, $world)?>
        {
        }
    };
    ($generics:tt
        $($with:ident, $without:ident, $find:ident, $bound:path, $type:ty, $value:expr;)*) => {
        $($crate::abilities!(@ $generics $with, $without, $find, $bound, $type, $value);)*
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
#[cfg(target_has_atomic = "64")]
const_lock!(@ LazyFastQueue, node);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Instant;
    use crate::raw::{RawFairLock, RawLock, RawTimedLock};
    use crate::sleep::Overlock;
    use crate::spin::{Mcs, Unfair};
    use crate::toy::Toy;

    crate::abilities! {
        [L: RawLock]
        Timed, Untimed, until, RawTimedLock, fn(&L, Instant) -> Option<L::Token>, L::lock_until;
        Fair, Biased, fair, RawFairLock, unsafe fn(&L, L::Token), L::unlock_fair;
    }

    macro_rules! has {
        ($lock:ty, $ability:ident) => {
            (&Probe::<$lock>::new()).$ability().is_some()
        };
    }

    #[test]
    #[allow(clippy::needless_borrow)] // the second reference makes the lookup go on to it
    fn a_lock_has_the_abilities_that_its_traits_give() {
        assert!(has!(Overlock<Toy>, until) && has!(Overlock<Toy>, fair));
        assert!(has!(Unfair<Toy>, until) && !has!(Unfair<Toy>, fair));
        assert!(!has!(Mcs<Toy>, until) && !has!(Mcs<Toy>, fair));
    }
}

//! The lists of all locks: the family's, and the recommended ones of [`overlock_core`] that the
//! same tests, checkers and benchmarks run on. A new lock is its file with its
//! [row](overlock_core::facts) and its tests, its module, one line here, its file of mutants, and
//! its line in the book's page of the family.

use core::marker::PhantomData;

/// Calls `$callback!` with one line a spinlock: `name: Type, kind;`. The kind says what is known of
/// the type: `plain` (no token), `node` (a node or slot of the thread is the token), `fallible`
/// (the lock needs a resource of its own: created by
/// [`RawLock::create`](overlock_core::raw::RawLock::create), which may fail, and never a constant;
/// it has a token).
///
/// ```
/// macro_rules! count {
///     ($($name:ident: $lock:ident, $kind:ident;)*) => { [$(stringify!($name)),*].len() };
/// }
/// assert!(overlock_family::spin_locks!(count) > 0);
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
            kernel_mutex: KernelMutex, plain;
            kernel_mutex_inside: KernelMutexInside, plain;
            kernel_mutex_none: KernelMutexNone, plain;
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
/// overlock_family::abilities! {
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
        impl<P: overlock_core::ConstPlatform> overlock_core::raw::ConstLock
            for crate::spin::$lock<P>
        {
            #[allow(clippy::declare_interior_mutable_const)] // each use is a new lock, as intended
            const INIT: Self = crate::spin::$lock::new();
        }
    };
}

crate::spin_locks!(const_lock);
#[cfg(target_has_atomic = "64")]
impl<P: crate::FamilyPlatform + overlock_core::ConstPlatform> overlock_core::raw::ConstLock
    for crate::spin::LazyFastQueue<P>
{
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new lock, as intended
    const INIT: Self = crate::spin::LazyFastQueue::new();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spin::{Mcs, Unfair};
    use overlock_core::Instant;
    use overlock_core::diagram::HasDiagram;
    use overlock_core::raw::{RawFairLock, RawLock, RawTimedLock};
    use overlock_core::sleep::Overlock;
    use overlock_core::toy::Toy;
    use overlock_core::toy::wall_clock::{
        lock_follows_the_wall_clock, rwlock_follows_the_wall_clock,
    };
    use std::vec::Vec;

    /// Transitions are identified by their texts.
    fn check<L: HasDiagram>() {
        let listed = |text| {
            let transitions = L::DIAGRAMS.iter().flat_map(|diagram| diagram.transitions);
            transitions.filter(|&transition| transition == text).count()
        };
        for text in L::UNREACHABLE {
            assert_eq!(listed(text), 1, "{text}");
        }
        for diagram in L::DIAGRAMS {
            let mut texts: Vec<_> = diagram.transitions.iter().collect();
            texts.sort();
            texts.dedup();
            assert_eq!(texts.len(), diagram.transitions.len(), "{}", diagram.name);
        }
    }

    macro_rules! spin {
        ($($name:ident: $lock:ident, $kind:ident;)*) => { $(check::<crate::spin::$lock<Toy>>();)* };
    }

    macro_rules! sleep {
        ($($name:ident: $lock:ident, $kind:ident;)*) => { $(check::<crate::sleep::$lock<Toy>>();)* };
    }

    macro_rules! rw {
        ($($name:ident: $module:ident::$lock:ident;)*) => { $(check::<crate::$module::$lock<Toy>>();)* };
    }

    #[test]
    fn each_transition_is_listed_once_and_unreachable_ones_are_listed() {
        crate::spin_locks!(spin);
        crate::sleep_locks!(sleep);
        crate::rw_locks!(rw);
        check::<crate::sleep::Osq<Toy>>();
        check::<overlock_core::sleep::Semaphore<Toy>>();
        check::<overlock_core::sleep::Condvar<Toy>>();
        check::<overlock_core::sleep::Once<Toy>>();
        check::<overlock_core::sleep::Barrier<Toy>>();
        check::<overlock_core::sleep::WwMutex<Toy>>();
    }

    #[test]
    fn locks_follow_the_wall_clock() {
        lock_follows_the_wall_clock::<crate::sleep::KernelMutex<Toy>>();
        lock_follows_the_wall_clock::<Unfair<Toy>>();
        rwlock_follows_the_wall_clock::<crate::sleep::RwSem<Toy>>();
    }

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

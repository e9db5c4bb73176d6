//! The forms of the recommended lock that the benchmarks show side by side.

use core::fmt::Debug;
use core::sync::atomic::Ordering;

/// Which of the designs beyond the published ones a lock uses; see the [module's page](super).
pub trait Policy: Send + Sync + Debug + 'static {
    /// The lock's name in tables.
    const NAME: &'static str;
    /// What an unlock consists of, and so what sleepers do lest they be missed.
    const UNLOCK: Unlock = Unlock::StoreThenLook;
    /// Spin limits, surplus threads and late wake-ups are learned; else the spin limit is fixed and every
    /// owner that finds sleepers has one woken.
    const LEARN: bool = true;
    /// The owner records its CPU, and a waiter on that CPU does not spin; one that keeps being passed comes by its timer.
    const OWNER_CPU: bool = false;
    /// The ordering of an acquisition: `Acquire`, or `SeqCst` where the owner looks at other words afterwards, against
    /// threads that write those and then look at the lock.
    const ACQUIRE: Ordering = Ordering::Acquire;
    /// The ordering of a release.
    const RELEASE: Ordering = Ordering::Release;
}

/// The two halves of an unlock, the release of the lock and the look for sleepers, and their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlock {
    /// A plain store, then the look. Sleepers look twice, or run the heavy barrier.
    StoreThenLook,
    /// An exchange, then the look. Whoever it misses sees the lock free.
    ExchangeThenLook,
    /// The look, then a plain store: nothing of the lock is touched after that. Every sleeper has a timer.
    LookThenStore,
}

/// Miri lets a sequentially consistent load return an older release store even where C++20's order of all sequentially consistent
/// operations forbids that: the load is coherence-ordered before a sequentially consistent exchange that
/// overwrote the store. So there, the store takes part in that order too.
const GATE_RELEASE: Ordering = if cfg!(miri) {
    Ordering::SeqCst
} else {
    Ordering::Release
};

macro_rules! policies {
    ($($(#[doc = $doc:literal])+ $name:ident { $($constant:ident: $type:ty = $value:expr;)+ })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Policy for $name {
            $(const $constant: $type = $value;)+
        }
    )+};
}

policies! {
    /// What we recommend.
    Recommended {
        NAME: &'static str = "overlock";
    }
    /// Unlock with an exchange, as futex mutexes do.
    Exchange {
        NAME: &'static str = "overlock_exchange";
        UNLOCK: Unlock = Unlock::ExchangeThenLook;
    }
    /// Whoever has acquired the lock after an owner may free it, even if that owner's unlock has not returned: what POSIX asks of a mutex.
    Posix {
        NAME: &'static str = "overlock_posix";
        UNLOCK: Unlock = Unlock::LookThenStore;
        OWNER_CPU: bool = true;
    }
    /// Nothing is learned.
    Fixed {
        NAME: &'static str = "overlock_fixed";
        LEARN: bool = false;
    }
    /// What stands before a reader-writer lock ([`rw::overlock_rw`](crate::rw::overlock_rw)).
    Gate {
        NAME: &'static str = "gate";
        ACQUIRE: Ordering = Ordering::SeqCst;
        RELEASE: Ordering = GATE_RELEASE;
    }
    /// With the owner's CPU in the lock.
    OwnerCpu {
        NAME: &'static str = "overlock_owner_cpu";
        OWNER_CPU: bool = true;
    }
}

//! The forms of the mutex, which the benchmarks compare.

use core::fmt::Debug;
use core::time::Duration;

use super::KernelMutex;
use overlock_core::facts::{Bound, Facts, HasFacts};
use overlock_core::platform::Platform;

/// The second spin of a sleeper that was woken in vain, before it sleeps again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaiterSpin {
    /// It watches the owner outside the spin queue, next to the queue's head: at most two threads
    /// do so.
    Outside,
    /// It joins the spin queue, and watches the owner as its head.
    Inside,
    /// It sleeps again at once.
    Never,
}

/// How a mutex waits; see the [module's page](super).
pub trait Policy: Send + Sync + Debug + 'static {
    /// The lock's name in tables.
    const NAME: &'static str;
    /// The spin of a woken sleeper.
    const WAITER: WaiterSpin = WaiterSpin::Outside;
    /// The longest spin, in nanoseconds: of a newcomer, including its time in the spin queue, and
    /// of a sleeper after each wake-up. The kernel needs no such limit, since it sees whether the
    /// owner runs. A spin that costs as much as the sleep that it avoids loses at most half. A
    /// wake-up takes some 3 us on the same CPU and 50 us and more across CPUs.
    const SPIN_NS: u64 = 20_000;
}

/// A woken sleeper spins outside the queue: the published design (Long, 2016), and the default.
#[derive(Clone, Copy, Debug)]
pub struct Outside;

impl Policy for Outside {
    const NAME: &'static str = "kernel_mutex";
}

/// A woken sleeper joins the spin queue: the patch before the published one (Zijlstra, 2016), which
/// lost 4 % in a benchmark of the document.
#[derive(Clone, Copy, Debug)]
pub struct Inside;

impl Policy for Inside {
    const NAME: &'static str = "kernel_mutex_inside";
    const WAITER: WaiterSpin = WaiterSpin::Inside;
}

/// A woken sleeper does not spin: the design before both.
#[derive(Clone, Copy, Debug)]
pub struct NoSpin;

impl Policy for NoSpin {
    const NAME: &'static str = "kernel_mutex_none";
    const WAITER: WaiterSpin = WaiterSpin::Never;
}

/// The part that the rows share: the first sleeper is bypassed while it wakes up.
const FACTS: Facts = Facts {
    bound: Bound::Within(Duration::ZERO),
    freed_by_last_user: true,
    ..Facts::SLEEPING
};

impl<P: Platform> HasFacts for KernelMutex<P, Outside> {
    const FACTS: Facts = Facts {
        about: "sleeping: spins while the owner runs, woken waiters beside the queue of spinners",
        compared: true,
        ..FACTS
    };
}

impl<P: Platform> HasFacts for KernelMutex<P, Inside> {
    const FACTS: Facts = Facts {
        about: "mutex whose woken waiters spin in the queue of spinners",
        ..FACTS
    };
}

impl<P: Platform> HasFacts for KernelMutex<P, NoSpin> {
    const FACTS: Facts = Facts {
        about: "mutex whose woken waiters do not spin",
        ..FACTS
    };
}

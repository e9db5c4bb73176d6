//! The constants of the paravirtual queued locks, as policies.

use core::fmt::Debug;

use overlock_core::platform::Spin;

/// The constants of a paravirtual queued lock, as a policy.
pub trait Tuning: Send + Sync + Debug + 'static {
    /// The name of a [`Hybrid`](crate::spin::Hybrid) with these constants.
    const HYBRID: &'static str;
    /// A waiter's spin budget before it sleeps, in the queue and at its head, in polls.
    const POLLS: u32;
    /// How long a newcomer of a hybrid lock may stay in unfair mode before it joins the queue.
    const UNFAIR: Spin;
    /// Whether a head that was kicked and found the lock stolen may sleep again.
    const ENTER_AGAIN: bool;
}

/// The published constants, for vCPUs: 2^15 polls, and unfair mode without a limit.
#[derive(Clone, Copy, Debug)]
pub struct Published;

impl Tuning for Published {
    const HYBRID: &'static str = "hybrid";
    const POLLS: u32 = 1 << 15;
    const UNFAIR: Spin = Spin::Forever;
    const ENTER_AGAIN: bool = false;
}

/// Constants for threads: the spin budget is about the length of a wake-up, in unfair mode too.
///
/// A hypervisor sees a vCPU spin (each PAUSE in a tight loop counts) and gives its CPU to another
/// one; the operating system lets a thread spin until its time slice ends. So a thread in unfair
/// mode keeps the owner that it waits for from running. `results/locks/hybrid.md` has what that
/// costs.
#[derive(Clone, Copy, Debug)]
pub struct Short;

impl Tuning for Short {
    const HYBRID: &'static str = "hybrid_short";
    const POLLS: u32 = 1 << 10;
    const UNFAIR: Spin = Spin::Polls(1 << 10);
    const ENTER_AGAIN: bool = true;
}

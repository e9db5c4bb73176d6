//! How long the waiters of a lock spin before they sleep.
//!
//! The owner of a lock leaves it soon, as a rule, and a waiter that polls is there when it does. So
//! a waiter spins on a crowded machine too, and beside other waiters, unlike other
//! [waits](super). It spins for [`SHORT_NS`], and on for as long as a wake-up costs where most of
//! such spins have succeeded lately for this lock, or it is time to try again. They are in vain
//! where owners yield their CPUs, and in the way where owners need the spinner's CPU to be
//! interrupted, as for a page fault. A waiter looks once and sleeps where several tries in a row
//! have failed, and with one CPU.

use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::spins::{self, LONGEST_NS, OF_LOCKS, SHORT_NS};

use super::{ALONE, AUTO, MODE, OFF, Object, UNKNOWN, WAKE_UPS, machine};

/// See [`FutexPlatform::spin_before_sleep`](overlock_core::FutexPlatform::spin_before_sleep).
#[inline]
pub(in super::super) fn limit(lock: usize) -> u64 {
    let most = match MODE.load(Relaxed) {
        OFF => 0,
        AUTO | ALONE | UNKNOWN => spins::worth(WAKE_UPS.latency()).min(LONGEST_NS),
        micros => u64::from(micros) * 1000,
    };
    let limit = Object::at(lock).score.of_lock(machine::ticks_of(most));
    if machine::has_others() { limit } else { 0 }
}

/// See [`FutexPlatform::learn_spin`](overlock_core::FutexPlatform::learn_spin).
#[inline]
pub(in super::super) fn learn(lock: usize, ticks: u64, acquired: bool) {
    if ticks > SHORT_NS {
        Object::at(lock).score.learn(acquired, OF_LOCKS);
    }
}

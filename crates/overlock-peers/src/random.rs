//! Random numbers for the choices of locks: a xorshift generator (Marsaglia, 2003) of 16 bits.
//!
//! The last number is in the high half of the word `info` of the thread's queue node. The next
//! acquisition finds it there, so that a choice touches no other line. The low half is the lock's.

use core::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::{Atomic, Platform};

/// The next random number, 1 to 65,535. Only the thread whose node it is calls it. A node that has
/// no number yet begins with its `name`.
#[inline]
pub fn next<P: Platform>(info: &P::U32, name: u32) -> u16 {
    let old = info.load(Relaxed);
    let last = (old >> 16) as u16;
    let next = step(if last == 0 { name as u16 } else { last });
    info.store(u32::from(next) << 16 | low(old), Relaxed);
    next
}

/// Stores `value` into the low half.
#[inline]
pub fn set_low<P: Platform>(info: &P::U32, value: u32) {
    info.store(info.load(Relaxed) & !0xffff | low(value), Relaxed);
}

/// The low half.
#[inline]
pub fn low(info: u32) -> u32 {
    info & 0xffff
}

/// One step of the generator: all numbers but 0 come once in 65,535 steps.
fn step(mut x: u16) -> u16 {
    x ^= x << 7;
    x ^= x >> 9;
    x ^ x << 8
}

/// Makes the next number of the word one that `wanted` accepts.
#[cfg(test)]
pub fn make_next<P: Platform>(info: &P::U32, wanted: impl Fn(u16) -> bool) {
    let last = (1..=u16::MAX).find(|&last| wanted(step(last))).unwrap();
    info.store(u32::from(last) << 16 | low(info.load(Relaxed)), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn every_number_comes_before_the_first_again() {
        let mut x = 1;
        for steps in 1..=u16::MAX {
            x = step(x);
            assert_eq!(x == 1, steps == u16::MAX);
        }
    }
}

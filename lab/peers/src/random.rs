//! Random numbers for the choices of locks: a xorshift generator (Marsaglia, 2003) of 16 bits.
//!
//! The number is in the high half of the word `info` of the thread's queue node. A waiter draws the
//! next one while it prepares its node, which nobody else knows yet: at the unlock a store would
//! take the line back from the successor. The low half is the lock's.

use core::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::{Atomic, Platform};

/// Draws the next number, 1 to 65,535, and stores `value` into the low half. A node that has no
/// number yet begins with its `name`.
#[inline]
pub fn draw<P: Platform>(info: &P::U32, name: u32, value: u32) {
    let last = drawn::<P>(info);
    let next = step(if last == 0 { name as u16 } else { last });
    info.store(u32::from(next) << 16 | low(value), Relaxed);
}

/// The number that was drawn last.
#[inline]
pub fn drawn<P: Platform>(info: &P::U32) -> u16 {
    (info.load(Relaxed) >> 16) as u16
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

/// As if this number had been drawn.
#[cfg(test)]
pub fn pretend<P: Platform>(info: &P::U32, number: u16) {
    info.store(u32::from(number) << 16 | low(info.load(Relaxed)), Relaxed);
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

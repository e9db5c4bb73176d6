//! Which acquisitions without a wait are recorded.

use overlock_shared::{MANY, SAMPLE, SPARSE};

/// Of the acquisitions that bypass waiters, one in this many is counted.
const UNFAIR: u32 = 128;

/// The same from the [`MANY`]th acquisition of a lock on.
const SPARSE_UNFAIR: u32 = 1024;

/// Up to this number of a lock's acquisitions all unfair ones are counted: rare ones would not show
/// otherwise.
const FEW: u32 = 1024;

/// A lock that no thread waits for is looked at once in this many of its first acquisitions, in
/// case one does by then. A pair takes 7.1 ns meanwhile, 7.8 with 16, and 6.8 with [`SAMPLE`].
const LOOKED_AT: u32 = 64;

/// The chosen one of those `rate` numbers, a power of two, that `count` is among. At a rate above
/// [`SAMPLE`] it is one of those that are chosen at that one.
#[inline(always)]
const fn chosen(rate: u32, count: u32) -> u32 {
    let block = count / rate;
    // Multiples of the golden ratio are spread evenly, and over every residue of any period. The
    // first one is not 0, so a lock that is acquired once is not sampled with a large weight.
    let at = block.wrapping_add(1).wrapping_mul(0x9e37_79b1) >> (u32::BITS - rate.ilog2());
    let number = block * rate + at;
    match rate > SAMPLE as u32 {
        true => chosen(SAMPLE as u32, number),
        false => number,
    }
}

/// Whether `count`, a different number each time, is among one in `rate`.
#[inline(always)]
fn one_in(rate: u32, count: u32) -> bool {
    chosen(rate, count) == count
}

/// How many numbers from `count` on come before the next one of these.
fn until(rate: u32, count: u32) -> u32 {
    match chosen(rate, count) {
        this if this >= count => this - count,
        _ => chosen(rate, count.wrapping_add(rate)).wrapping_sub(count),
    }
}

/// How many acquisitions of a lock pass, after `count` of them, before one has to be looked at:
/// one that is [sampled], or may be [unfair](unfair_weight). If threads wait for it now, none of
/// these is left out; if they come later, a few of the first ones may be.
pub fn left(count: u32, is_waited_for: bool) -> u32 {
    let (often, rarely) = match count {
        MANY.. => (SPARSE_UNFAIR, SPARSE as u32),
        FEW.. => (UNFAIR, SAMPLE as u32),
        _ if is_waited_for => return 0,
        _ => (LOOKED_AT, SAMPLE as u32),
    };
    // From here on others count.
    let end = match count {
        MANY.. => u32::MAX,
        FEW.. => MANY,
        _ => FEW,
    };
    until(often, count)
        .min(until(rarely, count))
        .min(end - count)
}

/// Whether an acquisition without a wait may have to be recorded; `count` is a different number
/// each time.
#[inline(always)]
pub fn sampled(count: u32) -> bool {
    one_in(SAMPLE as u32, count)
}

/// The weight of a [sampled] acquisition; `None` if it is not recorded. `count` is the lock's own
/// acquisition count, or, for a lock without one, the thread's count of calls.
#[inline]
pub fn weight(count: u32, is_locks_own: bool) -> Option<u32> {
    // A rate of [`SPARSE`] for a thread's count would miss locks that a busy thread seldom takes.
    let rate = match is_locks_own && count >= MANY {
        true => SPARSE,
        false => SAMPLE,
    };
    one_in(rate as u32, count).then_some(rate as u32)
}

/// The weight of an acquisition while others waited for the lock; `None` if it is not counted.
/// `count` is as there. Asked first: of a contended lock nearly all are such, and each spot is a
/// walk through the callers.
#[inline]
pub fn unfair_weight(count: u32, is_locks_own: bool) -> Option<u32> {
    let rate = match is_locks_own && count >= MANY {
        true => SPARSE_UNFAIR,
        false if count < FEW => return Some(1),
        false => UNFAIR,
    };
    one_in(rate, count).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where sparsely sampled acquisitions do not get a larger weight.
    #[test]
    fn weights_add_up_to_the_number_of_acquisitions() {
        for (all, is_locks_own) in [(MANY, true), (4 * MANY, true), (4 * MANY, false)] {
            let weights = (0..all).filter_map(|count| {
                let weight = weight(count, is_locks_own)?;
                assert!(sampled(count));
                Some(weight)
            });
            let sum: u64 = weights.map(u64::from).sum();
            let all = u64::from(all);
            assert!(
                (all - 2 * SPARSE..all + 2 * SPARSE).contains(&sum),
                "{all}: {sum}"
            );
        }
    }

    /// Fails where later ones have the weight of earlier ones.
    #[test]
    fn weights_add_up_to_the_number_of_unfair_acquisitions() {
        for (all, is_locks_own) in [(MANY, true), (8 * MANY, true), (8 * MANY, false)] {
            let weights = (0..all).filter_map(|count| unfair_weight(count, is_locks_own));
            let sum: u32 = weights.sum();
            assert!((all - 2048..all + 2048).contains(&sum), "{all}: {sum}");
        }
    }

    /// Fails where a plan leaves out an acquisition that is to be looked at.
    #[test]
    fn no_chosen_acquisition_comes_before_the_next_look() {
        for is_waited_for in [false, true] {
            let mut look = 0;
            for count in 0..4 * MANY {
                let is_unfair = is_waited_for && unfair_weight(count, true).is_some();
                if weight(count, true).is_some() || is_unfair {
                    assert_eq!(left(count, is_waited_for), 0, "{count}");
                    assert!(count >= look, "{count} before {look}");
                }
                if count == look {
                    look = count + 1 + left(count + 1, is_waited_for);
                }
            }
        }
        for count in [u32::MAX - 5000, u32::MAX - 1, u32::MAX] {
            assert!(left(count, false) <= SPARSE as u32);
        }
    }

    #[test]
    fn the_sampling_rate_is_independent_of_the_stride() {
        for stride in [1, 2, 3, 64, 100] {
            let counts = (0..400_000).map(|n: u32| n * stride);
            let sampled = counts.filter(|&count| sampled(count)).count();
            assert!((740..820).contains(&sampled), "{stride}: {sampled}");
        }
    }
}

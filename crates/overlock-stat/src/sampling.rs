//! Which acquisitions without a wait are recorded.

use overlock_shared::{MANY, SAMPLE, SPARSE};

/// Of the acquisitions that bypass waiters, one in this many is counted.
const UNFAIR: u32 = 128;

/// The same from the [`MANY`]th acquisition of a lock on.
const SPARSE_UNFAIR: u32 = 1024;

/// Up to this number of a lock's acquisitions all unfair ones are counted: rare ones would not show
/// otherwise.
const FEW: u32 = 1024;

/// Whether `count`, a different number each time, is among one in `rate`.
#[inline(always)]
fn one_in(rate: u32, count: u32) -> bool {
    // Multiples of the golden ratio are spread evenly, and over every residue of any period. The
    // first ones are not among the highest, so a lock that is acquired once is not sampled with a
    // large weight.
    count.wrapping_mul(0x9e37_79b1) > u32::MAX - u32::MAX / rate
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

    #[test]
    fn the_sampling_rate_is_independent_of_the_stride() {
        for stride in [1, 2, 3, 64, 100] {
            let counts = (0..400_000).map(|n: u32| n * stride);
            let sampled = counts.filter(|&count| sampled(count)).count();
            assert!((740..820).contains(&sampled), "{stride}: {sampled}");
        }
    }
}

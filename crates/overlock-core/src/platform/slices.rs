//! How long the time slices of spinning threads are: the part of the rule that asks nothing of the
//! system. A platform's [`yield_slice`](super::FutexPlatform::yield_slice) may be made of it.
//!
//! Threads that contend for a lock on one CPU get short time slices by yields; the scheduler would
//! let each run for milliseconds. A yield is in vain if nobody else is ready on the CPU, and
//! expensive next to other programs. So the cost of each yield is measured, and slices grow while
//! yields are of no use. Times are nanoseconds of [`ticks`](super::Platform::ticks).

/// The length of a time slice.
pub const SLICE: u64 = 100_000;
/// The longest slice: if nobody else is ready, or if other programs are.
pub const LONGEST: u64 = 512 * SLICE;
/// A yield that took less time than this was in vain.
const IN_VAIN: u64 = 1_500;
/// A yield went to other programs if it took more than so many slices for each change of our own
/// threads on the CPU meanwhile.
const STRANGERS: u64 = 2;

/// Returns the length of the next slices, after a yield that took so long and saw so many changes
/// of the thread on the CPU.
#[inline]
pub fn next_length(length: u64, took: u64, others: u64) -> u64 {
    // In units of the present length: the others may have run for as long. In units of SLICE they
    // would look like strangers then, and slices would stay long for good.
    let was_of_use = took >= IN_VAIN && took <= others.saturating_mul(STRANGERS * length);
    match was_of_use {
        true => (length / 4).max(SLICE),
        false => (length * 2).min(LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_grow_if_nobody_is_ready_or_strangers_are() {
        assert_eq!(next_length(SLICE, 500, 0), 2 * SLICE);
        assert_eq!(next_length(SLICE, 3_000_000, 0), 2 * SLICE);
        assert_eq!(next_length(SLICE, 16 * SLICE + 3_000_000, 3), 2 * SLICE);
        assert_eq!(next_length(LONGEST, 500, 0), LONGEST);
    }

    #[test]
    fn slices_shrink_from_any_length_if_the_others_are_ours() {
        // The scheduler lets each of 16 run for 3 ms, with any length.
        let mut length = LONGEST;
        for _ in 0..5 {
            length = next_length(length, 16 * length.min(3_000_000), 16);
        }
        assert_eq!(length, SLICE);
        assert_eq!(next_length(SLICE, 15 * SLICE, 15), SLICE);
    }
}

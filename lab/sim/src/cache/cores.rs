//! Sets of cores.

use std::ops::Range;

use crate::machine::MOST_CORES;

const BITS: usize = u64::BITS as usize;

/// A set of cores: a bit for each. Its size does not depend on the machine, but its operations read
/// only the words that they need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cores([u64; MOST_CORES / BITS]);

impl Cores {
    /// The set of these cores.
    pub fn of<const N: usize>(cores: [usize; N]) -> Self {
        let mut set = Self([0; MOST_CORES / BITS]);
        for core in cores {
            set.insert(core);
        }
        set
    }

    pub fn insert(&mut self, core: usize) {
        self.0[core / BITS] |= 1 << (core % BITS);
    }

    pub fn contains(&self, core: usize) -> bool {
        self.0[core / BITS] & 1 << (core % BITS) != 0
    }

    /// Whether one of these cores is in the range.
    pub fn meets(&self, range: Range<usize>) -> bool {
        if range.is_empty() {
            return false;
        }
        let (first, last) = (range.start, range.end - 1);
        let head = u64::MAX << (first % BITS);
        let tail = u64::MAX >> (BITS - 1 - last % BITS);
        match &self.0[first / BITS..=last / BITS] {
            [word] => word & head & tail != 0,
            [begin, middle @ .., end] => {
                begin & head != 0 || middle.iter().any(|&word| word != 0) || end & tail != 0
            }
            [] => false,
        }
    }

    /// Whether one of these cores, but for `core`, is in the range.
    pub fn meets_without(&self, core: usize, range: Range<usize>) -> bool {
        if range.contains(&core) {
            self.meets(range.start..core) || self.meets(core + 1..range.end)
        } else {
            self.meets(range)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Fails where a core of another word has the same bit, or an end of a range is left out.
        #[test]
        fn a_range_is_searched_to_its_ends(
            cores in proptest::array::uniform3(0..MOST_CORES),
            start in 0..=MOST_CORES,
            length in prop_oneof![0..3_usize, 0..=MOST_CORES],
            but in 0..MOST_CORES,
        ) {
            let set = Cores::of(cores);
            let range = start..(start + length).min(MOST_CORES);
            let found = |core: usize| range.contains(&core) && cores.contains(&core);
            let any = (0..MOST_CORES).any(found);
            prop_assert_eq!(set.meets(range.clone()), any);
            let other = (0..MOST_CORES).any(|core| core != but && found(core));
            prop_assert_eq!(set.meets_without(but, range.clone()), other);
            let contained = (0..MOST_CORES).filter(|&core| set.contains(core));
            prop_assert!(contained.eq((0..MOST_CORES).filter(|core| cores.contains(core))));
            prop_assert!(set.meets(cores[0]..cores[0] + 1));
        }
    }
}

//! Sets of numbers: a bit for each.

use std::ops::Range;

const BITS: usize = u64::BITS as usize;

#[derive(Debug)]
pub(super) struct Set(Vec<u64>);

impl Set {
    /// An empty set of numbers below `most`.
    pub fn below(most: usize) -> Self {
        Self(vec![0; most.div_ceil(BITS)])
    }

    pub fn insert(&mut self, number: usize) {
        self.0[number / BITS] |= 1 << (number % BITS);
    }

    pub fn remove(&mut self, number: usize) {
        self.0[number / BITS] &= !(1 << (number % BITS));
    }

    pub fn contains(&self, number: usize) -> bool {
        let word = self.0.get(number / BITS);
        word.is_some_and(|word| word & 1 << (number % BITS) != 0)
    }

    /// Returns the first number of the range that is in the set.
    pub fn first_in(&self, range: Range<usize>) -> Option<usize> {
        let mut from = range.start;
        while from < range.end {
            let rest = self.0[from / BITS] >> (from % BITS);
            if rest != 0 {
                let first = from + rest.trailing_zeros() as usize;
                return (first < range.end).then_some(first);
            }
            from = (from / BITS + 1) * BITS;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_of_a_range_is_found(
            numbers in proptest::collection::btree_set(0..300_usize, 0..6),
            start in 0..300_usize,
            length in 0..300_usize,
        ) {
            let range = start..(start + length).min(300);
            let mut set = Set::below(300);
            (0..300).for_each(|number| set.insert(number));
            let others = (0..300).filter(|number| !numbers.contains(number));
            others.for_each(|number| set.remove(number));
            prop_assert!((0..400).all(|number| set.contains(number) == numbers.contains(&number)));
            let first = numbers.range(range.clone()).next();
            prop_assert_eq!(set.first_in(range), first.copied());
        }
    }
}

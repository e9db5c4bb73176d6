//! Sets of cores.

use std::ops::Range;

use crate::machine::MOST_CORES;

const BITS: usize = u64::BITS as usize;

/// A set of the cores of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cores([u64; MOST_CORES / BITS]);

impl Cores {
    /// The set of these cores.
    pub fn of(cores: &[usize]) -> Self {
        let mut set = Self([0; MOST_CORES / BITS]);
        cores.iter().for_each(|&core| set.insert(core));
        set
    }

    /// Adds a core.
    pub fn insert(&mut self, core: usize) {
        self.0[core / BITS] |= 1 << (core % BITS);
    }

    /// Whether the set contains the core.
    pub fn contains(&self, core: usize) -> bool {
        self.0[core / BITS] & 1 << (core % BITS) != 0
    }

    /// Whether the set contains a core of this range other than `but`. Looks only at the words that
    /// have cores of the range.
    pub fn has_any(&self, range: Range<usize>, but: Option<usize>) -> bool {
        let Some(last) = range.clone().next_back() else {
            return false;
        };
        (range.start / BITS..=last / BITS).any(|index| {
            let first = index * BITS;
            let from = u64::MAX << range.start.saturating_sub(first);
            let to = u64::MAX >> (BITS - (range.end - first).min(BITS));
            let but = but.filter(|but| but / BITS == index);
            let others = !but.map_or(0, |but| 1 << (but % BITS));
            self.0[index] & from & to & others != 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where the first or the last core of a range is left out, or one beside it counts.
    #[test]
    fn ranges_have_their_cores_and_no_others() {
        for core in [0, 1, 62, 63, 64, 65, 127, 128, 130, 500, MOST_CORES - 1] {
            let set = Cores::of(&[core]);
            for (start, end) in [
                (0, 1),
                (0, 64),
                (1, 64),
                (60, 70),
                (64, 128),
                (63, 65),
                (100, 600),
            ]
            .into_iter()
            .chain([(0, MOST_CORES), (MOST_CORES - 1, MOST_CORES), (70, 70)])
            {
                let range = start..end;
                let expected = range.contains(&core);
                assert_eq!(
                    set.has_any(range.clone(), None),
                    expected,
                    "{core} {range:?}"
                );
                assert!(!set.has_any(range.clone(), Some(core)));
                assert_eq!(set.has_any(range, Some((core + 1) % MOST_CORES)), expected);
            }
        }
    }

    #[test]
    fn a_set_contains_what_was_inserted() {
        let mut set = Cores::of(&[3, 64]);
        set.insert(MOST_CORES - 1);
        let all: Vec<_> = (0..MOST_CORES).filter(|&core| set.contains(core)).collect();
        assert_eq!(all, [3, 64, MOST_CORES - 1]);
    }
}

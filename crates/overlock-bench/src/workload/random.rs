//! Numbers that look random and are the same in every run.

/// SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence number `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, nearly all equally likely.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.draw()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut random = Random::new(1);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[random.below(7)] = true;
        }
        assert_eq!(seen, [true; 7]);
    }

    #[test]
    fn a_seed_gives_the_same_sequence() {
        let sequence = |seed| {
            std::iter::repeat_with({
                let mut random = Random::new(seed);
                move || random.draw()
            })
        };
        assert!(sequence(5).take(10).eq(sequence(5).take(10)));
        assert!(!sequence(5).take(10).eq(sequence(6).take(10)));
    }
}

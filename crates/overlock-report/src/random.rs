//! Pseudo-random numbers. They are the same for the same seed, on every machine and in every
//! version: `--seed` promises that.

/// SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence number `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The sequence that belongs to these parts, taken together and in this order.
    pub fn of(parts: &[u64]) -> Self {
        let mut random = Random(0);
        for part in parts {
            random.0 ^= part;
            random.0 = random.draw();
        }
        random
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
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether to do what is done once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A number from 2^`least` up to 2^`most`, each power of two equally likely.
    pub fn scaled(&mut self, least: u32, most: u32) -> u64 {
        let power = least + self.below(u64::from(most - least)) as u32;
        (1 << power) + self.below(1 << power)
    }

    /// An index below `length`.
    #[inline]
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }
}

/// A number for a name, the same in every run (FNV-1a).
pub fn of_name(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published sequence. If it changes, a seed from an old report replays nothing any more.
    #[test]
    fn the_sequences_stay_what_they_are() {
        let mut random = Random::new(1_234_567);
        let first = [random.draw(), random.draw()];
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
        assert_eq!(of_name("a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn the_order_of_the_parts_counts() {
        assert_ne!(Random::of(&[1, 2]).draw(), Random::of(&[2, 1]).draw());
        assert_ne!(Random::of(&[1]).draw(), Random::of(&[1, 0]).draw());
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut random = Random::new(1);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[random.index(7)] = true;
            assert!((4..16).contains(&random.scaled(2, 4)));
        }
        assert_eq!(seen, [true; 7]);
    }
}

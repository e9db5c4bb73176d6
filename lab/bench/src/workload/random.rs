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

/// `count` choices among `ranks` things by Zipf's law: number n gets a share that falls as 1/n.
/// Spread evenly over the list, and the same in every run.
pub fn zipf(ranks: u16, count: usize) -> Vec<u16> {
    let total: f64 = (1..=ranks).map(|rank| 1.0 / f64::from(rank)).sum();
    let mut choices: Vec<u16> = (0..ranks)
        .flat_map(|index| {
            let share = count as f64 / total / (f64::from(index) + 1.0);
            std::iter::repeat_n(index, share.round() as usize)
        })
        .collect();
    let mut random = Random::new(0);
    for last in (1..choices.len()).rev() {
        choices.swap(last, random.below(last + 1));
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_favours_the_first() {
        let choices = zipf(32, 4096);
        let count = |index| choices.iter().filter(|&&at| at == index).count();
        assert!((1.9..2.1).contains(&(count(0) as f64 / count(1) as f64)));
        assert!(count(0) > choices.len() / 5 && count(31) > 0);
    }

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

//! Numbers that look random and are the same in every run.

pub use overlock_report::random::Random;

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
        choices.swap(last, random.index(last + 1));
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
}

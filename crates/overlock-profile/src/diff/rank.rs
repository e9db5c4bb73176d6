//! Wilcoxon's rank-sum test, with the exact distribution.

/// How likely it is that chance alone puts values into two groups as unevenly as this, in either
/// direction.
pub fn chance(one: &[f64], two: &[f64]) -> f64 {
    let ranks = ranks(one, two);
    let total: usize = ranks.iter().sum();
    // ways[k][sum]: how many choices of k values have that sum of ranks.
    let mut ways = vec![vec![0.0; total + 1]; one.len() + 1];
    ways[0][0] = 1.0;
    for &rank in &ranks {
        for chosen in (1..=one.len()).rev() {
            for sum in (rank..=total).rev() {
                ways[chosen][sum] += ways[chosen - 1][sum - rank];
            }
        }
    }
    let seen: usize = ranks[..one.len()].iter().sum();
    let middle = total as f64 * one.len() as f64 / ranks.len() as f64;
    let distance = (seen as f64 - middle).abs();
    let all: f64 = ways[one.len()].iter().sum();
    let extreme = ways[one.len()].iter().enumerate();
    let extreme = extreme.filter(|(sum, _)| (*sum as f64 - middle).abs() >= distance - 1e-9);
    extreme.map(|(_, ways)| ways).sum::<f64>() / all
}

/// The ranks of all values, those of the first group first. They are doubled, so that equal values
/// share a whole one.
fn ranks(one: &[f64], two: &[f64]) -> Vec<usize> {
    let values: Vec<f64> = one.iter().chain(two).copied().collect();
    let rank = |value: &f64| {
        let less = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        2 * less + equal + 1
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_is_that_of_the_table() {
        let close = |one: &[f64], two: &[f64], right: f64| {
            let found = chance(one, two);
            assert!((found - right).abs() < 1e-9, "{found}, not {right}");
        };
        // The most extreme order of four and four: two of the 70 choices.
        close(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 2.0 / 70.0);
        close(&[5.0, 6.0, 7.0, 8.0], &[1.0, 2.0, 3.0, 4.0], 2.0 / 70.0);
        close(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.1);
        close(&[1.0, 1.0, 1.0, 1.0], &[1.0, 1.0, 1.0, 1.0], 1.0);
        close(&[1.0, 4.0], &[2.0, 3.0], 1.0);
        assert!(chance(&[1.0; 20], &[2.0; 20]) < 1e-9);
    }
}

//! A part of a grid, for one of several machines.

use std::fmt;
use std::str::FromStr;

/// The points at every so-manieth place. Neighbours in a grid cost about the same, so this
/// balances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 1.
    index: usize,
    count: usize,
}

impl Shard {
    /// All there is.
    pub const WHOLE: Self = Self { index: 1, count: 1 };

    /// Its share.
    pub fn of<T>(self, points: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        points.into_iter().skip(self.index - 1).step_by(self.count)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

/// No shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a part and the number of parts, such as 3/16; parts are counted from 1")]
pub struct NoSuchShard;

impl FromStr for Shard {
    type Err = NoSuchShard;

    fn from_str(text: &str) -> Result<Self, NoSuchShard> {
        let (index, count) = text.trim().split_once('/').ok_or(NoSuchShard)?;
        match (index.parse(), count.parse()) {
            (Ok(index), Ok(count)) if (1..=count).contains(&index) => Ok(Self { index, count }),
            _ => Err(NoSuchShard),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shards_are_counted_from_one() {
        for text in ["1/1", "3/16", "16/16"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        assert_eq!("1/1".parse(), Ok(Shard::WHOLE));
        for text in ["", "3", "/", "0/4", "5/4", "1/0", "-1/4", "1/4/4", "x/4"] {
            assert_eq!(text.parse::<Shard>(), Err(NoSuchShard), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_point_is_in_one_shard(points in 0_usize..200, count in 1_usize..40) {
            let shard = |index| Shard { index, count };
            let shares: Vec<Vec<usize>> =
                (1..=count).map(|index| shard(index).of(0..points).collect()).collect();
            let mut all = shares.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..points).collect::<Vec<_>>());
            let sizes = shares.iter().map(Vec::len);
            prop_assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
        }
    }
}

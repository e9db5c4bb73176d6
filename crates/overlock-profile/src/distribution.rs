//! Lengths of waits, in buckets whose width is at most a hundredth of their value.
//!
//! A profile has a distribution for each of its locks, and most locks have few waits. So only
//! buckets with waits take memory.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A distribution of lengths in nanoseconds. In JSON it is a list of pairs: a length, and how many
/// there were of about that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// The longest length of each bucket, and the number of lengths in it; sorted.
    buckets: Vec<(u64, u64)>,
    count: u64,
}

/// A year is long enough.
const LONGEST_NS: u64 = 366 * 24 * 3600 * 1_000_000_000;

/// Lengths below two to the power of this have buckets of their own. Longer ones share theirs with
/// those that have the same first digits, so many in the binary system.
const DIGITS: u32 = 8;

/// The longest length of the bucket of `ns`.
fn longest(ns: u64) -> u64 {
    let others = (u64::BITS - ns.leading_zeros()).saturating_sub(DIGITS);
    ns | ((1 << others) - 1)
}

impl Distribution {
    /// Adds a length.
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Adds `count` of about this length.
    pub fn record_many(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.count = self.count.saturating_add(count);
        let ns = longest(ns.min(LONGEST_NS));
        // In a file they come in order.
        let at = match self.buckets.last() {
            Some(&(last, _)) if last < ns => Err(self.buckets.len()),
            _ => self.buckets.binary_search_by_key(&ns, |&(ns, _)| ns),
        };
        match at {
            Ok(at) => {
                let known = &mut self.buckets[at].1;
                *known = known.saturating_add(count);
            }
            Err(at) => self.buckets.insert(at, (ns, count)),
        }
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        for (ns, count) in other.buckets() {
            self.record_many(ns, count);
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The length that this share of them does not exceed: 0.5 for the median. 0 if there are none.
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0_u64;
        let found = self.buckets.iter().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= rank
        });
        found.map_or(self.max(), |&(ns, _)| ns)
    }

    /// The longest, to a hundredth. 0 if there are none.
    pub fn max(&self) -> u64 {
        self.buckets.last().map_or(0, |&(ns, _)| ns)
    }

    /// Lengths and how many there are of each, the shortest first.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets.iter().copied()
    }
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.buckets())
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut read = Self::default();
        for (ns, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            read.record_many(ns, count);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_a_hundredth_after_a_merge() {
        let mut all = Distribution::default();
        for part in 0..2 {
            let mut half = Distribution::default();
            for ns in (1..=100_000).filter(|ns| ns % 2 == part) {
                half.record(ns * 1000);
            }
            all.add(&half);
        }
        assert_eq!(all.count(), 100_000);
        for (share, right) in [(0.5, 50_000_000.0), (0.99, 99_000_000.0)] {
            let found = all.quantile(share) as f64;
            assert!((found / right - 1.0).abs() < 0.011, "{share}: {found}");
        }
        assert_eq!(Distribution::default().quantile(0.5), 0);
        let mut longest = Distribution::default();
        longest.record(u64::MAX);
        longest.record_many(1, u64::MAX);
        assert_eq!(longest.count(), u64::MAX);
        assert!(longest.max() >= LONGEST_NS);
    }

    #[test]
    fn lengths_that_differ_by_a_hundredth_are_told_apart() {
        for ns in (0..200).chain((1..60).map(|bits| 1 << bits)) {
            let (bucket, next) = (longest(ns), longest(ns + 1 + ns / 100));
            assert!((ns..=ns + ns / 100).contains(&bucket), "{ns}: {bucket}");
            assert!(bucket < next, "{ns}");
            // A length that was read from a file is written again.
            assert_eq!(longest(bucket), bucket);
        }
    }

    /// Fails where a lock's distribution takes room for lengths that no wait had: those of 100,000
    /// locks took a gigabyte.
    #[test]
    fn a_distribution_of_few_waits_is_small() {
        let mut few = Distribution::default();
        for ns in [30, 5_000, 5_001, 20_000_000_000, 1_000] {
            few.record(ns);
        }
        assert!(few.buckets.capacity() <= 8);
        let lengths: Vec<_> = few.buckets().map(|(_, count)| count).collect();
        assert_eq!(lengths, [1, 1, 2, 1]);
    }
}

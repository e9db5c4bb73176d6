//! Lengths of waits, in buckets whose width is at most a hundredth of their value.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A distribution of lengths in nanoseconds. In JSON it is a list of pairs: a length, and how many
/// there were of about that.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution(Histogram<u64>);

const LONGEST_NS: u64 = 366 * 24 * 3600 * 1_000_000_000;

impl Default for Distribution {
    fn default() -> Self {
        Self(Histogram::new(2).expect("two digits are in range"))
    }
}

impl Distribution {
    /// Adds a length.
    pub fn record(&mut self, ns: u64) {
        self.record_many(ns, 1);
    }

    /// Adds `count` of about this length.
    pub fn record_many(&mut self, ns: u64, count: u64) {
        // A year is long enough; the histogram grows up to that.
        let ns = ns.min(LONGEST_NS);
        self.0.record_n(ns, count).expect("it grows");
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        for (ns, count) in other.buckets() {
            self.record_many(ns, count);
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The length that this share of them does not exceed: 0.5 for the median. 0 if there are none.
    pub fn quantile(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }

    /// The longest, to a hundredth. 0 if there are none.
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// Lengths and how many there are of each, the shortest first.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let recorded = self.0.iter_recorded();
        recorded.map(|bucket| {
            (
                bucket.value_iterated_to(),
                bucket.count_since_last_iteration(),
            )
        })
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
        assert_eq!(longest.count(), 1);
    }
}

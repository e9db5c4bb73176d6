//! Simulated time.

use std::fmt;
use std::ops::{Add, AddAssign};
use std::str::FromStr;
use std::time::Duration;

use derive_more::{Sub, Sum};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A time or a duration of a simulation, in picoseconds: costs of a few nanoseconds can be halved
/// and varied without being rounded away. 213 days at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Sub, Sum)]
pub struct Time(u64);

impl Time {
    /// The start, or no duration.
    pub const ZERO: Self = Self(0);
    /// The largest time.
    pub const MAX: Self = Self(u64::MAX);

    /// This many picoseconds.
    pub const fn ps(picoseconds: u64) -> Self {
        Self(picoseconds)
    }

    /// This many nanoseconds.
    pub const fn ns(nanoseconds: u64) -> Self {
        Self(nanoseconds.saturating_mul(1_000))
    }

    /// This many microseconds.
    pub const fn us(microseconds: u64) -> Self {
        Self(microseconds.saturating_mul(1_000_000))
    }

    /// This many milliseconds.
    pub const fn ms(milliseconds: u64) -> Self {
        Self(milliseconds.saturating_mul(1_000_000_000))
    }

    /// `nanoseconds`, rounded to picoseconds; zero if negative.
    pub const fn from_ns(nanoseconds: f64) -> Self {
        Self((nanoseconds * 1e3).round() as u64)
    }

    /// Returns it in picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns it in whole nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns it in nanoseconds.
    pub const fn as_ns_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Returns it as a `Duration`.
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.as_ns())
    }

    /// Returns the difference, or zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns it `factor` times.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// Returns it `factor` times, which must not be negative. The result is at most 106 days, and
    /// a longer time counts as that.
    #[must_use]
    #[inline]
    pub fn scale(self, factor: f64) -> Self {
        debug_assert!(factor >= 0.0);
        // Conversions of signed numbers need about half of the instructions of others on x86-64.
        let ps = self.0.min(i64::MAX as u64) as i64;
        Self((ps as f64 * factor) as i64 as u64)
    }

    /// Returns half of it.
    #[must_use]
    pub const fn half(self) -> Self {
        Self(self.0 / 2)
    }
}

impl From<Duration> for Time {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos().saturating_mul(1_000)).unwrap_or(u64::MAX))
    }
}

impl Add for Time {
    type Output = Self;

    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Units of time in picoseconds.
const UNITS: [(&str, f64); 5] = [
    ("ps", 1.0),
    ("ns", 1e3),
    ("us", 1e6),
    ("ms", 1e9),
    ("s", 1e12),
];

/// In the largest unit of which it has at least one, but not in picoseconds.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, scale): &&(_, f64)| self.0 as f64 >= *scale;
        let (unit, scale) = UNITS[1..].iter().rfind(fits).unwrap_or(&UNITS[1]);
        write!(f, "{}{unit}", self.0 as f64 / scale)
    }
}

/// A number with a unit, or without one in nanoseconds.
impl FromStr for Time {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = Some(&text[number.len()..]).filter(|unit| !unit.is_empty());
        let unit = UNITS.iter().find(|(name, _)| *name == unit.unwrap_or("ns"));
        let number = number
            .trim_end()
            .parse()
            .ok()
            .filter(|number: &f64| *number >= 0.0);
        let (number, (_, scale)) = number.zip(unit).ok_or("not a time")?;
        Ok(Self((number * scale).round() as u64))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

//! Simulated time.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// About a quarter of the largest time.
const MOST: f64 = (1_u64 << 62) as f64;

/// A time or a duration of a simulation, in picoseconds: costs of a few nanoseconds can be halved
/// and varied without being rounded away. 213 days at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
        Self::ns(microseconds.saturating_mul(1_000))
    }

    /// This many milliseconds.
    pub const fn ms(milliseconds: u64) -> Self {
        Self::us(milliseconds.saturating_mul(1_000))
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
        Duration::from_nanos(self.0 / 1_000)
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
        let scaled = ps as f64 * factor;
        if (0.0..MOST).contains(&scaled) {
            // SAFETY: it is not NaN, and its integer part is an `i64`.
            return Self(unsafe { scaled.to_int_unchecked::<i64>() } as u64);
        }
        Self::longest(scaled)
    }

    /// Returns that of so many picoseconds, or the longest that a product can be.
    #[cold]
    fn longest(picoseconds: f64) -> Self {
        Self(picoseconds as i64 as u64)
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

impl Sub for Time {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Sum for Time {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0 / 1_000))
    }
}

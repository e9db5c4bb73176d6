//! The place of a figure in a table, and its quantity.

use std::fmt::{self, Display, Formatter};

use serde::{Serialize, Serializer};

/// The unit of a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Virtual CPUs.
    Vcpus,
    /// Threads.
    Threads,
    /// Threads that send packets.
    Senders,
    /// vCPUs of all guests for each CPU.
    Overcommit,
}

/// A place in a table: "36 vCPUs", or "barcelona, 4 threads" if the table has several machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The machine.
    pub machine: Option<&'static str>,
    /// How many.
    pub number: usize,
    /// Of what.
    pub of: Count,
}

/// The way in which figures of a unit are compared on logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Rates, times, shares.
    Absolute,
    /// Ratios of two locks, which are 1 if the locks are equal.
    Ratio,
    /// Gains in percent, which are 0 then.
    Gain,
}

impl Scale {
    /// The figure if all locks are equal, where that says it.
    pub fn equal(self) -> Option<f64> {
        match self {
            Self::Absolute => None,
            Self::Ratio => Some(1.0),
            Self::Gain => Some(0.0),
        }
    }

    /// The logarithm of a figure; of a gain, that of the ratio.
    pub fn log(self, figure: f64) -> f64 {
        match self {
            Self::Gain => (figure / 100.0).ln_1p(),
            _ => figure.ln(),
        }
    }

    /// The figure with that logarithm.
    pub fn figure(self, log: f64) -> f64 {
        match self {
            Self::Gain => log.exp_m1() * 100.0,
            _ => log.exp(),
        }
    }
}

/// The unit of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// A word behind what is measured, if that does not say it already.
    pub word: Option<&'static str>,
    /// The way in which its figures are compared on logarithms.
    pub scale: Scale,
}

/// The quantity that is compared: "hybrid, average".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// Of what: the same in all places of a table.
    pub series: String,
    /// In what.
    pub unit: Unit,
}

impl Place {
    /// So many of that, in a table of one machine.
    pub const fn new(number: usize, of: Count) -> Self {
        Self {
            machine: None,
            number,
            of,
        }
    }

    /// The same on one of several machines.
    #[must_use]
    pub const fn on(self, machine: &'static str) -> Self {
        Self {
            machine: Some(machine),
            ..self
        }
    }
}

impl Unit {
    /// A figure of that series, measured in this.
    pub fn of(self, series: impl Into<String>) -> Quantity {
        Quantity {
            series: series.into(),
            unit: self,
        }
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(machine) = self.machine {
            write!(f, "{machine}, ")?;
        }
        f.write_str(&self.number.to_string())?;
        f.write_str(match self.of {
            Count::Vcpus => " vCPUs",
            Count::Threads => " threads",
            Count::Senders => " senders",
            Count::Overcommit => "x",
        })
    }
}

impl Display for Quantity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.series)?;
        match self.unit.word {
            Some(word) => write!(f, ", {word}"),
            None => Ok(()),
        }
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_quantities_are_told_in_words() {
        let place = Place::new(36, Count::Vcpus);
        assert_eq!(place.to_string(), "36 vCPUs");
        let place = Place::new(4, Count::Threads).on("barcelona");
        assert_eq!(place.to_string(), "barcelona, 4 threads");
        assert_eq!(Place::new(2, Count::Overcommit).to_string(), "2x");
        const PERCENT: Unit = Unit {
            word: Some("percent"),
            scale: Scale::Gain,
        };
        assert_eq!(PERCENT.of("gain").to_string(), "gain, percent");
        const RATE: Unit = Unit {
            word: None,
            scale: Scale::Absolute,
        };
        assert_eq!(RATE.of("hybrid, most").to_string(), "hybrid, most");
    }
}

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
#[derive(Debug, PartialEq, Eq)]
pub struct Unit {
    /// As the title of an axis.
    pub title: &'static str,
    /// As a word behind what is measured, if that does not say it already.
    pub short: Option<&'static str>,
    /// The way in which its figures are compared on logarithms.
    pub scale: Scale,
}

/// The quantity that is compared: "hybrid, average".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// Of what: the same in all places of a table.
    pub series: String,
    /// In what.
    pub unit: &'static Unit,
}

impl Count {
    /// As the title of an axis.
    pub fn title(self) -> &'static str {
        match self {
            Self::Vcpus => "vCPUs",
            Self::Threads => "threads",
            Self::Senders => "senders",
            Self::Overcommit => "vCPUs for each CPU",
        }
    }
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

    /// As a label of an axis, whose title has the unit.
    pub fn label(&self) -> String {
        match self.of {
            Count::Overcommit => format!("{}x", self.number),
            _ => self.number.to_string(),
        }
    }
}

impl Unit {
    /// A figure of that series, measured in this.
    pub fn of(&'static self, series: impl Into<String>) -> Quantity {
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
        match self.of {
            Count::Overcommit => f.write_str(&self.label()),
            of => write!(f, "{} {}", self.number, of.title()),
        }
    }
}

impl Display for Quantity {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.series)?;
        match self.unit.short {
            Some(short) => write!(f, ", {short}"),
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
        assert_eq!(place.label(), "4");
        assert_eq!(Place::new(2, Count::Overcommit).to_string(), "2x");
        static PERCENT: Unit = Unit {
            title: "gain, percent",
            short: Some("percent"),
            scale: Scale::Gain,
        };
        assert_eq!(PERCENT.of("gain").to_string(), "gain, percent");
        static RATE: Unit = Unit {
            title: "rate",
            short: None,
            scale: Scale::Absolute,
        };
        assert_eq!(RATE.of("hybrid, most").to_string(), "hybrid, most");
    }
}

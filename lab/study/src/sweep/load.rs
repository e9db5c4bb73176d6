//! How many vCPUs a simulation has.

use std::fmt;
use std::str::FromStr;

use overlock_sim::machine::Machine;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// More vCPUs for each CPU than any machine has a use for.
const MANY: f64 = 1e6;

/// A number of vCPUs, perhaps one that depends on the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// So many.
    Vcpus(usize),
    /// So many for each CPU of the machine.
    Overcommit(f64),
}

impl Load {
    /// How many those are on this machine, at least one.
    pub fn on(self, machine: &Machine) -> usize {
        match self {
            Self::Vcpus(vcpus) => vcpus,
            Self::Overcommit(level) => ((level * machine.cpus() as f64).round() as usize).max(1),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vcpus(vcpus) => write!(f, "{vcpus}"),
            Self::Overcommit(level) => write!(f, "{level}x"),
        }
    }
}

/// No load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a number of vCPUs, or vCPUs for each CPU, above 0x and up to {MANY}x, such as 0.25x or 2x"
)]
pub struct NoSuchLoad;

impl FromStr for Load {
    type Err = NoSuchLoad;

    fn from_str(text: &str) -> Result<Self, NoSuchLoad> {
        let text = text.trim();
        let load = match text.strip_suffix(['x', 'X']) {
            Some(level) => level.parse().ok().map(Self::Overcommit),
            None => text.parse().ok().map(Self::Vcpus),
        };
        match load {
            Some(Self::Overcommit(level)) if !(level > 0.0 && level <= MANY) => Err(NoSuchLoad),
            Some(Self::Vcpus(0)) | None => Err(NoSuchLoad),
            Some(load) => Ok(load),
        }
    }
}

/// As files have it: a number, or a text such as "2x".
impl Serialize for Load {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Vcpus(vcpus) => vcpus.serialize(serializer),
            Self::Overcommit(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Load {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_numbers_or_levels() {
        let machine = Machine::named("barcelona").unwrap();
        for (text, vcpus) in [("3", 3), ("0.25x", 4), ("2X", 32), (" 0.01x ", 1)] {
            assert_eq!(text.parse::<Load>().unwrap().on(&machine), vcpus, "{text}");
        }
        for nonsense in [
            "", "x", "0", "0x", "-1x", "-1", "1.5", "NaNx", "infx", "1e9x",
        ] {
            assert_eq!(nonsense.parse::<Load>(), Err(NoSuchLoad), "{nonsense}");
        }
    }

    #[test]
    fn loads_survive_as_json() {
        let loads = [
            Load::Vcpus(36),
            Load::Overcommit(0.25),
            Load::Overcommit(2.0),
        ];
        let json = serde_json::to_string(&loads).unwrap();
        assert_eq!(json, r#"[36,"0.25x","2x"]"#);
        let again: Vec<Load> = serde_json::from_str(&json).unwrap();
        assert_eq!(again, loads);
        assert!(serde_json::from_str::<Load>(r#""many""#).is_err());
    }
}

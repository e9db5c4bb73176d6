//! How many vCPUs a simulation has.

use std::fmt;
use std::str::FromStr;

use overlock_sim::machine::Machine;
use serde::{Deserialize, Serialize};

/// More vCPUs for each CPU than any machine has a use for.
const MANY: f64 = 1e6;

/// A number of vCPUs, perhaps one that depends on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Text")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchLoad;

impl fmt::Display for NoSuchLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "must be a number of vCPUs, or vCPUs for each CPU, above 0x and up to {MANY}x, such as 0.25x or 2x"
        )
    }
}

impl std::error::Error for NoSuchLoad {}

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

/// A load as files have it: a number, or a text such as "2x".
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Text {
    Vcpus(usize),
    Overcommit(String),
}

impl From<Load> for Text {
    fn from(load: Load) -> Self {
        match load {
            Load::Vcpus(vcpus) => Self::Vcpus(vcpus),
            Load::Overcommit(_) => Self::Overcommit(load.to_string()),
        }
    }
}

impl TryFrom<Text> for Load {
    type Error = NoSuchLoad;

    fn try_from(text: Text) -> Result<Self, NoSuchLoad> {
        match text {
            Text::Vcpus(vcpus) => Ok(Self::Vcpus(vcpus)),
            Text::Overcommit(text) => text.parse(),
        }
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

//! A workload as one word: its name, then what is set about it. `micro:cs=95:ncs=100`, `build`.

use std::fmt;
use std::str::FromStr;

use super::Workload;
use super::condvar::Pattern;

/// The longest section in nanoseconds.
pub const LONGEST_SECTION: f64 = 1e9;
/// More arrays or records than any machine has a use for.
pub const MANY: usize = 1_000_000;

/// A setting of a workload, by the values that it takes.
enum Place<'a> {
    Nanoseconds(&'a mut f64),
    Percent(&'a mut f64),
    Count(&'a mut usize),
    Pattern(&'a mut Pattern),
}

impl Place<'_> {
    /// Puts a value there, or says which there are.
    fn set(self, text: &str) -> Result<(), String> {
        match self {
            Self::Nanoseconds(place) => number(place, text, LONGEST_SECTION, "nanoseconds"),
            Self::Percent(place) => number(place, text, 100.0, "a percentage"),
            Self::Count(place) => match text.parse() {
                Ok(count) if (1..=MANY).contains(&count) => {
                    *place = count;
                    Ok(())
                }
                _ => Err(format!("a whole number from 1 to {MANY}")),
            },
            Self::Pattern(place) => {
                let known = Pattern::ALL
                    .into_iter()
                    .find(|pattern| pattern.name() == text);
                *place = known.ok_or_else(|| Pattern::ALL.map(Pattern::name).join(", "))?;
                Ok(())
            }
        }
    }

    fn text(self) -> String {
        match self {
            Self::Nanoseconds(value) | Self::Percent(value) => value.to_string(),
            Self::Count(value) => value.to_string(),
            Self::Pattern(value) => value.name().to_owned(),
        }
    }
}

fn number(place: &mut f64, text: &str, most: f64, unit: &str) -> Result<(), String> {
    match text.parse() {
        // Adding zero makes minus zero plus zero: one value, one name.
        Ok(number) if (0.0..=most).contains(&number) => {
            *place = number + 0.0;
            Ok(())
        }
        _ => Err(format!("{unit}, a number from 0 to {most}")),
    }
}

impl Workload {
    /// The settings, by name.
    fn places(&mut self) -> Vec<(&'static str, Place<'_>)> {
        match self {
            Self::Micro { cs, ncs } | Self::Build { cs, ncs } => {
                vec![
                    ("cs", Place::Nanoseconds(cs)),
                    ("ncs", Place::Nanoseconds(ncs)),
                ]
            }
            Self::Semop { arrays } => vec![("arrays", Place::Count(arrays))],
            Self::Rw {
                cs,
                ncs,
                reads,
                records,
            } => vec![
                ("cs", Place::Nanoseconds(cs)),
                ("ncs", Place::Nanoseconds(ncs)),
                ("reads", Place::Percent(reads)),
                ("records", Place::Count(records)),
            ],
            Self::Condvar { pattern } => vec![("pattern", Place::Pattern(pattern))],
            Self::Qdisc | Self::Fserver | Self::Rwsem => Vec::new(),
        }
    }
}

/// With all that is set about it, so that each workload has one name.
impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        // `places` borrows mutably, for the sake of parsing.
        let mut copy = *self;
        for (key, place) in copy.places() {
            write!(f, ":{key}={}", place.text())?;
        }
        Ok(())
    }
}

/// A word that is no workload, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchWorkload(String);

impl fmt::Display for NoSuchWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoSuchWorkload {}

impl FromStr for Workload {
    type Err = NoSuchWorkload;

    fn from_str(text: &str) -> Result<Self, NoSuchWorkload> {
        let mut words = text.trim().split(':');
        let name = words.next().unwrap_or_default();
        let mut workload = Self::ALL
            .into_iter()
            .find(|workload| workload.name() == name)
            .ok_or_else(|| {
                let names = Self::ALL.map(|workload| workload.name()).join(", ");
                NoSuchWorkload(format!(
                    "unknown workload '{name}'; the workloads are {names}"
                ))
            })?;
        let mut seen = Vec::new();
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let mut places = workload.places();
            let keys: Vec<&str> = places.iter().map(|(key, _)| *key).collect();
            let Some(index) = keys.iter().position(|known| *known == key) else {
                let keys = match keys.as_slice() {
                    [] => "nothing".to_owned(),
                    keys => keys.join(", "),
                };
                return Err(NoSuchWorkload(format!(
                    "{text}: no '{key}' can be set for {name}, only {keys}"
                )));
            };
            if seen.contains(&index) {
                return Err(NoSuchWorkload(format!("{text}: {key} is set twice")));
            }
            seen.push(index);
            let (_, place) = places.swap_remove(index);
            place
                .set(value)
                .map_err(|valid| NoSuchWorkload(format!("{text}: {key} must be {valid}")))?;
        }
        Ok(workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_one_word() {
        for workload in Workload::ALL {
            let text = workload.to_string();
            assert_eq!(text.parse(), Ok(workload), "{text}");
            assert_eq!(workload.name().parse(), Ok(workload));
        }
        let word = "rw:records=5:reads=99.5:cs=1e3";
        let workload: Workload = word.parse().unwrap();
        assert_eq!(
            workload.to_string(),
            "rw:cs=1000:ncs=0:reads=99.5:records=5"
        );
        let word = "condvar:pattern=ping-pong";
        assert_eq!(word.parse::<Workload>().unwrap().to_string(), word);
        let zero: Workload = "micro:cs=-0".parse().unwrap();
        assert_eq!(zero.to_string(), "micro:cs=0:ncs=0");
    }

    #[test]
    fn what_is_no_workload_is_refused_with_what_is_valid() {
        let refused = |text: &str, says: &str| {
            let message = text.parse::<Workload>().unwrap_err().to_string();
            assert!(message.contains(says), "{text}: {message}");
        };
        refused("macro", "unknown workload 'macro'; the workloads are micro");
        refused("", "unknown workload ''");
        refused("micro:", "no '' can be set for micro, only cs, ncs");
        refused("qdisc:cs=5", "no 'cs' can be set for qdisc, only nothing");
        refused(
            "micro:cs",
            "cs must be nanoseconds, a number from 0 to 1000000000",
        );
        refused("micro:cs=NaN", "cs must be nanoseconds");
        refused("micro:cs=1:cs=2", "cs is set twice");
        refused("rw:reads=101", "reads must be a percentage");
        refused(
            "rw:records=0",
            "records must be a whole number from 1 to 1000000",
        );
        refused(
            "condvar:pattern=ring",
            "pattern must be queue, ping-pong, broadcast",
        );
    }
}

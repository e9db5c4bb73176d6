//! The keys of a workload: `micro:cs=95ns` names one, and so does a file in TOML.

use std::fmt;
use std::str::FromStr;

use overlock_sim::Time;
use overlock_sim::spec::{self, Domain, Key, Spec};

use super::Workload;
use super::condvar::Pattern;

/// The longest section in nanoseconds.
pub const LONGEST_SECTION: f64 = 1e9;
/// More arrays or records than any machine has a use for.
pub const MANY: usize = 1_000_000;
/// The most lines of a section.
pub const MOST_LINES: usize = 1_000;
/// The most lines of all locks of `micro`: 128 MB.
const MOST_LINES_IN_ALL: usize = 1_000_000;

const SECTION: Domain = Domain::Time(Time::ZERO, Time::from_ns(LONGEST_SECTION));
const COUNT: Domain = Domain::Count(1, MANY);
const LINES: Domain = Domain::Count(0, MOST_LINES);

const fn key(name: &'static str, kind: Domain, about: &'static str) -> Key {
    Key { name, about, kind }
}

const KEYS: &[Key] = &[
    key(
        "cs",
        SECTION,
        "micro, build, rw: the critical section, beside its access to the data",
    ),
    key(
        "ncs",
        SECTION,
        "micro, build, rw: the section between two acquisitions",
    ),
    key(
        "lines",
        LINES,
        "micro: cache lines that the critical section writes, beside that of the lock",
    ),
    key(
        "lines_read",
        LINES,
        "micro: cache lines that the critical section reads",
    ),
    key(
        "places",
        Domain::Count(1, MOST_LINES),
        "micro: in how many places the written lines may be, as in a table: sections take turns",
    ),
    key(
        "choices",
        Domain::Count(1, MOST_LINES),
        "micro: locks, each with its own lines; threads pick one at random",
    ),
    key(
        "arrays",
        COUNT,
        "semop: semaphore arrays, each under its own lock",
    ),
    key(
        "reads",
        Domain::Share(0.0, 100.0),
        "rw: the percentage of operations that read",
    ),
    key(
        "records",
        COUNT,
        "rw: records, each under its own lock; threads pick one at random",
    ),
    key(
        "pattern",
        Domain::Word(&Pattern::NAMES),
        "condvar: who waits for whom",
    ),
];

/// A workload is named by its kind and its settings, whatever a file says about it.
impl Spec for Workload {
    const WHAT: &'static str = "workload";
    const KEYS: &'static [&'static [Key]] = &[KEYS];

    fn presets() -> &'static [Self] {
        &Self::ALL
    }

    fn name(&self) -> &str {
        Self::name(self)
    }

    fn about(&self) -> &str {
        Self::about(self)
    }

    fn rules(&self) -> Vec<(bool, &'static str)> {
        let &Self::Micro {
            lines,
            lines_read,
            places,
            choices,
            ..
        } = self
        else {
            return Vec::new();
        };
        let all = choices * (lines * places + lines_read);
        let rule = "choices * lines * places + choices * lines_read must be at most 1000000";
        vec![(all <= MOST_LINES_IN_ALL, rule)]
    }
}

/// Nanoseconds, which are a time in files.
pub(super) mod nanoseconds {
    use overlock_sim::Time;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(section: &f64, to: S) -> Result<S::Ok, S::Error> {
        Time::from_ns(*section).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Time::deserialize(from).map(Time::as_ns_f64)
    }
}

impl Workload {
    /// Whether it has the key of that name.
    pub fn has(&self, name: &str) -> bool {
        spec::has(self, name)
    }
}

/// The name, with the keys that are not as usual.
impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&spec::name(self))
    }
}

/// The name of a workload, perhaps with keys. Files are not read: [`spec::read`] does that.
impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        spec::parse(text.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    #[test]
    fn every_workload_is_one_word() {
        for workload in Workload::ALL {
            let text = workload.to_string();
            assert_eq!(text.parse(), Ok(workload), "{text}");
            assert_eq!(text, workload.name(), "nothing differs");
        }
        let of = |word: &str| word.parse::<Workload>().unwrap().to_string();
        assert_eq!(
            of("rw:records=5:reads=99.5:cs=1e3"),
            "rw:cs=1us:reads=99.5:records=5"
        );
        assert_eq!(of("condvar:pattern=ping-pong"), "condvar:pattern=ping-pong");
        assert_eq!(of("build:cs=100:ncs=2us"), "build", "these are its own");
        assert_eq!(of("micro:cs=-0:ncs=6.5"), "micro:ncs=6.5ns");
        assert_eq!(of("rw:reads=-0"), "rw:reads=0");
        assert_eq!(of("micro:cs=128.004"), "micro:cs=128.004ns");
        let most = "micro:lines=1:lines_read=1:places=999:choices=1000";
        assert_eq!(of(most), most, "a million lines");
    }

    /// Fails where a key is missing in the list, or has the field of another.
    #[test]
    fn workloads_survive_being_printed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("workload.toml");
        let settings = [
            "micro:cs=95:ncs=100:lines=2:lines_read=7:places=16:choices=3",
            "semop:arrays=2",
            "build:cs=1:ncs=3us",
        ];
        let settings = settings.into_iter().chain([
            "rw:cs=7:ncs=9:reads=12.5:records=3",
            "condvar:pattern=broadcast",
        ]);
        let changed = settings.map(|word| word.parse().unwrap());
        for workload in Workload::ALL.into_iter().chain(changed) {
            fs::write(&path, spec::toml(&workload)).unwrap();
            let read = spec::read(path.to_str().unwrap(), &[]);
            assert_eq!(read, Ok(workload));
            assert_eq!(workload.to_string().parse(), Ok(workload));
        }
    }

    proptest! {
        /// Fails where a name loses a picosecond each time that it is read.
        #[test]
        fn names_of_sections_stay(cs in 0_u64..=10_000_000, ncs in 0_u64..=1_000_000_000_000) {
            let name = format!("micro:cs={cs}ps:ncs={ncs}ps");
            let workload: Workload = name.parse().unwrap();
            let set = workload.parameters();
            assert_eq!(set.cs_ns.map(|ns| (ns * 1e3).round()), Some(cs as f64));
            assert_eq!(workload.to_string().parse(), Ok(workload));
            let again: Workload = workload.to_string().parse().unwrap();
            assert_eq!(again.to_string(), workload.to_string());
        }
    }

    #[test]
    fn what_is_no_workload_is_refused_with_what_is_valid() {
        let refused = |text: &str, says: &str| {
            let message = text.parse::<Workload>().unwrap_err();
            assert!(message.contains(says), "{text}: {message}");
        };
        refused("macro", "unknown workload 'macro'; the workloads are micro");
        refused("", "unknown workload ''");
        refused("micro:", "'' must be KEY=VALUE");
        refused("qdisc:cs=5", "unknown key 'cs'; qdisc has no keys");
        refused(
            "micro:reads=5",
            "unknown key 'reads'; the keys of micro are cs, ncs, lines, lines_read, places, choices",
        );
        refused("semop:arays=5", "did you mean 'arrays'?");
        refused("micro:cs=NaN", "cs must be a time from 0ns to 1s, not NaN");
        refused(
            "micro:choices=1000:lines=1:places=999:lines_read=2",
            "lines_read must be at most 1000000 (lines=1:lines_read=2:places=999:choices=1000)",
        );
        refused("rw:reads=101", "reads must be a number from 0 to 100");
        refused(
            "rw:records=0",
            "records must be a whole number from 1 to 1000000",
        );
        refused(
            "condvar:pattern=ring",
            "pattern must be one of queue, ping-pong, broadcast",
        );
    }
}

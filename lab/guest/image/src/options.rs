//! The boot line: `ms=100 vcpus=2,4 locks=ticket,mcs workload=micro`.

use core::fmt;

/// The most values of `vcpus=`.
const MOST_COUNTS: usize = 8;

/// The image's workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// The documents' microbenchmark, measured.
    Micro,
    /// The tester: tasks and interrupt handlers take locks, and check them.
    Torture,
}

/// The options of the boot line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options<'a> {
    /// Milliseconds of a round's measured part. A quarter as long goes before to warm up.
    pub ms: u64,
    pub rounds: usize,
    /// Names of locks. All if empty.
    pub locks: &'a str,
    /// Of a hundred operations on a reader-writer lock, those that read.
    pub reads: u64,
    /// Nanoseconds of the critical section, beside its checks.
    pub cs: u64,
    /// Nanoseconds between two operations.
    pub ncs: u64,
    /// Milliseconds without progress after which the watchdog ends the run.
    pub hang: u64,
    /// CPUs that the vCPUs share. 0 if nobody says.
    pub cpus: u32,
    /// Whether locks may know which vCPUs the hypervisor has preempted, if it says so.
    pub preempted: bool,
    pub workload: Workload,
    counts: [usize; MOST_COUNTS],
}

/// A word of the boot line that is no option, or whose value is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown<'a>(pub &'a str);

impl fmt::Display for Unknown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} on the boot line", self.0)
    }
}

impl<'a> Options<'a> {
    /// The options that the line names. Words without `=` are left to others.
    ///
    /// # Errors
    ///
    /// The first word that is wrong.
    pub fn parse(line: &'a str) -> Result<Self, Unknown<'a>> {
        let mut options = Options {
            ms: 50,
            rounds: 3,
            locks: "",
            reads: 75,
            cs: 0,
            ncs: 0,
            hang: 10_000,
            cpus: 0,
            preempted: true,
            workload: Workload::Micro,
            counts: [0; MOST_COUNTS],
        };
        options.counts[0] = 2;
        for word in line.split_ascii_whitespace() {
            if let Some((name, value)) = word.split_once('=') {
                options.set(name, value).ok_or(Unknown(word))?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &'a str) -> Option<()> {
        match name {
            "ms" => self.ms = at_least_one(value)?,
            "rounds" => self.rounds = at_least_one(value)? as usize,
            "locks" => self.locks = value,
            "reads" => self.reads = value.parse().ok().filter(|share| *share <= 100)?,
            "cs" => self.cs = value.parse().ok()?,
            "ncs" => self.ncs = value.parse().ok()?,
            "hang" => self.hang = at_least_one(value)?,
            "cpus" => self.cpus = value.parse().ok()?,
            "preempted" => {
                self.preempted = match value {
                    "known" => true,
                    "unknown" => false,
                    _ => return None,
                };
            }
            "workload" => {
                self.workload = match value {
                    "micro" => Workload::Micro,
                    "torture" => Workload::Torture,
                    _ => return None,
                };
            }
            "vcpus" => {
                self.counts = [0; MOST_COUNTS];
                let mut counts = value.split(',');
                for place in &mut self.counts {
                    match counts.next() {
                        Some(count) => *place = at_least_one(count)? as usize,
                        None => break,
                    }
                }
                return counts.next().is_none().then_some(());
            }
            _ => return None,
        }
        Some(())
    }

    /// The numbers of vCPUs that take the lock, one after another.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        self.counts.into_iter().take_while(|count| *count != 0)
    }

    /// The vCPUs that this needs: those that take the lock, and one that directs them.
    pub fn vcpus(&self) -> usize {
        1 + self.counts().max().unwrap_or(0)
    }

    /// Whether the lock of this name is wanted.
    pub fn wants(&self, lock: &str) -> bool {
        self.locks.is_empty() || self.locks.split(',').any(|name| name == lock)
    }
}

fn at_least_one(value: &str) -> Option<u64> {
    value.parse().ok().filter(|number| *number != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_sets_options_and_the_rest_stays() {
        let line = "overlock-guest ms=7 vcpus=2,16 locks=mcs,ticket workload=torture cs=90 reads=9";
        let options = Options::parse(line).unwrap();
        assert_eq!((options.ms, options.cs, options.ncs), (7, 90, 0));
        assert_eq!(options.reads, 9);
        assert_eq!(options.workload, Workload::Torture);
        assert!(options.counts().eq([2, 16]));
        assert_eq!(options.vcpus(), 17);
        assert!(options.wants("ticket") && !options.wants("tick"));
        let default = Options::parse("").unwrap();
        assert!(default.counts().eq([2]) && default.wants("hybrid"));
    }

    #[test]
    fn a_wrong_word_is_named() {
        let nine = "vcpus=1,1,1,1,1,1,1,1,1";
        for word in [
            "ms=0",
            "ms=x",
            "size=1",
            "reads=101",
            "workload=walk",
            "vcpus=",
            "vcpus=2,0",
            nine,
        ] {
            assert_eq!(Options::parse(word), Err(Unknown(word)), "{word}");
        }
    }
}

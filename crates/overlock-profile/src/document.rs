//! The document: what was seen, without duplicates. Items refer to each other by index.

use serde::{Deserialize, Serialize};

use crate::Distribution;

/// The version of the document's form, which a change that readers notice increments.
pub const VERSION: u32 = 1;

/// A profile. Times are in nanoseconds of the monotonic clock, from [`Run::began_ns`] on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`VERSION`]
    pub version: u32,
    pub run: Run,
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    pub frames: Vec<Frame>,
    pub stacks: Vec<Stack>,
    pub locks: Vec<Lock>,
    /// All waits, by lock, waiter's and holder's stack.
    pub sums: Vec<Sum>,
    /// Single waits: all of them, or the longest and a sample if there were too many.
    pub waits: Vec<Wait>,
    pub lost: Lost,
}

/// How the profile was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The program and its arguments; empty for a process that ran already.
    pub command: Vec<String>,
    /// The date of the beginning, in seconds since 1970.
    pub date_s: u64,
    /// The beginning by the monotonic clock.
    pub began_ns: u64,
    pub seconds: f64,
    /// The watcher: `drop-in`, `bpf`, or `program` for one that counts itself.
    pub source: String,
    /// Whose locks they were: `overlock` or `glibc`.
    pub locks: String,
    /// Shorter waits were left out.
    pub threshold_ns: u64,
    /// CPUs that the program could run on.
    pub cpus: u32,
    /// CPUs that its quota allows; null without one.
    pub quota: Option<f64>,
    /// How well each part of the waits is known.
    pub known: Known,
}

/// How well a part of a wait is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// From clocks or events: of each wait.
    Measured,
    /// From looks at intervals: right in a sum of many waits, and in waits of many intervals.
    Sampled,
    /// Not known: it is within `unknown_ns`.
    #[default]
    Unknown,
}

/// How well each of the [`Parts`] is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    pub ran: Confidence,
    pub preempted: Confidence,
    pub throttled: Confidence,
    pub blocked: Confidence,
    pub handover: Confidence,
    pub no_cpu: Confidence,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    pub program: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// The index of its process.
    pub process: u32,
    pub tid: u32,
    pub name: String,
    /// CPU time; null where it is not known.
    pub cpu_ns: Option<u64>,
    /// Time in waits for locks.
    pub wait_ns: u64,
    /// Time with locks that others waited for, or as sampled; null where it is not known.
    pub held_ns: Option<u64>,
}

/// The kind of code that a frame belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrameKind {
    #[default]
    Native,
    /// A function that was inlined into the next frame.
    Inlined,
    /// Code made at run time, named by a perf map.
    Jit,
    Python,
    Kernel,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The function; the address in the module where that has no name.
    pub function: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// The path of the program or library.
    pub module: Option<String>,
    /// The build id of the module, in hexadecimal digits.
    pub build_id: Option<String>,
    /// The address in the module, as in its file.
    pub offset: Option<u64>,
    pub kind: FrameKind,
    /// Whether a rule says that it only passes calls on to a lock.
    pub is_wrapper: bool,
}

/// Indices of frames, the innermost first, wrappers included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stack(pub Vec<u32>);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    /// The index of its process.
    pub process: u32,
    /// A name that people know: the variable, or `of FUNCTION` for where it was initialised.
    pub name: String,
    /// `mutex`, `read`, `write`, `spin`, `futex`, `cond as lock`, `sem as lock`; and, of events,
    /// `cond`, `sem`, `barrier`, `poll`.
    pub kind: String,
    /// Whether its waiters wait for something to happen: no contention.
    pub is_event: bool,
    /// The address, of the first if it stands for several.
    pub address: u64,
    /// How many objects it stands for.
    pub objects: u64,
    /// The stack of the initialisation.
    pub init: Option<u32>,
    /// How often it was acquired; null where that is not known.
    pub acquisitions: Option<u64>,
    /// Whether that is an estimate from samples.
    pub is_estimated: bool,
    /// The lengths of all waits.
    pub distribution: Distribution,
    pub hold_avg_ns: Option<f64>,
    pub hold_max_ns: Option<u64>,
}

/// The causes that the time of a wait went into. Together they are the wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// The holder ran.
    pub ran_ns: u64,
    /// The holder could run, and had no CPU.
    pub preempted_ns: u64,
    /// The same, since its group had used up its quota.
    pub throttled_ns: u64,
    /// The holder was blocked, by what.
    pub blocked: Vec<Blocked>,
    /// The lock was released, and nobody had it yet.
    pub handover_ns: u64,
    /// The waiter was woken, and had no CPU.
    pub no_cpu_ns: u64,
    pub unknown_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Blocked {
    /// The system call, `page fault`, `stopped`, or `lock NAME`.
    pub by: String,
    pub ns: u64,
}

/// Waits of threads with the same stack for one lock, while threads with the same stack held it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sum {
    pub lock: u32,
    pub stack: u32,
    /// The holder's stack; null where it is not known.
    pub holder_stack: Option<u32>,
    pub waits: u64,
    pub wait_ns: u64,
    pub max_ns: u64,
    /// Waits that ended without the lock.
    pub gave_up: u64,
    /// How often others acquired the lock during the waits.
    pub passed: u64,
    pub parts: Parts,
}

/// One wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    pub thread: u32,
    pub lock: u32,
    pub stack: u32,
    pub began_ns: u64,
    pub wait_ns: u64,
    /// The thread that held the lock when the wait began.
    pub holder: Option<u32>,
    pub holder_stack: Option<u32>,
    /// When the thread before it released the lock.
    pub released_ns: Option<u64>,
    pub gave_up: bool,
    pub parts: Parts,
    /// The wait of the holder that overlaps this one the longest: the next link of the chain.
    pub behind: Option<u32>,
}

/// Counts of all that is not in the document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// Waits that are in no sum.
    pub waits: u64,
    /// Waits that are in the sums, and not among the single ones.
    pub single_waits: u64,
    /// Waits that were shorter than the threshold.
    pub short_waits: u64,
    pub stacks: u64,
    /// Samples or events that came too fast.
    pub events: u64,
}

impl Parts {
    /// The length of the wait.
    pub fn total_ns(&self) -> u64 {
        self.in_order().into_iter().sum()
    }

    /// The seven lengths in the order of the fields, those of all that blocked the holder as one.
    pub fn in_order(&self) -> [u64; 7] {
        [
            self.ran_ns,
            self.preempted_ns,
            self.throttled_ns,
            self.blocked.iter().map(|blocked| blocked.ns).sum(),
            self.handover_ns,
            self.no_cpu_ns,
            self.unknown_ns,
        ]
    }

    /// Adds those of another wait.
    pub fn add(&mut self, other: &Parts) {
        self.ran_ns += other.ran_ns;
        self.preempted_ns += other.preempted_ns;
        self.throttled_ns += other.throttled_ns;
        self.handover_ns += other.handover_ns;
        self.no_cpu_ns += other.no_cpu_ns;
        self.unknown_ns += other.unknown_ns;
        for more in &other.blocked {
            match self.blocked.iter_mut().find(|known| known.by == more.by) {
                Some(known) => known.ns += more.ns,
                None => self.blocked.push(more.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_by_what_blocked_the_holder() {
        let blocked = |by: &str, ns| Blocked {
            by: by.to_owned(),
            ns,
        };
        let mut sum = Parts {
            ran_ns: 1,
            blocked: vec![blocked("write", 2)],
            ..Parts::default()
        };
        sum.add(&Parts {
            preempted_ns: 4,
            blocked: vec![blocked("write", 8), blocked("page fault", 16)],
            unknown_ns: 32,
            ..Parts::default()
        });
        assert_eq!(
            sum.blocked,
            [blocked("write", 10), blocked("page fault", 16)]
        );
        assert_eq!(sum.total_ns(), 63);
    }

    #[test]
    fn a_document_reads_back_as_it_was() {
        let mut profile = Profile {
            version: VERSION,
            locks: vec![Lock::default()],
            ..Profile::default()
        };
        profile.locks[0].distribution.record(1234);
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
    }
}

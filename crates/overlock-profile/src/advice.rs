//! Advice on the waits for a lock: one sentence for each cause, which the text and the page
//! share.

mod gain;

use overlock_report::numbers::count;
use serde::Serialize;

use crate::{Confidence, Lock, Parts, Profile, Sum, in_sentence};
use gain::hardly_held;
pub use gain::{NO_PROBLEM, no_gain};

/// A cause of waits, as all reports call it.
#[derive(Debug, Serialize)]
pub struct Cause {
    /// A word for programs.
    pub key: &'static str,
    pub name: &'static str,
    /// Its meaning for any lock.
    pub meaning: &'static str,
}

const fn cause(key: &'static str, name: &'static str, meaning: &'static str) -> Cause {
    Cause { key, name, meaning }
}

/// All causes, in the order of [`Parts::in_order`].
pub const CAUSES: [Cause; 7] = [
    cause(
        "ran",
        "holder ran",
        "The section does much, or is entered often: shorten it, or split the lock.",
    ),
    cause(
        "preempted",
        "holder had no CPU",
        "More threads want to run than there are CPUs: use fewer, or keep the section short.",
    ),
    cause(
        "throttled",
        "holder was throttled",
        "The quota stops the holder while others wait: raise it, or use fewer threads.",
    ),
    cause(
        "blocked",
        "holder was blocked",
        "The section sleeps, does I/O or waits for another lock: do that outside of it.",
    ),
    cause(
        "handover",
        "handover",
        "Sleeping waiters take long to come back: many short sections, better done in batches.",
    ),
    cause(
        "no-cpu",
        "waiter had no CPU",
        "The waiter was woken and not run: the CPUs are busy with other threads.",
    ),
    cause("unknown", "unknown", "The time's cause was not seen."),
];

const RAN: usize = 0;
const PREEMPTED: usize = 1;
const THROTTLED: usize = 2;
const BLOCKED: usize = 3;
const HANDOVER: usize = 4;
const NO_CPU: usize = 5;
const UNKNOWN: usize = 6;

/// Below this a hold is short.
const SHORT_NS: f64 = 5_000.0;

/// Above this a wait is long enough for looks at the holder.
const LONG_NS: f64 = 5_000_000.0;

const UNSEEN: &str = "what the holder did meanwhile was not seen";

/// A smaller share of the waits is no reason to do anything.
const LEAST: f64 = 0.1;

/// System calls that read, write or wait for files and connections.
const IO: [&str; 36] = [
    "read",
    "write",
    "pread64",
    "pwrite64",
    "readv",
    "writev",
    "preadv",
    "pwritev",
    "preadv2",
    "pwritev2",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "msync",
    "open",
    "openat",
    "openat2",
    "close",
    "unlink",
    "unlinkat",
    "rename",
    "renameat",
    "renameat2",
    "ftruncate",
    "fallocate",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "sendfile",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "accept4",
    "connect",
    "io_getevents",
    "io_uring_enter",
];

/// System calls that wait for files or connections to be ready.
const READY: [&str; 7] = [
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
];

/// A conclusion from the waits for a lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The share of the waits' time that has this cause.
    pub share: f64,
    /// How sure that is.
    pub sure: Confidence,
    /// The cause and the remedy.
    pub sentence: String,
}

impl Advice {
    /// All of it.
    pub fn text(&self) -> String {
        let Self {
            share, sentence, ..
        } = self;
        let sure = match self.sure {
            Confidence::Measured => " (measured)",
            Confidence::Sampled => " (sampled)",
            Confidence::Unknown => "",
        };
        format!("{:.0} % of that{sure}: {sentence}", share * 100.0)
    }
}

/// The sums of all waits for each lock.
fn parts_of_locks(profile: &Profile) -> Vec<Parts> {
    let mut parts = vec![Parts::default(); profile.locks.len()];
    for sum in &profile.sums {
        if let Some(parts) = parts.get_mut(sum.lock as usize) {
            parts.add(&sum.parts);
        }
    }
    parts
}

/// The advice for each of so many locks: those with the longest waits.
pub fn of_locks(profile: &Profile, most: usize) -> Vec<Option<Advice>> {
    let parts = parts_of_locks(profile);
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|&lock| std::cmp::Reverse(parts[lock].total_ns()));
    let mut found = vec![None; parts.len()];
    for lock in order.into_iter().take(most) {
        found[lock] = of(profile, lock, &parts[lock]);
    }
    found
}

/// The advice for a lock; `None` without waits.
pub fn of_lock(profile: &Profile, lock: u32) -> Option<Advice> {
    let mut parts = Parts::default();
    for sum in profile.sums.iter().filter(|sum| sum.lock == lock) {
        parts.add(&sum.parts);
    }
    of(profile, lock as usize, &parts)
}

fn of(profile: &Profile, lock: usize, parts: &Parts) -> Option<Advice> {
    let all = parts.total_ns() as f64;
    if all == 0.0 {
        return None;
    }
    let times = parts.in_order();
    let (mut cause, mut ns) = (UNKNOWN, times[UNKNOWN]);
    // A cause that is known says more than most of the time without one.
    let known = (RAN..UNKNOWN).map(|cause| (cause, times[cause]));
    if let Some(largest) = known.max_by_key(|(_, ns)| *ns)
        && largest.1 as f64 >= LEAST * all
    {
        (cause, ns) = largest;
    }
    let known = &profile.run.known;
    let sure = [
        known.ran,
        known.preempted,
        known.throttled,
        known.blocked,
        known.handover,
        known.no_cpu,
        Confidence::Unknown,
    ][cause];
    Some(Advice {
        share: ns as f64 / all,
        sure,
        sentence: sentence(cause, parts, profile.locks.get(lock)?, profile),
    })
}

/// Sections that are short and many; `None` if they are not.
fn short(lock: &Lock) -> Option<String> {
    let is_short = lock.hold_avg_ns.is_some_and(|ns| ns < SHORT_NS);
    let times = lock.acquisitions.filter(|_| is_short)?;
    Some(format!(
        "sections are short, but there are {} of them: lock less often, or split the lock.",
        count(times as f64)
    ))
}

fn sentence(cause: usize, parts: &Parts, lock: &Lock, profile: &Profile) -> String {
    if let Some(hardly) = hardly_held(lock, parts, profile) {
        match cause {
            RAN => return format!("the holder ran; but {hardly}"),
            HANDOVER => return format!("it was free, and no waiter had it yet; but {hardly}"),
            UNKNOWN if mean_wait_ns(profile, lock) > LONG_NS => {
                return format!("{UNSEEN}; but {hardly}");
            }
            UNKNOWN => return format!("the waits were too short to say why; but {hardly}"),
            _ => {}
        }
    }
    let text = match cause {
        RAN => match (short(lock), lock.kind.as_str()) {
            (_, "read") => {
                "a writer ran, and starves the readers: write less often, or prepare outside of \
                 the lock."
            }
            (_, "write") => {
                "readers or another writer ran: a writer starves where readers follow each other \
                 closely."
            }
            (Some(short), _) => return format!("the holder ran; {short}"),
            (None, _) => "the holder ran: do less while the lock is held.",
        },
        PREEMPTED => "the holder could run and had no CPU: fewer threads would wait for less time.",
        THROTTLED => {
            let cpus = profile.run.quota.unwrap_or_default();
            return format!(
                "the quota of {cpus} CPUs throttles the holder: raise it, or use fewer threads."
            );
        }
        BLOCKED => {
            let most = parts.blocked.iter().max_by_key(|blocked| blocked.ns);
            return blocked(most.map_or("", |blocked| &blocked.by));
        }
        HANDOVER => match short(lock) {
            Some(short) => return format!("it was free, and no waiter had it yet; {short}"),
            None => "it was free, and no waiter had it yet: wake-ups are slow here.",
        },
        NO_CPU => "the waiter was woken and had no CPU: there are more threads than CPUs.",
        _ => match short(lock) {
            Some(short) => return format!("the waits were too short to say why; {short}"),
            None if mean_wait_ns(profile, lock) > LONG_NS => {
                return format!("{UNSEEN}.");
            }
            None => "the waits were too short, or too few, to say why.",
        },
    };
    text.to_owned()
}

/// The mean of all waits for a lock.
fn mean_wait_ns(profile: &Profile, lock: &Lock) -> f64 {
    let is_its = |sum: &&Sum| {
        let its = profile.locks.get(sum.lock as usize);
        its.is_some_and(|its| std::ptr::eq(its, lock))
    };
    let sums = profile.sums.iter().filter(is_its);
    let (ns, waits) = sums.fold((0, 0), |(ns, waits), sum| {
        (ns + sum.wait_ns, waits + sum.waits)
    });
    ns as f64 / waits.max(1) as f64
}

fn blocked(by: &str) -> String {
    match by {
        "futex" => "the holder waited itself, by the system call futex: as for the heap, or in a \
             condition's signal."
            .to_owned(),
        "page fault" => {
            "the holder waited for pages of memory: touch them before the section.".to_owned()
        }
        "stopped" => "the holder was stopped, by a debugger or a signal.".to_owned(),
        "nanosleep" | "clock_nanosleep" => {
            format!("the section sleeps, by the system call {by}: sleep outside of it.")
        }
        _ => match by.strip_prefix("lock ") {
            Some(other) => format!(
                "the holder waited for {} itself: look at that first.",
                in_sentence(other)
            ),
            None if IO.contains(&by) => {
                format!("the section does I/O, by the system call {by}: move it out.")
            }
            None if READY.contains(&by) => {
                format!("the section waits for I/O, by the system call {by}: move it out.")
            }
            None => format!("the holder was in the system call {by}: move it out of the section."),
        },
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::{Blocked, Known};

    pub fn profile(parts: Parts) -> Profile {
        let lock = Lock {
            name: "pool".to_owned(),
            kind: "mutex".to_owned(),
            ..Lock::default()
        };
        let sum = Sum {
            parts,
            ..Sum::default()
        };
        Profile {
            locks: vec![lock],
            sums: vec![sum],
            ..Profile::default()
        }
    }

    /// Times in the order of the causes; what blocked the holder is a write.
    pub fn parts(times: [u64; 7]) -> Parts {
        Parts {
            ran_ns: times[RAN],
            preempted_ns: times[PREEMPTED],
            throttled_ns: times[THROTTLED],
            blocked: vec![Blocked {
                by: "write".to_owned(),
                ns: times[BLOCKED],
            }],
            handover_ns: times[HANDOVER],
            no_cpu_ns: times[NO_CPU],
            unknown_ns: times[UNKNOWN],
        }
    }

    #[test]
    fn each_cause_has_its_sentence() {
        for (cause, says) in [
            "do less while",
            "fewer threads",
            "the quota of 1.5 CPUs throttles",
            "does I/O, by the system call write",
            "wake-ups are slow",
            "more threads than CPUs",
            "to say why",
        ]
        .into_iter()
        .enumerate()
        {
            let mut times = [0; 7];
            times[cause] = 9;
            let mut profile = profile(parts(times));
            profile.run.quota = Some(1.5);
            let advice = of_lock(&profile, 0).unwrap();
            assert!(advice.sentence.contains(says), "{advice:?}");
            assert_eq!(of_locks(&profile, 1), [Some(advice)]);
        }
        assert_eq!(of_lock(&profile(Parts::default()), 0), None);
    }

    #[test]
    fn what_blocks_a_holder_is_told_apart() {
        for (by, says) in [
            ("fsync", "does I/O"),
            ("epoll_wait", "waits for I/O"),
            ("clock_nanosleep", "sleeps"),
            ("page fault", "pages of memory"),
            ("stopped", "was stopped"),
            ("lock log", "waited for log itself"),
            ("futex", "or in a condition's signal"),
            ("wait4", "in the system call wait4"),
        ] {
            assert!(blocked(by).contains(says), "{by}");
        }
    }

    #[test]
    fn short_sections_and_readers_have_advice_of_their_own() {
        let mut profile = profile(parts([9, 0, 0, 0, 0, 0, 0]));
        let mut of = |kind: &str, hold_ns, says: &str| {
            let lock = &mut profile.locks[0];
            lock.kind = kind.to_owned();
            lock.hold_avg_ns = Some(hold_ns);
            lock.acquisitions = Some(1_000_000);
            let sentence = of_lock(&profile, 0).unwrap().sentence;
            assert!(sentence.contains(says), "{sentence}");
        };
        of(
            "mutex",
            100.0,
            "there are 1,000,000 of them: lock less often",
        );
        of("mutex", 1e6, "do less while");
        of("read", 100.0, "starves the readers");
        of("write", 100.0, "a writer starves");
    }

    /// Fails where waits of a second are called too short.
    #[test]
    fn long_waits_without_a_cause_are_not_called_short() {
        let mut profile = profile(parts([0, 0, 0, 0, 0, 0, 9]));
        for (waits, says) in [(1000, "too short"), (2, "was not seen")] {
            (profile.sums[0].waits, profile.sums[0].wait_ns) = (waits, 2_000_000_000);
            let sentence = of_lock(&profile, 0).unwrap().sentence;
            assert!(sentence.contains(says), "{sentence}");
        }
    }

    /// Fails where much unknown time hides the cause of the rest, or it is not said how sure it is.
    #[test]
    fn a_known_cause_goes_before_the_unknown() {
        let mut profile = profile(parts([20, 0, 0, 0, 0, 0, 80]));
        profile.run.known = Known {
            ran: Confidence::Sampled,
            ..Known::default()
        };
        let text = of_lock(&profile, 0).unwrap().text();
        assert!(
            text.starts_with("20 % of that (sampled): the holder ran"),
            "{text}"
        );
        profile.sums[0].parts.ran_ns = 2;
        let text = of_lock(&profile, 0).unwrap().text();
        assert!(
            text.starts_with("98 % of that: the waits were too short"),
            "{text}"
        );
    }
}

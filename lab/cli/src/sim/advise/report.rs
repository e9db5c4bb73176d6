//! A load from a report of `overlock profile`: the lock that threads waited for the longest.

use std::cmp::Reverse;

use itertools::Itertools;
use overlock_profile::Profile;

/// The load of a lock in a report. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    pub lock: String,
    /// Threads that waited for it.
    pub threads: usize,
    /// How long it was held, if that is known.
    pub section: Option<f64>,
    /// The time of a thread between two acquisitions, if that is known.
    pub gap: Option<f64>,
    /// CPUs that the program could run on.
    pub cpus: usize,
}

/// The load of a lock of the report: the one of that name, or the one with the longest waits.
pub fn load(profile: &Profile, name: Option<&str>) -> Result<Load, String> {
    let locks = profile.locks.iter().enumerate();
    let locks = locks
        .filter(|(_, lock)| !lock.is_event && name.is_none_or(|name| lock.name == name))
        .map(|(index, lock)| (waited(profile, index), Reverse(index), lock));
    let Some((waited, Reverse(index), lock)) =
        locks.max_by_key(|&(waited, index, _)| (waited, index))
    else {
        return Err(match name {
            Some(name) => format!("the report has no lock '{name}'"),
            None => "the report has no lock that threads waited for".to_owned(),
        });
    };
    let waits = profile.waits.iter();
    let waits = waits.filter(|wait| wait.lock as usize == index);
    let threads = match waits.map(|wait| wait.thread).unique().count() {
        0 | 1 => profile.threads.len().max(2),
        several => several,
    };
    let section = lock.hold_avg_ns.filter(|held| *held > 0.0);
    let acquisitions = lock.acquisitions.filter(|count| *count > 0);
    let gap = section.zip(acquisitions).map(|(section, count)| {
        let of = |many: usize| profile.run.seconds * 1e9 * many as f64;
        // Threads that had no CPU were not away from the lock.
        let all = match profile.run.cpus as usize {
            0 => of(threads) - waited as f64,
            cpus => (of(threads) - waited as f64).min(of(cpus)),
        };
        (all / count as f64 - section).max(0.0)
    });
    Ok(Load {
        lock: lock.name.clone(),
        threads,
        section,
        gap,
        cpus: profile.run.cpus as usize,
    })
}

/// How long all waits for a lock were together.
fn waited(profile: &Profile, lock: usize) -> u64 {
    let sums = profile.sums.iter();
    let sums = sums.filter(|sum| sum.lock as usize == lock);
    sums.map(|sum| sum.wait_ns).sum()
}

#[cfg(test)]
mod tests {
    use overlock_profile::{Lock, Sum, Thread, Wait};

    use super::*;

    /// Two threads wait for the first lock, and three for the second.
    #[test]
    fn a_report_becomes_a_load() {
        let lock = |(name, is_event): (&str, bool)| Lock {
            name: name.to_owned(),
            is_event,
            hold_avg_ns: Some(200.0),
            acquisitions: Some(1_000_000),
            ..Lock::default()
        };
        let mut profile = Profile {
            threads: vec![Thread::default(); 5],
            locks: [("cache", false), ("queue", false), ("done", true)]
                .map(lock)
                .into(),
            ..Profile::default()
        };
        (profile.run.seconds, profile.run.cpus) = (1.0, 8);
        for (lock, wait_ns) in [(0, 5), (1, 400_000_000), (1, 600_000_000), (2, 1 << 62)] {
            profile.sums.push(Sum {
                lock,
                wait_ns,
                ..Sum::default()
            });
        }
        for (lock, thread) in [(1, 0), (1, 2), (1, 2), (1, 4), (0, 1), (0, 2)] {
            profile.waits.push(Wait {
                lock,
                thread,
                ..Wait::default()
            });
        }
        // Of three seconds of threads one was spent in waits: 2 us for each acquisition.
        let queue = Load {
            lock: "queue".to_owned(),
            threads: 3,
            section: Some(200.0),
            gap: Some(1800.0),
            cpus: 8,
        };
        assert_eq!(load(&profile, None).unwrap(), queue);
        assert_eq!(load(&profile, Some("cache")).unwrap().threads, 2);
        let event = load(&profile, Some("done")).unwrap_err();
        assert!(event.contains("no lock 'done'"), "{event}");
        // On one CPU they had a second.
        profile.run.cpus = 1;
        assert_eq!(load(&profile, None).unwrap().gap, Some(800.0));
        profile.locks[1].acquisitions = None;
        assert_eq!(load(&profile, None).unwrap().gap, None);
        profile.locks.clear();
        assert!(load(&profile, None).is_err());
    }
}

//! A load from a report of `overlock profile`: the lock that threads waited for the longest.

use std::cmp::Reverse;

use itertools::Itertools;
use overlock_profile::Profile;
use overlock_report::numbers::time;

/// The load of a lock in a report. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    pub lock: String,
    /// Threads that waited for it.
    pub threads: usize,
    /// So many of them to simulate, which all want a CPU between two acquisitions.
    pub busy: usize,
    /// How long it was held, if that is known.
    pub section: Option<f64>,
    /// The time of a thread between two acquisitions, if that is known.
    pub gap: Option<f64>,
    /// CPUs that the program could run on, or that its quota came to; 0 if that is not known.
    pub cpus: usize,
}

impl Load {
    /// For people.
    pub fn describe(&self) -> String {
        let known = |length: Option<f64>| length.map_or("not known".to_owned(), time);
        let (section, gap) = (known(self.section), known(self.gap));
        let busy = match self.busy < self.threads {
            true => format!(", {} of which are simulated, since others slept", self.busy),
            false => String::new(),
        };
        let cpus = match self.cpus {
            0 => String::new(),
            cpus => format!(" on {cpus} CPUs"),
        };
        format!(
            "The lock {} of the report: held for {section}, {gap} between two acquisitions, \
             {} threads{cpus}{busy}.\n",
            self.lock, self.threads
        )
    }
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
    let waiting = match waits
        .map(|wait| wait.thread as usize)
        .unique()
        .collect_vec()
    {
        few if few.len() < 2 => (0..profile.threads.len()).collect(),
        several => several,
    };
    let threads = waiting.len().max(2);
    let (waited, run) = (waited as f64, profile.run.seconds * 1e9);
    let quota = profile
        .run
        .quota
        .map_or(usize::MAX, |cpus| cpus.ceil() as usize);
    let cpus = quota.min(profile.run.cpus as usize);
    let some_cpus = if cpus == 0 { threads } else { cpus };
    // A thread that was there before the run has more than that.
    let ran = waiting.iter().map(|thread| profile.threads[*thread].cpu_ns);
    let ran = ran
        .map(|ran| Some((ran? as f64).min(run)))
        .sum::<Option<f64>>();
    // Others slept, away from the lock. That matters where these alone would not share CPUs.
    let busy = ran.map_or(threads, |ran| ((ran + waited) / run).ceil() as usize);
    let busy = busy.clamp(threads.min(some_cpus).max(2), threads);
    let section = lock.hold_avg_ns.filter(|held| *held > 0.0);
    let acquisitions = lock.acquisitions.filter(|count| *count > 0);
    let gap = section.zip(acquisitions).map(|(section, count)| {
        // Threads that had no CPU were not away from the lock.
        let most = match ran {
            Some(ran) if busy > some_cpus => ran,
            _ => run * some_cpus as f64,
        };
        let away = (run * busy as f64 - waited).min(most);
        (away / count as f64 - section).max(0.0)
    });
    Ok(Load {
        lock: lock.name.clone(),
        threads,
        busy,
        section,
        gap,
        cpus,
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
            busy: 3,
            section: Some(200.0),
            gap: Some(1800.0),
            cpus: 8,
        };
        assert_eq!(load(&profile, None).unwrap(), queue);
        assert_eq!(load(&profile, Some("cache")).unwrap().threads, 2);
        let event = load(&profile, Some("done")).unwrap_err();
        assert!(event.contains("no lock 'done'"), "{event}");
        // On one CPU they had a second; by their clocks, half of one.
        profile.run.cpus = 1;
        let of = |profile: &Profile| {
            let load = load(profile, None).unwrap();
            (load.busy, load.gap.unwrap())
        };
        assert_eq!(of(&profile), (3, 800.0));
        for (thread, ran) in profile.threads.iter_mut().zip([1, 9, 2, 9, 2]) {
            thread.cpu_ns = Some(ran * 100_000_000);
        }
        // Half a second of CPU time and one of waits are two threads all the time.
        assert_eq!(of(&profile), (2, 300.0));
        // On two CPUs these need not share any, and what is no wait is sleep.
        profile.run.cpus = 2;
        assert_eq!(of(&profile), (2, 800.0));
        let told = load(&profile, None).unwrap().describe();
        let says = "800 ns between two acquisitions, 3 threads on 2 CPUs, 2 of which are simulated";
        assert!(told.contains(says), "{told}");
        // Two CPUs by a quota are two.
        (profile.run.cpus, profile.run.quota) = (64, Some(1.5));
        assert_eq!(of(&profile), (2, 800.0));
        profile.run.cpus = 0;
        let told = load(&profile, None).unwrap().describe();
        assert!(told.contains("acquisitions, 3 threads"), "{told}");
        profile.locks[1].acquisitions = None;
        assert_eq!(load(&profile, None).unwrap().gap, None);
        profile.locks.clear();
        assert!(load(&profile, None).is_err());
    }
}

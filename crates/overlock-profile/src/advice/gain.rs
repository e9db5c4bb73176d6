//! Programs and locks that leave nothing to gain.

use crate::{Lock, Parts, Profile};

/// Below this share of the threads' busy time no other lock would make a program faster.
pub const NO_PROBLEM: f64 = 0.05;

/// A lock that is held for a smaller share of the run is mostly free.
const HARDLY: f64 = 0.1;

/// Why faster locks would not make the program faster; `None` where they might.
pub fn no_gain(profile: &Profile) -> Option<String> {
    let is_event = |lock: u32| {
        profile
            .locks
            .get(lock as usize)
            .is_none_or(|lock| lock.is_event)
    };
    let sums = profile.sums.iter().filter(|sum| !is_event(sum.lock));
    let waited: u64 = sums.map(|sum| sum.wait_ns).sum();
    let mut busy = waited;
    for thread in &profile.threads {
        // Of one that has waited it has to be known.
        busy += match thread.cpu_ns {
            None if thread.wait_ns > 0 => return None,
            ns => ns.unwrap_or(0),
        };
    }
    let share = waited as f64 / busy as f64;
    (waited > 0 && share < NO_PROBLEM).then(|| {
        format!(
            "Nothing to gain here: waits for locks are {:.1} % of the threads' busy time.",
            share * 100.0
        )
    })
}

/// The share of the run for which a lock was held, if that is so small that no shorter section
/// would help.
pub fn hardly_held(lock: &Lock, parts: &Parts, profile: &Profile) -> Option<String> {
    let is_exclusive = matches!(lock.kind.as_str(), "mutex" | "write") && lock.objects == 1;
    let held_ns = lock.hold_avg_ns.filter(|_| is_exclusive)? * lock.acquisitions? as f64;
    // Of few acquisitions those that took long may not have been recorded: others waited for them.
    let free_ns = parts.handover_ns + parts.no_cpu_ns + parts.unknown_ns;
    let waited_ns = parts.total_ns() - free_ns;
    if waited_ns as f64 > held_ns * profile.threads.len() as f64 {
        return None;
    }
    let share = held_ns / (profile.run.seconds * 1e9);
    (share < HARDLY).then(|| {
        format!(
            "the lock was held for {:.0} % of the run: there is little to gain.",
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::of_lock;
    use super::super::tests::{parts, profile};
    use super::*;

    /// Fails where a section is to be shortened that is hardly ever entered.
    #[test]
    fn where_nothing_is_to_be_gained_that_is_said() {
        let mut profile = profile(parts([9, 0, 0, 0, 0, 0, 0]));
        profile.run.seconds = 1.0;
        profile.threads = vec![crate::Thread::default(); 4];
        let lock = &mut profile.locks[0];
        (lock.objects, lock.acquisitions, lock.hold_avg_ns) = (1, Some(6000), Some(5000.0));
        let sentence = of_lock(&profile, 0).unwrap().sentence;
        assert!(sentence.contains("held for 3 % of the run"), "{sentence}");
        profile.locks[0].hold_avg_ns = Some(50_000.0);
        let sentence = of_lock(&profile, 0).unwrap().sentence;
        assert!(sentence.contains("do less while"), "{sentence}");
        // A hold that no sample has met.
        profile.locks[0].hold_avg_ns = Some(5000.0);
        profile.sums[0].parts.ran_ns = 200_000_000;
        let sentence = of_lock(&profile, 0).unwrap().sentence;
        assert!(sentence.contains("do less while"), "{sentence}");
        // The program.
        assert_eq!(no_gain(&profile), None);
        profile.sums[0].wait_ns = 9;
        profile.threads = vec![crate::Thread {
            wait_ns: 9,
            cpu_ns: Some(1000),
            ..crate::Thread::default()
        }];
        let text = no_gain(&profile).unwrap();
        assert!(text.contains("0.9 % of the threads'"), "{text}");
        profile.threads[0].cpu_ns = Some(100);
        assert_eq!(no_gain(&profile), None);
        profile.threads[0].cpu_ns = None;
        assert_eq!(no_gain(&profile), None);
    }
}

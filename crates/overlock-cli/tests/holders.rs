//! Holders in a profile: who they are, and how long they held the lock.

#[path = "common/preload.rs"]
mod preload;
#[path = "common/profiled.rs"]
mod profiled;

use overlock_profile::{Profile, Shown};
use preload::compile;
use profiled::profile_of;

/// Runs the program in `tests/c` under `overlock profile`. The profile, and the table.
fn profile(source: &str, options: &[&str]) -> (Profile, String) {
    let program = compile(source, source, &[]);
    profile_of(&program, &[], options)
}

/// Fails where a holder whose callers were not recorded is the wrapper of all locks.
#[test]
fn no_holder_is_a_wrapper() {
    for options in [&[][..], &["--locks", "glibc"]] {
        let (profile, said) = profile("wrapped", options);
        let is_pool = |lock: u32| profile.locks[lock as usize].name == "pool";
        let waits = profile.waits.iter().filter(|wait| is_pool(wait.lock));
        let sums = profile.sums.iter().filter(|sum| is_pool(sum.lock));
        let of_waits: Vec<_> = waits.map(|wait| wait.holder_stack).collect();
        let of_sums: Vec<_> = sums.map(|sum| sum.holder_stack).collect();
        assert!(!of_waits.is_empty() && !of_sums.is_empty(), "{said}");
        for stack in of_waits.into_iter().chain(of_sums) {
            let name = Shown::default().function(&profile, stack);
            let known = ["refill", "drain", "a caller of lock_take"];
            assert!(known.contains(&name.as_str()), "{options:?} {name}: {said}");
        }
        let held_by = said.lines().filter_map(|line| line.split_once(" % "));
        for (_, holder) in held_by {
            assert!(!holder.starts_with("lock_take"), "{options:?}: {said}");
        }
    }
}

/// Fails where the longest hold is that of the samples, though a waiter has seen a longer one.
#[test]
fn a_long_hold_that_made_a_thread_wait_is_the_longest() {
    // The waiter may come late where the CPUs are busy, but hardly in each of some runs.
    let mut longest = Vec::new();
    for _ in 0..20 {
        let (profile, _) = profile("rare", &[]);
        let lock = profile.locks.iter().find(|lock| lock.name == "lock");
        let longest_ns = lock.unwrap().hold_max_ns;
        if longest_ns >= Some(30_000_000) {
            return;
        }
        longest.push(longest_ns);
    }
    panic!("{longest:?}");
}

//! Chains of waits, and parts of short ones: only all waits together tell them.

use std::collections::HashMap;

use overlock_profile::{Parts, Wait};

/// Finds the waits of holders that others waited behind: for other locks, since who waits for the
/// same one has released it. `waits` are in the order of their beginnings, each with its lock.
pub fn link<L: PartialEq>(waits: &mut [(L, Wait)]) {
    let end = |wait: &Wait| wait.began_ns + wait.wait_ns;
    let mut threads: HashMap<u32, Vec<u32>> = HashMap::new();
    for (index, (_, wait)) in (0..).zip(waits.iter()) {
        threads.entry(wait.thread).or_default().push(index);
    }
    for index in 0..waits.len() {
        let (lock, wait) = &waits[index];
        let Some(own) = wait.holder.and_then(|holder| threads.get(&holder)) else {
            continue;
        };
        let of = |index: &u32| &waits[*index as usize].1;
        let overlap = |index: &u32| {
            let other = of(index);
            let from = wait.began_ns.max(other.began_ns);
            end(wait).min(end(other)).saturating_sub(from)
        };
        // A thread's waits follow each other.
        let first = own.partition_point(|index| end(of(index)) <= wait.began_ns);
        let those = own[first..].iter();
        let those = those.take_while(|index| of(index).began_ns < end(wait));
        let others = those.filter(|index| waits[**index as usize].0 != *lock);
        let longest = others.max_by_key(|index| overlap(index)).copied();
        waits[index].1.behind = longest;
    }
}

/// The least time that was looked at of which the rest is told.
const LOOKED_AT_NS: u64 = 20_000_000;

/// Gives short waits, at which nobody looked, what the others had: a look meets a wait as often as
/// that is long.
pub fn spread(parts: &mut Parts) {
    let blocked: u64 = parts.blocked.iter().map(|blocked| blocked.ns).sum();
    let known = parts.ran_ns + parts.preempted_ns + parts.throttled_ns + blocked;
    let unknown = parts.unknown_ns;
    if known < LOOKED_AT_NS {
        return;
    }
    let more = |ns: &mut u64| {
        let share = u128::from(unknown) * u128::from(*ns) / u128::from(known);
        *ns += share as u64;
        share as u64
    };
    let mut given = 0;
    for part in [
        &mut parts.ran_ns,
        &mut parts.preempted_ns,
        &mut parts.throttled_ns,
    ] {
        given += more(part);
    }
    for blocked in &mut parts.blocked {
        given += more(&mut blocked.ns);
    }
    parts.unknown_ns = unknown - given;
}

#[cfg(test)]
mod tests {
    use overlock_profile::Blocked;

    use super::*;

    #[test]
    fn a_wait_is_behind_the_longest_of_its_holder_meanwhile() {
        let wait = |lock, thread, holder, began_ns, wait_ns| {
            let wait = Wait {
                thread,
                holder,
                began_ns,
                wait_ns,
                ..Wait::default()
            };
            (lock, wait)
        };
        let mut waits = [
            wait("log", 3, None, 0, 10),
            wait("pool", 1, Some(2), 10, 90),
            wait("log", 2, Some(3), 20, 5),
            wait("log", 2, Some(3), 30, 50),
            wait("pool", 2, Some(3), 82, 18),
            wait("log", 2, Some(3), 100, 900),
        ];
        link(&mut waits);
        let behind = |waits: &[(&str, Wait)]| -> Vec<Option<u32>> {
            waits.iter().map(|(_, wait)| wait.behind).collect()
        };
        assert_eq!(behind(&waits), [None, Some(3), None, None, None, None]);
        // It has released the lock, and waits for it again.
        let mut waits = [
            wait("pool", 1, Some(2), 10, 90),
            wait("pool", 2, Some(1), 20, 80),
        ];
        link(&mut waits);
        assert_eq!(behind(&waits), [None, None]);
    }

    #[test]
    fn short_waits_have_what_the_others_had() {
        const MS: u64 = 1_000_000;
        let write = |ns| Blocked {
            by: "write".to_owned(),
            ns,
        };
        let mut parts = Parts {
            ran_ns: 10 * MS,
            blocked: vec![write(30 * MS)],
            unknown_ns: 40 * MS,
            handover_ns: 5 * MS,
            ..Parts::default()
        };
        spread(&mut parts);
        assert_eq!((parts.ran_ns, parts.unknown_ns), (20 * MS, 0));
        assert_eq!(parts.blocked, [write(60 * MS)]);
        assert_eq!(parts.total_ns(), 85 * MS);
        let few = Parts {
            ran_ns: MS,
            unknown_ns: MS,
            ..Parts::default()
        };
        let mut same = few.clone();
        spread(&mut same);
        assert_eq!(same, few);
    }
}

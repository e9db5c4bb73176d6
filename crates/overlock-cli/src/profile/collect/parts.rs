//! From looks at a wait to its parts.

use overlock_profile::{Blocked, Parts};

use super::quota::Throttled;
use super::ring::Ended;
use super::tasks::{By, Look, State};

/// The longest time that a look speaks for, beyond those next to it.
const REACH_NS: u64 = 20_000_000;

/// The shortest time over which the growth of a CPU time, which comes in ticks, says something.
const TICKS_NS: u64 = 8_000_000;

/// The longest wake-up of a thread that has a CPU.
const WAKE_UP_NS: u64 = 1_000_000;

/// No spin of a thread that has a CPU takes longer.
const SPIN_NS: u64 = 200_000;

/// The thread that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The thread that had the lock.
    Holder(u32),
    /// The waiter: nobody had the lock, or it had it already.
    Waiter,
}

/// Looks with the same result, one after the other.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    who: Who,
    state: State,
    from_ns: u64,
    to_ns: u64,
    cpu_ns: [Option<u64>; 2],
    /// Whether more threads wanted a CPU than there are.
    is_crowded: bool,
}

/// All looks at a wait.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Looks(Vec<Run>);

impl Looks {
    /// Adds one.
    pub fn add(&mut self, at_ns: u64, who: Who, look: Look, is_crowded: bool) {
        if let Some(last) = self.0.last_mut()
            && (last.who, last.state) == (who, look.state)
        {
            last.to_ns = at_ns;
            last.cpu_ns[1] = look.cpu_ns;
            last.is_crowded |= is_crowded;
            return;
        }
        self.0.push(Run {
            who,
            state: look.state,
            from_ns: at_ns,
            to_ns: at_ns,
            cpu_ns: [look.cpu_ns; 2],
            is_crowded,
        });
    }

    /// The first holder that was looked at.
    pub fn holder(&self) -> Option<u32> {
        self.0.iter().find_map(|run| match run.who {
            Who::Holder(tid) => Some(tid),
            Who::Waiter => None,
        })
    }

    /// Whether somebody held the lock at a look some time after `released_ns`.
    pub fn is_held_after(&self, released_ns: u64) -> bool {
        let is_later = |run: &Run| run.to_ns >= released_ns.saturating_add(WAKE_UP_NS);
        let is_held = |run: &Run| matches!(run.who, Who::Holder(_));
        self.0.iter().any(|run| is_held(run) && is_later(run))
    }

    /// The time that each run speaks for, between `began` and `ended`.
    fn spans(&self, (began, ended): (u64, u64)) -> Vec<(&Run, u64, u64)> {
        // Looks may be late.
        let seen = self.0.iter().filter(|run| run.from_ns < ended);
        let runs: Vec<&Run> = seen.collect();
        let middle = |one: &Run, next: &Run| one.to_ns.midpoint(next.from_ns);
        let span = |index: usize| {
            let run = runs[index];
            let before = index.checked_sub(1).map(|before| runs[before]);
            let start = before.map_or(began, |before| middle(before, run));
            let end = (runs.get(index + 1)).map_or(ended, |next| middle(run, next));
            let start = start.max(run.from_ns.saturating_sub(REACH_NS)).max(began);
            let end = end.min(run.to_ns.saturating_add(REACH_NS)).min(ended);
            (run, start, end.max(start))
        };
        (0..runs.len()).map(span).collect()
    }
}

impl Run {
    /// The share of the time for which a thread that could run has run; `None` if that is not
    /// known.
    fn ran(&self) -> Option<f64> {
        let looked = self.to_ns - self.from_ns;
        let [first, last] = self.cpu_ns;
        if !self.is_crowded {
            return Some(1.0);
        }
        let more = last?.checked_sub(first?)?;
        (looked >= TICKS_NS).then(|| (more as f64 / looked as f64).min(1.0))
    }
}

/// The parts of a wait. Together they are its length.
pub fn parts(ended: &Ended, looks: &Looks, throttled: &Throttled) -> Parts {
    let mut parts = Parts::default();
    if ended.has_spun {
        // Nobody has looked at it, as it was not shown.
        parts.no_cpu_ns = ended.ns().saturating_sub(SPIN_NS);
        parts.unknown_ns = ended.ns() - parts.no_cpu_ns;
        return parts;
    }
    let released = ended.released_ns.unwrap_or(ended.ended_ns);
    let times = |from: u64, to: u64| (from.max(ended.began_ns), to.min(ended.ended_ns));
    // Until the release.
    let mut ran = 0.0;
    let mut could_run = 0;
    let mut quota = 0;
    let mut unsure = 0;
    let mut blocked: Vec<(By, u64)> = Vec::new();
    for (run, from, to) in looks.spans(times(ended.began_ns, released)) {
        let ns = to - from;
        match (run.who, run.state) {
            (Who::Holder(_), State::Runnable) => {
                could_run += ns;
                quota += throttled.within(from, to);
                match run.ran() {
                    Some(share) => ran += share * ns as f64,
                    None => unsure += ns,
                }
            }
            (Who::Holder(_), State::Blocked(by)) => {
                match blocked.iter_mut().find(|(known, _)| *known == by) {
                    Some((_, sum)) => *sum += ns,
                    None => blocked.push((by, ns)),
                }
            }
            (Who::Waiter, State::Runnable) => parts.no_cpu_ns += ns,
            (Who::Waiter, State::Blocked(_)) => parts.handover_ns += ns,
        }
    }
    let free = parts.no_cpu_ns + parts.handover_ns;
    let held = (released - ended.began_ns).saturating_sub(free);
    // Since then.
    let mut left = ended.ended_ns - released;
    for (run, from, to) in looks.spans(times(released, ended.ended_ns)) {
        if run.who == Who::Waiter && run.to_ns >= released {
            let ns = (to - from).min(left);
            left -= ns;
            match run.state {
                State::Runnable => parts.no_cpu_ns += ns,
                State::Blocked(_) => parts.handover_ns += ns,
            }
        }
    }
    // A wake-up takes some time, and at a longer one somebody had to look.
    parts.handover_ns += left.min(WAKE_UP_NS);
    // The holder.
    let is_looked_at = could_run > 0 || !blocked.is_empty();
    let mut block: u64 = blocked.iter().map(|(_, ns)| ns).sum();
    // The clock is that of the first holder.
    let is_one = |run: &Run| match run.who {
        Who::Holder(tid) => tid == ended.holder,
        Who::Waiter => true,
    };
    match ended.ran_ns.filter(|_| looks.0.iter().all(is_one)) {
        Some(ns) => {
            parts.ran_ns = ns.min(held);
            let left = held - parts.ran_ns;
            if is_looked_at {
                // For the rest it was blocked, or had no CPU.
                let shrunk = block.min(left);
                blocked
                    .iter_mut()
                    .for_each(|(_, ns)| *ns = scaled(*ns, shrunk, block));
                block = blocked.iter().map(|(_, ns)| ns).sum();
                parts.preempted_ns = (left - block).min(could_run.saturating_sub(parts.ran_ns));
            }
        }
        None => {
            parts.ran_ns = (ran as u64).min(could_run);
            parts.preempted_ns = could_run - parts.ran_ns - unsure.min(could_run - parts.ran_ns);
        }
    }
    parts.throttled_ns = quota.min(parts.preempted_ns);
    parts.preempted_ns -= parts.throttled_ns;
    let named = blocked
        .iter()
        .filter(|(by, ns)| *by != By::Unknown && *ns > 0);
    parts.blocked = named
        .map(|(by, ns)| Blocked {
            by: by.name(),
            ns: *ns,
        })
        .collect();
    parts.unknown_ns = ended.ns().saturating_sub(parts.total_ns());
    parts
}

fn scaled(ns: u64, to: u64, of: u64) -> u64 {
    (u128::from(ns) * u128::from(to) / u128::from(of.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::super::kept::tests::wait;
    use super::*;

    const MS: u64 = 1_000_000;

    fn seen(looks: &mut Looks, times: std::ops::Range<u64>, who: Who, state: State, cpu: f64) {
        for ms in times.clone() {
            let cpu_ns = Some(((ms - times.start) as f64 * cpu * MS as f64) as u64);
            looks.add(ms * MS, who, Look { state, cpu_ns }, true);
        }
    }

    fn blocked(by: By) -> State {
        State::Blocked(by)
    }

    #[test]
    fn a_wait_is_split_at_its_release_and_by_what_its_holder_did() {
        let mut looks = Looks::default();
        let holder = Who::Holder(2);
        seen(&mut looks, 1..20, holder, State::Runnable, 1.0);
        seen(&mut looks, 20..50, holder, blocked(By::Fault), 0.0);
        seen(&mut looks, 50..70, holder, State::Runnable, 0.0);
        seen(&mut looks, 70..80, Who::Waiter, blocked(By::Unknown), 0.0);
        seen(&mut looks, 80..100, Who::Waiter, State::Runnable, 0.0);
        let ended = Ended {
            released_ns: Some(70 * MS),
            ..wait(0, 100 * MS)
        };
        let parts = parts(&ended, &looks, &Throttled::default());
        assert_eq!(parts.total_ns(), 100 * MS);
        let near = |ns: u64, ms: u64| ns.abs_diff(ms * MS) <= 2 * MS;
        assert!(near(parts.ran_ns, 20), "{parts:?}");
        assert!(near(parts.preempted_ns, 20), "{parts:?}");
        assert_eq!(parts.blocked[0].by, "page fault");
        assert!(near(parts.blocked[0].ns, 30), "{parts:?}");
        assert!(near(parts.handover_ns, 10), "{parts:?}");
        assert!(near(parts.no_cpu_ns, 20), "{parts:?}");
        assert!(near(parts.unknown_ns, 0), "{parts:?}");
    }

    #[test]
    fn a_measured_clock_counts_for_more_than_looks() {
        let mut looks = Looks::default();
        seen(&mut looks, 1..10, Who::Holder(2), State::Runnable, 1.0);
        let ended = Ended {
            ran_ns: Some(4 * MS),
            ..wait(0, 10 * MS)
        };
        let mut throttled = Throttled::default();
        let some = parts(&ended, &looks, &throttled);
        assert_eq!((some.ran_ns, some.preempted_ns), (4 * MS, 6 * MS));
        throttled.add(3 * MS, 8 * MS);
        let some = parts(&ended, &looks, &throttled);
        assert_eq!((some.throttled_ns, some.preempted_ns), (5 * MS, MS));
        // Of a short wait nothing else was seen.
        let none = parts(&ended, &Looks::default(), &throttled);
        assert_eq!((none.ran_ns, none.unknown_ns), (4 * MS, 6 * MS));
    }

    /// Fails where the time of a waiter that lost its CPU in a spin is not known.
    #[test]
    fn a_long_wait_without_a_sleep_had_no_cpu() {
        let ended = Ended {
            has_spun: true,
            ..wait(0, 10 * MS)
        };
        let parts = parts(&ended, &Looks::default(), &Throttled::default());
        assert_eq!(parts.no_cpu_ns, 10 * MS - SPIN_NS);
        assert_eq!(parts.total_ns(), 10 * MS);
    }

    /// Fails where the clock of the first holder stands for one that passed by the waiter.
    #[test]
    fn a_clock_does_not_count_for_another_holder() {
        let mut looks = Looks::default();
        let sleeps = blocked(By::Call(libc::SYS_nanosleep));
        seen(&mut looks, 1..20, Who::Holder(2), sleeps, 0.0);
        seen(&mut looks, 20..80, Who::Holder(3), State::Runnable, 1.0);
        let ended = Ended {
            ran_ns: Some(MS / 10),
            ..wait(0, 80 * MS)
        };
        let parts = parts(&ended, &looks, &Throttled::default());
        assert!(parts.ran_ns.abs_diff(60 * MS) <= 2 * MS, "{parts:?}");
        assert!(parts.blocked[0].ns.abs_diff(20 * MS) <= 2 * MS, "{parts:?}");
    }

    #[test]
    fn a_look_does_not_speak_for_a_time_far_away() {
        let mut looks = Looks::default();
        looks.add(
            500 * MS,
            Who::Holder(2),
            Look {
                state: blocked(By::Stopped),
                cpu_ns: None,
            },
            false,
        );
        let parts = parts(&wait(0, 1000 * MS), &looks, &Throttled::default());
        assert_eq!(parts.blocked[0].ns, 40 * MS);
        assert_eq!(parts.unknown_ns, 960 * MS);
    }
}

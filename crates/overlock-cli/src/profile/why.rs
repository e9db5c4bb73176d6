//! Why the longest waits were long, and what to look at.

use std::collections::HashSet;
use std::fmt::Write;

use overlock_profile::{Parts, Profile, Shown, Sum, Wait, in_sentence, name_or_address};
use overlock_report::numbers::time;

/// How many of the longest waits are told.
const MOST: usize = 3;

/// The links of a chain, at most.
const MOST_LINKS: usize = 8;

/// The longest waits, each with those that it was behind; the threads that have the locks for
/// longer than the CPUs; and what to look at.
pub fn describe(profile: &Profile, shown: Shown, width: usize) -> String {
    let mut text = String::new();
    let waits = longest(profile);
    if !waits.is_empty() {
        text += "The longest waits:\n";
    }
    for wait in waits {
        text += &wrapped(&chain(profile, wait), width, " ");
    }
    for line in hog(profile).into_iter().chain(advice(profile, shown)) {
        text += &wrapped(&line, width, "");
    }
    text
}

/// The longest waits for locks: of each lock and pair of stacks one.
fn longest(profile: &Profile) -> Vec<&Wait> {
    let is_event = |wait: &Wait| {
        let lock = profile.locks.get(wait.lock as usize);
        lock.is_some_and(|lock| lock.is_event)
    };
    let mut waits: Vec<&Wait> = profile.waits.iter().collect();
    waits.retain(|wait| !is_event(wait));
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.wait_ns));
    let mut seen = HashSet::new();
    waits.retain(|wait| seen.insert((wait.lock, wait.stack, wait.holder_stack)));
    waits.truncate(MOST);
    waits
}

fn lock(profile: &Profile, index: u32) -> String {
    let lock = profile.locks.get(index as usize);
    lock.map_or_else(String::new, |lock| in_sentence(&name_or_address(lock)))
}

fn thread(profile: &Profile, index: u32) -> String {
    match profile.threads.get(index as usize) {
        Some(thread) if thread.name.is_empty() => thread.tid.to_string(),
        Some(thread) => format!("{} ({})", thread.tid, overlock_profile::plain(&thread.name)),
        None => "?".to_owned(),
    }
}

/// A wait and what was behind it, in a sentence.
fn chain(profile: &Profile, first: &Wait) -> String {
    let mut text = format!(
        "thread {} waited {} for {}",
        thread(profile, first.thread),
        time(first.wait_ns as f64),
        lock(profile, first.lock),
    );
    let mut wait = first;
    for _ in 0..MOST_LINKS {
        let Some(holder) = wait.holder else {
            text += match main(&wait.parts).0 {
                Main::Handover | Main::NoCpu | Main::Unknown => "",
                _ => ", held by a thread that was not seen",
            };
            text += &reason(&wait.parts);
            break;
        };
        let _ = write!(text, ", held by {}", thread(profile, holder));
        let next = wait
            .behind
            .and_then(|next| profile.waits.get(next as usize));
        let Some(next) = next.filter(|next| is_reason(wait, next)) else {
            text += &reason(&wait.parts);
            break;
        };
        let _ = write!(text, ", which waited for {}", lock(profile, next.lock));
        wait = next;
    }
    text
}

/// Whether a wait of the holder covers so much of a wait that it is why that was long.
fn is_reason(wait: &Wait, behind: &Wait) -> bool {
    let from = wait.began_ns.max(behind.began_ns);
    let end = |wait: &Wait| wait.began_ns + wait.wait_ns;
    let both = end(wait).min(end(behind)).saturating_sub(from);
    both * 2 > wait.wait_ns
}

/// The largest part of waits.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Main {
    Ran,
    Preempted,
    Throttled,
    Blocked(String),
    Handover,
    NoCpu,
    Unknown,
}

fn main(parts: &Parts) -> (Main, u64) {
    let blocked = (parts.blocked.iter()).map(|one| (Main::Blocked(one.by.clone()), one.ns));
    let all = [
        (Main::Ran, parts.ran_ns),
        (Main::Preempted, parts.preempted_ns),
        (Main::Throttled, parts.throttled_ns),
        (Main::Handover, parts.handover_ns),
        (Main::NoCpu, parts.no_cpu_ns),
        (Main::Unknown, parts.unknown_ns),
    ];
    let largest = all.into_iter().chain(blocked).max_by_key(|(_, ns)| *ns);
    largest.unwrap_or((Main::Unknown, 0))
}

/// The end of a chain.
fn reason(parts: &Parts) -> String {
    match main(parts).0 {
        Main::Ran => ", which ran".to_owned(),
        Main::Preempted => ", which was not running: it had no CPU".to_owned(),
        Main::Throttled => ", which was not running: the quota was used up".to_owned(),
        Main::Blocked(by) if by == "page fault" => ", which waited for a page of memory".to_owned(),
        Main::Blocked(by) if by == "stopped" => ", which was stopped".to_owned(),
        Main::Blocked(by) => match by.strip_prefix("lock ") {
            Some(lock) => format!(", which waited for {}", in_sentence(lock)),
            None => format!(", which was in the system call {by}"),
        },
        Main::Handover => ", and was not woken for most of the time".to_owned(),
        Main::NoCpu => ", and had no CPU when it was woken".to_owned(),
        Main::Unknown => String::new(),
    }
}

/// The thread that has the locks for far longer than its share of the CPUs.
fn hog(profile: &Profile) -> Option<String> {
    let threads = &profile.threads;
    let held: u64 = threads.iter().filter_map(|thread| thread.held_ns).sum();
    let cpu: u64 = threads.iter().filter_map(|thread| thread.cpu_ns).sum();
    let (index, most) = (threads.iter().enumerate()).max_by_key(|(_, thread)| thread.held_ns)?;
    let [held, cpu] = [(most.held_ns?, held), (most.cpu_ns?, cpu)]
        .map(|(own, all)| own as f64 / all.max(1) as f64);
    let has_others = threads
        .iter()
        .filter(|thread| thread.held_ns > Some(0))
        .count()
        > 1;
    (has_others && held > 0.5 && held > 2.0 * cpu).then(|| {
        format!(
            "Thread {} has held the locks for {:.0} % of the time that they were held, \
             with {:.0} % of the CPU time.",
            thread(profile, index as u32),
            held * 100.0,
            cpu * 100.0
        )
    })
}

/// One line about what to look at.
fn advice(profile: &Profile, shown: Shown) -> Option<String> {
    if let Some(text) = overlock_profile::advice::no_gain(profile) {
        return Some(text);
    }
    let locks = &profile.locks;
    let is_wait = |sum: &&Sum| {
        !locks
            .get(sum.lock as usize)
            .is_none_or(|lock| lock.is_event)
    };
    let all: u64 = profile
        .sums
        .iter()
        .filter(is_wait)
        .map(|sum| sum.wait_ns)
        .sum();
    let top = profile
        .sums
        .iter()
        .filter(is_wait)
        .max_by_key(|sum| sum.wait_ns)?;
    let of_lock = profile.sums.iter().filter(|sum| sum.lock == top.lock);
    let wait_ns: u64 = of_lock.map(|sum| sum.wait_ns).sum();
    let advice = overlock_profile::advice::of_lock(profile, top.lock)?;
    Some(format!(
        "Look at {}, acquired in {}: {:.0} % of all waits. {}",
        lock(profile, top.lock),
        shown.function(profile, Some(top.stack)),
        wait_ns as f64 / all as f64 * 100.0,
        advice.text()
    ))
}

/// The text in lines of this width at most, where its words allow that.
fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let mut lines = String::new();
    let mut line = indent.to_owned();
    for word in text.split(' ') {
        let is_first = line.trim().is_empty();
        if !is_first && line.chars().count() + 1 + word.chars().count() > width {
            lines += &line;
            lines.push('\n');
            line = format!("{indent} {word}");
        } else {
            line += if is_first { "" } else { " " };
            line += word;
        }
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use overlock_profile::{Lock, Stack, Thread};

    use super::*;

    fn profile() -> Profile {
        let name = |name: &str| Lock {
            name: name.to_owned(),
            kind: "mutex".to_owned(),
            ..Lock::default()
        };
        let thread = |tid| Thread {
            tid,
            ..Thread::default()
        };
        let wait = |thread, lock, holder, parts| Wait {
            thread,
            lock,
            holder: Some(holder),
            wait_ns: 41_000_000,
            parts,
            ..Wait::default()
        };
        let preempted = Parts {
            preempted_ns: 41_000_000,
            ..Parts::default()
        };
        let mut waits = vec![
            wait(0, 0, 1, Parts::default()),
            wait(1, 1, 2, preempted.clone()),
        ];
        waits[0].behind = Some(1);
        let sum = Sum {
            wait_ns: 41_000_000,
            waits: 1,
            parts: preempted,
            ..Sum::default()
        };
        Profile {
            locks: vec![name("pool"), name("log")],
            threads: [12, 7, 3].map(thread).to_vec(),
            sums: vec![sum],
            stacks: vec![Stack::default()],
            waits,
            ..Profile::default()
        }
    }

    #[test]
    fn a_chain_is_told_to_its_end() {
        let mut profile = profile();
        profile.locks[1].name = "of open_log".to_owned();
        assert_eq!(
            chain(&profile, &profile.waits[0]),
            "thread 12 waited 41 ms for pool, held by 7, which waited for the lock of open_log, \
             held by 3, which was not running: it had no CPU"
        );
    }

    /// Fails where the lock itself was in a system call.
    #[test]
    fn a_holder_that_is_not_known_is_one() {
        let mut profile = profile();
        profile.waits[1].holder = None;
        assert_eq!(
            chain(&profile, &profile.waits[1]),
            "thread 7 waited 41 ms for log, held by a thread that was not seen, which was not \
             running: it had no CPU"
        );
    }

    /// Fails where threads that wait for each other make it endless.
    #[test]
    fn a_circle_has_an_end() {
        let mut profile = profile();
        profile.waits[1].behind = Some(0);
        profile.waits[1].holder = Some(0);
        assert!(chain(&profile, &profile.waits[0]).len() < 600);
    }

    #[test]
    fn the_lock_to_look_at_is_told_with_the_advice() {
        let text = describe(&profile(), Shown::default(), 80);
        let is_narrow = |line: &str| line.chars().count() <= 80;
        assert!(text.lines().all(is_narrow), "{text}");
        let text = text.replace('\n', "");
        assert!(text.contains("Look at pool"), "{text}");
        assert!(
            text.contains("100 % of that: the holder could run"),
            "{text}"
        );
    }

    #[test]
    fn a_thread_that_has_the_lock_for_longer_than_a_cpu_is_told() {
        let mut profile = profile();
        let figures = [(900, 10), (50, 45), (50, 45)];
        for (thread, (held, cpu)) in profile.threads.iter_mut().zip(figures) {
            (thread.held_ns, thread.cpu_ns) = (Some(held), Some(cpu));
        }
        let text = hog(&profile).unwrap();
        assert!(
            text.starts_with("Thread 12 has held the locks for 90 %"),
            "{text}"
        );
        assert!(text.ends_with("10 % of the CPU time."), "{text}");
        profile.threads[0].cpu_ns = Some(90);
        assert_eq!(hog(&profile), None);
    }
}

//! One profile of several: of a fleet's processes, or of many runs.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::key::{Key, of_locks};
use crate::{Confidence, Frame, Interner, Known, Lock, Profile, Sum, VERSION, Wait};

/// Adds profiles to one.
///
/// Locks are the same if program, name, kind and the initialising function are; frames, if the
/// build is, wherever its file lies. Times of single waits count from the beginning of each run, so
/// runs lie on top of each other.
#[derive(Debug, Default)]
pub struct Merger {
    made: Profile,
    interner: Interner,
    locks: HashMap<Key, u32>,
    sums: HashMap<(u32, u32, Option<u32>), usize>,
    /// The path of each build.
    modules: HashMap<String, Option<String>>,
}

/// So many single waits are kept, the longest.
const MOST_WAITS: usize = 100_000;

impl Merger {
    /// Of nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a profile, which has been [checked](Profile::check).
    pub fn add(&mut self, profile: &Profile) {
        self.run(profile);
        let processes = self.made.processes.len() as u32;
        let threads = self.made.threads.len() as u32;
        let waits = self.made.waits.len() as u32;
        self.made
            .processes
            .extend(profile.processes.iter().cloned());
        self.made
            .threads
            .extend(profile.threads.iter().cloned().map(|mut thread| {
                thread.process += processes;
                thread
            }));
        let stacks: Vec<u32> = (0..profile.stacks.len())
            .map(|stack| self.stack(profile, stack))
            .collect();
        let locks = self.add_locks(profile, processes, &stacks);
        for sum in &profile.sums {
            let stack = |stack: u32| stacks[stack as usize];
            self.sum(&Sum {
                lock: locks[sum.lock as usize],
                stack: stack(sum.stack),
                holder_stack: sum.holder_stack.map(stack),
                ..sum.clone()
            });
        }
        let began_ns = profile.run.began_ns;
        self.made
            .waits
            .extend(profile.waits.iter().map(|wait| Wait {
                thread: wait.thread + threads,
                lock: locks[wait.lock as usize],
                stack: stacks[wait.stack as usize],
                began_ns: wait.began_ns.saturating_sub(began_ns),
                holder: wait.holder.map(|holder| holder + threads),
                holder_stack: wait.holder_stack.map(|stack| stacks[stack as usize]),
                released_ns: wait.released_ns.map(|ns| ns.saturating_sub(began_ns)),
                behind: wait.behind.map(|behind| behind + waits),
                ..wait.clone()
            }));
        if self.made.waits.len() > 2 * MOST_WAITS {
            self.drop_short_waits();
        }
    }

    /// The profile of all.
    pub fn finish(mut self) -> Profile {
        self.drop_short_waits();
        self.made
    }

    fn run(&mut self, profile: &Profile) {
        let (made, run) = (&mut self.made.run, &profile.run);
        let lost = &mut self.made.lost;
        lost.waits += profile.lost.waits;
        lost.single_waits += profile.lost.single_waits;
        lost.short_waits += profile.lost.short_waits;
        lost.stacks += profile.lost.stacks;
        lost.events += profile.lost.events;
        if self.made.version != VERSION {
            self.made.version = VERSION;
            *made = run.clone();
            // Single waits count from it.
            made.began_ns = 0;
            return;
        }
        made.date_s = made.date_s.min(run.date_s);
        made.seconds += run.seconds;
        made.threshold_ns = made.threshold_ns.max(run.threshold_ns);
        made.cpus = made.cpus.max(run.cpus);
        made.quota = made.quota.filter(|_| made.quota == run.quota);
        made.known = least_known(made.known, run.known);
        for (mine, other) in [
            (&mut made.source, &run.source),
            (&mut made.locks, &run.locks),
        ] {
            if !mine.split(", ").any(|part| part == other) {
                *mine = format!("{mine}, {other}");
            }
        }
    }

    fn stack(&mut self, profile: &Profile, stack: usize) -> u32 {
        let frames: Vec<Frame> = profile.stacks[stack]
            .0
            .iter()
            .map(|&frame| self.frame(&profile.frames[frame as usize]))
            .collect();
        self.interner.stack(&mut self.made, &frames)
    }

    /// With the first path that its build was seen at.
    fn frame(&mut self, frame: &Frame) -> Frame {
        let module = match &frame.build_id {
            Some(build_id) => self
                .modules
                .entry(build_id.clone())
                .or_insert_with(|| frame.module.clone())
                .clone(),
            None => frame.module.clone(),
        };
        Frame {
            module,
            ..frame.clone()
        }
    }

    fn add_locks(&mut self, profile: &Profile, processes: u32, stacks: &[u32]) -> Vec<u32> {
        let keys = of_locks(profile);
        let locks = profile.locks.iter().zip(keys);
        locks
            .map(|(lock, key)| {
                let next = self.made.locks.len() as u32;
                let name = key.name.clone();
                let index = *self.locks.entry(key).or_insert(next);
                if index == next {
                    self.made.locks.push(Lock {
                        process: lock.process + processes,
                        name,
                        init: lock.init.map(|stack| stacks[stack as usize]),
                        ..lock.clone()
                    });
                } else {
                    add_lock(&mut self.made.locks[index as usize], lock);
                }
                index
            })
            .collect()
    }

    fn sum(&mut self, sum: &Sum) {
        let next = self.made.sums.len();
        let key = (sum.lock, sum.stack, sum.holder_stack);
        let at = *self.sums.entry(key).or_insert(next);
        if at == next {
            self.made.sums.push(sum.clone());
            return;
        }
        let made = &mut self.made.sums[at];
        made.waits += sum.waits;
        made.wait_ns += sum.wait_ns;
        made.max_ns = made.max_ns.max(sum.max_ns);
        made.gave_up += sum.gave_up;
        made.passed += sum.passed;
        made.parts.add(&sum.parts);
    }

    fn drop_short_waits(&mut self) {
        let waits = &mut self.made.waits;
        if waits.len() <= MOST_WAITS {
            return;
        }
        let mut kept: Vec<usize> = (0..waits.len()).collect();
        kept.sort_by_key(|&index| Reverse(waits[index].wait_ns));
        kept.truncate(MOST_WAITS);
        kept.sort_unstable();
        let mut places = vec![None; waits.len()];
        for (place, &index) in (0..).zip(&kept) {
            places[index] = Some(place);
        }
        self.made.lost.single_waits += (waits.len() - kept.len()) as u64;
        let mut index = 0;
        waits.retain(|_| {
            index += 1;
            places[index - 1].is_some()
        });
        for wait in waits {
            wait.behind = wait.behind.and_then(|behind| places[behind as usize]);
        }
    }
}

fn add_lock(made: &mut Lock, lock: &Lock) {
    made.objects += lock.objects;
    made.is_estimated |=
        lock.is_estimated || made.acquisitions.is_some() != lock.acquisitions.is_some();
    let holds = |lock: &Lock| Some((lock.hold_avg_ns?, lock.acquisitions.unwrap_or(1) as f64));
    made.hold_avg_ns = match (holds(made), holds(lock)) {
        (Some((one, of_one)), Some((two, of_two))) if of_one + of_two > 0.0 => {
            Some((one * of_one + two * of_two) / (of_one + of_two))
        }
        _ => made.hold_avg_ns.or(lock.hold_avg_ns),
    };
    made.hold_max_ns = made.hold_max_ns.max(lock.hold_max_ns);
    made.acquisitions = match (made.acquisitions, lock.acquisitions) {
        (Some(one), Some(two)) => Some(one + two),
        (one, two) => one.or(two),
    };
    made.distribution.add(&lock.distribution);
}

fn least_known(one: Known, two: Known) -> Known {
    let least = |one, two| match (one, two) {
        (Confidence::Unknown, _) | (_, Confidence::Unknown) => Confidence::Unknown,
        (Confidence::Measured, Confidence::Measured) => Confidence::Measured,
        _ => Confidence::Sampled,
    };
    Known {
        ran: least(one.ran, two.ran),
        preempted: least(one.preempted, two.preempted),
        throttled: least(one.throttled, two.throttled),
        blocked: least(one.blocked, two.blocked),
        handover: least(one.handover, two.handover),
        no_cpu: least(one.no_cpu, two.no_cpu),
    }
}

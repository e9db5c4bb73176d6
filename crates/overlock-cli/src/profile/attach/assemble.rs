//! The document, of what was seen.

use std::collections::{HashMap, HashSet};

use overlock_profile::{
    Blocked, Confidence, Frame, Interner, Known, Lock, Lost, Parts, Process, Profile, Sum, Thread,
    VERSION, Wait,
};
use syscalls::Sysno;

use crate::stat::set_module;

use super::kinds::{self, Kind};
use super::places::place;
use super::records;
use super::stacks::Stacks;
use super::threads::Threads;
use super::timeline::{By, Explained, Timeline};

/// Single waits that are kept, the longest.
const SINGLE: usize = 100_000;

/// Makes the document. `run` is filled by the caller.
#[derive(Debug)]
pub struct Assembly<'a> {
    stacks: &'a Stacks,
    threads: &'a Threads,
    profile: Profile,
    interner: Interner,
    by_key: HashMap<u64, Option<u32>>,
    /// By the stack, the operation, and whether the word says that there are waiters.
    by_stack: HashMap<(u32, u32, bool), Option<(Kind, bool)>>,
    locks: HashMap<(u64, &'static str), u32>,
    /// Locks and events by the futexes at which threads wait for them.
    futexes: HashMap<u64, u32>,
    sums: HashMap<(u32, u32, Option<u32>), usize>,
}

impl<'a> Assembly<'a> {
    /// Of a process.
    pub fn new(process: Process, stacks: &'a Stacks, threads: &'a Threads) -> Self {
        let thread = |(tid, known): (u32, &super::threads::Known)| Thread {
            process: 0,
            tid,
            name: known.name.clone(),
            cpu_ns: Some(known.last_ns.saturating_sub(known.first_ns)),
            wait_ns: 0,
            held_ns: Some(0),
        };
        Self {
            profile: Profile {
                version: VERSION,
                processes: vec![process],
                threads: threads.iter().map(thread).collect(),
                ..Profile::default()
            },
            stacks,
            threads,
            interner: Interner::default(),
            by_key: HashMap::new(),
            by_stack: HashMap::new(),
            locks: HashMap::new(),
            futexes: HashMap::new(),
            sums: HashMap::new(),
        }
    }

    /// Fills it with the waits that are not shorter than a threshold.
    pub fn fill(mut self, timeline: &mut Timeline, threshold_ns: u64) -> Profile {
        let both = lockers(timeline.waits());
        // By index in the timeline.
        let mut places = HashMap::new();
        let mut behind = Vec::new();
        let by_address = self.kinds(timeline.waits());
        for at in 0..timeline.waits().len() {
            let wait = timeline.waits()[at];
            let wait_ns = timeline.end(&wait.off) - wait.off.out_ns;
            if wait_ns < threshold_ns {
                self.profile.lost.short_waits += 1;
                continue;
            }
            let stack = self.stack(wait.key).unwrap_or_else(|| self.no_stack());
            let known = self.kind(&wait, stack);
            // Another thread's stack may tell.
            let known = known.or_else(|| by_address.get(&wait.address).copied());
            let is_lock = both.contains(&wait.address);
            let (kind, is_pthreads) = known.unwrap_or((kinds::unknown(is_lock), false));
            let place = place(&wait, kind, is_pthreads);
            let owner = place.owner.and_then(|inner| self.threads.with_inner(inner));
            let explained = timeline.explain(at, owner);
            let lock = self.lock(place.lock, kind);
            self.futexes.insert(wait.address, lock);
            places.insert(at, self.profile.waits.len());
            behind.push(explained.behind);
            self.add(&wait, wait_ns, lock, stack, explained);
        }
        for (wait, behind) in self.profile.waits.iter_mut().zip(behind) {
            wait.behind = behind.and_then(|at| Some(*places.get(&at)? as u32));
        }
        for at in 0..self.profile.locks.len() {
            self.profile.locks[at].name = self.name(self.profile.locks[at].address);
        }
        self.name_blocks();
        self.keep_longest();
        self.profile.run.known = Known {
            ran: Confidence::Measured,
            preempted: Confidence::Measured,
            throttled: Confidence::Sampled,
            blocked: Confidence::Measured,
            handover: Confidence::Measured,
            no_cpu: Confidence::Measured,
        };
        self.profile
    }

    fn add(
        &mut self,
        wait: &records::Wait,
        wait_ns: u64,
        lock: u32,
        stack: u32,
        explained: Explained,
    ) {
        let profile = &mut self.profile;
        let is_event = profile.locks[lock as usize].is_event;
        let gave_up = wait.waker == 0 && wait.off.wake_ns != 0;
        let index = self.threads.index(wait.off.tid).expect("all were met");
        // Nobody holds an event.
        let holder = explained.holder.filter(|_| !is_event);
        let holder = holder.and_then(|tid| self.threads.index(tid));
        let spent = explained.spent;
        let held_ns = wait_ns - explained.no_cpu_ns;
        let parts = match is_event {
            true => Parts {
                no_cpu_ns: explained.no_cpu_ns,
                unknown_ns: held_ns,
                ..Parts::default()
            },
            false => Parts {
                ran_ns: spent.ran_ns,
                preempted_ns: spent.preempted_ns,
                throttled_ns: spent.throttled_ns,
                blocked: spent.blocked.iter().map(block).collect(),
                handover_ns: spent.handover_ns,
                no_cpu_ns: explained.no_cpu_ns,
                unknown_ns: spent.unknown_ns,
            },
        };
        if !is_event {
            profile.threads[index as usize].wait_ns += wait_ns;
            if let Some(holder) = holder {
                let held = &mut profile.threads[holder as usize].held_ns;
                *held = held.map(|sum| sum + held_ns);
            }
        }
        profile.locks[lock as usize].distribution.record(wait_ns);
        let holder_stack = match wait.waker_key {
            0 => None,
            _ if is_event => None,
            key => self.stack(key),
        };
        let profile = &mut self.profile;
        let sums = &mut profile.sums;
        let at = *self
            .sums
            .entry((lock, stack, holder_stack))
            .or_insert_with(|| {
                sums.push(Sum {
                    lock,
                    stack,
                    holder_stack,
                    ..Sum::default()
                });
                sums.len() - 1
            });
        let sum = &mut sums[at];
        sum.waits += 1;
        sum.wait_ns += wait_ns;
        sum.max_ns = sum.max_ns.max(wait_ns);
        sum.gave_up += u64::from(gave_up);
        sum.passed += explained.passed;
        sum.parts.add(&parts);
        profile.waits.push(Wait {
            thread: index,
            lock,
            stack,
            began_ns: wait.off.out_ns,
            wait_ns,
            holder,
            holder_stack,
            released_ns: Some(wait.off.wake_ns).filter(|_| wait.waker != 0),
            gave_up,
            parts,
            behind: None,
        });
    }

    /// A stack by its key.
    fn stack(&mut self, key: u64) -> Option<u32> {
        if let Some(known) = self.by_key.get(&key) {
            return *known;
        }
        let calls = self.stacks.calls(key).map(<[u64]>::to_vec);
        let stack = calls.map(|calls| {
            let frames: Vec<Frame> = calls.iter().flat_map(|&call| self.call(call)).collect();
            self.interner.stack(&mut self.profile, &frames)
        });
        self.by_key.insert(key, stack);
        stack
    }

    /// For waits whose stack is not known.
    fn no_stack(&mut self) -> u32 {
        self.interner.stack(&mut self.profile, [])
    }

    fn call(&self, address: u64) -> Vec<Frame> {
        let mut frames = self.stacks.symbols().frames(address).to_vec();
        for frame in &mut frames {
            if let Some(path) = frame
                .module
                .as_deref()
                .and_then(|path| self.stacks.shown(path))
            {
                set_module(frame, path.to_owned());
            }
        }
        frames
    }

    /// The kinds of the futexes of which some stack tells it.
    fn kinds(&mut self, waits: &[records::Wait]) -> HashMap<u64, (Kind, bool)> {
        let mut kinds = HashMap::new();
        for wait in waits {
            if let Some(stack) = self.stack(wait.key)
                && let Some(kind) = self.kind(wait, stack)
            {
                kinds.entry(wait.address).or_insert(kind);
            }
        }
        kinds
    }

    /// The kind of lock or event, and whether pthread's functions wait for it.
    fn kind(&mut self, wait: &records::Wait, stack: u32) -> Option<(Kind, bool)> {
        let profile = &self.profile;
        let key = (stack, wait.operation, wait.word(0) == 2);
        *self.by_stack.entry(key).or_insert_with(|| {
            let frames = profile.stacks[stack as usize].0.iter();
            let frames = frames.map(|&at| &profile.frames[at as usize]);
            let named = frames.map(|frame| (frame.function.as_str(), frame.file.as_deref()));
            kinds::kind(named, wait.operation, wait.word(0))
        })
    }

    fn lock(&mut self, address: u64, kind: Kind) -> u32 {
        let Kind { name, is_event } = kind;
        let locks = &mut self.profile.locks;
        *self.locks.entry((address, name)).or_insert_with(|| {
            locks.push(Lock {
                kind: name.to_owned(),
                is_event,
                address,
                objects: 1,
                ..Lock::default()
            });
            locks.len() as u32 - 1
        })
    }

    fn name(&self, address: u64) -> String {
        match self.stacks.symbols().variable(address) {
            Some((name, 0)) => name,
            Some((name, within)) => format!("{name}+{within:#x}"),
            None => self
                .stacks
                .symbols()
                .data(address)
                .unwrap_or_else(|| format!("{address:#x}")),
        }
    }

    /// Locks that blocked holders are called by their names.
    fn name_blocks(&mut self) {
        let mut names = HashMap::new();
        for (&futex, &lock) in &self.futexes {
            let lock = &self.profile.locks[lock as usize];
            let name = match lock.is_event {
                true => "futex".to_owned(),
                false => format!("lock {}", lock.name),
            };
            names.insert(format!("lock {futex:#x}"), name);
        }
        let waits = self.profile.waits.iter_mut().map(|wait| &mut wait.parts);
        let sums = self.profile.sums.iter_mut().map(|sum| &mut sum.parts);
        for blocked in waits.chain(sums).flat_map(|parts| &mut parts.blocked) {
            if let Some(name) = names.get(&blocked.by) {
                blocked.by.clone_from(name);
            }
        }
    }

    /// Leaves out the shortest of too many waits.
    fn keep_longest(&mut self) {
        let waits = &mut self.profile.waits;
        if waits.len() <= SINGLE {
            return;
        }
        self.profile.lost.single_waits = (waits.len() - SINGLE) as u64;
        let mut order: Vec<usize> = (0..waits.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(waits[at].wait_ns));
        order.truncate(SINGLE);
        order.sort_unstable();
        let places: HashMap<u32, u32> =
            (0..).zip(&order).map(|(to, &at)| (at as u32, to)).collect();
        let mut kept: Vec<Wait> = order.iter().map(|&at| waits[at].clone()).collect();
        for wait in &mut kept {
            wait.behind = wait.behind.and_then(|at| places.get(&at).copied());
        }
        *waits = kept;
    }

    /// Adds what was lost on the way.
    pub fn lose(&mut self, lost: Lost) {
        self.profile.lost = lost;
    }
}

/// Futexes of which some thread has waited for it, and woken another there.
fn lockers(waits: &[records::Wait]) -> HashSet<u64> {
    let waiters: HashSet<(u64, u32)> = (waits.iter())
        .map(|wait| (wait.address, wait.off.tid))
        .collect();
    let wakes = waits.iter().map(|wait| (wait.address, wait.waker));
    let both = wakes.filter(|wake| waiters.contains(wake));
    both.map(|(address, _)| address).collect()
}

fn block(&(by, ns): &(By, u64)) -> Blocked {
    let by = match by {
        By::Stopped => "stopped".to_owned(),
        By::Futex(address) => format!("lock {address:#x}"),
        By::Syscall(number) => match usize::try_from(number) {
            Err(_) => "page fault".to_owned(),
            Ok(number) => Sysno::new(number).map_or_else(
                || format!("system call {number}"),
                |known| known.to_string(),
            ),
        },
    };
    Blocked { by, ns }
}

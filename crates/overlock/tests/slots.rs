//! All slots whose nodes have a place in queues are taken: threads without one lock and unlock
//! every lock, and later threads have nodes again after slots were given back. Alone in its binary:
//! the slots are those of the whole process.

#[path = "common/caller.rs"]
mod caller;
mod common;
#[path = "common/until.rs"]
mod until;
#[path = "common/watch.rs"]
mod watch;

use std::collections::BTreeSet;
use std::mem;
use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use caller::Caller;
use common::Pair;
use overlock::Linux;
use overlock::spin::{FastQueue, RawLock};
use overlock::stat::{self, Event, Snapshot};
use overlock_core::Platform;
use overlock_core::facts::{HasFacts, NeedsNode, Slow};
use overlock_core::node::{MAX_SLOTS, NodeGuard};
use until::{Until, until_of};
use watch::{ThreadState, join};

/// Threads that keep their slot until they are stopped.
const OWNERS: usize = 6;
/// Threads that wait for one lock at a time, and those of `OWNERS` that compete with them.
const WAITERS: usize = 4;
const RIVALS: usize = 2;
const SECTIONS: u64 = if cfg!(miri) { 5 } else { 500 };
/// Strictly fair locks lose a time slice whenever the next in line is not running.
const ENOUGH: Duration = Duration::from_millis(150);
/// How long a holder polls the counters for waiters.
const SHOWS: Duration = Duration::from_secs(120);

/// A snapshot adds up 170,000 counters: seconds under Miri.
const COUNTS: bool = cfg!(all(feature = "stat_raw", not(miri)));

/// The slots with such nodes. Miri's tables are small.
const SLOTS: usize = if cfg!(miri) { 64 } else { MAX_SLOTS };

type Job = Box<dyn FnOnce() + Send>;

/// A thread with a slot of its own, which ends when this is dropped.
struct Owner {
    slot: usize,
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

impl Owner {
    fn new() -> Option<Self> {
        let (answer, answered) = channel();
        let (jobs, list) = channel::<Job>();
        let thread = thread::spawn(move || {
            answer.send(slot()).unwrap();
            list.iter().for_each(|job| job());
        });
        let slot = answered.recv().unwrap()?;
        Some(Owner { slot, jobs, thread })
    }
}

/// The slot of the calling thread, if its nodes have a place in queues.
fn slot() -> Option<usize> {
    NodeGuard::<Linux>::new().map(|guard| guard.id().slot())
}

/// Takes a slot out of use for good, at the price of a short-lived thread: it forgets its guard,
/// and a slot whose nodes may still stand in a queue is never reused. (16,000 threads at a time
/// would want more memory maps than Linux grants by default.)
fn use_up_one() -> Option<usize> {
    let thread = thread::spawn(|| {
        let guard = NodeGuard::<Linux>::new()?;
        let slot = guard.id().slot();
        mem::forget(guard);
        Some(slot)
    });
    thread.join().unwrap()
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Nodes {
    None,
    All,
}

/// `LockNoNode` after `WAITERS` threads and the holder before them have locked a lock once; and how
/// many of these show while the holder is inside.
fn no_node(need: NeedsNode, nodes: Nodes) -> (RangeInclusive<u64>, u64) {
    let waiters = WAITERS as u64;
    let count = match need {
        _ if nodes == Nodes::All => 0,
        NeedsNode::Never => 0,
        NeedsNode::Always => waiters + 1,
        NeedsNode::Waiter => waiters,
        NeedsNode::SecondWaiter => waiters - 1,
        NeedsNode::Sleep => return (waiters..=u64::MAX, waiters),
    };
    (count..=count, count)
}

fn counted() -> u64 {
    stat::snapshot().count(Event::LockNoNode)
}

/// Threads that wait for a lock that the caller holds: with the counter, it is certain that they
/// do.
fn wait_for_holder<L: RawLock + HasFacts>(nodes: Nodes) {
    let pair: &'static Pair<L> = Box::leak(Box::new(Pair::new()));
    let states: &'static [ThreadState; WAITERS] = Box::leak(Box::default());
    let callers: &'static [OnceLock<Caller>; WAITERS] = Box::leak(Box::default());
    let (due, inside) = no_node(L::FACTS.node, nodes);
    if COUNTS {
        stat::reset();
    }
    let token = pair.lock.lock();
    let threads = states.iter().zip(callers).map(|(state, caller)| {
        thread::spawn(move || {
            assert_eq!(slot().is_some(), nodes == Nodes::All, "{}", L::NAME);
            state.waits(false);
            if !cfg!(miri) {
                let _ = caller.set(Caller::here());
            }
            let token = pair.lock.lock();
            state.is_inside();
            pair.section(token, || {});
            state.is_outside();
        })
    });
    let threads = threads.collect();
    if cfg!(miri) {
        thread::sleep(Duration::from_millis(5));
    } else {
        let waits = |caller| caller::until(caller, Caller::is_waiting);
        assert!(callers.iter().all(waits), "{}: no waiter", L::NAME);
    }
    let begin = Instant::now();
    while COUNTS && counted() < inside {
        let [name, count] = [L::NAME, &counted().to_string()];
        assert!(begin.elapsed() < SHOWS, "{name}: {count} of {inside} shown");
        thread::sleep(Duration::from_millis(1));
    }
    pair.section(token, || {});
    join(L::NAME, states, threads);
    if COUNTS {
        let now = counted();
        assert!(due.contains(&now), "{}: {now}, not {due:?}", L::NAME);
        if nodes == Nodes::None {
            slow_ones_add_up::<L>(&stat::snapshot());
        }
    }
    assert_eq!(pair.count(), WAITERS as u64 + 1, "{}", L::NAME);
    assert!(!pair.lock.is_locked() && !pair.lock.is_contended());
}

/// Without nodes too, slow = queued + stolen where there is an unfair mode. In the others these
/// count apart.
fn slow_ones_add_up<L: RawLock + HasFacts>(now: &Snapshot) {
    let queued = now.count(Event::LockSlowpath);
    let stolen = now.count(Event::PvLockStealing);
    let pending = now.count(Event::LockPending);
    let waiters = WAITERS as u64;
    let name = L::NAME;
    if name == FastQueue::NAME {
        // In a queue, with the lock's second ticket.
        assert!((1..=waiters).contains(&queued), "{name}: {queued}");
        return;
    }
    let due = match L::FACTS.slow {
        Slow::QueuedOrPending => [0, 0, 1],
        Slow::QueuedOrStolen => [0, waiters, 0],
        Slow::Queued | Slow::Uncounted => [0; 3],
    };
    assert_eq!([queued, stolen, pending], due, "{name}");
}

/// Threads with and without a slot at one lock, all ways of acquiring mixed.
fn exclude<L: RawLock>(until: Option<Until<L>>, owners: &[Owner]) {
    let pair: &'static Pair<L> = Box::leak(Box::new(Pair::new()));
    let states: &'static [ThreadState; WAITERS + RIVALS] = Box::leak(Box::default());
    let work = move |number: usize| {
        let state = &states[number];
        let begin = Instant::now();
        for turn in 0..SECTIONS {
            if begin.elapsed() > ENOUGH {
                break;
            }
            state.waits(false);
            let token = match ((turn + number as u64) % 4, until) {
                (0, _) => pair.lock.try_lock(),
                (1, Some(until)) => until(&pair.lock, Linux::now().plus_nanos(turn % 64 * 1000)),
                _ => None,
            };
            let token = token.unwrap_or_else(|| pair.lock.lock());
            state.is_inside();
            pair.section(token, || {
                if turn % 50 == number as u64 {
                    thread::yield_now();
                }
            });
            state.is_outside();
        }
    };
    let threads = (0..WAITERS)
        .map(|number| {
            thread::spawn(move || {
                assert_eq!(slot(), None);
                work(number);
            })
        })
        .chain((WAITERS..).zip(owners).map(|(number, owner)| {
            let (end, ended) = channel();
            owner
                .jobs
                .send(Box::new(move || {
                    work(number);
                    end.send(()).unwrap();
                }))
                .unwrap();
            thread::spawn(move || ended.recv().unwrap())
        }))
        .collect();
    join(L::NAME, states, threads);
    assert_eq!(
        pair.count(),
        states.iter().map(ThreadState::done).sum::<u64>(),
        "{}",
        L::NAME
    );
    assert!(!pair.lock.is_locked() && !pair.lock.is_contended());
}

macro_rules! all_locks {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {
        fn wait_for_every_holder(nodes: Nodes) {
            $( wait_for_holder::<overlock::spin::$lock>(nodes); )*
        }

        fn exclude_with_every_lock(owners: &[Owner]) {
            $( exclude(until_of!($can, overlock::spin::$lock), owners); )*
        }
    };
}

overlock_family::spin_locks!(all_locks);

#[test]
fn locks_work_without_slots_and_slots_come_back() {
    stat::enable(COUNTS);
    let owners: Vec<_> = (0..OWNERS).map(|_| Owner::new().unwrap()).collect();
    let mut taken: BTreeSet<_> = owners.iter().map(|owner| owner.slot).collect();
    while let Some(slot) = use_up_one() {
        assert!(taken.insert(slot), "slot {slot} was given out twice");
    }
    assert_eq!(taken, (0..SLOTS).collect());
    assert_eq!(thread::spawn(slot).join().unwrap(), None);

    wait_for_every_holder(Nodes::None);
    exclude_with_every_lock(&owners[..RIVALS]);

    let slots: BTreeSet<_> = owners.iter().map(|owner| owner.slot).collect();
    for owner in owners {
        drop(owner.jobs);
        owner.thread.join().unwrap();
    }
    let owners: Vec<_> = (0..OWNERS).map(|_| Owner::new().unwrap()).collect();
    assert_eq!(slots, owners.iter().map(|owner| owner.slot).collect());
    assert!(Owner::new().is_none(), "forgotten ones stay away");
    for owner in owners {
        drop(owner.jobs);
        owner.thread.join().unwrap();
    }
    // Threads without a node are not left out; and those below count no wait without a node. This
    // thread keeps the slot that it has got meanwhile, whose nodes have no place in queues.
    let later = thread::spawn(|| wait_for_every_holder(Nodes::All));
    later.join().unwrap();
}

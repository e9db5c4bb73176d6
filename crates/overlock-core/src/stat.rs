//! Event counters and latency histograms, named as the kernel's QUEUED_LOCK_STAT names them.
//!
//! Without the cargo feature `stat` every call here compiles to nothing. With it, counting is off
//! until [`enable`]; then each thread counts in a shard of its own (the kernel's per-CPU
//! counters), and [`snapshot`] adds the shards up.
//!
//! A shard belongs to one queue slot and is written with plain loads and stores: a signal handler
//! that interrupts an update may cost that one update. Threads beyond the shards share the last
//! one and use atomic adds there.

use core::fmt;

macro_rules! names {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[doc = $doc])+ $variant,)+ }

        impl $name {
            /// All of them, in the order in which tables show them.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The name in tables.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// Its meaning, in one sentence.
            pub const fn describe(self) -> &'static str {
                match self { $($name::$variant => concat!($($doc),+)),+ }
            }
        }
    };
}

names! {
    /// Something that happened in a lock's slow path.
    #[non_exhaustive]
    pub enum Event {
        /// Acquisitions in unfair mode: on the slow path without a place in the queue, past the
        /// waiters in it, if any.
        PvLockStealing = "pv_lock_stealing",
        /// Acquisitions in queued mode: the waiter took a queue node, though the lock may have
        /// become free before it joined.
        LockSlowpath = "lock_slowpath",
        /// Acquisitions as the one waiter that sets the pending bit, without a queue node.
        LockPending = "lock_pending",
        /// Waits with the thread's second node: in a signal handler, or while the first is held by
        /// an acquisition of `mcs`.
        LockUseNode2 = "lock_use_node2",
        /// Waits with the thread's third node.
        LockUseNode3 = "lock_use_node3",
        /// Waits with the thread's fourth node.
        LockUseNode4 = "lock_use_node4",
        /// Waits without a node: a fifth context, more threads than slots, or no room among the
        /// sleepers.
        LockNoNode = "lock_no_node",
        /// Probes of the lock hash over all insertions.
        PvHashHops = "pv_hash_hops",
        /// Kicks by an unlock.
        PvKickUnlock = "pv_kick_unlock",
        /// Wake-ups that followed a kick whose time is known.
        PvKickWake = "pv_kick_wake",
        /// Wake-ups of a waiter that was not the head of the queue, nor had become it.
        PvSpuriousWakeup = "pv_spurious_wakeup",
        /// Sleeps of the head of the queue beyond its first.
        PvWaitAgain = "pv_wait_again",
        /// Waiters that slept early since their predecessor was not running.
        PvWaitEarly = "pv_wait_early",
        /// Sleeps at the head of the queue.
        PvWaitHead = "pv_wait_head",
        /// Sleeps within the queue.
        PvWaitNode = "pv_wait_node",
        /// Paravirtual ticket lock: waits beyond the spin threshold.
        TakenSlow = "taken_slow",
        /// Paravirtual ticket lock: slow waits that got the lock just before they would have slept.
        TakenSlowPickup = "taken_slow_pickup",
        /// Paravirtual ticket lock: sleeps that ended before the waiter's number was served.
        TakenSlowSpurious = "taken_slow_spurious",
        /// Paravirtual ticket lock: unlocks that found the slow-path flag.
        ReleasedSlow = "released_slow",
        /// Paravirtual ticket lock: unlocks that kicked a waiter.
        ReleasedSlowKicked = "released_slow_kicked",
        /// Reader-writer semaphore: sleeps of readers.
        RwsemSleepReader = "rwsem_sleep_reader",
        /// Reader-writer semaphore: sleeps of writers.
        RwsemSleepWriter = "rwsem_sleep_writer",
        /// Reader-writer semaphore: readers woken, which own the lock already.
        RwsemWakeReader = "rwsem_wake_reader",
        /// Reader-writer semaphore: writers woken, which try to acquire it.
        RwsemWakeWriter = "rwsem_wake_writer",
        /// Reader-writer semaphore: writers that took the lock past the list, at once or by
        /// optimistic spinning.
        RwsemOptLock = "rwsem_opt_lock",
        /// Reader-writer semaphore: writers whose optimistic spinning failed.
        RwsemOptFail = "rwsem_opt_fail",
        /// Reader-writer semaphore: writers that did not spin, since it could not succeed.
        RwsemOptNospin = "rwsem_opt_nospin",
        /// Reader-writer semaphore: readers granted the lock from the list.
        RwsemRlock = "rwsem_rlock",
        /// Reader-writer semaphore: readers that took the lock past the list, or by spinning.
        RwsemRlockSteal = "rwsem_rlock_steal",
        /// Reader-writer semaphore: readers that found the list empty, and the lock free for them,
        /// when they were about to queue.
        RwsemRlockFast = "rwsem_rlock_fast",
        /// Reader-writer semaphore: readers that gave up.
        RwsemRlockFail = "rwsem_rlock_fail",
        /// Reader-writer semaphore: handoffs requested on behalf of a reader.
        RwsemRlockHandoff = "rwsem_rlock_handoff",
        /// Reader-writer semaphore: writers that took the lock from the list.
        RwsemWlock = "rwsem_wlock",
        /// Reader-writer semaphore: writers that gave up.
        RwsemWlockFail = "rwsem_wlock_fail",
        /// Reader-writer semaphore: handoffs requested by a writer, or on its behalf.
        RwsemWlockHandoff = "rwsem_wlock_handoff",
        /// Mutex: acquisitions by optimistic spinning of newcomers.
        MutexOptLock = "mutex_opt_lock",
        /// Mutex: failed optimistic spins of newcomers.
        MutexOptFail = "mutex_opt_fail",
        /// Mutex: sleeps.
        MutexSleep = "mutex_sleep",
        /// Mutex: acquisitions by a sleeper that spun after it was woken.
        MutexWaiterOptLock = "mutex_waiter_opt_lock",
        /// Mutex: unlocks that handed it off to the first sleeper.
        MutexHandoff = "mutex_handoff",
    }
}

names! {
    /// A latency whose distribution is recorded, in nanoseconds.
    #[non_exhaustive]
    pub enum Latency {
        /// Duration of a kick in the kicker.
        PvLatencyKick = "pv_latency_kick",
        /// From the kick until the waiter runs again.
        PvLatencyWake = "pv_latency_wake",
        /// Duration of a halt.
        TimeBlocked = "time_blocked",
    }
}

/// Buckets of a [`Histogram`]: bucket `i` counts latencies of `2^(i-1)` up to `2^i` ns (bucket 0:
/// below 1 ns), the last one all from 2^46 ns (20 hours) up.
pub const BUCKETS: usize = 48;

/// A distribution of latencies over powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Latencies by [bucket](BUCKETS).
    pub buckets: [u64; BUCKETS],
    /// Their sum in nanoseconds; wraps after 584 years of waiting.
    pub total_ns: u64,
}

impl Histogram {
    #[cfg(not(feature = "stat"))]
    const EMPTY: Histogram = Histogram {
        buckets: [0; BUCKETS],
        total_ns: 0,
    };

    /// The number of latencies recorded.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The mean in nanoseconds; 0 if none was recorded.
    pub fn mean_ns(&self) -> u64 {
        self.total_ns.checked_div(self.count()).unwrap_or(0)
    }

    /// An upper bound in nanoseconds of the `quantile` (0.0 to 1.0) of the latencies, exact within
    /// a factor of two; 0 if none was recorded.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = (self.count() as f64 * quantile) as u64;
        let mut seen = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen > rank || (seen == rank && seen > 0 && quantile >= 1.0) {
                return 1 << bucket;
            }
        }
        0
    }
}

/// All counters and histograms at one moment, added up over the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    events: [u64; Event::ALL.len()],
    latencies: [Histogram; Latency::ALL.len()],
}

impl Snapshot {
    /// The number of times that `event` has happened.
    pub fn count(&self, event: Event) -> u64 {
        self.events[event as usize]
    }

    /// The distribution of `latency`.
    pub fn histogram(&self, latency: Latency) -> &Histogram {
        &self.latencies[latency as usize]
    }
}

/// A table of what is not 0: a line for each event, and for each latency its number, its mean and
/// the bound of 99 % of them. One line says that there is nothing.
impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut is_empty = true;
        for event in Event::ALL {
            let count = self.count(*event);
            if count > 0 {
                is_empty = false;
                writeln!(f, "{:22}{count:>12}", event.name())?;
            }
        }
        for latency in Latency::ALL {
            let histogram = self.histogram(*latency);
            let count = histogram.count();
            if count > 0 {
                is_empty = false;
                let (mean, most) = (histogram.mean_ns(), histogram.quantile_ns(0.99));
                let name = latency.name();
                writeln!(
                    f,
                    "{name:22}{count:>12}  mean {mean} ns, 99 % below {most} ns"
                )?;
            }
        }
        match is_empty {
            true => writeln!(f, "nothing was counted"),
            false => Ok(()),
        }
    }
}

#[cfg(all(feature = "stat", not(target_has_atomic = "64")))]
compile_error!("the feature `stat` of overlock-core needs atomics of 64 bits");

#[cfg(feature = "stat")]
mod sharded {
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use super::{BUCKETS, Event, Histogram, Latency, Snapshot};

    const SHARDS: usize = 1024;

    /// The counters of one slot. Relaxed throughout: they order nothing, and a snapshot of a
    /// running program is never exact.
    #[repr(align(128))]
    struct Shard {
        events: [AtomicU64; Event::ALL.len()],
        buckets: [[AtomicU64; BUCKETS]; Latency::ALL.len()],
        totals: [AtomicU64; Latency::ALL.len()],
    }

    static COUNTING: AtomicBool = AtomicBool::new(false);
    static TABLE: [Shard; SHARDS] = [const {
        Shard {
            events: [const { AtomicU64::new(0) }; Event::ALL.len()],
            buckets: [const { [const { AtomicU64::new(0) }; BUCKETS] }; Latency::ALL.len()],
            totals: [const { AtomicU64::new(0) }; Latency::ALL.len()],
        }
    }; SHARDS];

    fn add(slot: Option<usize>, value: u64, cell: impl Fn(&'static Shard) -> &'static AtomicU64) {
        match slot {
            Some(slot) if slot < SHARDS - 1 => {
                let cell = cell(&TABLE[slot]);
                cell.store(cell.load(Relaxed).wrapping_add(value), Relaxed);
            }
            _ => {
                cell(&TABLE[SHARDS - 1]).fetch_add(value, Relaxed);
            }
        }
    }

    pub(super) fn is_on() -> bool {
        COUNTING.load(Relaxed)
    }

    pub(super) fn enable(on: bool) {
        COUNTING.store(on, Relaxed);
    }

    pub(super) fn count(slot: Option<usize>, event: Event, times: u64) {
        add(slot, times, |shard| &shard.events[event as usize]);
    }

    pub(super) fn record(slot: Option<usize>, latency: Latency, nanos: u64) {
        let bucket = ((u64::BITS - nanos.leading_zeros()) as usize).min(BUCKETS - 1);
        add(slot, 1, |shard| &shard.buckets[latency as usize][bucket]);
        add(slot, nanos, |shard| &shard.totals[latency as usize]);
    }

    pub(super) fn snapshot() -> Snapshot {
        let sum = |cell: &dyn Fn(&Shard) -> u64| TABLE.iter().map(cell).fold(0, u64::wrapping_add);
        Snapshot {
            events: core::array::from_fn(|event| sum(&|shard| shard.events[event].load(Relaxed))),
            latencies: core::array::from_fn(|latency| Histogram {
                buckets: core::array::from_fn(|bucket| {
                    sum(&|shard| shard.buckets[latency][bucket].load(Relaxed))
                }),
                total_ns: sum(&|shard| shard.totals[latency].load(Relaxed)),
            }),
        }
    }

    pub(super) fn reset() {
        for shard in &TABLE {
            let buckets = shard.buckets.iter().flatten();
            for cell in shard.events.iter().chain(buckets).chain(&shard.totals) {
                cell.store(0, Relaxed);
            }
        }
    }
}

/// Starts or stops counting, for the whole program. Does nothing without the feature `stat`.
pub fn enable(on: bool) {
    #[cfg(feature = "stat")]
    sharded::enable(on);
    #[cfg(not(feature = "stat"))]
    let _ = on;
}

/// Whether events are being counted. Constant `false` without the feature `stat`, so that code
/// under it vanishes.
#[inline(always)]
pub fn is_on() -> bool {
    #[cfg(feature = "stat")]
    return sharded::is_on();
    #[cfg(not(feature = "stat"))]
    return false;
}

/// Returns the current counters; all zero without the feature `stat`.
pub fn snapshot() -> Snapshot {
    #[cfg(feature = "stat")]
    return sharded::snapshot();
    #[cfg(not(feature = "stat"))]
    return Snapshot {
        events: [0; Event::ALL.len()],
        latencies: [Histogram::EMPTY; Latency::ALL.len()],
    };
}

/// Sets all counters to 0. Events that happen meanwhile may be counted or lost.
pub fn reset() {
    #[cfg(feature = "stat")]
    sharded::reset();
}

/// Counts `event`.
#[inline(always)]
pub fn count<P: crate::Platform>(event: Event) {
    count_many::<P>(event, 1);
}

/// Counts `event` `times` times.
#[inline(always)]
pub fn count_many<P: crate::Platform>(event: Event, times: u64) {
    P::event(event, times);
    #[cfg(feature = "stat")]
    if sharded::is_on() {
        sharded::count(P::slot(), event, times);
    }
    #[cfg(not(feature = "stat"))]
    let _ = P::slot;
}

/// Records one latency of `nanos` nanoseconds.
#[inline(always)]
pub fn record<P: crate::Platform>(latency: Latency, nanos: u64) {
    #[cfg(feature = "stat")]
    if sharded::is_on() {
        sharded::record(P::slot(), latency, nanos);
    }
    #[cfg(not(feature = "stat"))]
    let _ = (P::slot, latency, nanos);
}

/// Runs `work`, and records how long it took if counting is on.
#[inline(always)]
pub fn timed<P: crate::Platform, R>(latency: Latency, work: impl FnOnce() -> R) -> R {
    if !is_on() {
        return work();
    }
    let start = P::now();
    let result = work();
    record::<P>(latency, P::now().nanos_since(start));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Buckets have different widths, so the mean needs the sum. The sum of a busy lock needs more
    /// than 32 bits.
    #[test]
    fn the_mean_is_the_sum_over_the_number() {
        let mut some = Histogram {
            buckets: [0; BUCKETS],
            total_ns: 0,
        };
        assert_eq!((some.count(), some.mean_ns()), (0, 0));
        // Twice 1000 ns and once 400 ns.
        (some.buckets[10], some.buckets[9]) = (2, 1);
        some.total_ns = 2400;
        assert_eq!((some.count(), some.mean_ns()), (3, 800));
        // 2^33 times 2^20 ns.
        some.buckets[21] = (1 << 33) - 3;
        some.total_ns = 1 << 53;
        assert_eq!((some.count(), some.mean_ns()), (1 << 33, 1 << 20));
    }

    #[test]
    fn a_snapshot_of_nothing_says_so() {
        let nothing = Snapshot {
            events: [0; Event::ALL.len()],
            latencies: [Histogram {
                buckets: [0; BUCKETS],
                total_ns: 0,
            }; Latency::ALL.len()],
        };
        assert_eq!(std::format!("{nothing}"), "nothing was counted\n");
    }

    // One test, since the counters belong to the whole process.
    #[test]
    #[cfg(feature = "stat")]
    fn counts_only_when_enabled_and_resets_to_zero() {
        use crate::toy::Toy;

        count::<Toy>(Event::TakenSlowSpurious);
        assert_eq!(snapshot().count(Event::TakenSlowSpurious), 0);
        enable(true);
        count_many::<Toy>(Event::TakenSlowSpurious, 3);
        crate::toy::as_thread(crate::toy::SLOTS, || {
            count::<Toy>(Event::TakenSlowSpurious); // no slot: the shared shard
        });
        for nanos in [0, 1, 1000, u64::MAX] {
            record::<Toy>(Latency::TimeBlocked, nanos);
        }
        let now = snapshot();
        assert!(now.count(Event::TakenSlowSpurious) >= 4);
        let table = std::format!("{now}");
        let line = |name| table.lines().find(|line: &&str| line.starts_with(name));
        assert!(line("taken_slow_spurious ").is_some(), "{table}");
        assert!(line("time_blocked ").unwrap().contains("mean"), "{table}");
        let blocked = now.histogram(Latency::TimeBlocked);
        assert!(blocked.count() >= 4);
        assert!(blocked.buckets[0] >= 1 && blocked.buckets[10] >= 1);
        assert!(blocked.buckets[BUCKETS - 1] >= 1);
        assert!(blocked.quantile_ns(1.0) == 1 << (BUCKETS - 1));
        enable(false);
        reset();
        assert_eq!(snapshot().count(Event::TakenSlowSpurious), 0);
    }
}

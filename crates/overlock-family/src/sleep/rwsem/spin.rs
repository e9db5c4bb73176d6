//! Optimistic spinning, before a waiter joins the list.

use core::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;

use super::policy::{OnReaders, Policy, reader_spin_ns};
use super::{DISABLED, HANDOFF, HELD, READER, READERS, RwSem, WAITERS, WOKEN, WRITER};
use overlock_core::platform::{Atomic, Instant, Platform, Spin};
use overlock_core::sleep::wait_list::Limit;
use overlock_core::stat::{self, Event};

/// A reader queues once it has seen a writer leave and lost the race against the next one so often.
const MAX_LOST_RACES: u32 = 16;

/// How much longer a spinner waits for readers.
pub(super) struct SpinBudget {
    /// Polls left until the next change, and in all.
    pub(super) polls: u32,
    pub(super) most: u32,
    /// The lock's word when `polls` was last set back.
    word: u32,
    /// With [`OnReaders::Time`]: the end of the spin, set when readers were first seen without a
    /// writer in between.
    until: Option<Instant>,
}

impl SpinBudget {
    /// Returns the budget of a new spinner. It has no polls where spinning on readers is
    /// `disabled`.
    pub(super) fn new(on_readers: OnReaders, disabled: bool) -> Self {
        let (threshold, most) = match on_readers {
            OnReaders::Count { threshold, most } => (threshold, most),
            OnReaders::Sleep | OnReaders::Time => (0, 0),
        };
        SpinBudget {
            polls: if disabled { 0 } else { threshold },
            most,
            word: 0,
            until: None,
        }
    }

    /// Returns how many times the spinner may poll while the word stays `word`.
    pub(super) fn polls_at(&mut self, word: u32, threshold: u32) -> u32 {
        if self.polls == 0 || self.most == 0 {
            return 0;
        }
        if word != self.word {
            (self.word, self.polls) = (word, threshold);
        }
        self.polls.min(self.most)
    }

    /// Uses up so many polls.
    pub(super) fn charge(&mut self, polls: u32) {
        self.polls = self.polls.saturating_sub(polls);
        self.most = self.most.saturating_sub(polls);
    }
}

impl<P: Platform, Y: Policy> RwSem<P, Y> {
    /// Acquires for writing by spinning.
    pub(super) fn spin_write(&self, limit: &Limit<'_, P>) -> bool {
        if self.take_write() {
            stat::count::<P>(Event::RwsemOptLock);
            return true;
        }
        if !self.can_spin() {
            stat::count::<P>(Event::RwsemOptNospin);
            return false;
        }
        let taken = self.spin_in_queue(limit, Y::ON_READERS, || self.take_write());
        stat::count::<P>(if taken {
            Event::RwsemOptLock
        } else {
            Event::RwsemOptFail
        });
        taken
    }

    /// Acquires for reading by spinning.
    pub(super) fn spin_read(&self, limit: &Limit<'_, P>) -> bool {
        if Y::READERS_STEAL {
            return self.spin_behind_writer(limit);
        }
        let take = || match self.take_read() {
            Ok(seen) => {
                self.on_stolen(seen);
                true
            }
            Err(_) => false,
        };
        // The document's rule: with no spinner, and the wait lock free, a reader queues at once.
        self.can_spin()
            && (self.osq.is_locked() || self.waiters.is_busy())
            // It waits for writers only: readers keep it out only where others wait (I5).
            && self.spin_in_queue(limit, OnReaders::Sleep, take)
    }

    /// Follows up on a share that a newcomer took, from `seen`, without a place in the list.
    pub(super) fn on_stolen(&self, seen: u32) {
        stat::count::<P>(Event::RwsemRlockSteal);
        // The first reader wakes the queued readers, to read with it.
        if seen & (WAITERS | WOKEN) == WAITERS && seen & READERS == 0 {
            self.wake_waiters();
        }
    }

    /// Whether spinning may be worth while.
    fn can_spin(&self) -> bool {
        let seen = self.count.load(Relaxed);
        if P::parallelism() < 2 || seen & HANDOFF != 0 {
            false
        } else if seen & WRITER != 0 {
            !self.owner_lost_its_cpu()
        } else {
            seen & READERS == 0 || Y::ON_READERS != OnReaders::Sleep && !self.is_disabled()
        }
    }

    fn is_disabled(&self) -> bool {
        self.owner.load(Relaxed) & DISABLED != 0
    }

    /// Disables spinning on readers, which do not leave in time.
    pub(super) fn disable(&self) {
        // Fails where a writer is inside. Between its acquisition and its store, the store wins.
        let _ = self.owner.compare_exchange(0, DISABLED, Relaxed, Relaxed);
    }

    /// Enables spinning on readers again: the last one has left.
    pub(super) fn reenable_spinning(&self) {
        if Y::ON_READERS == OnReaders::Time && self.is_disabled() {
            let _ = self.owner.compare_exchange(DISABLED, 0, Relaxed, Relaxed);
        }
    }

    /// Joins the spin queue, and spins as its head.
    fn spin_in_queue(
        &self,
        limit: &Limit<'_, P>,
        on_readers: OnReaders,
        take: impl Fn() -> bool,
    ) -> bool {
        let end = Self::spin_end(limit);
        self.osq
            .lock(Spin::Until(end), || false)
            .is_some_and(|_head| self.spin(end, limit, on_readers, take))
    }

    /// Returns when a spinner that begins now gives up on writers.
    fn spin_end(limit: &Limit<'_, P>) -> Instant {
        limit.earlier(P::now().plus_nanos(Y::SPIN_NS))
    }

    fn spin(
        &self,
        mut end: Instant,
        limit: &Limit<'_, P>,
        on_readers: OnReaders,
        take: impl Fn() -> bool,
    ) -> bool {
        let mut budget = SpinBudget::new(on_readers, self.is_disabled());
        while !take() {
            let now = P::now();
            let seen = self.count.load(Relaxed);
            let goes_on = if now >= end || seen & HANDOFF != 0 {
                false
            } else if seen & WRITER != 0 {
                budget.until = None;
                self.wait_for_writer(end)
            } else if seen & READERS != 0 {
                let goes_on = self.wait_for_readers(seen, &mut budget, limit, on_readers);
                // The time spent on readers has limits of its own.
                end = end.plus_nanos(P::now().nanos_since(now));
                goes_on && !limit.is_reached()
            } else {
                true
            };
            if !goes_on {
                return false;
            }
        }
        true
    }

    /// Waits while a writer that may be running holds the lock. Returns whether it has left.
    fn wait_for_writer(&self, end: Instant) -> bool {
        // Relaxed: only to try again.
        P::wait_until(&self.count, Relaxed, Spin::Until(end), |seen: u32| {
            seen & WRITER == 0 || seen & HANDOFF != 0 || self.owner_lost_its_cpu()
        })
        .is_ok_and(|seen| seen & WRITER == 0)
    }

    /// Waits while readers hold the lock, as long as the policy says. Returns whether to go on.
    fn wait_for_readers(
        &self,
        seen: u32,
        budget: &mut SpinBudget,
        limit: &Limit<'_, P>,
        on_readers: OnReaders,
    ) -> bool {
        match on_readers {
            OnReaders::Sleep => false,
            OnReaders::Count { threshold, .. } => {
                let most = budget.polls_at(seen, threshold);
                if most == 0 {
                    self.disable();
                    return false;
                }
                // The document charges each poll, so the condition counts them. This is the only
                // condition that changes anything, and nothing but the budget depends on it.
                let polls = Cell::new(0);
                let waited = P::wait_until(&self.count, Relaxed, Spin::Polls(most), |now: u32| {
                    polls.set(polls.get() + 1);
                    now != seen
                });
                budget.charge(if waited.is_ok() { polls.get() } else { most });
                true
            }
            OnReaders::Time => {
                let until = *budget
                    .until
                    .get_or_insert_with(|| P::now().plus_nanos(reader_spin_ns(seen / READER)));
                let end = limit.earlier(until);
                let waited = P::wait_until(&self.count, Relaxed, Spin::Until(end), |now: u32| {
                    now & READERS == 0 || now & (WRITER | HANDOFF) != 0
                });
                if waited.is_err() && end == until {
                    self.disable();
                }
                waited.is_ok()
            }
        }
    }

    /// Spins on a writer together with all other readers, and takes a share when it has left.
    fn spin_behind_writer(&self, limit: &Limit<'_, P>) -> bool {
        let mut seen = self.count.load(Relaxed);
        let hopeless = seen & HANDOFF != 0 || self.owner_lost_its_cpu();
        if seen & WRITER == 0 || hopeless || P::parallelism() < 2 {
            return false;
        }
        let end = Self::spin_end(limit);
        for _ in 0..MAX_LOST_RACES {
            if seen & WRITER == 0 || !self.wait_for_writer(end) {
                break;
            }
            // It has seen a writer leave, so it may barge past the list (I5).
            match self.take_read_if(|now| now & HANDOFF == 0) {
                Ok(taken) => {
                    self.on_stolen(taken);
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Spins until the lock is free. Only for the first of the list after its handoff request,
    /// which nobody can bypass.
    pub(super) fn spin_alone(&self, limit: &Limit<'_, P>) -> bool {
        let end = Self::spin_end(limit);
        // Relaxed: only to try again.
        P::parallelism() >= 2
            && P::wait_until(&self.count, Relaxed, Spin::Until(end), |seen: u32| {
                seen & HELD == 0 || self.owner_lost_its_cpu()
            })
            .is_ok_and(|seen| seen & HELD == 0)
    }
}

//! The slow path before the sleep: spinning for as long as it has been found to pay.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use super::learn::SAMPLE;
use super::sleep::Sleeper;
use super::states::Step;
use super::{FREE, HANDED, HELD, Learned, Overlock, Policy};
use crate::links::nap;
use crate::node::{Claim, NodeId};
use crate::platform::{Atomic, Cpu, Platform, Spin};
use crate::sleep::wait_list::Limit;
use crate::stat::{self, Event};

/// Looks before a waiter reads the clock: 0.1 to 0.8 us, depending on the processor.
const FIRST_TURNS: u32 = 24;
/// Spin limit without learning.
pub(super) const FIXED_SPIN_NS: u64 = 2_000;
/// And for the hand-over.
const FIXED_PATIENCE_NS: u64 = 20_000;
/// Lost races for a free lock after which a waiter stops spinning.
const LOSSES: u32 = 64;

impl<P: Platform, Y: Policy> Overlock<P, Y> {
    #[cold]
    pub(super) fn lock_slow(&self, limit: &Limit<'_, P>, elsewhere: impl Fn() -> u32) -> bool {
        let learned = if Y::LEARN { self.learned() } else { None };
        let done = || self.done.load(Relaxed).wrapping_add(elsewhere());
        if let Some(learned) = learned.filter(|learned| learned.rates.in_turn()) {
            learned.end_turn(P::now(), done());
        }
        // A thread with a deadline might miss it, asleep until its turn, beside a lock that it could have had.
        let turns = learned.filter(|_| limit.is_for_ever());
        let mut surplus = turns.filter(|learned| self.is_surplus(learned));
        if surplus.is_none() {
            if self.spin_first(learned, limit, done) {
                stat::count::<P>(Event::PvLockStealing);
                return true;
            }
            if limit.reached().is_some() {
                Step::GiveUpSpinning.taken::<P>();
                return false;
            }
            // Where others take turns, a thread that has had some waits for its next.
            surplus = turns.filter(|learned| {
                learned.has_had_turns() && self.has_turns() && learned.rates.prefer_turns(P::now())
            });
        }
        stat::count::<P>(Event::LockSlowpath);
        let patience = learned.map_or(FIXED_PATIENCE_NS, Learned::spin_ns);
        let entered = P::now();
        let mut sleeper = Sleeper::new(entered, self.done.load(Relaxed), patience);
        if let Some(learned) = surplus {
            sleeper.wakes(self.wait_for_turn(learned), false);
        }
        let acquired = match Claim::<P>::new() {
            Some(claim) => self.sleep(claim.id(), &mut sleeper, surplus.is_some(), limit),
            None => self.wait_without_node(limit),
        };
        if let Some(learned) = learned {
            let now = P::now();
            if surplus.is_some() {
                learned.begin_turn(now, done());
            } else {
                learned.slept(entered, now, done());
            }
            if sleeper.very_late {
                learned.came_late();
            }
        }
        acquired
    }

    /// What a waiter tries before it sleeps. Most waits are shorter than a few looks, and a clock read is
    /// as long as one: so those are timed only where the wait is a sample.
    fn spin_first(
        &self,
        learned: Option<&'static Learned<P>>,
        limit: &Limit<'_, P>,
        done: impl Fn() -> u32,
    ) -> bool {
        let sample = learned.is_some_and(Learned::counts_a_sample);
        let entered = sample.then(P::now);
        let mut acquired = self.spin(Spin::Turns(FIRST_TURNS), None);
        if !acquired {
            let worth = learned.map_or(FIXED_SPIN_NS, Learned::spin_ns);
            let end = limit.earlier(P::now().plus_nanos(worth));
            acquired = self.spin(Spin::Until(end), None);
        }
        if let Some(learned) = learned
            && let Some(entered) = entered
            && acquired
        {
            learned.sample(entered, P::now(), SAMPLE, done());
        }
        acquired
    }

    /// Spins and naps in turn: for threads beyond the slots, and for a fifth context.
    #[cold]
    fn wait_without_node(&self, limit: &Limit<'_, P>) -> bool {
        Step::NoNode.taken::<P>();
        stat::count::<P>(Event::LockNoNode);
        loop {
            let end = limit.earlier(P::now().plus_nanos(FIXED_SPIN_NS));
            if self.spin(Spin::Until(end), None) {
                return true;
            }
            if limit.reached().is_some() {
                Step::GiveUpSpinning.taken::<P>();
                return false;
            }
            nap::<P>();
        }
    }

    /// Tries, awake, for as long as `limit` says; who has `asked` for the hand-over takes that too.
    pub(super) fn spin(&self, limit: Spin, asked: Option<NodeId>) -> bool {
        for _ in 0..LOSSES {
            let seen = P::wait_until(&self.locked, Relaxed, limit, |locked: u8| {
                locked == FREE
                    || asked.is_some() && locked == HANDED
                    || Self::owner_lost_its_cpu(locked)
            });
            match seen {
                Ok(FREE) if self.take() => return true,
                Ok(FREE) => {}
                // Or it is a claim's that has taken this one's place.
                Ok(HANDED) => return asked.is_some_and(|id| self.take_handed(id)),
                Ok(_) => {
                    Step::OwnerGone.taken::<P>();
                    return false;
                }
                Err(_) => return false,
            }
        }
        false
    }

    /// Takes the lock if it was handed over to the caller.
    pub(super) fn take_handed(&self, id: NodeId) -> bool {
        // Acquire, pairs with the release that handed it over: `chosen` is that of then, and stays so (I4).
        let ours = self.locked.load(Acquire) == HANDED && self.chosen.load(Relaxed) == id.bits();
        // handed -> held (I4). LA: acquire, pairs with UL.
        let taken = ours
            && self
                .locked
                .compare_exchange(HANDED, Self::owner(), Y::ACQUIRE, Relaxed)
                .is_ok();
        if taken {
            Step::TakeHanded.taken::<P>();
            self.count();
        }
        taken
    }

    /// Whether the owner recorded in `locked` is known not to run.
    pub(super) fn owner_lost_its_cpu(locked: u8) -> bool {
        Y::OWNER_CPU && (1..HELD).contains(&locked) && P::preempted(Cpu(u32::from(locked) - 1))
    }
}

//! Turns: where a lock is saturated, surplus threads use it one after the other.
//!
//! A surplus thread books the next turn and sleeps until it begins, by its own timer: nobody kicks it, it is in no
//! list, and while it sleeps the lock's fast paths are all that runs. When its turn begins, it says so in
//! `turn`, and the thread that had the turn before goes to sleep as soon as it finds the lock taken.
//!
//! Where CPUs are short, threads make room in the same way, after a spell of a few milliseconds: several at a time, two for
//! each CPU, so that none is idle. They go between two sections, where the operating system would
//! take their CPU away in one.

use core::sync::atomic::Ordering::Relaxed;

use super::learn::{Learned, SPELL_NS};
use super::states::Step;
use super::{Overlock, Policy, TURN_NS};
use crate::platform::{Atomic, Instant, Platform};
use crate::stat::{self, Latency};

/// Nanoseconds in a unit of `booked`, as a shift.
const UNIT: u32 = 14;

/// A turn in these units.
const TURN: u16 = (TURN_NS >> UNIT) as u16;

/// A spell in these units.
const SPELL: u16 = (SPELL_NS >> UNIT) as u16;

/// How far ahead turns are booked. Where more threads want one, some turns begin at the same time,
/// and are shorter: no thread sleeps longer than this and a turn. Also tells a booking from one that the lock
/// has kept from long ago; one in sixty of these is taken for new, which costs a sleep.
const AHEAD: u16 = 32 * TURN;

/// After the last booked turn has ended, the lock counts as saturated for this many turns more.
const LINGER: u16 = 4 * TURN;

/// Where readers meet less often than eight times in this, they are hardly in each other's way.
const SPARSE_NS: u64 = 16_000;

fn units(now: Instant) -> u16 {
    (now.as_nanos() >> UNIT) as u16
}

impl<P: Platform, Y: Policy> Overlock<P, Y> {
    /// What stands for the calling thread in `turn`; 0 for those without a slot. Two threads with the same
    /// may have their turns together.
    fn me() -> u8 {
        P::slot().map_or(0, |slot| (slot % 255) as u8 + 1)
    }

    /// Whether the caller leaves the lock to the others until its next turn.
    pub(super) fn is_surplus(&self, learned: &Learned<P>) -> bool {
        self.has_lost_its_turn(learned) || learned.is_saturated() || learned.spell_is_over()
    }

    /// Whether the caller takes turns, and the turn of another thread has begun.
    pub(super) fn has_lost_its_turn(&self, learned: &Learned<P>) -> bool {
        learned.knows_turns() && self.turn.load(Relaxed) != Self::me()
    }

    /// A reader of the lock that stands behind this one has met others. Whether it should [step aside](Self::step_aside).
    /// `done` counts what has been done with the lock.
    pub(crate) fn is_crowded(&self, done: u32) -> bool {
        let Some(learned) = self.learned() else {
            return false;
        };
        let rates = &learned.rates;
        let lost = self.has_lost_its_turn(learned);
        if !learned.counts_a_sample() && !lost && !rates.in_turn() {
            return false;
        }
        let now = P::now();
        if rates.in_turn() {
            learned.end_turn(now, done);
            return self.has_lost_its_turn(learned);
        }
        lost || rates.together(now, done) < SPARSE_NS && rates.prefer_turns(now)
    }

    /// Leaves the lock to others until the caller's next turn; `done` as in [`is_crowded`](Self::is_crowded).
    pub(crate) fn step_aside(&self, done: impl Fn() -> u32) {
        if let Some(learned) = self.learned() {
            self.wait_for_turn(learned);
            learned.begin_turn(P::now(), done());
        }
    }

    /// What the calling thread knows of this lock.
    pub(super) fn learned(&self) -> Option<&'static Learned<P>> {
        Learned::about(core::ptr::from_ref(self).addr())
    }

    /// Whether threads have booked turns lately.
    pub(super) fn has_turns(&self) -> bool {
        let since = self.booked.load(Relaxed).wrapping_sub(units(P::now()));
        since.wrapping_add(LINGER) <= AHEAD + TURN + LINGER
    }

    /// Books the next turn and says when it begins.
    pub(super) fn book(&self, now: Instant, gap: u16) -> Instant {
        let now_units = units(now);
        let mut booked = self.booked.load(Relaxed);
        loop {
            let ahead = booked.wrapping_sub(now_units);
            let wait = gap + if ahead < AHEAD { ahead } else { 0 };
            // Relaxed: a time, and nothing that it stands for.
            match self.booked.compare_exchange(
                booked,
                now_units.wrapping_add(wait),
                Relaxed,
                Relaxed,
            ) {
                Ok(_) => return now.plus_nanos(u64::from(wait) << UNIT),
                Err(other) => booked = other,
            }
        }
    }

    /// Sleeps until the caller's turn, and says when that began.
    pub(super) fn wait_for_turn(&self, learned: &Learned<P>) -> Instant {
        let now = P::now();
        let makes_room = learned.spell_is_over();
        let (gap, aside) = if makes_room {
            let others = self.booked.load(Relaxed).wrapping_sub(units(now)) < AHEAD;
            learned.makes_room(others);
            let gap = (u32::from(SPELL) / (2 * P::parallelism())).max(1) as u16;
            (gap, Step::MakeRoom)
        } else {
            learned.leaves();
            (TURN, Step::BookTurn)
        };
        let begin = self.book(now, gap);
        aside.taken::<P>();
        let nobody = P::U32::new(0);
        stat::timed::<P, ()>(Latency::TimeBlocked, || {
            while P::now() < begin {
                P::halt(&nobody, 0, Some(begin));
            }
        });
        if !makes_room {
            self.turn.store(Self::me(), Relaxed);
            Step::TurnBegins.taken::<P>();
        }
        begin
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;

    use super::*;
    use crate::spin::overlock::Gate;
    use crate::toy::{Toy, halts};

    /// `end_turn` in `is_crowded`: what was done in the turn is known after it.
    #[test]
    fn a_reader_learns_from_its_turn() {
        let gate: &Overlock<Toy, Gate> = Box::leak(Box::default());
        let rates = &gate.learned().unwrap().rates;
        gate.step_aside(|| 0);
        assert_eq!(halts(), 1);
        assert!(rates.in_turn());
        Toy::pause(200_000);
        assert!(!gate.is_crowded(1), "its own turn");
        assert!(!rates.in_turn());
        gate.turn.store(200, Relaxed);
        assert!(gate.is_crowded(1), "another's");
    }
}

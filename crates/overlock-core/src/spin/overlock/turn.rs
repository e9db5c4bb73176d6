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
use super::{Overlock, Policy, TURN_NS};
use crate::platform::{Atomic, Instant, Platform};
use crate::stat::{self, Latency};

/// Nanoseconds in a unit of `booked`, as a shift.
const UNIT: u32 = 10;

/// A turn in these units.
const TURN: u32 = (TURN_NS >> UNIT) as u32;

/// A spell in these units.
const SPELL: u32 = (SPELL_NS >> UNIT) as u32;

/// How far ahead turns are booked. Where more threads want one, some turns begin at the same time,
/// and are shorter: no thread sleeps longer than this and a turn. Also tells a booking from one that a
/// lock forgotten for hours still holds.
const AHEAD: u32 = 32 * TURN;

/// After the last booked turn has ended, the lock counts as saturated for this many turns more.
const LINGER: u32 = 4 * TURN;

fn units(now: Instant) -> u32 {
    (now.as_nanos() >> UNIT) as u32
}

impl<P: Platform, Y: Policy> Overlock<P, Y> {
    /// What stands for the calling thread in `turn`; 0 for those without a slot.
    fn me() -> u16 {
        P::slot().map_or(0, |slot| slot as u16 + 1)
    }

    /// Whether the caller leaves the lock to the others until its next turn.
    pub(super) fn is_surplus(&self, learned: &Learned<P>) -> bool {
        learned.is_saturated()
            || learned.knows_turns() && self.turn.load(Relaxed) != Self::me()
            || learned.spell_is_over()
    }

    /// Whether threads have booked turns lately.
    pub(super) fn has_turns(&self) -> bool {
        let since = self.booked.load(Relaxed).wrapping_sub(units(P::now()));
        since.wrapping_add(LINGER) <= AHEAD + TURN + LINGER
    }

    /// Books the next turn and says when it begins.
    pub(super) fn book(&self, now: Instant, gap: u32) -> Instant {
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
        let gap = if makes_room {
            let others = self.booked.load(Relaxed).wrapping_sub(units(now)) < AHEAD;
            learned.makes_room(others);
            (SPELL / (2 * P::parallelism())).max(1)
        } else {
            learned.leaves();
            TURN
        };
        let begin = self.book(now, gap);
        let nobody = P::U32::new(0);
        stat::timed::<P, ()>(Latency::TimeBlocked, || {
            while P::now() < begin {
                P::halt(&nobody, 0, Some(begin));
            }
        });
        if !makes_room {
            self.turn.store(Self::me(), Relaxed);
        }
        begin
    }
}

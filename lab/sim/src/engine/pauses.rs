//! Pauses: loops of them, which the processor may notice, and iterations that look at the clock.

use super::calls::call;
use super::state::Engine;
use super::{current, fibre, now, with};
use crate::account::State;
use crate::time::Time;

/// Spins for this many iterations.
pub(crate) fn pause(iterations: u32) {
    if current().is_some() {
        delay(with(|engine| {
            engine.machine.costs.turn.times(u64::from(iterations))
        }));
    }
}

/// Spins for this long.
pub(crate) fn delay(mut left: Time) {
    let Some(me) = current() else { return };
    while left > Time::ZERO {
        left = left - pauses(me, left);
        if left > Time::ZERO {
            pause_exit(me);
        }
    }
}

/// Pauses for this long, or until the processor notices. Returns for how long.
fn pauses(me: usize, longest: Time) -> Time {
    let part = with(|engine| {
        let noticed = engine.vcpus[me].pauses(engine.now);
        longest.min(noticed.saturating_sub(engine.now))
    });
    call(me, |engine| engine.pass(me, part, State::Spin));
    with(|engine| engine.vcpus[me].paused(engine.now));
    part
}

/// Spins until this many nanoseconds have passed, and ends with the iteration. Time without a CPU,
/// or out of the guest, counts too.
pub(crate) fn spin_for(nanos: u64) {
    let Some(me) = current() else { return };
    let turn = turn();
    let end = Time::ns(now().as_ns() + nanos);
    while now() < end {
        let turns = (end - now()).as_ps().div_ceil(turn.as_ps().max(1));
        let left = turn.times(turns);
        with(|engine| engine.begins_turns(me, turn));
        let part = pauses(me, left);
        let whole = with(|engine| engine.ends_turns(me));
        if whole && part < left {
            pause_exit(me);
            // The rest of the iteration.
            delay(turn - Time::ps(part.as_ps() % turn.as_ps()));
        }
    }
}

fn pause_exit(me: usize) {
    call(me, |engine| engine.exits(me));
    if with(|engine| engine.yields(me)) {
        fibre::suspend(me);
    }
    call(me, |engine| {
        engine.enters_guest(me);
        false
    });
}

/// Returns the length of an iteration of a spin loop.
fn turn() -> Time {
    with(|engine| engine.machine.costs.turn)
}

impl Engine {
    /// `vcpu` begins iterations of this length, and looks at the clock after each.
    pub fn begins_turns(&mut self, vcpu: usize, turn: Time) {
        self.vcpus[vcpu].turns = Some((self.now, turn));
    }

    /// Ends them. Returns whether no preemption has ended them before.
    pub fn ends_turns(&mut self, vcpu: usize) -> bool {
        self.vcpus[vcpu].turns.take().is_some()
    }

    /// `vcpu` is preempted while it is busy for another `left`. Returns how long it will be so once
    /// it has a CPU: iterations that have not begun are void, since it looks at the clock first.
    pub fn rest_of_turn(&mut self, vcpu: usize, left: Time) -> Time {
        let turns = &mut self.vcpus[vcpu].turns;
        let Some((since, turn)) = *turns else {
            return left;
        };
        let spun = (self.now - since).as_ps();
        let rest = spun.next_multiple_of(turn.as_ps()) - spun;
        if Time::ps(rest) < left {
            *turns = None;
        }
        left.min(Time::ps(rest))
    }

    /// Whether the processor has noticed that `vcpu` spins. Returns true once.
    pub fn sees_pause_exit(&mut self, vcpu: usize) -> bool {
        std::mem::take(&mut self.vcpus[vcpu].spun_long)
    }

    /// Ends the loop of pauses of `vcpu`, which has left the guest.
    pub fn forgets_pauses(&mut self, vcpu: usize) {
        self.vcpus[vcpu].spins = None;
    }
}

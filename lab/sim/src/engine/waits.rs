//! Waits that look at no word: pauses, time slices of spinning threads, and the rule whether a
//! thread spins before it sleeps. The rules are those of threads on Linux, and cost nothing.

use overlock_core::platform::slices::{SLICE, next_length};
use overlock_core::platform::spins::{self, Budget, LONGEST_NS, OF_LOCKS, SHORT_NS, SLOWLY};

use super::calls::{call, rest, spend};
use super::state::Engine;
use super::{ask, current, now, with};
use crate::account::State;
use crate::time::Time;

/// Spins for this many iterations.
pub(crate) fn pause(iterations: u32) {
    delay(ask(Time::ZERO, |engine, _| {
        engine.machine.costs.turn.times(iterations.into())
    }));
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
    spend(me, State::Spin, |_| part);
    with(|engine| engine.vcpus[me].paused(engine.now));
    part
}

/// Spins until this many nanoseconds have passed, and ends with the iteration. Time without a CPU,
/// or out of the guest, counts too.
pub(crate) fn spin_for(nanos: u64) {
    let Some(me) = current() else { return };
    let turn = with(|engine| engine.machine.costs.turn);
    let end = Time::ns(now().as_ns() + nanos);
    while now() < end {
        let turns = (end - now()).as_ps().div_ceil(turn.as_ps().max(1));
        let left = turn.times(turns);
        with(|engine| engine.vcpus[me].turns = Some((engine.now, turn)));
        let part = pauses(me, left);
        // A preemption may have ended them.
        let is_whole = with(|engine| engine.vcpus[me].turns.take()).is_some();
        if is_whole && part < left {
            pause_exit(me);
            // The rest of the iteration.
            delay(turn - Time::ps(part.as_ps() % turn.as_ps()));
        }
    }
}

fn pause_exit(me: usize) {
    call(me, |engine| engine.exits(me));
    call(me, |engine| engine.yields(me));
}

/// The time slice on a CPU, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slice {
    began: u64,
    /// `None` while it is the first.
    length: Option<u64>,
    /// The thread that was last seen spinning here, and how often that has changed.
    thread: Option<usize>,
    changes: u64,
}

/// Begins a slice: the caller has just got its CPU.
pub(crate) fn begin_slice() {
    ask((), |engine, me| {
        engine.slice_of(me).began = engine.now.as_ns()
    });
}

/// Yields the CPU of the caller, if its slice is over. Returns whether it has. That costs a system
/// call.
pub(crate) fn yield_slice(now: u64) -> bool {
    let Some(changes) = ask(None, |engine, me| engine.gives_slice(me, now)) else {
        return false;
    };
    rest();
    ask((), |engine, me| {
        let back = engine.now.as_ns();
        let slice = engine.slice_of(me);
        // It may have come to another CPU, with more or fewer changes.
        let others = slice.changes.wrapping_sub(changes);
        let length = slice.length.unwrap_or(SLICE);
        slice.length = Some(next_length(length, back - now, others));
        slice.began = back;
    });
    true
}

/// The spin of a vCPU, whose guest measures no wake-ups: about as long as one takes.
const OF_GUESTS_NS: u64 = 5_000;

/// For how long the caller spins before it sleeps for this lock, in nanoseconds.
pub(crate) fn spin_before_sleep(lock: usize) -> u64 {
    ask(0, |engine, _| {
        if !engine.host.spins {
            return OF_GUESTS_NS;
        }
        let most = spins::worth(engine.host.wake_idle.as_ns()).min(LONGEST_NS);
        let limit = engine.scores.entry(lock).or_default().of_lock(most);
        if engine.machine.cpus() > 1 { limit } else { 0 }
    })
}

/// Such a spin has taken so long, and ended with the lock or in vain.
pub(crate) fn learn_spin(lock: usize, nanos: u64, acquired: bool) {
    if nanos > SHORT_NS {
        ask((), |engine, _| {
            let score = engine.scores.entry(lock).or_default();
            score.learn(acquired, OF_LOCKS);
        });
    }
}

/// The caller is about to sleep on the object at this address. If it is to spin before, `spins`
/// does so, until a time in nanoseconds, and returns whether the event has come.
pub(crate) fn spin_first(
    object: usize,
    is_new: bool,
    spins: impl FnOnce(u64) -> bool,
) -> Option<bool> {
    let me = current()?;
    let (mut budget, since, until) = with(|engine| engine.spins_first(me, object, is_new))?;
    let ready = spins(until);
    with(|engine| {
        let end = engine.now.as_ns();
        let score = &engine.scores[&object];
        score.unclaim();
        score.learn(ready, SLOWLY);
        if !ready {
            budget.spend(end - since);
        }
        engine.vcpus[me].budget = Some(budget.after_spin(end));
    });
    Some(ready)
}

impl Engine {
    /// That of the CPU of `vcpu`.
    fn slice_of(&mut self, vcpu: usize) -> &mut Slice {
        &mut self.slices[self.schedule.cpu(vcpu)]
    }

    /// `vcpu` spins. If its slice is over, begins that of the next thread, and returns how often
    /// the thread on the CPU has changed so far.
    fn gives_slice(&mut self, vcpu: usize, now: u64) -> Option<u64> {
        if self.host.hypervisor {
            return None;
        }
        let slice = self.slice_of(vcpu);
        slice.changes += u64::from(slice.thread.replace(vcpu) != Some(vcpu));
        (now.saturating_sub(slice.began) >= slice.length.unwrap_or(SLICE)).then(|| {
            slice.began = now;
            slice.changes
        })
    }

    /// Returns the budget of `vcpu`, the present time, and until when it spins. Here the machine's
    /// room is known exactly, and a wake-up costs what the host says.
    fn spins_first(
        &mut self,
        vcpu: usize,
        object: usize,
        is_new: bool,
    ) -> Option<(Budget, u64, u64)> {
        if !self.host.spins {
            return None;
        }
        let since = self.now.as_ns();
        let score = &*self.scores.entry(object).or_default();
        if !(is_new || score.promises()) {
            return None;
        }
        let has_others = || self.machine.cpus() > 1;
        let longest = spins::longest(self.schedule.has_room(), is_new, has_others)?;
        let limit = spins::worth(self.host.wake_idle.as_ns()).min(longest);
        let budget = self.vcpus[vcpu].budget.unwrap_or(Budget::NEW);
        let budget = budget.at(since, || false);
        let until = since + limit;
        (budget.pays(limit) && score.claim(since, until)).then_some((budget, since, until))
    }

    /// `vcpu` is preempted while it is busy for another `left`. Returns how long it will be so once
    /// it has a CPU: iterations that have not begun are void, since it looks at the clock first.
    pub fn rest_of_turn(&mut self, vcpu: usize, left: Time) -> Time {
        let turns = &mut self.vcpus[vcpu].turns;
        let Some((since, turn)) = *turns else {
            return left;
        };
        let spun = (self.now - since).as_ps();
        let rest = Time::ps(spun.next_multiple_of(turn.as_ps()) - spun);
        if rest < left {
            *turns = None;
        }
        left.min(rest)
    }
}

//! Waits of spinners, which the engine carries out by itself.
//!
//! A spinner polls its word whenever its line has been taken away, mostly in vain: of a hundred
//! spinners one can proceed. To resume its fibre for each poll is what a simulation would spend
//! most of its time on. So the fibre is suspended until its condition holds. Meanwhile the engine
//! watches the line, loads the word, judges its value, and takes pause-loop exits, at the same
//! simulated times as the fibre would. Most of it takes no events (`engine/ahead.rs`).
//!
//! A condition is judged once a load. Mostly it looks at nothing but the value. One that accesses
//! other words takes simulated time, and its own fibre has to judge.

use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::state::Engine;
use super::vcpu::{Doing, Vcpu};
use super::{CURRENT, current, fibre, with};
use crate::account::State;
use crate::cache::{Access, Answer};
use crate::time::Time;

/// Why a spinner's fibre goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spun {
    /// Its time is over.
    Over,
    /// The condition holds.
    Holds,
    /// The word has been loaded, and the fibre has to judge its value.
    Judge,
    /// The fibre has to load the word, by itself or from its store buffer.
    Load,
}

/// A wait for the value of a word.
pub(crate) trait Poll {
    /// Loads the word and judges its value. `None`: the fibre has to judge it.
    fn poll(&self) -> Option<bool>;
}

/// The wait of a vCPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spin {
    address: usize,
    pub line: usize,
    /// Whether the word is on the stack of the vCPU, which has no line for it.
    pub is_own: bool,
    until: Option<Time>,
    /// How long a poll takes.
    pub iteration: Time,
    /// How many polls are left to it. They are iterations of its loop, so time without a CPU and
    /// time out of the guest are not in them.
    polls: Option<u64>,
    /// Exists for as long as the fibre is suspended in [`spin`].
    pub poll: *const dyn Poll,
}

/// The next thing that a spinner does. A preemption may come before each of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Phase {
    /// Sleeps until its line is lost, if there is time left.
    #[default]
    Watch,
    /// Leaves the guest if it has spun for too long, else polls.
    Notice,
    /// Offers its CPU to another vCPU, having left the guest.
    Yield,
    /// Its load takes effect.
    Load,
    /// It acts on the verdict.
    Act(Option<bool>),
}

impl Spin {
    /// Whether no time is left, or no poll.
    pub fn is_over(&self, now: Time) -> bool {
        self.until.is_some_and(|until| now >= until) || self.polls == Some(0)
    }

    /// When it is over, if the line does not change.
    pub fn end(&self, now: Time) -> Time {
        let polls = self.polls.map(|polls| now + self.iteration.times(polls));
        let end = self.until.into_iter().chain(polls).min();
        end.unwrap_or(Time::MAX)
    }

    /// Whether it ends at a time, or after some polls.
    pub fn is_limited(&self) -> bool {
        self.until.is_some() || self.polls.is_some()
    }

    /// The spinner has polled in the time between.
    pub fn polled(&mut self, since: Time, until: Time) {
        if let Some(left) = &mut self.polls {
            *left = left.saturating_sub(polls(since, until, self.iteration));
        }
    }
}

/// How often a spinner polls in the time between, if an iteration of its loop takes so long.
fn polls(since: Time, until: Time, iteration: Time) -> u64 {
    let spun = (until - since).as_ps();
    spun.div_ceil(iteration.as_ps()).max(1)
}

/// Loads the word of a wait, and judges its value.
///
/// # Safety
///
/// The fibre must be suspended in [`spin`], or about to be.
#[inline]
pub(super) unsafe fn poll(poll: *const dyn Poll) -> Option<bool> {
    // The load is not one of the fibre that runs, if any.
    let caller = CURRENT.replace(None);
    // SAFETY: the caller of `spin` has the closure until the fibre goes on.
    let verdict = unsafe { (*poll).poll() };
    CURRENT.set(caller);
    verdict
}

impl Engine {
    /// `vcpu` goes on with its wait, if it has one. Returns whether its fibre is to be resumed.
    pub fn spins(&mut self, vcpu: usize) -> bool {
        loop {
            let Vcpu { spin, phase, .. } = self.vcpus[vcpu];
            let Some(spin) = spin else {
                return true;
            };
            let (waits, next) = match phase {
                Phase::Watch if spin.is_over(self.now) => return self.spun(vcpu, Spun::Over),
                Phase::Watch => (self.watch(vcpu, spin.line), Phase::Notice),
                Phase::Notice if self.preempt_deferred(vcpu) => (true, Phase::Notice),
                // Once.
                Phase::Notice if std::mem::take(&mut self.vcpus[vcpu].spun_long) => {
                    (self.exits(vcpu), Phase::Yield)
                }
                Phase::Notice if spin.is_own || self.buffered(vcpu, spin.address).0 != 0 => {
                    return self.spun(vcpu, Spun::Load);
                }
                Phase::Notice => match self.access_line(vcpu, spin.line, Access::Read) {
                    Answer::Hit(time) => (self.pass(vcpu, time, State::Memory), Phase::Load),
                    Answer::Wait => (true, Phase::Load),
                },
                Phase::Yield if self.preempt_deferred(vcpu) => (true, Phase::Yield),
                Phase::Yield => (self.yields(vcpu), Phase::Notice),
                Phase::Load => {
                    // SAFETY: the fibre is suspended in `spin`, or about to be.
                    let verdict = unsafe { poll(spin.poll) };
                    (self.accessed(vcpu, Access::Read), Phase::Act(verdict))
                }
                Phase::Act(_) if self.preempt_deferred(vcpu) => (true, phase),
                Phase::Act(None) => return self.spun(vcpu, Spun::Judge),
                Phase::Act(Some(true)) => return self.spun(vcpu, Spun::Holds),
                Phase::Act(Some(false)) => (false, Phase::Watch),
            };
            self.vcpus[vcpu].phase = next;
            if waits {
                return false;
            }
        }
    }

    /// The wait of `vcpu` ends. Always returns true.
    fn spun(&mut self, vcpu: usize, why: Spun) -> bool {
        let state = &mut self.vcpus[vcpu];
        let polls = state.spin.take().and_then(|spin| spin.polls);
        state.spun = Some((why, polls));
        true
    }

    /// Watches the line of a wait. If it has been changed since the last load of `vcpu`, or has
    /// left the core, `vcpu` polls again after one iteration. Returns whether it has to wait for an
    /// event.
    fn watch(&mut self, vcpu: usize, line: usize) -> bool {
        let (now, core) = (self.now, self.core(vcpu));
        let iteration = self.machine.costs.turn;
        let state = &mut self.vcpus[vcpu];
        if self.cache.changes(line) != state.changes_seen
            || !self.cache.watch(now, vcpu, core, line)
        {
            state.polled(now, now + iteration);
            return self.pass(vcpu, iteration, State::Spin);
        }
        state.enter(now, State::Spin);
        state.doing = Doing::Watch { line, since: now };
        let end = state.watch_ends(now);
        self.goes(vcpu, end);
        true
    }

    /// Watchers of a line have lost it. Each notices that at its next iteration.
    pub fn notice_loss(&mut self, watchers: Range<u32>) {
        let iteration = self.machine.costs.turn;
        for number in watchers.clone() {
            let watcher = self.cache.watcher(number);
            let (vcpu, since) = (watcher.vcpu as usize, watcher.requested_at);
            if since > self.now {
                // It has not loaded the word yet, but judged a value that was older.
                self.settles_from(vcpu, (since, Time::MAX));
                continue;
            }
            let at = since + iteration.times(polls(since, self.now, iteration));
            if self.goes_ahead(&watcher, at) {
                self.cache.request_ahead(number, at);
            } else if matches!(self.vcpus[vcpu].doing, Doing::Watch { .. } | Doing::Ahead) {
                self.goes(vcpu, at);
            }
        }
        self.cache.requested_ahead(self.now, watchers);
    }
}

/// Spins until the word at `address` may have a value that `poll` accepts, until `until`, or until
/// no poll is left; counts `polls` down. The caller has loaded the word, whose line had been
/// changed `changes` times, and did not accept it.
pub(crate) fn spin(
    address: usize,
    changes: u64,
    until: Option<Time>,
    polls: &mut Option<u64>,
    poll: &dyn Poll,
) -> Spun {
    let Some(me) = current() else {
        panic!("outside of a simulation no vCPU changes the word")
    };
    let poll = std::ptr::from_ref(poll);
    // SAFETY: only the lifetime changes. The engine calls it while this function runs.
    let poll = unsafe { std::mem::transmute::<*const (dyn Poll + '_), *const dyn Poll>(poll) };
    let is_own = fibre::is_on_stack(me, address);
    let goes_on = with(|engine| {
        let state = &mut engine.vcpus[me];
        state.changes_seen = changes;
        state.phase = Phase::Watch;
        state.spin = Some(Spin {
            address,
            line: engine.cache.line(address),
            is_own,
            until,
            iteration: engine.machine.costs.turn,
            polls: *polls,
            poll,
        });
        engine.spins(me)
    });
    if !goes_on {
        fibre::suspend(me);
    }
    let spun = with(|engine| engine.vcpus[me].spun.take());
    let (why, left) = spun.expect("it goes on for a reason");
    *polls = left;
    why
}

thread_local! {
    /// Whether the engine judges a condition.
    static JUDGES: Cell<bool> = const { Cell::new(false) };
    /// Whether a fibre has called the engine.
    static CALLED: Cell<bool> = const { Cell::new(false) };
}

/// Evaluates a condition in its fibre. Returns its result, and whether it has called the engine.
pub(crate) fn asks(condition: impl FnOnce() -> bool) -> (bool, bool) {
    CALLED.set(false);
    let holds = condition();
    (holds, CALLED.get())
}

/// Whether the caller is neither in a fibre nor in a condition that the engine judges.
#[inline]
pub(crate) fn is_outside() -> bool {
    CURRENT.get().is_none() && !JUDGES.get()
}

/// A condition needs its vCPU.
struct NeedsVcpu;

/// Evaluates a condition outside of its fibre. `None` if it needs that, to access the machine.
pub(crate) fn judge(condition: impl FnOnce() -> bool) -> Option<bool> {
    JUDGES.set(true);
    let verdict = catch_unwind(AssertUnwindSafe(condition));
    JUDGES.set(false);
    match verdict {
        Ok(verdict) => Some(verdict),
        Err(reason) if reason.is::<NeedsVcpu>() => None,
        Err(reason) => resume_unwind(reason),
    }
}

/// The engine is called, by a fibre or not: ends the evaluation of a condition outside of its
/// fibre, if it is one.
pub(super) fn called(by_fibre: bool) {
    if by_fibre {
        CALLED.set(true);
    } else if JUDGES.replace(false) {
        resume_unwind(Box::new(NeedsVcpu));
    }
}

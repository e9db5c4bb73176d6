//! Waits of spinners, which the engine carries out by itself.
//!
//! A spinner polls its word whenever its line has been taken away, mostly in vain: of a hundred
//! spinners one can proceed. To resume its fibre for each poll is what a simulation would spend
//! most of its time on. So the fibre is suspended until its condition holds. Meanwhile the engine
//! watches the line, loads the word, judges its value, and takes pause-loop exits, at the same
//! simulated times as the fibre would.
//!
//! A condition is judged once a load. Mostly it looks at nothing but the value. One that accesses
//! other words takes simulated time, and its own fibre has to judge.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::buffer::Forward;
use super::fibre;
use super::state::Engine;
use super::{CURRENT, current, with};
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
    line: usize,
    /// Whether the word is on the stack of the vCPU, which has no line for it.
    own: bool,
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
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    /// Sleeps until its line is lost, if there is time left.
    Watch,
    /// Leaves the guest if it has spun for too long, else polls.
    Notice,
    /// Offers its CPU to another vCPU, having left the guest.
    Yield,
    /// Enters the guest.
    Enter,
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
    pub fn end(&self, now: Time) -> Option<Time> {
        let end = self.polls.map(|polls| now + self.iteration.times(polls));
        self.until.into_iter().chain(end).min()
    }

    /// Whether it ends at a time, or after some polls.
    pub fn is_limited(&self) -> bool {
        self.until.is_some() || self.polls.is_some()
    }

    /// Whether its word is on the stack of the vCPU.
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// Loads the word and judges its value.
    ///
    /// # Safety
    ///
    /// The fibre must be suspended in [`spin`].
    pub unsafe fn poll(&self) -> Option<bool> {
        // SAFETY: the caller of `spin` has the closure until the fibre goes on.
        unsafe { (*self.poll).poll() }
    }

    /// The spinner has polled in the time between.
    pub fn polled(&mut self, since: Time, until: Time) {
        if let Some(left) = &mut self.polls {
            *left = left.saturating_sub(polls(since, until, self.iteration));
        }
    }

    /// The line of its word.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl Engine {
    /// `vcpu` goes on with its wait. Returns why its fibre is to be resumed, if it is.
    fn spins(&mut self, vcpu: usize, spin: &mut Spin) -> Option<Spun> {
        let mut phase = self.vcpus[vcpu].phase;
        loop {
            let (waits, next) = match phase {
                Phase::Watch if spin.is_over(self.now) => return Some(Spun::Over),
                Phase::Watch => (self.watch(vcpu, spin), Phase::Notice),
                Phase::Notice if self.preempt_deferred(vcpu) => (true, Phase::Notice),
                Phase::Notice if self.sees_pause_exit(vcpu) => (self.exits(vcpu), Phase::Yield),
                Phase::Notice => {
                    let forward = self.forwards(vcpu, spin.address, u64::MAX);
                    if spin.own || forward != Forward::Nothing {
                        return Some(Spun::Load);
                    }
                    let waits = match self.access_line(vcpu, spin.line, Access::Read) {
                        Answer::Hit(time) => self.pass(vcpu, time, State::Memory),
                        Answer::Wait => true,
                    };
                    (waits, Phase::Load)
                }
                Phase::Yield if self.preempt_deferred(vcpu) => (true, Phase::Yield),
                Phase::Yield => (self.yields(vcpu), Phase::Enter),
                Phase::Enter => {
                    self.enters_guest(vcpu);
                    (false, Phase::Notice)
                }
                Phase::Load => {
                    // SAFETY: the fibre is suspended in `spin`, or about to be.
                    let verdict = unsafe { spin.poll() };
                    self.accessed(vcpu, Access::Read);
                    (false, Phase::Act(verdict))
                }
                Phase::Act(_) if self.preempt_deferred(vcpu) => (true, phase),
                Phase::Act(None) => return Some(Spun::Judge),
                Phase::Act(Some(true)) => return Some(Spun::Holds),
                Phase::Act(Some(false)) => (false, Phase::Watch),
            };
            phase = next;
            if waits {
                self.vcpus[vcpu].phase = phase;
                return None;
            }
        }
    }

    /// Begins a wait. Returns why the fibre need not be suspended, if so.
    fn begins_to_spin(&mut self, vcpu: usize, changes: u64, spin: &mut Spin) -> Option<Spun> {
        let state = &mut self.vcpus[vcpu];
        state.changes_seen = changes;
        state.phase = Phase::Watch;
        let spun = self.spins(vcpu, spin);
        if spun.is_none() {
            self.vcpus[vcpu].spin = Some(*spin);
        }
        spun
    }

    /// Ends the wait of `vcpu`, or goes on with it. Returns whether its fibre is to be resumed.
    pub fn goes_on_spinning(&mut self, vcpu: usize) -> bool {
        let Some(mut spin) = self.vcpus[vcpu].spin else {
            return true;
        };
        let spun = self.spins(vcpu, &mut spin);
        let state = &mut self.vcpus[vcpu];
        if let Some(spun) = spun {
            state.spin = None;
            state.spun = Some((spun, spin.polls));
        } else if let Some(kept) = &mut state.spin {
            kept.polls = spin.polls;
        }
        spun.is_some()
    }
}

/// How often a spinner polls in the time between, if an iteration of its loop takes so long.
pub(super) fn polls(since: Time, until: Time, iteration: Time) -> u64 {
    let iteration = iteration.as_ps().max(1);
    (until - since).as_ps().div_ceil(iteration).max(1)
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
    let own = fibre::is_on_stack(me, address);
    // The calls of `poll` are not those of this fibre.
    CURRENT.set(None);
    let spun = with(|engine| {
        let mut spin = Spin {
            address,
            line: engine.cache.line(address),
            own,
            until,
            iteration: engine.machine.costs.turn,
            polls: *polls,
            poll,
        };
        let spun = engine.begins_to_spin(me, changes, &mut spin);
        spun.map(|spun| (spun, spin.polls))
    });
    CURRENT.set(Some(me));
    let spun = spun.unwrap_or_else(|| {
        fibre::suspend(me);
        with(|engine| engine.vcpus[me].spun.take()).expect("the engine resumes it with a reason")
    });
    *polls = spun.1;
    spun.0
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

/// A fibre calls the engine.
pub(super) fn called() {
    CALLED.set(true);
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

/// Code outside of fibres calls the engine: ends the evaluation of a condition, if it is one.
pub(super) fn needs_vcpu() {
    if JUDGES.replace(false) {
        resume_unwind(Box::new(NeedsVcpu));
    }
}

//! Polls in vain, which take no events.
//!
//! When a line changes, each spinner on it notices that, requests the line, loads the word, and
//! watches the line again. Of hundreds of spinners one can proceed. So the engine does these steps
//! ahead of their times: a request enters the queue of the line as soon as the line is lost, and
//! the value is judged as soon as the line is granted. Each step takes as long as with an event
//! of its own.
//!
//! # Invariants
//!
//! - A1: what is done ahead of its time changes no other vCPU: a request does not arrive before it
//!   is made, and a spinner that watches is notified only.
//! - A2: whoever looks at the state of a vCPU, or takes its CPU, first calls [`Engine::settles`].

use super::CURRENT;
use super::spin::{Phase, Spin};
use super::state::Engine;
use super::vcpu::Doing;
use crate::account::State;
use crate::time::Time;

/// The next step of a spinner, if that has been done ahead of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ahead {
    /// At this time it has loaded the word, whose value it does not wait for, and watches the line.
    Watches { at: Time },
    /// At this time it requests the line, which it has watched since then.
    Requests { at: Time, since: Time },
}

impl Ahead {
    /// When that is, and the state that it enters.
    pub fn enters(self) -> (Time, State) {
        match self {
            Self::Watches { at } => (at, State::Spin),
            Self::Requests { at, .. } => (at, State::Memory),
        }
    }
}

impl Engine {
    /// `vcpu` has lost the line that it watches, and notices that at `at`. Returns whether it has
    /// requested the line ahead of that.
    pub fn requests_ahead(&mut self, vcpu: usize, since: Time, at: Time) -> bool {
        let state = &self.vcpus[vcpu];
        let Some(spin) = state.spin else { return false };
        let core = self.core(vcpu);
        let notices_exit = state
            .spins
            .is_some_and(|(since, _)| at - since >= state.window);
        if notices_exit
            || state.preempt_pending
            || spin.is_own()
            || !state.stores.are_empty()
            || self
                .cache
                .has(spin.line(), core, crate::cache::Access::Read)
        {
            return false;
        }
        self.events.cancel(vcpu);
        let state = &mut self.vcpus[vcpu];
        if let Some(Ahead::Watches { at }) = state.ahead {
            state.enter(at, State::Spin);
        }
        state.doing = Doing::Access;
        state.line = spin.line();
        state.ahead = Some(Ahead::Requests { at, since });
        self.cache
            .request_ahead(self.now, at, vcpu, core, spin.line());
        true
    }

    /// The line for which `vcpu` waits has been granted, and the load is done at `at`. Returns
    /// whether that needs no event.
    pub fn watches_ahead(&mut self, vcpu: usize, at: Time) -> bool {
        if !matches!(self.vcpus[vcpu].ahead, Some(Ahead::Requests { .. })) {
            return false;
        }
        self.settles(vcpu);
        let Some(spin) = self.vcpus[vcpu].spin else {
            return false;
        };
        // The load is not one of the fibre that runs, if any.
        let caller = CURRENT.replace(None);
        // SAFETY: the fibre of `vcpu` is suspended in `spin`: its wait has not ended.
        let verdict = unsafe { spin.poll() };
        CURRENT.set(caller);
        if verdict != Some(false) || spin.is_over(at) || !self.begins_ahead(vcpu, &spin, at) {
            return false;
        }
        let line = spin.line();
        let state = &mut self.vcpus[vcpu];
        state.changes_seen = self.cache.changes(line);
        state.doing = Doing::Watch { line, since: at };
        state.ahead = Some(Ahead::Watches { at });
        true
    }

    /// `vcpu` watches the line of its wait from `at` on, if its core has it. Returns whether it
    /// does.
    fn begins_ahead(&mut self, vcpu: usize, spin: &Spin, at: Time) -> bool {
        let watches = self.cache.watch(vcpu, self.core(vcpu), spin.line());
        if watches {
            let iteration = self.machine.costs.turn;
            let noticed = self.pauses_at(vcpu, at);
            let end = spin
                .end(at, iteration)
                .map_or(noticed, |end| end.min(noticed));
            if end < Time::MAX {
                self.goes(vcpu, end.max(at + iteration));
            }
        }
        watches
    }

    /// Brings `vcpu` to what it is now. Undoes what it has done ahead of now.
    pub fn settles(&mut self, vcpu: usize) {
        let Some(ahead) = self.vcpus[vcpu].ahead.take() else {
            return;
        };
        let (at, next) = ahead.enters();
        let is_past = at <= self.now;
        if is_past {
            self.vcpus[vcpu].enter(at, next);
        }
        let line = self.vcpus[vcpu].line;
        match ahead {
            Ahead::Watches { .. } if is_past => self.vcpus[vcpu].phase = Phase::Notice,
            Ahead::Watches { .. } => {
                self.cache.unwatch(vcpu, line);
                self.turns(vcpu);
                self.loads(vcpu, at);
            }
            Ahead::Requests { since, .. } if is_past => {
                self.polled_until(vcpu, since, at);
                let state = &mut self.vcpus[vcpu];
                if let Some((_, until)) = &mut state.spins {
                    *until = at;
                }
                state.phase = Phase::Load;
            }
            Ahead::Requests { since, .. } => {
                self.cache.withdraw(line, vcpu);
                let state = &mut self.vcpus[vcpu];
                state.doing = Doing::Watch { line, since };
                state.phase = Phase::Notice;
                self.goes(vcpu, at);
            }
        }
    }

    /// The load of `vcpu` is done at `at`.
    fn loads(&mut self, vcpu: usize, at: Time) {
        let state = &mut self.vcpus[vcpu];
        state.doing = Doing::Access;
        state.phase = Phase::Load;
        self.goes(vcpu, at);
    }
}

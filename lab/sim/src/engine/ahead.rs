//! Polls in vain, which take no events.
//!
//! When a line changes, each spinner on it notices that, requests the line, loads the word, and
//! watches the line again. Of hundreds of spinners one can proceed. So the engine does these steps
//! ahead of their times: a request enters the queue of the line as soon as the line is lost, and
//! the value is judged as soon as the line is granted. Each step takes as long as with an event
//! of its own.
//!
//! The data for these steps are on one line of this machine's cache for each spinner. The rest of
//! the state of a vCPU is brought up to date when somebody else needs it.
//!
//! # Invariants
//!
//! - A1: what is done ahead of its time changes no other vCPU: a request does not arrive before it
//!   is made, and a spinner that watches is notified only.
//! - A2: whoever looks at the state of a vCPU, or takes its CPU, first calls [`Engine::settles`].

use super::spin::{Phase, Poll, poll};
use super::state::Engine;
use super::vcpu::{Doing, Vcpu};
use crate::account::{Account, State};
use crate::cache::Access;
use crate::time::Time;

/// The next step of a spinner, if that has been done ahead of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Step {
    #[default]
    None,
    /// It has loaded the word, whose value it does not wait for, and watches the line.
    Watches,
    /// It requests the line, which it has watched before.
    Requests,
}

impl Step {
    /// The state of the spinner before and after.
    fn states(self) -> (State, State) {
        match self {
            Self::Requests => (State::Spin, State::Memory),
            Self::None | Self::Watches => (State::Memory, State::Spin),
        }
    }
}

/// A spinner that is ahead of its time.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Ahead {
    pub step: Step,
    /// Whether its wait may end without a change of the line: at a time, after some polls, or for a
    /// while by a pause-loop exit.
    is_limited: bool,
    core: u32,
    line: u32,
    /// When it entered the state before the step, and when it takes the step.
    from: Time,
    pub at: Time,
    /// The times in both states before, which its account lacks.
    spun: Time,
    waited: Time,
    /// That of its wait.
    poll: Option<*const dyn Poll>,
}

// One line of a cache.
const _: () = assert!(size_of::<Ahead>() == crate::cache::LINE);

impl Ahead {
    /// The load that it has requested is done at `at`. Returns when its next watch ends if the line
    /// does not change, or `None` if it does not watch the line.
    pub fn watches(&mut self, vcpu: &mut Vcpu, at: Time) -> Option<Time> {
        if self.step != Step::Requests {
            return None;
        }
        // SAFETY: its fibre is suspended in `spin`: its wait has not ended.
        let verdict = unsafe { poll(self.poll?) };
        if verdict != Some(false) {
            return None;
        }
        let end = match self.is_limited {
            true => vcpu.watches_again(self.from, self.at, at)?,
            false => Time::MAX,
        };
        self.spun += self.at - self.from;
        self.step = Step::Watches;
        (self.from, self.at) = (self.at, at);
        Some(end)
    }

    /// Returns the account up to `now`, given that of before these times.
    pub fn account(&self, mut account: Account, now: Time) -> Account {
        let (before, after) = self.step.states();
        account[State::Spin] += self.spun;
        account[State::Memory] += self.waited;
        account[before] += now.min(self.at) - self.from;
        account[after] += now.saturating_sub(self.at);
        account
    }
}

impl Engine {
    /// `vcpu`, which watches a line since then, has lost it, and notices that at `at`. Returns
    /// whether it has requested the line ahead of that.
    pub fn requests_ahead(&mut self, vcpu: usize, since: Time, at: Time) -> bool {
        let begins = self.ahead[vcpu].step == Step::None;
        if begins && !self.may_go_ahead(vcpu) {
            return false;
        }
        let ahead = &mut self.ahead[vcpu];
        let (core, line) = (ahead.core as usize, ahead.line as usize);
        let is_noticed = ahead.is_limited && self.vcpus[vcpu].notices_exit(at);
        if is_noticed || self.cache.has(line, core, Access::Read) {
            return false;
        }
        if ahead.is_limited {
            self.events.cancel(vcpu);
        }
        if begins {
            self.vcpus[vcpu].doing = Doing::Ahead;
            self.vcpus[vcpu].line = line;
        } else {
            ahead.waited += since - ahead.from;
        }
        ahead.step = Step::Requests;
        (ahead.from, ahead.at) = (since, at);
        self.cache.request_ahead(self.now, at, vcpu, core, line);
        true
    }

    /// Prepares the steps of `vcpu`, which watches the line of its wait. Returns false if they need
    /// events.
    fn may_go_ahead(&mut self, vcpu: usize) -> bool {
        let state = &self.vcpus[vcpu];
        let Some(spin) = &state.spin else {
            return false;
        };
        if state.preempt_pending || spin.is_own || !state.stores.are_empty() {
            return false;
        }
        self.ahead[vcpu] = Ahead {
            is_limited: spin.is_limited() || self.host.pause_exit.used().is_some(),
            core: self.core(vcpu) as u32,
            line: spin.line as u32,
            poll: Some(spin.poll),
            ..Ahead::default()
        };
        true
    }

    /// The line for which `vcpu` waits has been granted, and the load is done at `at`. Returns
    /// whether that needs no event.
    pub fn watches_ahead(&mut self, vcpu: usize, at: Time) -> bool {
        let ahead = &mut self.ahead[vcpu];
        let (core, line) = (ahead.core as usize, ahead.line as usize);
        if ahead.step != Step::Requests || !self.cache.has(line, core, Access::Read) {
            return false;
        }
        let end = ahead.watches(&mut self.vcpus[vcpu], at);
        if let Some(end) = end {
            self.cache.watch(vcpu, core, line);
            self.events.plan_of(vcpu, end);
        }
        end.is_some()
    }

    /// Brings `vcpu` to what it is now. Undoes what it has done ahead of now.
    pub fn settles(&mut self, vcpu: usize) {
        let step = std::mem::take(&mut self.ahead[vcpu].step);
        if step == Step::None {
            return;
        }
        let ahead = self.ahead[vcpu];
        let (line, from, at) = (ahead.line as usize, ahead.from, ahead.at);
        let (before, after) = step.states();
        let state = &mut self.vcpus[vcpu];
        state.account[State::Spin] += ahead.spun;
        state.account[State::Memory] += ahead.waited;
        (state.state, state.since) = (before, from);
        let is_past = at <= self.now;
        if is_past {
            state.enter(at, after);
        }
        match step {
            Step::Watches if is_past => {
                state.doing = Doing::Watch { line, since: at };
                state.phase = Phase::Notice;
            }
            Step::Watches | Step::None => {
                self.cache.unwatch(vcpu, line);
                self.turns(vcpu);
                self.loads(vcpu);
                self.goes(vcpu, at);
            }
            Step::Requests if is_past => {
                state.polled(from, at);
                state.paused(at);
                self.loads(vcpu);
            }
            Step::Requests => {
                self.cache.withdraw(line, vcpu);
                let state = &mut self.vcpus[vcpu];
                state.doing = Doing::Watch { line, since: from };
                state.phase = Phase::Notice;
                self.goes(vcpu, at);
            }
        }
    }

    /// `vcpu` waits for its load.
    fn loads(&mut self, vcpu: usize) {
        let state = &mut self.vcpus[vcpu];
        state.doing = Doing::Access;
        state.phase = Phase::Load;
    }
}

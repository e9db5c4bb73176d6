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
use crate::cache::{Access, Granted, LINE, Request};
use crate::time::Time;

/// A spinner that is ahead of its time: it watches a line, or has lost it and requests it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Ahead {
    pub is_on: bool,
    /// Whether its wait may end without a change of the line: at a time, after some polls, or for a
    /// while by a pause-loop exit.
    is_limited: bool,
    /// Since when its account lacks all, and its time without a request in all of that.
    begun: Time,
    spun: Time,
    /// Since when it watched the line that it has lost.
    pub watched: Time,
    /// When the processor notices its loop of pauses.
    noticed: Time,
    /// That of its wait.
    poll: Option<*const dyn Poll>,
}

const _: () = assert!(size_of::<Ahead>() == LINE);

impl Ahead {
    /// A load that it has requested ahead is done. Returns when its next watch ends if the line
    /// does not change, or `None` if it does not watch the line.
    pub fn watches(&mut self, vcpu: &mut Vcpu, granted: &Granted) -> Option<Time> {
        if !self.is_on {
            return None;
        }
        // SAFETY: its fibre is suspended in `spin`: its wait has not ended.
        let verdict = unsafe { poll(self.poll?) };
        if verdict != Some(false) {
            return None;
        }
        if !self.is_limited {
            return Some(Time::MAX);
        }
        let requested = granted.request.requested_at;
        let end = vcpu.watches_again(self.watched, requested, granted.at)?;
        self.noticed = vcpu.noticed();
        Some(end)
    }

    /// Returns the account up to `now`, of a vCPU that requests the line at `next`, or watches it
    /// since then.
    pub fn account(&self, vcpu: &Vcpu, now: Time, (since, next): (Time, Time)) -> Account {
        let spun = match next {
            Time::MAX => self.spun + now.saturating_sub(since),
            next => self.spun - next.saturating_sub(now),
        };
        let mut account = vcpu.account;
        account[State::Spin] += spun;
        account[State::Memory] += now - self.begun - spun;
        account
    }
}

impl Engine {
    /// A watcher of a line has lost it, and notices that at `at`. Returns whether it requests the
    /// line ahead of that.
    pub fn goes_ahead(&mut self, watcher: &Request, at: Time) -> bool {
        let [vcpu, core, line] = [watcher.vcpu, watcher.core, watcher.line].map(|it| it as usize);
        let begins = !self.ahead[vcpu].is_on;
        if begins && !self.may_go_ahead(vcpu, watcher.requested_at) {
            return false;
        }
        let ahead = &mut self.ahead[vcpu];
        ahead.watched = watcher.requested_at;
        if at >= ahead.noticed || self.cache.has(line, core, Access::Read) {
            return false;
        }
        ahead.spun += at - ahead.watched;
        if ahead.is_limited {
            self.events.cancel(vcpu);
        }
        if begins {
            self.ahead[vcpu].is_on = true;
            self.vcpus[vcpu].doing = Doing::Ahead;
            self.vcpus[vcpu].line = line;
        }
        true
    }

    /// Prepares the steps of `vcpu`, which watches a line since then. Returns false if they need
    /// events.
    fn may_go_ahead(&mut self, vcpu: usize, since: Time) -> bool {
        let state = &self.vcpus[vcpu];
        let (Some(spin), Doing::Watch { .. }) = (&state.spin, state.doing) else {
            return false;
        };
        if state.preempt_pending || spin.is_own || state.buffered.is_some() {
            return false;
        }
        self.ahead[vcpu] = Ahead {
            is_limited: spin.is_limited() || self.host.pause_exit.used().is_some(),
            begun: since,
            watched: since,
            noticed: state.noticed(),
            poll: Some(spin.poll),
            ..Ahead::default()
        };
        true
    }

    /// An access is done. Returns whether that needs no event.
    pub fn watches_ahead(&mut self, granted: &Granted) -> bool {
        let Request {
            vcpu, core, line, ..
        } = granted.request;
        let [vcpu, core, line] = [vcpu, core, line].map(|it| it as usize);
        if !self.ahead[vcpu].is_on || !self.cache.has(line, core, Access::Read) {
            return false;
        }
        let end = self.ahead[vcpu].watches(&mut self.vcpus[vcpu], granted);
        if let Some(end) = end {
            self.cache.watch(granted.at, vcpu, core, line);
            self.events.plan_of(vcpu, end);
        }
        end.is_some()
    }

    /// Returns since when `vcpu`, which is ahead of its time, watches its line or has watched it,
    /// and when it requests the line. It looks through the watchers and the queue of the line, but
    /// rarely.
    pub fn watch_of(&self, vcpu: usize) -> (Time, Time) {
        let line = self.vcpus[vcpu].line;
        if let Some(since) = self.cache.watched(line, vcpu) {
            return (since, Time::MAX);
        }
        let requested = self.cache.requested(line, vcpu);
        (self.ahead[vcpu].watched, requested.unwrap_or(Time::MAX))
    }

    /// Brings `vcpu` to what it is now. Undoes what it has done ahead of now.
    pub fn settles(&mut self, vcpu: usize) {
        if self.ahead[vcpu].is_on {
            self.settles_from(vcpu, self.watch_of(vcpu));
        }
    }

    /// The same, if it watches its line in the time between.
    pub fn settles_from(&mut self, vcpu: usize, watch: (Time, Time)) {
        if !std::mem::take(&mut self.ahead[vcpu].is_on) {
            return;
        }
        let (ahead, now) = (self.ahead[vcpu], self.now);
        let state = &mut self.vcpus[vcpu];
        let (line, (since, next)) = (state.line, watch);
        (state.account, state.since) = (ahead.account(state, now, watch), now);
        (state.state, state.doing, state.phase) = match since <= now && now < next {
            true => (State::Spin, Doing::Watch { line, since }, Phase::Notice),
            false => (State::Memory, Doing::Access, Phase::Load),
        };
        if now < since {
            self.cache.unwatch(vcpu, line);
            self.turns(vcpu);
            self.goes(vcpu, since);
        } else if next <= now {
            state.polled(since, next);
            state.paused(next);
        } else if next < Time::MAX {
            self.cache.withdraw(line, vcpu);
            self.goes(vcpu, next);
        }
    }
}

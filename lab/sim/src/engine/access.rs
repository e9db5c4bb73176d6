//! Effects of cache line accesses on vCPUs.

use super::CURRENT;
use super::ahead::Step;
use super::events::Event;
use super::spin::{Spin, polls};
use super::state::Engine;
use super::vcpu::Doing;
use crate::account::State;
use crate::cache::{Access, Answer, Loaded, Signal};
use crate::time::Time;

impl Engine {
    pub fn core(&self, vcpu: usize) -> usize {
        self.machine.core_of(self.schedule.cpu(vcpu))
    }

    /// Begins an access. On [`Answer::Wait`] the fibre has to be suspended.
    pub fn access(&mut self, vcpu: usize, address: usize, access: Access) -> Answer {
        let line = self.cache.line(address);
        self.access_line(vcpu, line, access)
    }

    /// The same, of a word on this line.
    pub fn access_line(&mut self, vcpu: usize, line: usize, access: Access) -> Answer {
        let core = self.core(vcpu);
        self.vcpus[vcpu].line = line;
        if access == Access::Read && self.joins(vcpu, core, line) {
            return Answer::Wait;
        }
        let answer = self.cache.access(self.now, vcpu, core, line, access);
        if answer == Answer::Wait {
            self.enter(vcpu, State::Memory);
            self.vcpus[vcpu].doing = Doing::Access;
        }
        self.answer();
        answer
    }

    /// A locked instruction of `vcpu` locks its line now. Returns how long it keeps the line from
    /// others, or `None` if the core has lost it.
    pub fn locks_line(&mut self, vcpu: usize) -> Option<Time> {
        let line = self.vcpus[vcpu].line;
        let costs = &self.machine.costs;
        let rest = costs.locked.scale(1.0 - costs.locks_line);
        let has = self.cache.has(line, self.core(vcpu), Access::Locked);
        has.then(|| {
            self.cache.keep(line, self.now + rest);
            rest
        })
    }

    /// An access has taken effect. Always returns false: no fibre has to be suspended.
    pub fn accessed(&mut self, vcpu: usize, access: Access) -> bool {
        let state = &mut self.vcpus[vcpu];
        let line = state.line;
        if access.is_load() {
            state.changes_seen = self.cache.changes(line);
            return false;
        }
        self.cache.changed(line, vcpu);
        self.answer();
        false
    }

    /// An access of `vcpu` to its own stack has taken effect. Always returns false.
    pub fn accessed_own(&mut self, vcpu: usize, address: usize, access: Access) -> bool {
        // There is a line if another vCPU has looked at the word.
        if let Some(line) = self.cache.known(address) {
            self.vcpus[vcpu].line = line;
            return self.accessed(vcpu, access);
        }
        self.vcpus[vcpu].changes_seen = 0;
        false
    }

    /// Returns how often the line of the last load of `vcpu` had been changed by then.
    pub fn changes_seen(&self, vcpu: usize) -> u64 {
        self.vcpus[vcpu].changes_seen
    }

    /// Watches the line of a wait. If it has been changed since the last load of `vcpu`, or has
    /// left the core, `vcpu` polls again after one iteration. Returns whether it has to wait for an
    /// event.
    pub fn watch(&mut self, vcpu: usize, spin: &mut Spin) -> bool {
        let line = spin.line();
        let changes = self.changes_seen(vcpu);
        let core = self.core(vcpu);
        if self.cache.changes(line) != changes || !self.cache.watch(vcpu, core, line) {
            spin.polled(self.now, self.now + spin.iteration);
            return self.pass(vcpu, spin.iteration, State::Spin);
        }
        self.enter(vcpu, State::Spin);
        self.vcpus[vcpu].doing = Doing::Watch {
            line,
            since: self.now,
        };
        let noticed = self.vcpus[vcpu].pauses(self.now);
        let at = spin.end(self.now).map_or(noticed, |end| end.min(noticed));
        if at < Time::MAX {
            self.goes(vcpu, at.max(self.now + spin.iteration));
        }
        true
    }

    /// `vcpu`, which watched a line, has lost it, and notices that at its next iteration.
    fn notices_loss(&mut self, vcpu: usize) {
        let since = match self.ahead[vcpu].step {
            Step::Watches => self.ahead[vcpu].at,
            Step::Requests => return,
            Step::None => match self.vcpus[vcpu].doing {
                Doing::Watch { since, .. } => since,
                _ => return,
            },
        };
        if since > self.now {
            // It has not loaded the word yet, but judged a value that was older.
            return self.settles(vcpu);
        }
        let iteration = self.machine.costs.turn;
        let at = since + iteration.times(polls(since, self.now, iteration));
        if !self.requests_ahead(vcpu, since, at) {
            self.goes(vcpu, at);
        }
    }

    /// Acts on the signals of the cache.
    pub fn answer(&mut self) {
        // Spinners that are told of a loss request the line: then there are more.
        let mut next = 0;
        while let Some(signal) = self.cache.signal(next) {
            next += 1;
            match *signal {
                Signal::Done { vcpu, at } => self.loaded(vcpu, at),
                Signal::Owned {
                    vcpu,
                    core,
                    line,
                    at,
                } => self.plan(at, Event::Owned { vcpu, core, line }),
                Signal::Serve { line, at } if self.serves && self.next_serve.is_none() => {
                    self.next_serve = Some((line, at));
                }
                Signal::Serve { line, at } => self.plan(at, Event::Serve { line }),
                Signal::Lost { vcpu } => self.notices_loss(vcpu),
            }
        }
        self.cache.forget_signals();
    }

    /// Serves the queue of a line. If the next event is that it is served again, does that at once.
    pub fn serves(&mut self, mut line: usize) {
        loop {
            let first = self.events.peek().unwrap_or(Time::MAX);
            match self.serves_until(line, first.min(self.next_check)) {
                Some(Loaded { vcpu, at }) => {
                    self.settles(vcpu);
                    self.goes(vcpu, at);
                    continue;
                }
                None => {
                    self.serves = true;
                    self.answer();
                    self.serves = false;
                }
            }
            let Some((next, at)) = self.next_serve.take() else {
                return;
            };
            let comes_first = self.events.peek().is_none_or(|first| at < first);
            if !comes_first || at >= self.next_check {
                return self.plan(at, Event::Serve { line: next });
            }
            self.now = self.now.max(at);
            self.handled += 1;
            line = next;
        }
    }

    /// Serves the queue of a line as long as spinners load the word in vain, until then at most.
    fn serves_until(&mut self, line: usize, until: Time) -> Option<Loaded> {
        let Self {
            cache,
            ahead,
            vcpus,
            events,
            handled,
            ..
        } = self;
        // The loads are not those of the fibre that runs, if any.
        let caller = CURRENT.replace(None);
        let watches = |vcpu: usize, at| {
            *handled += 1;
            let end = ahead[vcpu].watches(&mut vcpus[vcpu], at)?;
            events.plan_end(vcpu, end);
            Some(end)
        };
        let loaded = cache.serve_until(&mut self.now, line, until, watches);
        CURRENT.set(caller);
        loaded
    }

    /// The access of `vcpu` is done at `at`.
    fn loaded(&mut self, vcpu: usize, at: Time) {
        if !self.watches_ahead(vcpu, at) {
            self.settles(vcpu);
            self.goes(vcpu, at);
        }
    }
}

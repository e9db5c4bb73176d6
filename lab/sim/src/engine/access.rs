//! Effects of cache line accesses on vCPUs.

use super::events::Event;
use super::state::Engine;
use super::vcpu::Doing;
use crate::account::State;
use crate::cache::{Access, Answer, Granted, Signal};
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
            self.waits_for_memory(vcpu);
        }
        self.answer();
        answer
    }

    /// `vcpu` waits in the middle of an instruction.
    pub fn waits_for_memory(&mut self, vcpu: usize) {
        self.enter(vcpu, State::Memory);
        self.vcpus[vcpu].doing = Doing::Access;
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
        } else {
            self.cache.changed(line, vcpu);
            self.answer();
        }
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

    /// Acts on the signals of the cache.
    pub fn answer(&mut self) {
        // Spinners that are told of a loss request the line: then there are more.
        let mut next = 0;
        while let Some(signal) = self.cache.signal(next) {
            next += 1;
            match signal {
                Signal::Done(granted) => self.granted(granted),
                Signal::Serve { line, at } if self.serves && self.next_serve.is_none() => {
                    self.next_serve = Some((line, at));
                }
                Signal::Serve { line, at } => self.plan(at, Event::Serve(line)),
                Signal::Lost(watchers) => self.notice_loss(watchers),
            }
        }
        self.cache.forget_signals();
    }

    /// Serves the queue of a line. If the next event is that it is served again, does that at once.
    pub fn serves(&mut self, mut line: usize) {
        loop {
            let first = self.events.peek().unwrap_or(Time::MAX);
            if let Some(granted) = self.serves_until(line, first.min(self.next_check)) {
                self.goes_on(&granted);
                continue;
            }
            self.serves = true;
            self.answer();
            self.serves = false;
            let Some((next, at)) = self.next_serve.take() else {
                return;
            };
            let comes_first = self.events.peek().is_none_or(|first| at < first);
            if !comes_first || at >= self.next_check {
                return self.plan(at, Event::Serve(next));
            }
            self.now = self.now.max(at);
            self.handled += 1;
            line = next;
        }
    }

    /// Serves the queue of a line as long as spinners load the word in vain, until then at most.
    fn serves_until(&mut self, line: usize, until: Time) -> Option<Granted> {
        let watches = |granted: &Granted| {
            self.handled += 1;
            let vcpu = granted.request.vcpu as usize;
            let end = self.ahead[vcpu].watches(&mut self.vcpus[vcpu], granted)?;
            self.events.plan_of(vcpu, end);
            Some(end)
        };
        self.cache.serve_until(&mut self.now, line, until, watches)
    }

    /// An access is done, or a line has arrived for a store.
    fn granted(&mut self, granted: Granted) {
        if granted.request.access == Access::Write {
            self.plan(granted.at, Event::Owned(granted.request.vcpu as usize));
        } else if !self.watches_ahead(&granted) {
            self.goes_on(&granted);
        }
    }

    /// Its vCPU goes on then.
    fn goes_on(&mut self, &Granted { request, at }: &Granted) {
        let vcpu = request.vcpu as usize;
        self.settles_from(vcpu, (self.ahead[vcpu].watched, request.requested_at));
        self.goes(vcpu, at);
    }

    /// Returns how long `vcpu` computes for work that takes `time` on an idle core. A thread that
    /// spins or waits for memory leaves the core to its siblings.
    pub fn work(&self, vcpu: usize, time: Time) -> Time {
        let cpu = self.schedule.cpu(vcpu);
        let works = |sibling: usize| {
            let other = self.schedule.current(sibling).filter(|_| sibling != cpu);
            other.is_some_and(|other| self.vcpus[other].state == State::Work)
        };
        if self.machine.threads > 1 && self.machine.cpus_of(self.core(vcpu)).any(works) {
            return time.scale(1.0 / self.machine.costs.sibling);
        }
        time
    }
}

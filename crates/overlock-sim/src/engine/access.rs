//! What accesses to cache lines do to the vCPUs.

use super::events::Event;
use super::state::Engine;
use super::vcpu::Doing;
use crate::account::State;
use crate::cache::{Access, Answer, Signal};
use crate::time::Time;

/// How far a locked instruction is when it takes hold of its line: before that it waits for what
/// came before it.
pub(crate) const TAKES_HOLD: f64 = 0.6;

impl Engine {
    fn core(&self, vcpu: usize) -> usize {
        self.machine.core_of(self.schedule.cpu(vcpu))
    }

    /// Waits until the store buffer of `vcpu` is empty.
    pub fn drain(&mut self, vcpu: usize) -> bool {
        let left = self.vcpus[vcpu].drained.saturating_sub(self.now);
        left > Time::ZERO && self.pass(vcpu, left, State::Memory)
    }

    /// Begins an access. On [`Answer::Wait`] the fibre has to be suspended.
    pub fn access(&mut self, vcpu: usize, address: usize, access: Access) -> Answer {
        let line = self.cache.line(address);
        let core = self.core(vcpu);
        self.vcpus[vcpu].line = line;
        if access == Access::Locked {
            self.vcpus[vcpu].credit = Time::ZERO;
        }
        if access == Access::Write
            && let Some(arrives) = self.cache.store_behind(self.now, vcpu, core, line)
        {
            self.vcpus[vcpu].drained = arrives;
            self.answer();
            return Answer::Hit(self.machine.costs.hit);
        }
        let answer = self.cache.access(self.now, vcpu, core, line, access);
        if answer == Answer::Wait {
            self.enter(vcpu, State::Memory);
            self.vcpus[vcpu].doing = Doing::Access;
            self.vcpus[vcpu].asked = Some(self.now);
        }
        self.answer();
        answer
    }

    /// A locked instruction of `vcpu` has come to where it takes hold of its line: how long it
    /// keeps it from others, if it still has it.
    pub fn takes_hold(&mut self, vcpu: usize) -> Option<Time> {
        let line = self.vcpus[vcpu].line;
        let rest = self.machine.costs.locked.scale(1.0 - TAKES_HOLD);
        let has = self.cache.has(line, self.core(vcpu), Access::Locked);
        has.then(|| {
            self.cache.keep(line, self.now + rest);
            rest
        })
    }

    /// An access has had its effect. The answer is always false: nobody has to be suspended.
    pub fn accessed(&mut self, vcpu: usize, access: Access) -> bool {
        let state = &mut self.vcpus[vcpu];
        let asked = state.asked.take();
        let line = state.line;
        if access == Access::Read {
            state.looked = self.cache.changes(line);
            return false;
        }
        if access == Access::Write
            && let Some(asked) = asked
        {
            state.credit = self.now - asked;
        }
        self.cache.changed(line, vcpu);
        self.answer();
        false
    }

    /// How often the line of the last load of `vcpu` had been changed by then.
    pub fn looked(&self, vcpu: usize) -> u64 {
        self.vcpus[vcpu].looked
    }

    /// Spins on the line of `address`, unless it has been changed since `changes` were counted, or
    /// is not even there: then the next look is due after a turn.
    pub fn watch(
        &mut self,
        vcpu: usize,
        address: usize,
        changes: u64,
        until: Option<Time>,
    ) -> bool {
        let line = self.cache.line(address);
        let core = self.core(vcpu);
        let turn = self.machine.costs.turn;
        if self.cache.changes(line) != changes || !self.cache.watch(vcpu, core, line) {
            return self.pass(vcpu, turn, State::Spin);
        }
        self.enter(vcpu, State::Spin);
        self.vcpus[vcpu].doing = Doing::Watch {
            line,
            since: self.now,
        };
        let noticed = self.pauses(vcpu);
        let at = until.map_or(noticed, |until| until.min(noticed));
        if at < Time::MAX {
            self.goes(vcpu, at.max(self.now + turn));
        }
        true
    }

    /// `vcpu`, which watched a line, has lost it, and sees that at its next turn.
    fn loses(&mut self, vcpu: usize) {
        let Doing::Watch { since, .. } = self.vcpus[vcpu].doing else {
            return;
        };
        let turn = self.machine.costs.turn.as_ps().max(1);
        let turns = (self.now - since).as_ps().div_ceil(turn).max(1);
        self.goes(vcpu, since + Time::ps(turns * turn));
    }

    /// Does what the cache asks for.
    pub fn answer(&mut self) {
        let mut signals = std::mem::take(&mut self.signals);
        self.cache.signals(&mut signals);
        for signal in signals.drain(..) {
            match signal {
                Signal::Done { vcpu, at } => self.goes(vcpu, at),
                Signal::Serve { line, at } => self.plan(at, Event::Serve { line }),
                Signal::Lost { vcpu } => self.loses(vcpu),
            }
        }
        self.signals = signals;
    }
}

//! The events, and the queue of them.

use std::cmp::Reverse;

use super::state::Engine;
use super::vcpu::{Doing, Vcpu};
use crate::time::Time;

/// How much time passes between two looks at whether to go on, and how many events, at most.
pub(super) const LOOK: Time = Time::ms(1);
const EVENTS_PER_LOOK: u64 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The vCPU's fibre is resumed.
    Go {
        vcpu: usize,
        stamp: u64,
    },
    /// A line's queue is served.
    Serve {
        line: usize,
    },
    /// A slice may be over.
    Slice {
        cpu: usize,
        stamp: u64,
    },
    /// Somebody wanted the CPU while the vCPU was being switched to.
    Again {
        vcpu: usize,
        turn: u64,
    },
    /// A sleeper's time is up, or its host no longer polls.
    Timeout {
        vcpu: usize,
        stamp: u64,
    },
    PollEnd {
        vcpu: usize,
        stamp: u64,
    },
    /// The host takes a CPU for itself, for so long; or gives it back.
    Chore {
        cpu: usize,
        length: Option<Time>,
    },
    /// CPUs compare their queues.
    Balance {
        all: bool,
    },
}

impl Engine {
    pub fn plan(&mut self, at: Time, event: Event) {
        self.planned += 1;
        self.events
            .push(Reverse((at.max(self.now), self.planned, event)));
    }

    /// The fibre of `vcpu` is resumed then, unless something else comes first.
    pub fn goes(&mut self, vcpu: usize, at: Time) {
        let stamp = self.vcpus[vcpu].stamp;
        self.plan(at, Event::Go { vcpu, stamp });
    }

    /// Moves the clock to the next event. `None` where nothing is left that could wake anybody.
    pub fn next(&mut self) -> Option<Event> {
        let Reverse((at, _, event)) = self.events.pop()?;
        self.now = at;
        self.handled += 1;
        if matches!(event, Event::Balance { .. } | Event::Chore { .. }) && self.sleeps() {
            // These come for ever, and wake nobody.
            return None;
        }
        if let Event::Balance { all } = event {
            let (often, seldom) = self.host.scheduler.balance;
            self.plan(at + if all { seldom } else { often }, event);
        }
        Some(event)
    }

    /// Whether the caller is to be asked now if it wants to go on.
    pub fn looks(&mut self) -> bool {
        let due = self.now >= self.look || self.handled.is_multiple_of(EVENTS_PER_LOOK);
        if due {
            self.look = self.now + LOOK;
        }
        due
    }

    /// Whether all sleep, and for ever.
    fn sleeps(&self) -> bool {
        let asleep = |vcpu: &Vcpu| match vcpu.doing {
            Doing::Asleep(halt) => halt.until.is_none(),
            Doing::Ended => true,
            _ => false,
        };
        self.left > 0 && self.vcpus[..self.team].iter().all(asleep)
    }

    /// What an event does; whose fibre is to be resumed.
    pub fn handle(&mut self, event: Event) -> Option<usize> {
        match event {
            Event::Go { vcpu, stamp } if self.vcpus[vcpu].stamp == stamp => {
                self.resumes(vcpu);
                return Some(vcpu);
            }
            Event::Serve { line } => {
                self.cache.serve(self.now, line);
                self.answer();
            }
            Event::Slice { cpu, stamp } if self.slices[cpu].1 == stamp => self.slice(cpu),
            Event::Again { vcpu, turn } => self.again(vcpu, turn),
            Event::Timeout { vcpu, stamp } if self.vcpus[vcpu].stamp == stamp => {
                self.wakes(vcpu, None);
            }
            Event::PollEnd { vcpu, stamp } if self.vcpus[vcpu].stamp == stamp => {
                self.stops_polling(vcpu);
            }
            Event::Chore { cpu, length } => self.chore(cpu, length),
            Event::Balance { all } => self.balance(all),
            _ => {}
        }
        None
    }

    fn resumes(&mut self, vcpu: usize) {
        let state = &mut self.vcpus[vcpu];
        if let Doing::Watch { line, .. } = state.doing {
            // Its limit has come, or the processor has had enough, or it has lost the line.
            self.cache.unwatch(vcpu, line);
            if let Some((since, until)) = &mut state.spins {
                *until = self.now;
                state.spun_long = self.now - *since >= state.window;
            }
        }
        state.doing = Doing::Running;
        state.stamp += 1;
    }
}

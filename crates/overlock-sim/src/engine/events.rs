//! Events and their queue.

use std::cmp::Ordering;

use super::state::Engine;
use super::vcpu::{Doing, Vcpu};
use crate::time::Time;

/// The largest time, and number of events, between two checks whether to go on.
pub(super) const CHECK_INTERVAL: Time = Time::ms(1);
const EVENTS_PER_CHECK: u64 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Resume the vCPU's fibre.
    Go {
        vcpu: usize,
        stamp: u64,
    },
    /// Serve a line's queue.
    Serve {
        line: usize,
    },
    /// The line of a buffered store is there.
    Owned {
        vcpu: usize,
        core: usize,
        line: usize,
    },
    /// A slice may be over.
    Slice {
        cpu: usize,
        stamp: u64,
    },
    /// Another vCPU wanted the CPU during the context switch to this one.
    Again {
        vcpu: usize,
        dispatch: u64,
    },
    /// A sleeper's timeout.
    Timeout {
        vcpu: usize,
        stamp: u64,
    },
    PollEnd {
        vcpu: usize,
        stamp: u64,
    },
    /// The host takes a CPU for itself, for this long; or gives it back.
    Chore {
        cpu: usize,
        length: Option<Time>,
    },
    /// Compare the queues of CPUs.
    Balance {
        all: bool,
    },
}

/// A scheduled event. The earliest one is the greatest, for the heap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub at: Time,
    /// The order of events of the same time. No two events have the same number.
    pub number: u64,
    pub event: Event,
}

impl Planned {
    /// The heap compares events most of the time that a simulation takes: two words without a
    /// branch between them are compared fastest.
    fn key(&self) -> u128 {
        u128::from(self.at.as_ps()) << 64 | u128::from(self.number)
    }
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Planned {}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[inline]
    fn le(&self, other: &Self) -> bool {
        self.key() >= other.key()
    }

    #[inline]
    fn lt(&self, other: &Self) -> bool {
        self.key() > other.key()
    }

    #[inline]
    fn ge(&self, other: &Self) -> bool {
        self.key() <= other.key()
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl Engine {
    pub fn plan(&mut self, at: Time, event: Event) {
        self.planned += 1;
        self.events.push(Planned {
            at: at.max(self.now),
            number: self.planned,
            event,
        });
    }

    /// Schedules the resumption of `vcpu`, unless an earlier event intervenes.
    pub fn goes(&mut self, vcpu: usize, at: Time) {
        let stamp = self.vcpus[vcpu].stamp;
        self.plan(at, Event::Go { vcpu, stamp });
    }

    /// Advances the clock to the next event. Returns `None` if no event can wake a vCPU.
    pub fn next(&mut self) -> Option<Event> {
        let Planned { at, event, .. } = self.events.pop()?;
        self.now = at;
        self.handled += 1;
        if matches!(event, Event::Balance { .. } | Event::Chore { .. }) && self.all_sleep() {
            // These recur for ever, and wake no vCPU.
            return None;
        }
        if let Event::Balance { all } = event {
            let (often, seldom) = self.host.scheduler.balance;
            self.plan(at + if all { seldom } else { often }, event);
        }
        Some(event)
    }

    /// Whether to check now if the caller wants to go on.
    pub fn is_check_due(&mut self) -> bool {
        let due = self.now >= self.next_check || self.handled.is_multiple_of(EVENTS_PER_CHECK);
        if due {
            self.next_check = self.now + CHECK_INTERVAL;
        }
        due
    }

    /// Whether all vCPUs sleep without a timeout.
    fn all_sleep(&self) -> bool {
        let asleep = |vcpu: &Vcpu| match vcpu.doing {
            Doing::Asleep(halt) => halt.until.is_none(),
            Doing::Ended => true,
            _ => false,
        };
        self.left > 0 && self.vcpus[..self.fibres].iter().all(asleep)
    }

    /// Handles an event. Returns the vCPU whose fibre is to be resumed.
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
            Event::Owned { vcpu, core, line } => self.owned(vcpu, core, line),
            Event::Slice { cpu, stamp } if self.slices[cpu].1 == stamp => self.slice(cpu),
            Event::Again { vcpu, dispatch } => self.again(vcpu, dispatch),
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
            // Its time limit, a pause-loop exit, or the loss of the line.
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

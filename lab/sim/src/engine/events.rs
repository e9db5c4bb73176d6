//! Events.

use super::Stuck;
use super::queue::Next;
use super::state::Engine;
use super::vcpu::{Doing, Vcpu};
use crate::time::Time;

/// The largest time, and number of events, between two checks whether to go on.
pub(super) const CHECK_INTERVAL: Time = Time::ms(1);
const EVENTS_PER_CHECK: u64 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Resume the vCPU's fibre. The event of the vCPU as a source.
    Go {
        vcpu: usize,
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
    /// A slice may be over. The event of the CPU as a source: these follow the vCPUs.
    Slice {
        cpu: usize,
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
    /// The warm-up may be over.
    Begin,
    /// A window of the measured time is over.
    Window,
    /// The time is up.
    Stop,
}

impl Engine {
    pub fn plan(&mut self, at: Time, event: Event) {
        self.events.plan(at.max(self.now), event);
    }

    /// Schedules the resumption of `vcpu`, unless an earlier event intervenes.
    pub fn goes(&mut self, vcpu: usize, at: Time) {
        self.events.plan_of(vcpu, at.max(self.now));
    }

    /// `vcpu` does something else: its resumption is not due any more, nor the end of its sleep.
    pub fn turns(&mut self, vcpu: usize) {
        self.vcpus[vcpu].stamp += 1;
        self.events.cancel(vcpu);
    }

    /// Schedules the end of the slice on a CPU, unless an earlier one is scheduled.
    pub fn slice_ends(&mut self, cpu: usize, at: Time) {
        self.events
            .plan_of(self.vcpus.len() + cpu, at.max(self.now));
    }

    /// The slice on a CPU is over.
    pub fn slice_ended(&mut self, cpu: usize) {
        self.events.cancel(self.vcpus.len() + cpu);
    }

    /// Handles events until a fibre is to be resumed, and returns its vCPU; `None` once all have
    /// ended. It is not generic, so all of it is compiled as one piece, in this crate.
    pub fn advance(
        &mut self,
        patience: Time,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<usize>, Stuck> {
        while self.left > 0 {
            let vcpus = self.left;
            let event = self.next().ok_or(Stuck::Asleep { vcpus })?;
            if self.is_check_due() && !self.interrupted && !go_on() {
                self.interrupted = true;
                self.stop_after = self.stop_after.min(self.now);
            }
            if self.now > self.stop_after + patience {
                return Err(Stuck::Running { vcpus });
            }
            let resumed = self.handle(event);
            if resumed.is_some() {
                return Ok(resumed);
            }
        }
        Ok(None)
    }

    /// Advances the clock to the next event. Returns `None` if no event can wake a vCPU.
    fn next(&mut self) -> Option<Event> {
        let (at, next) = self.events.pop()?;
        let event = match next {
            Next::Other(event) => event,
            Next::Of(source) => match source.checked_sub(self.vcpus.len()) {
                None => Event::Go { vcpu: source },
                Some(cpu) => Event::Slice { cpu },
            },
        };
        self.now = at;
        self.handled += 1;
        let recurs = matches!(
            event,
            Event::Balance { .. } | Event::Chore { .. } | Event::Begin | Event::Window
        );
        if recurs && self.all_sleep() {
            // These recur for ever, and wake no vCPU.
            return None;
        }
        if let Event::Balance { all } = event {
            let rules = &self.host.scheduler;
            let interval = if all {
                rules.balance_all
            } else {
                rules.balance_idle
            };
            self.plan(at + interval, event);
        }
        Some(event)
    }

    /// Whether to check now if the caller wants to go on.
    fn is_check_due(&mut self) -> bool {
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
    fn handle(&mut self, event: Event) -> Option<usize> {
        match event {
            Event::Go { vcpu } => {
                self.resumes(vcpu);
                return self.goes_on_spinning(vcpu).then_some(vcpu);
            }
            Event::Serve { line } => self.serves(line),
            Event::Owned { vcpu, core, line } => self.owned(vcpu, core, line),
            Event::Slice { cpu } => self.slice(cpu),
            Event::Again { vcpu, dispatch } => self.again(vcpu, dispatch),
            Event::Timeout { vcpu, stamp } if self.vcpus[vcpu].stamp == stamp => {
                self.times_out(vcpu);
            }
            Event::PollEnd { vcpu, stamp } if self.vcpus[vcpu].stamp == stamp => {
                self.stops_polling(vcpu);
            }
            Event::Chore { cpu, length } => self.chore(cpu, length),
            Event::Balance { all } => self.balance(all),
            Event::Begin => self.begins(),
            Event::Window => self.window_ends(),
            Event::Stop => self.at_stop = Some(self.figures()),
            // The sleep has ended before.
            Event::Timeout { .. } | Event::PollEnd { .. } => {}
        }
        None
    }

    fn resumes(&mut self, vcpu: usize) {
        self.settles(vcpu);
        if let Doing::Watch { line, since } = self.vcpus[vcpu].doing {
            // Its time limit, a pause-loop exit, or the loss of the line.
            self.cache.unwatch(vcpu, line);
            let state = &mut self.vcpus[vcpu];
            state.polled(since, self.now);
            if let Some((since, until)) = &mut state.spins {
                *until = self.now;
                state.spun_long = self.now - *since >= state.window;
            }
        }
        let state = &mut self.vcpus[vcpu];
        state.doing = Doing::Running;
        state.stamp += 1;
    }
}

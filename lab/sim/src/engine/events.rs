//! Events.

use super::state::Engine;
use super::vcpu::{Doing, Vcpu};
use super::{Stuck, Windows};
use crate::time::Time;

/// The largest time, and number of events, between two checks whether to go on.
pub(super) const CHECK_INTERVAL: Time = Time::ms(1);
const EVENTS_PER_CHECK: u64 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Resume this vCPU's fibre. The event of the vCPU as a source.
    Go(usize),
    /// Serve the queue of this line.
    Serve(usize),
    /// The line for the buffered store of this vCPU is there.
    Owned(usize),
    /// The slice of this CPU may be over. The event of the CPU as a source: these follow the vCPUs.
    Slice(usize),
    /// Another vCPU wanted the CPU during the context switch to this one, of this number.
    Again { vcpu: usize, dispatch: u64 },
    /// The end of this vCPU's halt, unless its stamp is another one by then.
    Timeout { vcpu: usize, stamp: u64 },
    /// The host takes this CPU for itself, for so long; or gives it back.
    Chore(usize, Option<Time>),
    /// Compare the queues of CPUs.
    Balance { all: bool },
    /// The warm-up may be over.
    Begin(Windows),
    /// A window of the measured time is over.
    Window(Windows),
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
            if self.now >= self.next_check || self.handled.is_multiple_of(EVENTS_PER_CHECK) {
                self.next_check = self.now + CHECK_INTERVAL;
                if !go_on() {
                    return Err(Stuck::Interrupted);
                }
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
        let (at, event) = self.events.pop()?;
        self.now = at;
        self.handled += 1;
        let recurs = matches!(
            event,
            Event::Balance { .. } | Event::Chore(..) | Event::Begin(_) | Event::Window(_)
        );
        // These recur for ever, and wake no vCPU.
        (!recurs || !self.all_sleep()).then_some(event)
    }

    /// Whether all vCPUs sleep without a timeout.
    fn all_sleep(&self) -> bool {
        let asleep = |vcpu: &Vcpu| match vcpu.doing {
            Doing::Asleep => vcpu.until.is_none(),
            Doing::Ended => true,
            _ => false,
        };
        self.vcpus[..self.fibres].iter().all(asleep)
    }

    /// Handles an event. Returns the vCPU whose fibre is to be resumed.
    fn handle(&mut self, event: Event) -> Option<usize> {
        match event {
            Event::Go(vcpu) => {
                self.resumes(vcpu);
                return self.spins(vcpu).then_some(vcpu);
            }
            Event::Serve(line) => self.serves(line),
            Event::Owned(vcpu) => self.owned(vcpu),
            Event::Slice(cpu) => self.slice(cpu),
            Event::Again { vcpu, dispatch } => self.again(vcpu, dispatch),
            Event::Timeout { vcpu, stamp } if self.vcpus[vcpu].stamp == stamp => {
                self.leaves_sleepers(vcpu);
                self.wakes(vcpu, None);
            }
            Event::Timeout { .. } => {}
            Event::Chore(cpu, length) => self.chore(cpu, length),
            Event::Balance { all } => self.balance(all),
            Event::Begin(windows) => self.begins(windows),
            Event::Window(windows) => self.window_ends(windows),
            Event::Stop => self.at_stop = Some(self.figures()),
        }
        None
    }

    fn resumes(&mut self, vcpu: usize) {
        self.settles(vcpu);
        let now = self.now;
        let state = &mut self.vcpus[vcpu];
        if let Doing::Watch { line, since } = state.doing {
            // Its time limit, a pause-loop exit, or the loss of the line.
            self.cache.unwatch(vcpu, line);
            state.polled(since, now);
            state.paused(now);
            state.spun_long = now >= state.noticed();
        }
        state.doing = Doing::Running;
        state.stamp += 1;
    }
}

//! Actions of the host: gives CPUs to its vCPUs and takes them away, puts vCPUs to sleep and wakes
//! them, balances them over CPUs and cores, and does work of its own.

use rand::RngExt;

use super::events::Event;
use super::state::Engine;
use super::vcpu::Doing;
use crate::account::State;
use crate::schedule::Placed;
use crate::time::Time;
use crate::trace::What;

impl Engine {
    /// Gives a free CPU to the next vCPU, if there is one, after the host has used it for `busy`.
    pub fn dispatch(&mut self, cpu: usize, busy: Time) {
        self.events.cancel(self.vcpus.len() + cpu);
        let Some((vcpu, switches)) = self.schedule.pick(self.now, cpu) else {
            return;
        };
        let delay = std::mem::take(&mut self.vcpus[vcpu].delay);
        let switch = self.host.scheduler.switch.times(u64::from(switches));
        self.put_on(vcpu, cpu, busy + delay + switch);
        self.plan_slice(cpu);
    }

    /// Schedules the end of the slice, after the queue of the CPU has changed.
    pub fn plan_slice(&mut self, cpu: usize) {
        if let Some(end) = self.schedule.slice_end(cpu) {
            let source = self.vcpus.len() + cpu;
            self.events.plan_of(source, end.max(self.now));
        }
    }

    pub fn slice(&mut self, cpu: usize) {
        match self.schedule.slice_end(cpu) {
            Some(end) if end <= self.now => self.reschedule(cpu),
            _ => self.plan_slice(cpu),
        }
    }

    /// Makes the CPU choose again.
    pub fn reschedule(&mut self, cpu: usize) {
        let Some(current) = self.schedule.current(cpu) else {
            return self.dispatch(cpu, Time::ZERO);
        };
        self.settles(current);
        let state = &mut self.vcpus[current];
        match state.doing {
            Doing::Access | Doing::Running => state.preempt_pending = true,
            // In the middle of an instruction, too.
            Doing::Busy { .. } if state.state == State::Memory => state.preempt_pending = true,
            // Nor during a context switch to it. It then runs for as long as an interrupt takes to
            // arrive: otherwise vCPUs that yield could make a CPU do nothing but switch.
            Doing::Busy { .. } if state.comes() > self.now => {
                let (dispatch, at) = (state.dispatches, state.comes() + self.host.brief);
                let vcpu = current;
                self.plan(at, Event::Again { vcpu, dispatch });
            }
            _ => self.preempt(current),
        }
    }

    /// A reschedule that was requested during the context switch of `vcpu` with this number.
    pub fn again(&mut self, vcpu: usize, dispatch: u64) {
        let cpu = self.schedule.cpu(vcpu);
        if self.vcpus[vcpu].dispatches == dispatch && self.schedule.current(cpu) == Some(vcpu) {
            self.reschedule(cpu);
        }
    }

    /// Preempts `vcpu`, which has a CPU.
    fn preempt(&mut self, vcpu: usize) {
        if self.requeue(vcpu) && vcpu < self.fibres {
            let state = &self.vcpus[vcpu];
            self.counts.preemptions += 1;
            self.counts.holders += u64::from(state.holds > 0);
            self.counts.waiters += u64::from(state.waits);
        }
    }

    /// Moves `vcpu`, which has a CPU, to the queue. Returns false if it is the next one itself.
    fn requeue(&mut self, vcpu: usize) -> bool {
        let cpu = self.schedule.cpu(vcpu);
        self.take_off(vcpu);
        self.schedule.preempt(self.now, cpu);
        self.dispatch(cpu, Time::ZERO);
        let lost = self.schedule.current(cpu) != Some(vcpu);
        if lost {
            self.mark(vcpu, What::Preempted);
        }
        lost
    }

    /// Preempts `vcpu` if that was deferred until after its instruction. Returns whether it was.
    pub fn preempt_deferred(&mut self, vcpu: usize) -> bool {
        let preempt_pending = std::mem::take(&mut self.vcpus[vcpu].preempt_pending);
        if preempt_pending {
            self.preempt(vcpu);
        }
        preempt_pending
    }

    /// Yields the CPU of `vcpu` if another vCPU is queued for it. Returns whether it did.
    pub fn rests(&mut self, vcpu: usize) -> bool {
        let cpu = self.schedule.cpu(vcpu);
        if self.schedule.waiting(cpu) == 0 {
            return false;
        }
        self.schedule.skips(vcpu);
        self.requeue(vcpu);
        true
    }

    /// Halts `vcpu`, one of the sleepers. Returns false if it need not be suspended: it has been
    /// kicked since it joined them, or the time is over.
    pub fn halts(&mut self, vcpu: usize, until: Option<Time>) -> bool {
        if self.vcpus[vcpu].sleeps_at.is_none() {
            return false;
        }
        if until.is_some_and(|until| until <= self.now) {
            self.leaves_sleepers(vcpu);
            return false;
        }
        self.counts.halts += 1;
        self.mark(vcpu, What::Sleeps);
        self.turns(vcpu);
        let state = &mut self.vcpus[vcpu];
        (state.doing, state.until) = (Doing::Asleep, until);
        let stamp = state.stamp;
        if let Some(until) = until {
            self.plan(until, Event::Timeout { vcpu, stamp });
        }
        self.enter(vcpu, State::Asleep);
        // The way to here took that part of it.
        self.leaves_cpu(vcpu, self.host.halt.saturating_sub(self.host.brief));
        true
    }

    /// `vcpu`, which has a CPU, is not runnable any more.
    pub fn leaves_cpu(&mut self, vcpu: usize, busy: Time) {
        let cpu = self.schedule.cpu(vcpu);
        self.schedule.leave(self.now, cpu);
        self.dispatch(cpu, busy);
    }

    /// Wakes `vcpu`, if it has halted.
    pub fn wakes(&mut self, vcpu: usize, by: Option<usize>) {
        if self.vcpus[vcpu].doing != Doing::Asleep {
            return;
        }
        if let Some(by) = by {
            self.mark(vcpu, What::Kicked(by));
        }
        self.turns(vcpu);
        self.enter(vcpu, State::Ready);
        let by = by.map(|by| self.schedule.cpu(by));
        let placed = self.schedule.wake(self.now, vcpu, by);
        let state = &mut self.vcpus[vcpu];
        state.doing = Doing::READY;
        match placed {
            Placed::Idle(cpu, idle) => {
                state.delay = match idle >= self.host.awake {
                    true => self.host.wake_idle,
                    false => self.host.wake_busy,
                };
                self.dispatch(cpu, Time::ZERO);
            }
            Placed::Preempts(cpu) => {
                state.delay = self.host.wake_busy;
                self.reschedule(cpu);
            }
            Placed::Queued(cpu) => self.plan_slice(cpu),
        }
    }

    /// A pause-loop exit: the processor has noticed that `vcpu` spins.
    pub fn exits(&mut self, vcpu: usize) -> bool {
        let Some(exit) = self.host.pause_exit.used() else {
            return false;
        };
        self.counts.pause_exits += 1;
        let state = &mut self.vcpus[vcpu];
        state.spins = None;
        state.window = state.window.times(exit.grow);
        self.pass(vcpu, exit.cost, State::Host)
    }

    /// `vcpu` offers its CPU to the next preempted vCPU of its guest, cyclically from the last one
    /// that was offered one. Returns whether the fibre has to be suspended.
    pub fn yields(&mut self, vcpu: usize) -> bool {
        let count = self.fibres / self.boosted.len();
        let guest = vcpu / count;
        let first = guest * count;
        let next = first + self.boosted[guest] % count + 1;
        let mut others = (next..first + count).chain(first..next);
        let Some(target) = others.find(|&other| self.preempted[other]) else {
            return false;
        };
        self.boosted[guest] = target;
        let Some(other) = self.schedule.yield_to(vcpu, target) else {
            return false;
        };
        self.counts.yields += 1;
        let own = self.schedule.cpu(vcpu);
        if other != own {
            self.reschedule(other);
        }
        self.schedule.waiting(own) > 0 && {
            self.requeue(vcpu);
            true
        }
    }

    /// Gives a CPU to `vcpu`, which runs after `delay`.
    pub fn put_on(&mut self, vcpu: usize, cpu: usize, mut delay: Time) {
        let Doing::Off { left, with } = self.vcpus[vcpu].doing else {
            unreachable!("only vCPUs without a CPU get one")
        };
        let before = self.vcpus[vcpu].ran_on.replace(cpu);
        if before.is_some_and(|before| before != cpu) {
            self.counts.migrations += u64::from(vcpu < self.fibres);
            delay += self.host.scheduler.migration;
        }
        self.mark(vcpu, What::On(cpu));
        self.enter(vcpu, with);
        let state = &mut self.vcpus[vcpu];
        state.overhead = delay;
        state.dispatches += 1;
        state.preempt_pending = false;
        state.spins = None;
        if let Some(exit) = self.host.pause_exit.used() {
            state.window = exit.window;
        }
        self.preempted[vcpu] = false;
        self.busy(vcpu, self.now + delay + left);
    }

    /// Takes the CPU from `vcpu`.
    pub fn take_off(&mut self, vcpu: usize) {
        debug_assert!(!self.ahead[vcpu].is_on);
        debug_assert!(self.vcpus[vcpu].can_lose_cpu(self.now));
        let off = match self.vcpus[vcpu].doing {
            Doing::Busy { until } => Doing::Off {
                left: self.rest_of_turn(vcpu, until - self.now),
                with: self.vcpus[vcpu].state,
            },
            Doing::Watch { line, since } => {
                self.vcpus[vcpu].polled(since, self.now);
                self.cache.unwatch(vcpu, line);
                Doing::READY
            }
            Doing::Running => Doing::READY,
            doing => unreachable!("{doing:?} keeps its CPU"),
        };
        self.enter(vcpu, State::Ready);
        let state = &mut self.vcpus[vcpu];
        state.doing = off;
        state.preempt_pending = false;
        self.preempted[vcpu] = true;
        self.turns(vcpu);
    }

    /// Schedules the host's next work on a CPU, with random interval and length around their means.
    pub fn plan_chore(&mut self, cpu: usize) {
        let rules = self.host.scheduler;
        if rules.chores_length > Time::ZERO {
            // The logarithm of the host's C library would depend on the library and the processor.
            let mut draw =
                |mean: Time| mean.scale(-libm::log(self.random.random_range(1e-9..1.0_f64)));
            let (pause, length) = (draw(rules.chores_every), draw(rules.chores_length));
            self.plan(self.now + pause, Event::Chore(cpu, Some(length)));
        }
    }

    /// The host takes a CPU, or gives it back.
    pub fn chore(&mut self, cpu: usize, length: Option<Time>) {
        self.schedule.reserve(cpu, length.is_some());
        if let Some(length) = length {
            self.plan(self.now + length, Event::Chore(cpu, None));
        } else {
            self.plan_chore(cpu);
        }
        self.reschedule(cpu);
    }

    /// Whether all vCPUs on CPUs are active and all others are not, and no CPU is idle while a vCPU
    /// is queued for it.
    fn is_sound(&self) -> bool {
        let ready = |vcpu: usize| {
            let doing = self.vcpus[vcpu].doing;
            !matches!(doing, Doing::Asleep | Doing::Ended)
        };
        let runs = |cpu: usize| {
            let current = self.schedule.current(cpu);
            let doing = current.map(|vcpu| self.vcpus[vcpu].doing);
            !matches!(doing, Some(Doing::Off { .. } | Doing::Running))
        };
        self.schedule.is_sound(ready) && (0..self.schedule.cpus()).all(runs)
    }

    /// Idle CPUs search for work; at times all CPUs compare their queues.
    pub fn balance(&mut self, all: bool) {
        debug_assert!(self.is_sound());
        let rules = &self.host.scheduler;
        let interval = if all {
            rules.balance_all
        } else {
            rules.balance_idle
        };
        self.plan(self.now + interval, Event::Balance { all });
        for cpu in 0..self.schedule.cpus() {
            if self.schedule.is_idle(cpu) {
                if self.schedule.pull(self.now, cpu, 1) {
                    self.dispatch(cpu, Time::ZERO);
                }
            } else if all && self.schedule.pull(self.now, cpu, 2) {
                self.plan_slice(cpu);
            }
        }
    }
}

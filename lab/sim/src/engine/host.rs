//! Actions of the host: gives CPUs to its vCPUs and takes them away, puts vCPUs to sleep and wakes
//! them.

use super::events::Event;
use super::state::Engine;
use super::vcpu::{Doing, Halt};
use crate::account::State;
use crate::schedule::Placed;
use crate::time::Time;
use crate::trace::What;

impl Engine {
    /// Gives a free CPU to the next vCPU, if there is one.
    pub fn dispatch(&mut self, cpu: usize) {
        self.dispatch_after(cpu, Time::ZERO);
    }

    /// The same, after the host has used the CPU for `busy`.
    fn dispatch_after(&mut self, cpu: usize, busy: Time) {
        self.slice_ended(cpu);
        let Some(pick) = self.schedule.pick(self.now, cpu) else {
            return;
        };
        let delay = std::mem::take(&mut self.vcpus[pick.vcpu].delay);
        let switch = if pick.same {
            Time::ZERO
        } else {
            self.host.scheduler.switch
        };
        self.put_on(pick.vcpu, cpu, busy + delay + switch);
        self.plan_slice(cpu);
    }

    /// Schedules the end of the slice, after the queue of the CPU has changed.
    pub fn plan_slice(&mut self, cpu: usize) {
        if let Some(end) = self.schedule.slice_end(cpu) {
            self.slice_ends(cpu, end);
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
            return self.dispatch(cpu);
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
                self.plan(
                    at,
                    Event::Again {
                        vcpu: current,
                        dispatch,
                    },
                );
            }
            Doing::Polled(_) => self.stops_polling(current),
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
        self.dispatch(cpu);
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

    /// `vcpu` is about to halt: from here on a kick for `address` wakes it.
    pub fn joins_sleepers(&mut self, vcpu: usize, address: usize) {
        self.vcpus[vcpu].sleeps_at = Some(address);
        self.sleepers.entry(address).or_default().push(vcpu);
    }

    /// The first vCPU that sleeps for the word at `from`, or is about to, does so for that at `to`.
    pub fn moves_sleeper(&mut self, from: usize, to: usize) {
        let sleepers = self.sleepers.get(&from);
        if let Some(&vcpu) = sleepers.and_then(|sleepers| sleepers.first()) {
            self.leaves_sleepers(vcpu);
            self.joins_sleepers(vcpu, to);
        }
    }

    /// `vcpu` does not sleep for any word any more.
    fn leaves_sleepers(&mut self, vcpu: usize) {
        let Some(address) = self.vcpus[vcpu].sleeps_at.take() else {
            return;
        };
        if let Some(waiting) = self.sleepers.get_mut(&address) {
            waiting.retain(|&waiting| waiting != vcpu);
            if waiting.is_empty() {
                self.sleepers.remove(&address);
            }
        }
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
        let cpu = self.schedule.cpu(vcpu);
        let halt = Halt {
            since: self.now,
            until,
        };
        let poll = self.vcpus[vcpu].poll;
        let polls = poll > Time::ZERO && self.schedule.waiting(cpu) == 0;
        self.mark(vcpu, What::Sleeps);
        self.turns(vcpu);
        if let Some(until) = until {
            let stamp = self.vcpus[vcpu].stamp;
            self.plan(until, Event::Timeout { vcpu, stamp });
        }
        self.vcpus[vcpu].doing = if polls {
            self.enter(vcpu, State::Host);
            let stamp = self.vcpus[vcpu].stamp;
            self.plan(self.now + poll, Event::PollEnd { vcpu, stamp });
            Doing::Polled(halt)
        } else {
            self.enter(vcpu, State::Asleep);
            Doing::Asleep(halt)
        };
        if !polls {
            self.schedule.leave(self.now, cpu);
            // The way to here took that part of it.
            let busy = self.host.halt.saturating_sub(self.host.brief);
            self.dispatch_after(cpu, busy);
        }
        true
    }

    /// The host of `vcpu` stops polling and gives the CPU away.
    pub fn stops_polling(&mut self, vcpu: usize) {
        let Doing::Polled(halt) = self.vcpus[vcpu].doing else {
            return;
        };
        self.enter(vcpu, State::Asleep);
        self.vcpus[vcpu].doing = Doing::Asleep(halt);
        let cpu = self.schedule.cpu(vcpu);
        self.schedule.leave(self.now, cpu);
        self.dispatch(cpu);
    }

    /// Returns the cost of a kick for the word at `address`.
    pub fn kick_costs(&self, address: usize) -> Time {
        match self.sleepers.contains_key(&address) {
            true => self.host.kick,
            false => self.host.kick_nobody,
        }
    }

    /// Returns the number of vCPUs that have halted for the word at `address`.
    pub fn sleepers_at(&self, address: usize) -> usize {
        self.sleepers.get(&address).map_or(0, Vec::len)
    }

    /// Wakes the first vCPU that has halted for the word at `address`.
    pub fn kick(&mut self, by: usize, address: usize) {
        self.counts.kicks += 1;
        if let Some(&vcpu) = self
            .sleepers
            .get(&address)
            .and_then(|waiting| waiting.first())
        {
            self.leaves_sleepers(vcpu);
            self.wakes(vcpu, Some(by));
        }
    }

    /// The time is over until which `vcpu` has halted.
    pub fn times_out(&mut self, vcpu: usize) {
        if let Doing::Asleep(_) | Doing::Polled(_) = self.vcpus[vcpu].doing {
            self.leaves_sleepers(vcpu);
            self.wakes(vcpu, None);
        }
    }

    /// Wakes `vcpu`, if it has halted.
    fn wakes(&mut self, vcpu: usize, by: Option<usize>) {
        let (Doing::Asleep(halt) | Doing::Polled(halt)) = self.vcpus[vcpu].doing else {
            return;
        };
        if let Some(by) = by {
            self.mark(vcpu, What::Kicked(by));
        }
        self.learn_poll(vcpu, self.now - halt.since);
        self.turns(vcpu);
        if matches!(self.vcpus[vcpu].doing, Doing::Polled(_)) {
            self.mark(vcpu, What::On(self.schedule.cpu(vcpu)));
            return self.busy(vcpu, self.now + self.host.brief);
        }
        self.enter(vcpu, State::Ready);
        self.vcpus[vcpu].doing = Doing::READY;
        let by = by.map(|by| self.schedule.cpu(by));
        match self.schedule.wake(self.now, vcpu, by) {
            Placed::Idle(cpu, idle) => {
                let asleep = idle >= self.host.awake;
                self.vcpus[vcpu].delay = if asleep {
                    self.host.wake_idle
                } else {
                    self.host.wake_busy
                };
                self.dispatch(cpu);
            }
            Placed::Preempts(cpu) => {
                self.vcpus[vcpu].delay = self.host.wake_busy;
                self.reschedule(cpu);
            }
            Placed::Queued(cpu) => {
                let current = self.schedule.current(cpu);
                // A host stops polling as soon as another vCPU wants the CPU.
                let polled = current
                    .filter(|&current| matches!(self.vcpus[current].doing, Doing::Polled(_)));
                match polled {
                    Some(polled) => self.stops_polling(polled),
                    None => self.plan_slice(cpu),
                }
            }
        }
    }

    /// Adapts the polling time of `vcpu` to the length of its sleep.
    fn learn_poll(&mut self, vcpu: usize, slept: Time) {
        let most = self.host.poll;
        let poll = &mut self.vcpus[vcpu].poll;
        if slept > *poll && slept < most {
            *poll = (*poll).max(self.host.first_poll.half()).times(2).min(most);
        } else if slept > most {
            *poll = Time::ZERO;
        }
    }

    /// A pause-loop exit: the processor has noticed that `vcpu` spins.
    pub fn exits(&mut self, vcpu: usize) -> bool {
        let Some(exit) = self.host.pause_exit.used() else {
            return false;
        };
        self.counts.pause_exits += 1;
        self.forgets_pauses(vcpu);
        let state = &mut self.vcpus[vcpu];
        state.spinning = true;
        state.window = state.window.times(exit.grow);
        let cost = exit.cost;
        self.pass(vcpu, cost, State::Host)
    }

    /// `vcpu` yields its CPU to a preempted vCPU. Returns whether the fibre has to be suspended.
    pub fn yields(&mut self, vcpu: usize) -> bool {
        let target = self.yield_target(vcpu);
        target.is_some_and(|target| {
            let guest = target / self.guest_vcpus();
            self.boosted[guest] = target;
            self.yield_to(vcpu, target)
        })
    }

    /// `vcpu` enters the guest after an exit.
    pub fn enters_guest(&mut self, vcpu: usize) {
        let state = &mut self.vcpus[vcpu];
        state.spinning = false;
        state.eligible = false;
    }

    /// Returns the number of vCPUs of a guest.
    fn guest_vcpus(&self) -> usize {
        self.fibres / self.boosted.len()
    }

    /// Returns the next preempted vCPU of the guest, cyclically from the last target. A target that
    /// was spinning itself is eligible every other time.
    fn yield_target(&mut self, vcpu: usize) -> Option<usize> {
        let count = self.guest_vcpus();
        let guest = vcpu / count;
        let boosted = self.boosted[guest];
        let (first, next) = (guest * count, guest * count + boosted % count + 1);
        for range in [next..first + count, first..next] {
            let mut from = range.start;
            while let Some(other) = self.preempted.first_in(from..range.end) {
                let candidate = &mut self.vcpus[other];
                if !candidate.spinning {
                    return Some(other);
                }
                candidate.eligible = !candidate.eligible;
                if !candidate.eligible {
                    return Some(other);
                }
                from = other + 1;
            }
        }
        None
    }

    fn yield_to(&mut self, vcpu: usize, target: usize) -> bool {
        let Some(other) = self.schedule.yield_to(vcpu, target) else {
            return false;
        };
        self.counts.yields += 1;
        let own = self.schedule.cpu(vcpu);
        if other != own {
            self.reschedule(other);
        }
        if self.schedule.waiting(own) == 0 {
            return false;
        }
        self.requeue(vcpu);
        true
    }
}

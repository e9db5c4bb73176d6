//! Which CPU a woken vCPU gets, and which vCPUs move to another one.

use super::{Placed, Schedule};
use crate::time::Time;

impl Schedule {
    /// Places a vCPU that wakes, woken from the CPU `by`.
    pub fn wake(&mut self, now: Time, vcpu: usize, by: Option<usize>) -> Placed {
        let before = self.tasks[vcpu].cpu;
        let cpu = self.idle_near(before, by).unwrap_or(before);
        self.charge(now, cpu);
        self.place_woken(vcpu, cpu);
        self.queue(vcpu, cpu);
        match self.cpus[cpu].current {
            None if self.cpus[cpu].reserved => Placed::Queued(cpu),
            None => {
                let state = &mut self.cpus[cpu];
                let idle = now - state.idle;
                let most = self.rules.worth.times(2);
                let mean_idle = state.mean_idle.times(7) + idle.min(most);
                state.mean_idle = Time::ps(mean_idle.as_ps() / 8);
                Placed::Idle(cpu, idle)
            }
            Some(current) if self.is_preempted_by(current, vcpu) => Placed::Preempts(cpu),
            Some(_) => Placed::Queued(cpu),
        }
    }

    /// Returns an idle CPU: itself, or else one that shares its last-level cache, or that of the
    /// waker. Cores without a busy thread come first.
    pub(super) fn idle_near(&self, cpu: usize, by: Option<usize>) -> Option<usize> {
        let idle = |cpu: usize| self.is_idle(cpu);
        if idle(cpu) {
            return Some(cpu);
        }
        std::iter::once(cpu)
            .chain(by)
            .flat_map(|near| self.machine.cpus_sharing(near))
            .filter(|&other| idle(other))
            .min_by_key(|&other| {
                let siblings = self.machine.cpus_of(self.machine.core_of(other));
                siblings.filter(|&sibling| !idle(sibling)).count()
            })
    }

    /// Moves a vCPU from the longest queue to `cpu`, if that CPU has at least `excess` more.
    /// Returns whether it did.
    pub fn pull(&mut self, now: Time, cpu: usize, excess: usize) -> bool {
        let own = self.load(cpu);
        let busiest = (0..self.cpus.len())
            .filter(|&other| other != cpu && !self.cpus[other].queue.is_empty())
            .max_by_key(|&other| (self.load(other), other));
        let Some(busiest) = busiest.filter(|&busiest| self.load(busiest) >= own + excess) else {
            return false;
        };
        self.charge(now, busiest);
        self.charge(now, cpu);
        let queue = &self.cpus[busiest].queue;
        // The one with the most CPU time: the others will run sooner.
        let index = (0..queue.len()).max_by_key(|&index| self.tasks[queue[index]].vruntime);
        let vcpu = queue[index.expect("it is not empty")];
        self.place_moved(vcpu, cpu);
        self.cpus[busiest].queue.retain(|&waiting| waiting != vcpu);
        self.queue(vcpu, cpu);
        true
    }
}

//! Earliest eligible virtual deadline first, the scheduler of Linux since 6.6.
//!
//! All vCPUs have the same weight, so virtual time is CPU time. The lag of a vCPU is the mean CPU
//! time of those on its CPU less its own; it is eligible if its lag is not negative. Each has a
//! deadline, one request after the CPU time at which the request began. The eligible vCPU with the
//! earliest deadline is next. It runs until its deadline, but a waking vCPU may preempt it once it
//! is not eligible any more. A sleeper keeps its lag, up to two requests.

use super::Schedule;
use crate::time::Time;

impl Schedule {
    /// Returns the sum of the CPU times of the vCPUs that run on a CPU or are queued for it, and
    /// their number.
    fn totals(&self, cpu: usize) -> (u128, u128) {
        let vruntime = |vcpu: usize| u128::from(self.tasks[vcpu].vruntime.as_ps());
        let times = self.runnable(cpu).map(vruntime);
        times.fold((0, 0), |(sum, count), time| (sum + time, count + 1))
    }

    /// Whether the lag of `vcpu`, on its CPU, is not negative.
    pub(super) fn is_eligible(&self, vcpu: usize) -> bool {
        let (sum, count) = self.totals(self.tasks[vcpu].cpu);
        u128::from(self.tasks[vcpu].vruntime.as_ps()) * count <= sum
    }

    /// Returns the eligible vCPU of the queue with the earliest deadline.
    pub(super) fn earliest(&self, cpu: usize) -> Option<usize> {
        let queue = self.cpus[cpu].queue.iter().copied();
        queue
            .filter(|&vcpu| self.is_eligible(vcpu))
            .min_by_key(|&vcpu| (self.tasks[vcpu].deadline, vcpu))
    }

    /// Chooses the next vCPU: the one that was yielded to if it is eligible, else the earliest.
    pub(super) fn choose_earliest(&mut self, cpu: usize) -> Option<usize> {
        let next = self.cpus[cpu].next.take();
        next.filter(|next| self.cpus[cpu].queue.contains(next) && self.is_eligible(*next))
            .or_else(|| self.earliest(cpu))
    }

    /// Begins the next request of `vcpu` if its deadline is over.
    pub(super) fn renew(&mut self, vcpu: usize) {
        let task = &mut self.tasks[vcpu];
        if let Some(request) = self.rules.request
            && task.vruntime >= task.deadline
        {
            task.deadline = task.vruntime + request;
        }
    }

    /// `vcpu` is about to leave its CPU. Its lag is two requests at most either way.
    pub(super) fn keep_lag(&mut self, vcpu: usize) {
        let (sum, count) = self.totals(self.tasks[vcpu].cpu);
        let mean = (sum / count.max(1)) as i64;
        let most = self.rules.request.map_or(0, |request| request.as_ps() * 2) as i64;
        let task = &mut self.tasks[vcpu];
        task.lag = (mean - task.vruntime.as_ps() as i64).clamp(-most, most);
    }

    /// Sets the CPU time of `vcpu`, which is about to be queued for `cpu`, so that it has the lag
    /// there that it kept. Its deadline is `ahead` after it.
    pub(super) fn place(&mut self, vcpu: usize, cpu: usize, ahead: Time) {
        let (sum, count) = self.totals(cpu);
        let task = &mut self.tasks[vcpu];
        task.vruntime = match sum.checked_div(count) {
            None => self.cpus[cpu].min_vruntime,
            Some(mean) => {
                // It shifts the mean itself.
                let lag = task.lag + task.lag / count as i64;
                Time::ps((mean as i64 - lag).max(0) as u64)
            }
        };
        task.deadline = task.vruntime + ahead;
    }
}

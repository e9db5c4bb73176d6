//! Which vCPU of a queue is next, and how much of its CPU time counts.
//!
//! With CFS it is the vCPU with the least CPU time. With EEVDF, earliest eligible virtual deadline
//! first, the scheduler of Linux since 6.6, all vCPUs have the same weight, so virtual time is CPU
//! time. The lag of a vCPU is the mean CPU time of those on its CPU less its own; it is eligible if
//! its lag is not negative. Each has a deadline, one request after the CPU time at which the
//! request began. The eligible vCPU with the earliest deadline is next. It runs until its deadline,
//! but a waking vCPU may preempt it once it is not eligible any more. A sleeper keeps its lag, up
//! to two requests.

use super::Schedule;
use crate::time::Time;

impl Schedule {
    /// Returns the sum of the CPU times of the vCPUs that run on a CPU or are queued for it, and
    /// their number.
    fn totals(&self, cpu: usize) -> (u64, u64) {
        let times = self.runnable(cpu).map(|vcpu| self.tasks[vcpu].vruntime);
        times.fold((0, 0), |(sum, count), time| (sum + time.as_ps(), count + 1))
    }

    /// With EEVDF: whether the lag of `vcpu`, on its CPU, is not negative.
    fn is_eligible(&self, vcpu: usize) -> bool {
        let task = &self.tasks[vcpu];
        let is_ahead = || {
            let (sum, count) = self.totals(task.cpu);
            task.vruntime.as_ps() * count > sum
        };
        self.rules.eevdf().is_none() || !is_ahead()
    }

    /// Returns the vCPU of the queue that is next by the rules, but for this one.
    fn first(&self, cpu: usize, but: Option<usize>) -> Option<usize> {
        let others = self.cpus[cpu].queue.iter().copied();
        others
            .filter(|&vcpu| Some(vcpu) != but && self.is_eligible(vcpu))
            .min_by_key(|&vcpu| {
                let task = &self.tasks[vcpu];
                let key = self.rules.eevdf().map_or(task.vruntime, |_| task.deadline);
                (key, vcpu)
            })
    }

    /// Chooses the next vCPU. With CFS one that has yielded lets the next one run first. One that
    /// was yielded to runs first, if that is not too unfair, or if it is eligible.
    pub(super) fn choose(&mut self, cpu: usize) -> Option<usize> {
        let first = self.first(cpu, None)?;
        let state = &mut self.cpus[cpu];
        let (next, skip) = (state.next.take(), state.skip.take());
        let bound = match self.rules.eevdf() {
            Some(_) => Time::MAX,
            None => self.tasks[first].vruntime + self.rules.wakeup,
        };
        let fair = |vcpu: &usize| self.tasks[*vcpu].vruntime <= bound && self.is_eligible(*vcpu);
        next.filter(|next| self.cpus[cpu].queue.contains(next) && fair(next))
            .or_else(|| self.first(cpu, skip).filter(fair))
            .or(Some(first))
    }

    /// Whether `woken`, which is queued on the CPU of `current`, preempts it.
    pub(super) fn is_preempted_by(&self, current: usize, woken: usize) -> bool {
        if self.rules.eevdf().is_some() {
            let cpu = self.tasks[current].cpu;
            return !self.is_eligible(current) && self.first(cpu, None) == Some(woken);
        }
        let [current, woken] = [current, woken].map(|vcpu| self.tasks[vcpu].vruntime);
        current.saturating_sub(woken) > self.rules.wakeup
    }

    /// Begins the next request of `vcpu` if its deadline is over.
    pub(super) fn renew(&mut self, vcpu: usize) {
        let task = &mut self.tasks[vcpu];
        if let Some(request) = self.rules.eevdf()
            && task.vruntime >= task.deadline
        {
            task.deadline = task.vruntime + request;
        }
    }

    /// `vcpu` is about to leave its CPU. Its lag is two requests at most either way.
    pub(super) fn keep_lag(&mut self, vcpu: usize) {
        let (sum, count) = self.totals(self.tasks[vcpu].cpu);
        let mean = (sum / count.max(1)) as i64;
        let most = self.rules.eevdf().map_or(0, |request| request.as_ps() * 2) as i64;
        let task = &mut self.tasks[vcpu];
        task.lag = (mean - task.vruntime.as_ps() as i64).clamp(-most, most);
    }

    /// Sets the CPU time of `vcpu`, which wakes and is about to be queued for `cpu`.
    pub(super) fn place_woken(&mut self, vcpu: usize, cpu: usize) {
        if let Some(request) = self.rules.eevdf() {
            return self.place(vcpu, cpu, request);
        }
        // A sleeper gains at most half of a scheduling period.
        let least = self.cpus[cpu].min_vruntime;
        let least = least.saturating_sub(self.rules.latency.half());
        let vruntime = &mut self.tasks[vcpu].vruntime;
        *vruntime = (*vruntime).max(least);
    }

    /// The same of one that moves there: it keeps its lead over the others.
    pub(super) fn place_moved(&mut self, vcpu: usize, cpu: usize) {
        let task = self.tasks[vcpu];
        if self.rules.eevdf().is_some() {
            self.keep_lag(vcpu);
            return self.place(vcpu, cpu, task.deadline.saturating_sub(task.vruntime));
        }
        let [from, to] = [task.cpu, cpu].map(|cpu| self.cpus[cpu].min_vruntime);
        self.tasks[vcpu].vruntime = to + task.vruntime.saturating_sub(from);
    }

    /// With EEVDF: it has the lag there that it kept. Its deadline is `ahead` after its CPU time.
    fn place(&mut self, vcpu: usize, cpu: usize, ahead: Time) {
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

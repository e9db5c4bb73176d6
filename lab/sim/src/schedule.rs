//! The host's scheduler, which assigns CPUs to vCPUs: the completely fair scheduler that Linux had
//! until 2023, or its successor (`schedule/rules.rs`).
//!
//! Each CPU has a queue of its own, ordered by the CPU time of its vCPUs. The running vCPU is
//! replaced at a timer tick once its slice is over. A waking vCPU preempts it if it has had far
//! less CPU time. A CPU that goes idle takes a vCPU from the longest queue, if it is usually idle
//! for long enough.

mod moves;
mod rules;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Random;

use crate::host::{Placement, Scheduler};
use crate::machine::Machine;
use crate::time::Time;

/// The running and the queued vCPUs of all CPUs.
#[derive(Debug)]
pub struct Schedule {
    machine: Machine,
    rules: Scheduler,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
}

#[derive(Debug, Default)]
struct Cpu {
    current: Option<usize>,
    queue: Vec<usize>,
    /// The least CPU time of the vCPUs in the queue, which never decreases.
    min_vruntime: Time,
    /// When the current slice began.
    slice: Time,
    /// When it became idle, and its mean idle time.
    idle: Time,
    mean_idle: Time,
    /// The phase of its timer.
    phase: Time,
    /// The vCPU to run next, as another has yielded to it; and the one that has yielded.
    next: Option<usize>,
    skip: Option<usize>,
    /// The host uses the CPU for itself.
    reserved: bool,
    /// The vCPU that ran last.
    last: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    vruntime: Time,
    cpu: usize,
    began: Time,
    /// EEVDF: the end of its request, and the lag that it had when it left its CPU, in picoseconds.
    deadline: Time,
    lag: i64,
}

/// The CPU of a vCPU that woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// A CPU that has been idle for this long.
    Idle(usize, Time),
    /// A CPU whose current vCPU it preempts.
    Preempts(usize),
    /// The queue of a CPU.
    Queued(usize),
}

impl Schedule {
    /// Queues `vcpus` vCPUs evenly on the machine's CPUs, in the order of their placement, with a
    /// little CPU time each.
    pub fn new(machine: &Machine, rules: Scheduler, vcpus: usize, random: &mut Random) -> Self {
        let count = machine.cpus();
        let mut draw = |below: Time| Time::ps(random.random_range(0..below.as_ps()));
        let mut cpus: Vec<Cpu> = (0..count)
            .map(|_| Cpu {
                mean_idle: rules.worth,
                phase: draw(rules.tick),
                ..Cpu::default()
            })
            .collect();
        let mut order = match rules.placement {
            Placement::Spread | Placement::Numa => machine.spread_cpus(),
            Placement::Pack => (0..count).collect(),
        };
        let socket = |cpu| machine.place_of(machine.core_of(cpu)).socket;
        let is_near = |&nth: &usize| socket(order[nth]) == socket(order[0]);
        if rules.placement == Placement::Numa
            && let Some(second) = (1..count).find(is_near)
        {
            order[1..=second].rotate_right(1);
        }
        let task = |vcpu| {
            let vruntime = draw(rules.granularity);
            Task {
                vruntime,
                cpu: order[vcpu % count],
                deadline: vruntime + rules.eevdf().map_or(Time::ZERO, Time::half),
                ..Task::default()
            }
        };
        let tasks: Vec<Task> = (0..vcpus).map(task).collect();
        for (vcpu, task) in tasks.iter().enumerate() {
            cpus[task.cpu].queue.push(vcpu);
        }
        Self {
            machine: machine.clone(),
            rules,
            cpus,
            tasks,
        }
    }

    /// Returns the number of CPUs.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Returns the vCPU that runs on a CPU.
    pub fn current(&self, cpu: usize) -> Option<usize> {
        self.cpus[cpu].current
    }

    /// Returns the CPU where the vCPU runs or is queued, or was last.
    pub fn cpu(&self, vcpu: usize) -> usize {
        self.tasks[vcpu].cpu
    }

    /// The host takes the CPU for itself, or gives it back.
    pub fn reserve(&mut self, cpu: usize, reserved: bool) {
        self.cpus[cpu].reserved = reserved;
    }

    /// Returns the number of vCPUs queued for a CPU.
    pub fn waiting(&self, cpu: usize) -> usize {
        self.cpus[cpu].queue.len()
    }

    /// Whether no more vCPUs are runnable than there are CPUs, without those that the host uses.
    pub fn has_room(&self) -> bool {
        let runnable =
            |cpu: &Cpu| cpu.queue.len() + usize::from(cpu.current.is_some() || cpu.reserved);
        self.cpus.iter().map(runnable).sum::<usize>() <= self.cpus.len()
    }

    /// Whether no vCPU is queued for a free CPU, each vCPU in `ready` runs or is queued exactly
    /// once and on the CPU of its task, and no other vCPU is.
    pub fn is_sound(&self, ready: impl Fn(usize) -> bool) -> bool {
        let mut places = vec![0; self.tasks.len()];
        for cpu in 0..self.cpus.len() {
            for vcpu in self.runnable(cpu) {
                places[vcpu] += usize::from(self.tasks[vcpu].cpu == cpu);
            }
        }
        let free = |cpu: &Cpu| cpu.current.is_none() && !cpu.reserved;
        let wasted = |cpu: &Cpu| free(cpu) && !cpu.queue.is_empty();
        let once = |(vcpu, &times): (usize, &usize)| times == usize::from(ready(vcpu));
        !self.cpus.iter().any(wasted) && places.iter().enumerate().all(once)
    }

    /// Returns the vCPUs that run on a CPU or are queued for it.
    fn runnable(&self, cpu: usize) -> impl Iterator<Item = usize> {
        let Cpu { current, queue, .. } = &self.cpus[cpu];
        queue.iter().chain(current).copied()
    }

    /// Charges the running vCPU for its time so far.
    fn charge(&mut self, now: Time, cpu: usize) {
        if let Some(current) = self.cpus[cpu].current {
            let task = &mut self.tasks[current];
            task.vruntime += now.saturating_sub(task.began);
            task.began = now;
            if self.cpus[cpu].queue.is_empty() {
                self.renew(current);
            }
        }
        let vruntimes = self.runnable(cpu).map(|vcpu| self.tasks[vcpu].vruntime);
        let least = vruntimes.min().unwrap_or(Time::ZERO);
        let state = &mut self.cpus[cpu];
        state.min_vruntime = state.min_vruntime.max(least);
    }

    /// Returns the end of the running vCPU's slice; `None` while no other is queued.
    pub fn slice_end(&self, cpu: usize) -> Option<Time> {
        let state = &self.cpus[cpu];
        let task = &self.tasks[state.current?];
        if state.queue.is_empty() {
            return None;
        }
        let rules = &self.rules;
        let running = 1 + state.queue.len() as u64;
        let end = match rules.eevdf() {
            Some(_) => task.began + task.deadline.saturating_sub(task.vruntime),
            None => state.slice + Time::ps(rules.latency.as_ps() / running).max(rules.granularity),
        };
        // The next tick.
        let (tick, end) = (rules.tick.as_ps(), end.as_ps());
        let ticks = end.saturating_sub(state.phase.as_ps()).div_ceil(tick);
        Some(state.phase + Time::ps(ticks * tick))
    }

    /// Takes the running vCPU, which sleeps or has ended, off its CPU.
    pub fn leave(&mut self, now: Time, cpu: usize) {
        self.charge(now, cpu);
        if let Some(current) = self.cpus[cpu].current {
            self.keep_lag(current);
        }
        let state = &mut self.cpus[cpu];
        state.last = state.current.take();
        state.idle = now;
    }

    /// Moves the running vCPU back to the queue.
    pub fn preempt(&mut self, now: Time, cpu: usize) {
        let current = self.cpus[cpu].current;
        self.leave(now, cpu);
        if let Some(current) = current {
            self.renew(current);
        }
        self.cpus[cpu].queue.extend(current);
    }

    /// Picks the next vCPU for a free CPU. Returns it, and whether it is another one than ran there
    /// last, so that there is a context switch.
    pub fn pick(&mut self, now: Time, cpu: usize) -> Option<(usize, bool)> {
        let state = &self.cpus[cpu];
        if state.reserved {
            return None;
        }
        if state.queue.is_empty() && state.mean_idle >= self.rules.worth {
            self.pull(now, cpu, 1);
        }
        let vcpu = self.choose(cpu)?;
        let state = &mut self.cpus[cpu];
        state.queue.retain(|&waiting| waiting != vcpu);
        state.current = Some(vcpu);
        state.slice = now;
        let switches = state.last != Some(vcpu);
        self.tasks[vcpu].began = now;
        self.charge(now, cpu);
        Some((vcpu, switches))
    }

    /// Queues a vCPU for a CPU.
    fn queue(&mut self, vcpu: usize, cpu: usize) {
        self.tasks[vcpu].cpu = cpu;
        self.cpus[cpu].queue.push(vcpu);
    }

    fn load(&self, cpu: usize) -> usize {
        self.cpus[cpu].queue.len() + usize::from(self.cpus[cpu].current.is_some())
    }

    /// Whether the CPU has nothing to do.
    pub fn is_idle(&self, cpu: usize) -> bool {
        self.load(cpu) == 0 && !self.cpus[cpu].reserved
    }

    /// Lets the next vCPU of its queue run before `vcpu`, which runs.
    pub fn skips(&mut self, vcpu: usize) {
        let task = &mut self.tasks[vcpu];
        match self.rules.eevdf() {
            Some(request) => task.deadline += request,
            None => self.cpus[task.cpu].skip = Some(vcpu),
        }
    }

    /// `vcpu`, which runs, yields to `target`, which is queued. If that has an effect, returns the
    /// CPU that has to choose again, as the yielder's own has to.
    pub fn yield_to(&mut self, vcpu: usize, target: usize) -> Option<usize> {
        let (own, other) = (self.tasks[vcpu].cpu, self.tasks[target].cpu);
        if !self.cpus[other].queue.contains(&target) {
            return None;
        }
        if !self.cpus[own].queue.is_empty() {
            self.skips(vcpu);
        }
        self.cpus[other].next = Some(target);
        Some(other)
    }
}

#[cfg(test)]
mod tests;

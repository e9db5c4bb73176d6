//! The host's scheduler: which vCPU has which CPU. A completely fair one, as Linux had it until
//! 2023.
//!
//! Each CPU has a queue of its own, ordered by how much time its vCPUs have had. Whoever runs is
//! replaced at a tick of the timer once its slice is over; whoever wakes replaces it where it is
//! far behind. A CPU that goes idle takes a vCPU from the longest queue, if it is usually idle for
//! long enough.

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus as Random;

use crate::host::Scheduler;
use crate::machine::Machine;
use crate::time::Time;

/// Who runs where, and who would like to.
#[derive(Debug)]
pub struct Schedule {
    machine: Machine,
    rules: Scheduler,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
}

#[derive(Debug)]
struct Cpu {
    current: Option<usize>,
    queue: Vec<usize>,
    /// What everybody in the queue has had at least; it only grows.
    floor: Time,
    /// When the current slice began.
    slice: Time,
    /// Since when it is idle, and how long it usually is.
    idle: Time,
    usually: Time,
    /// The phase of its timer.
    phase: Time,
    /// Whom somebody else has asked to let run, and who has asked not to.
    next: Option<usize>,
    skip: Option<usize>,
    /// The host needs the CPU for itself.
    reserved: bool,
    /// Who ran last.
    last: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    had: Time,
    cpu: usize,
    began: Time,
}

/// Where a vCPU that woke has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// To a CPU that has been idle for so long.
    Idle(usize, Time),
    /// To a CPU whose current vCPU has to go.
    Preempts(usize),
    /// To a queue.
    Queued(usize),
}

/// Who comes next on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The vCPU.
    pub vcpu: usize,
    /// It ran last on this CPU, so nothing has to be switched.
    pub same: bool,
    /// It comes from another CPU.
    pub moved: bool,
}

impl Schedule {
    /// `vcpus` in the queues of the machine's CPUs, evenly, having had a little time each.
    pub fn new(machine: &Machine, rules: Scheduler, vcpus: usize, random: &mut Random) -> Self {
        let count = machine.cpus();
        let mut cpus: Vec<Cpu> = (0..count)
            .map(|_| Cpu {
                current: None,
                queue: Vec::new(),
                floor: Time::ZERO,
                slice: Time::ZERO,
                idle: Time::ZERO,
                usually: rules.worth,
                phase: Time::ps(random.random_range(0..rules.tick.as_ps())),
                next: None,
                skip: None,
                reserved: false,
                last: None,
            })
            .collect();
        let tasks = (0..vcpus)
            .map(|vcpu| {
                cpus[vcpu % count].queue.push(vcpu);
                Task {
                    had: Time::ps(random.random_range(0..rules.granularity.as_ps())),
                    cpu: vcpu % count,
                    began: Time::ZERO,
                }
            })
            .collect();
        Self {
            machine: machine.clone(),
            rules,
            cpus,
            tasks,
        }
    }

    /// How many CPUs there are.
    pub fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Who runs there.
    pub fn current(&self, cpu: usize) -> Option<usize> {
        self.cpus[cpu].current
    }

    /// The CPU where the vCPU runs, waits, or was last.
    pub fn cpu(&self, vcpu: usize) -> usize {
        self.tasks[vcpu].cpu
    }

    /// The host needs that CPU for itself, or no longer.
    pub fn reserve(&mut self, cpu: usize, reserved: bool) {
        self.cpus[cpu].reserved = reserved;
    }

    /// How many wait for that CPU.
    pub fn waiting(&self, cpu: usize) -> usize {
        self.cpus[cpu].queue.len()
    }

    /// Whether nobody waits for a CPU that is free, and everybody in `ready` runs or waits on one
    /// CPU: on the one that is said to be theirs, and once; and nobody else does.
    pub fn is_sound(&self, ready: impl Fn(usize) -> bool) -> bool {
        let mut places = vec![0; self.tasks.len()];
        for (number, cpu) in self.cpus.iter().enumerate() {
            for &vcpu in cpu.queue.iter().chain(&cpu.current) {
                places[vcpu] += usize::from(self.tasks[vcpu].cpu == number);
            }
        }
        let free = |cpu: &Cpu| cpu.current.is_none() && !cpu.reserved;
        let wasted = |cpu: &Cpu| free(cpu) && !cpu.queue.is_empty();
        let once = |(vcpu, &times): (usize, &usize)| times == usize::from(ready(vcpu));
        !self.cpus.iter().any(wasted) && places.iter().enumerate().all(once)
    }

    /// Charges whoever runs on the CPU for its time so far.
    fn charge(&mut self, now: Time, cpu: usize) {
        let state = &mut self.cpus[cpu];
        if let Some(current) = state.current {
            let task = &mut self.tasks[current];
            task.had += now.saturating_sub(task.began);
            task.began = now;
        }
        let least = state
            .queue
            .iter()
            .copied()
            .chain(state.current)
            .map(|vcpu| self.tasks[vcpu].had)
            .min();
        state.floor = state.floor.max(least.unwrap_or(Time::ZERO));
    }

    /// When the slice of whoever runs there is over; `None` while nobody waits.
    pub fn slice_end(&self, cpu: usize) -> Option<Time> {
        let state = &self.cpus[cpu];
        state.current?;
        let running = 1 + state.queue.len() as u64;
        if running == 1 {
            return None;
        }
        let rules = &self.rules;
        let slice = Time::ps(rules.latency.as_ps() / running).max(rules.granularity);
        let tick = rules.tick.as_ps();
        let end = (state.slice + slice).as_ps();
        // The next tick.
        let ticks = end.saturating_sub(state.phase.as_ps()).div_ceil(tick);
        Some(state.phase + Time::ps(ticks * tick))
    }

    /// Whoever runs there sleeps, or has ended.
    pub fn leave(&mut self, now: Time, cpu: usize) {
        self.charge(now, cpu);
        self.stop(now, cpu);
    }

    fn stop(&mut self, now: Time, cpu: usize) {
        let state = &mut self.cpus[cpu];
        state.last = state.current.take();
        state.idle = now;
    }

    /// Whoever runs there goes back to the queue.
    pub fn preempt(&mut self, now: Time, cpu: usize) {
        self.charge(now, cpu);
        let current = self.cpus[cpu].current;
        self.stop(now, cpu);
        self.cpus[cpu].queue.extend(current);
    }

    /// The CPU, which is free, gets the next vCPU.
    pub fn pick(&mut self, now: Time, cpu: usize) -> Option<Pick> {
        if self.cpus[cpu].reserved {
            return None;
        }
        let mut moved = false;
        if self.cpus[cpu].queue.is_empty() {
            moved = self.cpus[cpu].usually >= self.rules.worth && self.pull(now, cpu, 1);
        }
        let vcpu = self.choose(cpu)?;
        let state = &mut self.cpus[cpu];
        state.queue.retain(|&waiting| waiting != vcpu);
        state.current = Some(vcpu);
        state.slice = now;
        let same = state.last == Some(vcpu);
        self.tasks[vcpu].began = now;
        self.charge(now, cpu);
        Some(Pick { vcpu, same, moved })
    }

    /// Who has had the least; but whoever asked to be skipped waits for the next one, and somebody
    /// who was asked for comes first, if that is not too unfair.
    fn choose(&mut self, cpu: usize) -> Option<usize> {
        let state = &mut self.cpus[cpu];
        let had = |vcpu: usize| (self.tasks[vcpu].had, vcpu);
        let least = state.queue.iter().copied().min_by_key(|&vcpu| had(vcpu))?;
        let bound = self.tasks[least].had + self.rules.wakeup;
        let fair = |vcpu: usize| self.tasks[vcpu].had <= bound;
        let mut choice = least;
        if state.skip == Some(least) {
            let second = state
                .queue
                .iter()
                .copied()
                .filter(|&vcpu| vcpu != least)
                .min_by_key(|&vcpu| had(vcpu));
            choice = second.filter(|&vcpu| fair(vcpu)).unwrap_or(least);
        }
        if let Some(next) = state.next
            && state.queue.contains(&next)
            && fair(next)
        {
            choice = next;
        }
        state.skip = None;
        state.next = None;
        Some(choice)
    }

    /// A vCPU that slept wants to run, woken from the CPU `by`.
    pub fn wake(&mut self, now: Time, vcpu: usize, by: Option<usize>) -> Placed {
        let before = self.tasks[vcpu].cpu;
        let cpu = self.idle_near(before, by).unwrap_or(before);
        self.charge(now, cpu);
        let state = &mut self.cpus[cpu];
        let had = &mut self.tasks[vcpu].had;
        // Sleep earns no more than half a round.
        *had = (*had).max(state.floor.saturating_sub(self.rules.latency.half()));
        self.tasks[vcpu].cpu = cpu;
        state.queue.push(vcpu);
        match state.current {
            None if state.reserved => Placed::Queued(cpu),
            None => {
                let idle = now - state.idle;
                let most = self.rules.worth.times(2);
                let usually = state.usually.times(7) + idle.min(most);
                state.usually = Time::ps(usually.as_ps() / 8);
                Placed::Idle(cpu, idle)
            }
            Some(current) => {
                let behind = self.tasks[current].had.saturating_sub(self.tasks[vcpu].had);
                if behind > self.rules.wakeup {
                    Placed::Preempts(cpu)
                } else {
                    Placed::Queued(cpu)
                }
            }
        }
    }

    /// The CPU itself if it is idle; else one that shares its last-level cache, or the waker's. A
    /// core none of whose threads is busy goes first.
    fn idle_near(&self, cpu: usize, by: Option<usize>) -> Option<usize> {
        let idle = |cpu: usize| self.is_idle(cpu);
        if idle(cpu) {
            return Some(cpu);
        }
        let socket = |cpu: usize| self.machine.socket_of(self.machine.core_of(cpu));
        let sockets = std::iter::once(socket(cpu)).chain(by.map(socket));
        sockets
            .into_iter()
            .flat_map(|wanted| (0..self.cpus.len()).filter(move |&other| socket(other) == wanted))
            .filter(|&other| idle(other))
            .min_by_key(|&other| {
                let siblings = self.machine.cpus_of(self.machine.core_of(other));
                siblings.filter(|&sibling| !idle(sibling)).count()
            })
    }

    /// Takes a vCPU from the longest queue for `cpu`, if there are at least `excess` more on that
    /// CPU; true where it did.
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
        let from = self.cpus[busiest].floor;
        let queue = &mut self.cpus[busiest].queue;
        // The one that has had the most: the others are about to run.
        let index = (0..queue.len()).max_by_key(|&index| self.tasks[queue[index]].had);
        let vcpu = queue.remove(index.expect("it is not empty"));
        let ahead = self.tasks[vcpu].had.saturating_sub(from);
        self.tasks[vcpu].had = self.cpus[cpu].floor + ahead;
        self.tasks[vcpu].cpu = cpu;
        self.cpus[cpu].queue.push(vcpu);
        true
    }

    /// Where nobody runs on any thread of the core of `cpu`: a CPU, and who runs there, whose core
    /// has another one running. In the same socket, if there is one.
    pub fn crowded(&self, cpu: usize) -> Option<(usize, usize)> {
        let machine = &self.machine;
        let own = machine.core_of(cpu);
        if !machine.cpus_of(own).all(|sibling| self.is_idle(sibling)) {
            return None;
        }
        let on = |cpu: usize| Some((cpu, self.current(cpu)?));
        let running = |core: usize| machine.cpus_of(core).filter_map(on);
        let socket = |core: usize| machine.socket_of(core);
        (0..machine.all_cores())
            .filter(|&core| running(core).count() > 1)
            .min_by_key(|&core| (socket(core) != socket(own), core))
            .and_then(|core| running(core).last())
    }

    fn load(&self, cpu: usize) -> usize {
        self.cpus[cpu].queue.len() + usize::from(self.cpus[cpu].current.is_some())
    }

    /// Whether the CPU has nothing to do.
    pub fn is_idle(&self, cpu: usize) -> bool {
        self.load(cpu) == 0 && !self.cpus[cpu].reserved
    }

    /// `vcpu`, which runs, lets the next one of its queue go first.
    pub fn skips(&mut self, vcpu: usize) {
        let cpu = self.tasks[vcpu].cpu;
        self.cpus[cpu].skip = Some(vcpu);
    }

    /// `vcpu`, which runs, gives its turn to `target`, which waits. True where that changes
    /// anything; then the CPU that is returned has to choose again, and the yielder's own as
    /// well.
    pub fn yield_to(&mut self, vcpu: usize, target: usize) -> Option<usize> {
        let (own, other) = (self.tasks[vcpu].cpu, self.tasks[target].cpu);
        if !self.cpus[other].queue.contains(&target) {
            return None;
        }
        if !self.cpus[own].queue.is_empty() {
            self.cpus[own].skip = Some(vcpu);
        }
        self.cpus[other].next = Some(target);
        Some(other)
    }
}

#[cfg(test)]
mod tests;

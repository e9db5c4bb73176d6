//! The host's own work, and load balancing of the vCPUs over CPUs and cores.

use rand::RngExt;

use super::events::Event;
use super::state::Engine;
use super::vcpu::Doing;
use crate::time::Time;
use crate::trace::What;

impl Engine {
    /// Schedules the host's next work on a CPU, with random interval and length around their means.
    pub fn plan_chore(&mut self, cpu: usize) {
        let chores = self.host.chores;
        if chores.length > Time::ZERO {
            // The logarithm of the host's C library would depend on the library and the processor.
            let mut draw =
                |mean: Time| mean.scale(-libm::log(self.random.random_range(1e-9..1.0_f64)));
            let (pause, length) = (draw(chores.every), draw(chores.length));
            let length = Some(length);
            self.plan(self.now + pause, Event::Chore { cpu, length });
        }
    }

    /// The host takes a CPU, or gives it back.
    pub fn chore(&mut self, cpu: usize, length: Option<Time>) {
        self.schedule.reserve(cpu, length.is_some());
        if let Some(length) = length {
            self.plan(self.now + length, Event::Chore { cpu, length: None });
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
            !matches!(doing, Doing::Asleep(_) | Doing::Ended)
        };
        let runs = |cpu: usize| {
            let doing = self
                .schedule
                .current(cpu)
                .map(|vcpu| self.vcpus[vcpu].doing);
            !matches!(doing, Some(Doing::Off { .. } | Doing::Running))
        };
        self.schedule.is_sound(ready) && (0..self.schedule.cpus()).all(runs)
    }

    /// Moves one of two vCPUs on the same core to `cpu`, if no thread of its own core is busy.
    fn pulls_sibling(&mut self, cpu: usize) -> bool {
        let Some((crowded, vcpu)) = self.schedule.crowded(cpu) else {
            return false;
        };
        self.settles(vcpu);
        if !self.vcpus[vcpu].can_lose_cpu(self.now) {
            return false;
        }
        self.take_off(vcpu);
        self.mark(vcpu, What::Preempted);
        self.schedule.preempt(self.now, crowded);
        // No other vCPU is queued anywhere, or it would have moved here already.
        self.schedule.pull(self.now, cpu, 1)
    }

    /// Idle CPUs search for work; at times all CPUs compare their queues.
    pub fn balance(&mut self, all: bool) {
        debug_assert!(self.is_sound());
        for cpu in 0..self.schedule.cpus() {
            if self.schedule.is_idle(cpu) {
                if self.schedule.pull(self.now, cpu, 1) || self.pulls_sibling(cpu) {
                    self.dispatch(cpu);
                }
            } else if all && self.schedule.pull(self.now, cpu, 2) {
                self.plan_slice(cpu);
            }
        }
    }
}

//! Whether a vCPU spins before it sleeps: the rule of threads on Linux. Here the machine's room is
//! known exactly, and a wake-up costs what the host says. The rule itself costs nothing.

use overlock_core::platform::spins::{self, Budget, SLOWLY};

use super::state::Engine;
use super::{current, with};
use crate::time::Time;

/// A spin, to be [ended](Self::ends).
#[derive(Debug)]
pub(crate) struct SpinFirst {
    vcpu: usize,
    object: usize,
    budget: Budget,
    since: u64,
    /// When it ends at the latest.
    pub until: Time,
}

impl SpinFirst {
    /// The caller is about to sleep on the object at this address. `None` if it is not to spin.
    pub fn begin(object: usize, is_new: bool) -> Option<Self> {
        let vcpu = current()?;
        with(|engine| engine.spins_first(vcpu, object, is_new))
    }

    /// Ends it. Returns `ready`: whether the event has come.
    pub fn ends(mut self, ready: bool) -> bool {
        with(|engine| {
            let end = engine.now.as_ns();
            let score = &engine.scores[&self.object];
            score.unclaim();
            score.learn(ready, SLOWLY);
            if !ready {
                self.budget.spend(end - self.since);
            }
            engine.vcpus[self.vcpu].budget = self.budget.after_spin(end);
        });
        ready
    }
}

impl Engine {
    fn spins_first(&mut self, vcpu: usize, object: usize, is_new: bool) -> Option<SpinFirst> {
        if !self.host.spins {
            return None;
        }
        let since = self.now.as_ns();
        let score = &*self.scores.entry(object).or_default();
        if !(is_new || score.promises()) {
            return None;
        }
        let has_others = || self.machine.cpus() > 1;
        let longest = spins::longest(self.schedule.has_room(), is_new, has_others)?;
        let limit = spins::worth(self.host.wake_idle.as_ns()).min(longest);
        let budget = self.vcpus[vcpu].budget.at(since, || false);
        let until = since + limit;
        (budget.pays(limit) && score.claim(since, until)).then(|| SpinFirst {
            vcpu,
            object,
            budget,
            since,
            until: Time::ns(until),
        })
    }
}

//! Whether a vCPU spins before it sleeps: the rule of threads on Linux. Here the machine's room is
//! known exactly, and a wake-up costs what the host says. The rule itself costs nothing.

use overlock_core::platform::spins::{self, Budget, LONGEST_NS, OF_LOCKS, SHORT_NS, SLOWLY};

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

/// The spin of a vCPU, whose guest measures no wake-ups: about as long as one takes.
const OF_GUESTS_NS: u64 = 5_000;

/// For how long the caller spins before it sleeps for this lock, in nanoseconds.
pub(crate) fn spin_before_sleep(lock: usize) -> u64 {
    let Some(_) = current() else { return 0 };
    with(|engine| {
        if !engine.host.spins {
            return OF_GUESTS_NS;
        }
        let most = spins::worth(engine.host.wake_idle.as_ns()).min(LONGEST_NS);
        let limit = engine.scores.entry(lock).or_default().of_lock(most);
        if engine.machine.cpus() > 1 { limit } else { 0 }
    })
}

/// Such a spin has taken so long, and ended with the lock or in vain.
pub(crate) fn learn_spin(lock: usize, nanos: u64, acquired: bool) {
    if nanos > SHORT_NS && current().is_some() {
        with(|engine| {
            engine
                .scores
                .entry(lock)
                .or_default()
                .learn(acquired, OF_LOCKS)
        });
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

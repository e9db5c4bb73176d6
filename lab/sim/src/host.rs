//! Hosts: a hypervisor with its guests' exits, or an operating system with threads and futexes; and
//! the scheduler of either.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::spec::{self, Domain, Key, Spec, keys};
use crate::time::Time;

const NONE: Time = Time::ZERO;
const SOME: Time = Time::ns(1);
const TICK: Time = Time::us(1);
const LONG: Time = Time::ms(100);
const LONGEST: Time = Time::ms(10_000);
const FLAG: Domain = Domain::Flag;
const COST: Domain = Domain::Time(SOME, LONG);
const OR_NONE: Domain = Domain::Time(NONE, LONG);
const INTERVAL: Domain = Domain::Time(TICK, LONGEST);
const LONG_OR_NONE: Domain = Domain::Time(NONE, LONGEST);

/// The CPUs of the first vCPUs, while there are fewer of them than CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// Apart: on all sockets, then on all clusters, each on a core of its own. The scheduler of
    /// Linux does so with threads that are busy.
    #[default]
    Spread,
    /// Apart, but the second one is on the socket of the first. Linux does so since 5.18: a new
    /// thread stays on the node of the thread that starts it, while that node has at most two more
    /// than another one. The thread that starts them counts.
    Numa,
    /// Together: on as few clusters and sockets as have enough cores.
    Pack,
}

keys! {
    /// A host of vCPUs.
    Host {
        /// Its name on the command line: a preset, and what differs from it, as in `kvm:kick=3us`.
        name: Cow<'static, str>,
        /// Its description.
        about: Cow<'static, str>,
        #[serde(flatten)]
        scheduler: Scheduler,
        #[serde(flatten)]
        pause_exit: PauseExit,
    }
    hypervisor: bool = FLAG, "It runs vCPUs of virtual machines, rather than threads";
    /// As KVM's steal time record does. Threads are told so by no system without a program in its
    /// kernel.
    tells_preempted: bool = FLAG,
        "A guest learns which vCPUs are preempted, threads learn which others are";
    /// An exit, or the way into the futex.
    halt: Time = COST, "From a halt until the next vCPU can run";
    /// A guest finds out by itself that its word has changed, in the time of a load.
    brief: Time = COST, "A halt that finds its word changed";
    yields as "yield": Time = COST, "A system call that yields a CPU which no other vCPU wants";
    kick: Time = COST, "A kick for the kicker: a hypercall, or a system call";
    kick_nobody: Time = COST, "The same without sleepers";
    /// Beside the word: the lock of the bucket, and what that guards.
    bucket_lines: u64 = Domain::Count(0, 16),
        "Threads: lines of its bucket that a futex call moves from the core that had them";
    bucket_hold: Time = OR_NONE, "Threads: how long a futex call also has its bucket to itself";
    wake_idle: Time = COST, "From a kick until the sleeper runs on a CPU that has gone to sleep";
    wake_busy: Time = COST, "The same on a CPU that was busy, or has not gone to sleep yet";
    awake: Time = OR_NONE, "A CPU that is idle for this long goes to sleep";
    heavy_barrier: Time = COST, "A full memory barrier on all CPUs, requested by one";
    /// As on Linux. A kernel's locks do not.
    spins: bool = FLAG,
        "A wait in a queue begins with a spin where worth it; not in models of peers";
}

keys! {
    /// Parameters of the scheduler: the completely fair scheduler (CFS), or EEVDF (earliest
    /// eligible virtual deadline first).
    #[derive(Copy)]
    Scheduler {}
    latency: Time = INTERVAL, "CFS: in this time each runnable vCPU of a CPU should run once";
    granularity: Time = INTERVAL, "CFS: the shortest slice";
    wakeup: Time = LONG_OR_NONE, "CFS: a waking vCPU preempts one with this much more CPU time";
    request as "eevdf_request": Time = LONG_OR_NONE,
        "The CPU time that a vCPU requests at once from EEVDF; 0 for CFS in its place";
    tick: Time = Domain::Time(TICK, LONG), "The timer's period: slices end at a tick";
    switch: Time = OR_NONE, "A context switch, cold start included";
    migration: Time = OR_NONE, "A migration, as caches are cold";
    worth: Time = OR_NONE, "An idle CPU takes others' work if it is usually idle longer than this";
    balance_idle: Time = INTERVAL, "The interval at which idle CPUs look for work";
    balance_all: Time = INTERVAL, "The interval at which all CPUs compare their queues";
    placement: Placement = Domain::Word(&["spread", "numa", "pack"]),
        "spread: on all sockets in turn; numa: so, but the second beside the first; \
         pack: on as few sockets as can be";
    /// They take it from its vCPU.
    chores_every: Time = INTERVAL, "The mean time between the host's threads on a CPU";
    chores_length: Time = OR_NONE, "How long the host's threads run, on the mean; 0 for none";
}

keys! {
    /// Pause-loop exiting: the processor leaves a guest that spins.
    #[derive(Copy)]
    PauseExit {}
    window as "pause_window": Time = OR_NONE,
        "The processor leaves a guest that is in a loop of pauses for this long; 0 for never";
    grow as "pause_grow": u64 = Domain::Count(1, 16),
        "Each exit multiplies the window by this, until the vCPU is scheduled anew";
    gap as "pause_gap": Time = COST, "Two pauses further apart than this are not in the same loop";
    cost as "pause_cost": Time = COST, "The exit, the search for a vCPU to yield to, and the entry";
}

impl Spec for Host {
    const WHAT: &'static str = "host";
    const KEYS: &'static [&'static [Key]] =
        &[Self::OWN_KEYS, Scheduler::OWN_KEYS, PauseExit::OWN_KEYS];

    fn presets() -> &'static [Self] {
        static PRESETS: LazyLock<Vec<Host>> =
            LazyLock::new(|| spec::presets(include_str!("host/presets.toml")));
        &PRESETS
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        &self.about
    }

    fn rules(&self) -> Vec<(bool, &'static str)> {
        let scheduler = self.scheduler;
        vec![
            (
                scheduler.granularity <= scheduler.latency,
                "granularity must be at most latency",
            ),
            (
                scheduler.chores_length < scheduler.chores_every,
                "chores_length must be less than chores_every",
            ),
        ]
    }
}

impl PauseExit {
    /// Returns it if there is one.
    pub fn used(self) -> Option<Self> {
        (self.window > Time::ZERO).then_some(self)
    }
}

impl Host {
    /// Returns the preset of that name.
    pub fn preset(name: &str) -> Option<&'static Self> {
        spec::preset(name)
    }

    /// As [`spec::parse`].
    pub fn named(text: &str) -> Result<Self, String> {
        spec::parse(text)
    }

    /// Threads of a Linux process.
    pub fn threads() -> Self {
        Self::preset("threads").expect("a preset").clone()
    }
}

impl Scheduler {
    /// Returns the request of EEVDF; `None` with CFS.
    pub fn eevdf(&self) -> Option<Time> {
        (self.request > Time::ZERO).then_some(self.request)
    }

    /// About how long it takes until each of so many runnable vCPUs of a CPU has run once.
    pub fn period(&self, vcpus: usize) -> Time {
        let each = |slice: Time| (slice + self.tick).times(vcpus as u64);
        match self.eevdf() {
            _ if vcpus < 2 => self.tick,
            Some(request) => each(request),
            None => each(self.granularity).max(self.latency),
        }
    }
}

//! Hosts: a hypervisor with its guests' exits, or an operating system with threads and futexes; and
//! the scheduler of either.

mod keys;

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::spec;
use crate::time::Time;

/// The CPUs of the first vCPUs, while there are fewer of them than CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// Parameters of the scheduler: the completely fair scheduler (CFS), or EEVDF (earliest eligible
/// virtual deadline first). The [keys](crate::spec::Spec::keys) of a host say what each is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scheduler {
    pub latency: Time,
    pub granularity: Time,
    pub wakeup: Time,
    /// EEVDF: the CPU time of a request. `None` selects CFS.
    pub request: Option<Time>,
    pub tick: Time,
    pub switch: Time,
    pub migration: Time,
    pub worth: Time,
    /// The intervals at which idle CPUs look for work, and at which all CPUs compare their queues.
    pub balance: (Time, Time),
    pub placement: Placement,
}

/// Pause-loop exiting: the processor leaves a guest that spins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PauseExit {
    /// Zero: there is none.
    pub window: Time,
    pub grow: u64,
    pub gap: Time,
    pub cost: Time,
}

/// The host's own threads, which take a CPU from its vCPU from time to time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chores {
    pub every: Time,
    /// Zero: there are none.
    pub length: Time,
}

/// A host of vCPUs. Its [keys](crate::spec::Spec::keys) say what each field is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// Its name on the command line: a preset, and what differs from it, as in `kvm:poll=0ns`.
    pub name: Cow<'static, str>,
    pub about: Cow<'static, str>,
    pub hypervisor: bool,
    /// As KVM's steal time record does. Threads are told so by no system without a program in its
    /// kernel.
    pub tells_preempted: bool,
    pub scheduler: Scheduler,
    /// An exit, or the way into the futex.
    pub halt: Time,
    /// A guest finds out by itself that its word has changed, in the time of a load.
    pub brief: Time,
    pub yields: Time,
    pub kick: Time,
    pub kick_nobody: Time,
    /// Beside the word: the lock of the bucket, and what that guards. They move if another core has
    /// used the bucket last.
    pub bucket_lines: u64,
    pub bucket_hold: Time,
    pub wake_idle: Time,
    pub wake_busy: Time,
    pub awake: Time,
    /// It polls if no other vCPU wants the CPU, and adapts the time, from zero up to this.
    pub poll: Time,
    /// A host that polls in vain stops polling; one that would have succeeded with a longer poll
    /// doubles the time.
    pub first_poll: Time,
    pub chores: Chores,
    pub pause_exit: PauseExit,
    pub heavy_barrier: Time,
    /// As on Linux. A kernel's locks do not.
    pub spins: bool,
}

/// All hosts that have a name.
static PRESETS: LazyLock<Vec<Host>> =
    LazyLock::new(|| spec::presets(include_str!("host/presets.toml")));

impl PauseExit {
    /// Returns it if there is one.
    pub fn used(self) -> Option<Self> {
        (self.window > Time::ZERO).then_some(self)
    }
}

impl Host {
    /// Threads of a Linux process.
    pub fn threads() -> Self {
        Self::preset("threads").expect("a preset").clone()
    }

    /// Returns the preset of that name.
    pub fn preset(name: &str) -> Option<&'static Self> {
        spec::preset(name)
    }

    /// Returns the host of a name with changed keys, such as `kvm:poll=0ns`.
    ///
    /// # Errors
    ///
    /// [`spec::Error`] names the preset or key that is wrong. Files are not read: [`spec::read`]
    /// does that.
    pub fn named(text: &str) -> Result<Self, spec::Error> {
        spec::parse(text)
    }
}

impl Scheduler {
    /// About how long it takes until each of so many runnable vCPUs of a CPU has run once.
    pub fn period(&self, vcpus: usize) -> Time {
        let slices = match self.request {
            Some(request) => request + self.tick,
            None => self.granularity + self.tick,
        };
        match vcpus {
            0 | 1 => self.tick,
            _ if self.request.is_some() => slices.times(vcpus as u64),
            _ => slices.times(vcpus as u64).max(self.latency),
        }
    }

    /// Returns it as Linux's defaults are for this many CPUs, given those for eight and more: they
    /// grow with the logarithm.
    #[must_use]
    pub fn on_cpus(self, cpus: usize) -> Self {
        let share = |time: Time| time.scale(f64::from(1 + cpus.clamp(1, 8).ilog2()) / 4.0);
        Self {
            latency: share(self.latency),
            granularity: share(self.granularity),
            wakeup: share(self.wakeup),
            ..self
        }
    }
}

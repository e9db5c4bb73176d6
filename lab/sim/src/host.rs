//! Hosts: a hypervisor with its guests' exits, or an operating system with threads and futexes; and
//! the scheduler of either.

mod keys;

use std::borrow::Cow;

use crate::time::Time;

/// The CPUs of the first vCPUs, while there are fewer of them than CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Apart: on all sockets, then on all clusters, each on a core of its own. The scheduler of
    /// Linux does so with threads that are busy.
    Spread,
    /// Together: on as few clusters and sockets as have enough cores.
    Pack,
}

/// Parameters of the scheduler: the completely fair scheduler (CFS), or EEVDF (earliest eligible
/// virtual deadline first). The [keys](crate::spec::Spec::keys) of a host say what each is.
#[derive(Clone, Copy, Debug, PartialEq)]
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PauseExit {
    pub window: Time,
    pub grow: u64,
    pub gap: Time,
    pub cost: Time,
}

/// The host's own threads, which take a CPU from its vCPU from time to time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chores {
    pub every: Time,
    pub length: Time,
}

impl PauseExit {
    /// Those of [`Host::KVM`].
    const KVM: Self = Self {
        window: Time::ns(1_780),
        grow: 2,
        gap: Time::ns(56),
        cost: Time::ns(1_500),
    };
}

impl Chores {
    /// Those of [`Host::KVM`].
    const KVM: Self = Self {
        every: Time::ms(100),
        length: Time::us(300),
    };
}

/// A host of vCPUs. Its [keys](crate::spec::Spec::keys) say what each field is.
#[derive(Clone, Debug, PartialEq)]
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
    pub chores: Option<Chores>,
    pub pause_exit: Option<PauseExit>,
    pub heavy_barrier: Time,
    /// As on Linux. A kernel's locks do not.
    pub spins: bool,
}

impl Host {
    /// KVM on Linux of 2017: the source are the paravirtual spinlock documents.
    pub const KVM: Self = Self::kvm(
        "kvm",
        "virtual CPUs of a KVM guest on Linux; halting and kicking leave the guest",
    );

    const fn kvm(name: &'static str, about: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            about: Cow::Borrowed(about),
            hypervisor: true,
            tells_preempted: true,
            scheduler: Scheduler::LINUX,
            halt: Time::ns(2_000),
            brief: Time::ns(1_500),
            kick: Time::ns(2_000),
            kick_nobody: Time::ns(1_500),
            bucket_lines: 0,
            bucket_hold: Time::ZERO,
            wake_idle: Time::us(12),
            wake_busy: Time::ns(3_500),
            awake: Time::us(50),
            poll: Time::us(200),
            first_poll: Time::us(10),
            chores: Some(Chores::KVM),
            pause_exit: Some(PauseExit::KVM),
            heavy_barrier: Time::us(3),
            spins: false,
        }
    }

    /// KVM on Linux 3.11, of 2013: it does not poll for halted vCPUs, does not tell guests which
    /// vCPUs are preempted, and its window for pause loops is fixed.
    pub const KVM_2013: Self = {
        let mut host = Self::kvm(
            "kvm-2013",
            "kvm as of Linux 3.11: no polling, a fixed window for pause-loop exits",
        );
        host.tells_preempted = false;
        host.poll = Time::ZERO;
        host.pause_exit = Some(PauseExit {
            grow: 1,
            ..PauseExit::KVM
        });
        host
    };

    /// [`KVM`](Self::KVM) on a processor without pause-loop exiting, or with it disabled.
    pub const KVM_NO_PLE: Self = {
        let mut host = Self::kvm("kvm-nople", "kvm without pause-loop exits");
        host.pause_exit = None;
        host
    };

    /// Threads of a Linux process.
    pub const THREADS: Self = Self::threads(
        "threads",
        "threads of a process on Linux; halting and kicking are futex calls",
    );

    const fn threads(name: &'static str, about: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            about: Cow::Borrowed(about),
            hypervisor: false,
            tells_preempted: false,
            scheduler: Scheduler::LINUX,
            halt: Time::ns(600),
            brief: Time::ns(180),
            kick: Time::ns(1_000),
            kick_nobody: Time::ns(130),
            bucket_lines: 2,
            bucket_hold: Time::ns(50),
            wake_idle: Time::us(5),
            wake_busy: Time::ns(1_500),
            awake: Time::us(20),
            poll: Time::ZERO,
            first_poll: Time::us(10),
            chores: None,
            pause_exit: None,
            heavy_barrier: Time::ns(1_500),
            spins: true,
        }
    }

    /// [`KVM`](Self::KVM) with the scheduler of Linux 6.12.
    pub const KVM_EEVDF: Self = {
        let mut host = Self::kvm("kvm-6.12", "kvm with the scheduler of Linux 6.12, EEVDF");
        host.scheduler = Scheduler::EEVDF;
        host
    };

    /// [`THREADS`](Self::THREADS) with the scheduler of Linux 6.12.
    pub const THREADS_EEVDF: Self = {
        let mut host = Self::threads(
            "threads-6.12",
            "threads with the scheduler of Linux 6.12, EEVDF",
        );
        host.scheduler = Scheduler::EEVDF;
        host
    };

    /// All hosts that have a name.
    pub const PRESETS: &'static [Self] = const {
        &[
            Self::KVM,
            Self::KVM_2013,
            Self::KVM_NO_PLE,
            Self::KVM_EEVDF,
            Self::THREADS,
            Self::THREADS_EEVDF,
        ]
    };

    /// Returns the preset of that name.
    pub fn preset(name: &str) -> Option<&'static Self> {
        Self::PRESETS.iter().find(|host| host.name == name)
    }

    /// Returns the host of a name with changed keys, such as `kvm:poll=0ns`.
    ///
    /// # Errors
    ///
    /// [`spec::Error`](crate::spec::Error) names the preset or key that is wrong. Files are not
    /// read: [`spec::read`](crate::spec::read) does that.
    pub fn named(text: &str) -> Result<Self, crate::spec::Error> {
        crate::spec::parse(text)
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

    /// Linux's defaults for this many CPUs: they grow with the logarithm, up to eight CPUs.
    pub fn with_cpus(cpus: usize) -> Self {
        let factor = u64::from(1 + cpus.clamp(1, 8).ilog2());
        Self {
            latency: Time::ms(6).times(factor),
            granularity: Time::us(750).times(factor),
            wakeup: Time::ms(1).times(factor),
            ..Self::LINUX
        }
    }

    /// Linux's defaults for eight CPUs and more.
    pub const LINUX: Self = Self {
        latency: Time::ms(24),
        granularity: Time::ms(3),
        wakeup: Time::ms(4),
        request: None,
        tick: Time::ms(1),
        switch: Time::ns(1_500),
        migration: Time::us(5),
        worth: Time::us(500),
        balance: (Time::ms(4), Time::ms(64)),
        placement: Placement::Spread,
    };

    /// EEVDF of Linux 6.12, as its stable releases have it since May 2025, for eight CPUs and more.
    pub const EEVDF: Self = Self {
        request: Some(Time::us(2_800)),
        ..Self::LINUX
    };
}

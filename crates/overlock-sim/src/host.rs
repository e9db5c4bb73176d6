//! What runs the vCPUs: a hypervisor with its guests' exits, or an operating system with threads
//! and futexes; and the scheduler of either.

use crate::time::Time;

/// The completely fair scheduler, in short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduler {
    /// In this time everybody who is runnable on a CPU should run once.
    pub latency: Time,
    /// But each for no less than this.
    pub granularity: Time,
    /// Whoever wakes takes the CPU from one that has had this much more of it.
    pub wakeup: Time,
    /// The timer's period: slices end with it.
    pub tick: Time,
    /// From one vCPU to the next: state, and what the first moments cost.
    pub switch: Time,
    /// What a vCPU that comes to another CPU loses, its caches being cold.
    pub migration: Time,
    /// An idle CPU looks for work elsewhere if it is usually idle for longer than this.
    pub worth: Time,
    /// How often idle CPUs look again, and how often the busy ones compare their queues.
    pub balance: (Time, Time),
}

/// A processor that leaves the guest where it sees it spin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PauseExit {
    /// So long a loop of pauses is spinning.
    pub window: Time,
    /// After each exit, until the vCPU is scheduled anew, the window is so many times as long.
    pub grow: u64,
    /// Two pauses further apart are not the same loop.
    pub gap: Time,
    /// The exit, the search for a vCPU to yield to, and the entry.
    pub cost: Time,
}

/// The host's own threads, which take a CPU from its vCPU now and then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chores {
    /// On each CPU about so often.
    pub every: Time,
    /// About so long.
    pub length: Time,
}

/// What runs the vCPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// What the user types.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Whether what it runs are vCPUs of virtual machines, rather than threads of an operating
    /// system.
    pub hypervisor: bool,
    /// Who runs when.
    pub scheduler: Scheduler,
    /// From halting to the next one's turn: an exit, or the way into the futex.
    pub halt: Time,
    /// What a halt costs that finds its word changed, or is kicked while the host still polls.
    pub brief: Time,
    /// What a kick costs the kicker: a hypercall, or a system call.
    pub kick: Time,
    /// The same where nobody sleeps.
    pub kick_nobody: Time,
    /// From a kick until the sleeper runs on a CPU that has slept.
    pub wake_idle: Time,
    /// The same on a CPU that was busy, or has not slept yet.
    pub wake_busy: Time,
    /// After being idle for so long a CPU sleeps.
    pub awake: Time,
    /// The host polls for so long before the CPU of a halted vCPU is given away, if nobody else
    /// wants it. It learns how long that is worth, from nothing up to this.
    pub poll: Time,
    /// The host's own work.
    pub chores: Option<Chores>,
    /// Pause-loop exits.
    pub pause_exit: Option<PauseExit>,
    /// A full memory barrier on all CPUs, asked for by one.
    pub heavy_barrier: Time,
}

impl Host {
    /// KVM on Linux of 2017: the paravirtual spinlock documents.
    pub const KVM: Self = Self {
        name: "kvm",
        about: "virtual CPUs of a KVM guest on Linux; halting and kicking leave the guest",
        hypervisor: true,
        scheduler: Scheduler::LINUX,
        halt: Time::ns(2_000),
        brief: Time::ns(1_500),
        kick: Time::ns(2_000),
        kick_nobody: Time::ns(1_500),
        wake_idle: Time::us(12),
        wake_busy: Time::ns(3_500),
        awake: Time::us(50),
        poll: Time::us(200),
        chores: Some(Chores {
            every: Time::ms(100),
            length: Time::us(300),
        }),
        pause_exit: Some(PauseExit {
            window: Time::ns(1_780),
            grow: 2,
            gap: Time::ns(56),
            cost: Time::ns(1_500),
        }),
        heavy_barrier: Time::us(3),
    };

    /// KVM on Linux 3.11, of 2013: it does not poll for halted vCPUs, and its window for pause
    /// loops is fixed.
    pub const KVM_2013: Self = Self {
        name: "kvm-2013",
        about: "kvm as of Linux 3.11: no polling, a fixed window for pause-loop exits",
        poll: Time::ZERO,
        pause_exit: match Self::KVM.pause_exit {
            Some(exit) => Some(PauseExit { grow: 1, ..exit }),
            None => None,
        },
        ..Self::KVM
    };

    /// [`KVM`](Self::KVM) on a processor without pause-loop exits, or with them turned off.
    pub const KVM_NO_PLE: Self = Self {
        name: "kvm-nople",
        about: "kvm without pause-loop exits",
        pause_exit: None,
        ..Self::KVM
    };

    /// Threads of a Linux process.
    pub const THREADS: Self = Self {
        name: "threads",
        about: "threads of a process on Linux; halting and kicking are futex calls",
        hypervisor: false,
        scheduler: Scheduler::LINUX,
        halt: Time::ns(600),
        brief: Time::ns(180),
        kick: Time::ns(1_000),
        kick_nobody: Time::ns(130),
        wake_idle: Time::us(5),
        wake_busy: Time::ns(1_500),
        awake: Time::us(20),
        poll: Time::ZERO,
        chores: None,
        pause_exit: None,
        heavy_barrier: Time::ns(1_500),
    };

    /// All that have a name.
    pub const PRESETS: &'static [Self] =
        &[Self::KVM, Self::KVM_2013, Self::KVM_NO_PLE, Self::THREADS];

    /// The preset of that name.
    pub fn preset(name: &str) -> Option<&'static Self> {
        Self::PRESETS.iter().find(|host| host.name == name)
    }
}

impl Scheduler {
    /// Linux's defaults on so many CPUs: they grow with the logarithm, up to eight.
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
        tick: Time::ms(1),
        switch: Time::ns(1_500),
        migration: Time::us(5),
        worth: Time::us(500),
        balance: (Time::ms(4), Time::ms(64)),
    };
}

//! The keys of a host: one line for each field.

use super::{Host, PRESETS, Placement};
use crate::spec::{Domain, Key, Rule, Spec, Words};
use crate::time::Time;

const NONE: Time = Time::ZERO;
const SOME: Time = Time::ns(1);
const TICK: Time = Time::us(1);
const LONG: Time = Time::ms(100);
const LONGEST: Time = Time::ms(10_000);

#[rustfmt::skip]
static KEYS: &[Key<Host>] = &[
    Key::new("hypervisor", "It runs vCPUs of virtual machines, rather than threads", Domain::Flag, |h| Some(&mut h.hypervisor)),
    Key::new("tells_preempted", "A guest learns which of its vCPUs are preempted; threads, which others are", Domain::Flag, |h| Some(&mut h.tells_preempted)),
    Key::new("latency", "CFS: in this time each runnable vCPU of a CPU should run once", Domain::Time(TICK, LONGEST), |h| Some(&mut h.scheduler.latency)),
    Key::new("granularity", "CFS: the shortest slice", Domain::Time(TICK, LONGEST), |h| Some(&mut h.scheduler.granularity)),
    Key::new("wakeup", "CFS: a waking vCPU preempts one that has had this much more CPU time", Domain::Time(NONE, LONGEST), |h| Some(&mut h.scheduler.wakeup)),
    Key::new("eevdf_request", "The CPU time that a vCPU requests at once from EEVDF; 0 for CFS in its place", Domain::Time(NONE, LONGEST), |h| Some(&mut h.scheduler.request)),
    Key::new("tick", "The timer's period: slices end at a tick", Domain::Time(TICK, LONG), |h| Some(&mut h.scheduler.tick)),
    Key::new("switch", "A context switch, cold start included", Domain::Time(NONE, LONG), |h| Some(&mut h.scheduler.switch)),
    Key::new("migration", "A migration, as caches are cold", Domain::Time(NONE, LONG), |h| Some(&mut h.scheduler.migration)),
    Key::new("worth", "An idle CPU takes work from others if it is usually idle for longer than this", Domain::Time(NONE, LONG), |h| Some(&mut h.scheduler.worth)),
    Key::new("balance_idle", "The interval at which idle CPUs look for work", Domain::Time(TICK, LONGEST), |h| Some(&mut h.scheduler.balance.0)),
    Key::new("balance_all", "The interval at which all CPUs compare their queues", Domain::Time(TICK, LONGEST), |h| Some(&mut h.scheduler.balance.1)),
    Key::new("placement", "Where vCPUs begin: spread over all sockets; numa, the same but the second one beside the first; pack, on as few as have enough cores", Domain::Word(Placement::WORDS), |h| Some(&mut h.scheduler.placement)),
    Key::new("halt", "From a halt until the next vCPU can run", Domain::Time(SOME, LONG), |h| Some(&mut h.halt)),
    Key::new("brief", "A halt that is kicked while the host still polls, and of a thread one that finds its word changed", Domain::Time(SOME, LONG), |h| Some(&mut h.brief)),
    Key::new("yield", "A system call that yields a CPU which no other vCPU wants", Domain::Time(SOME, LONG), |h| Some(&mut h.yields)),
    Key::new("kick", "A kick for the kicker: a hypercall, or a system call", Domain::Time(SOME, LONG), |h| Some(&mut h.kick)),
    Key::new("kick_nobody", "The same without sleepers", Domain::Time(SOME, LONG), |h| Some(&mut h.kick_nobody)),
    Key::new("bucket_lines", "Threads: cache lines of its bucket that a futex call needs, which move from the core that had them", Domain::Count(0, 16), |h| Some(&mut h.bucket_lines)),
    Key::new("bucket_hold", "Threads: how long a futex call has its bucket to itself, beside that", Domain::Time(NONE, LONG), |h| Some(&mut h.bucket_hold)),
    Key::new("wake_idle", "From a kick until the sleeper runs on a CPU that has gone to sleep", Domain::Time(SOME, LONG), |h| Some(&mut h.wake_idle)),
    Key::new("wake_busy", "The same on a CPU that was busy, or has not gone to sleep yet", Domain::Time(SOME, LONG), |h| Some(&mut h.wake_busy)),
    Key::new("awake", "A CPU that is idle for this long goes to sleep", Domain::Time(NONE, LONG), |h| Some(&mut h.awake)),
    Key::new("poll", "The longest time for which the host polls before it gives up the CPU of a halted vCPU", Domain::Time(NONE, LONG), |h| Some(&mut h.poll)),
    Key::new("first_poll", "The shortest such time that is not zero", Domain::Time(SOME, LONG), |h| Some(&mut h.first_poll)),
    Key::new("chores_every", "The mean interval at which threads of the host take each CPU from its vCPU", Domain::Time(TICK, LONGEST), |h| Some(&mut h.chores.every)),
    Key::new("chores_length", "The mean time for which they do; 0 for no such threads", Domain::Time(NONE, LONG), |h| Some(&mut h.chores.length)),
    Key::new("pause_window", "The processor leaves a guest that is in a loop of pauses for this long; 0 for never", Domain::Time(NONE, LONG), |h| Some(&mut h.pause_exit.window)),
    Key::new("pause_grow", "Each exit multiplies the window by this, until the vCPU is scheduled anew", Domain::Count(1, 16), |h| Some(&mut h.pause_exit.grow)),
    Key::new("pause_gap", "Two pauses further apart than this are not in the same loop", Domain::Time(SOME, LONG), |h| Some(&mut h.pause_exit.gap)),
    Key::new("pause_cost", "The exit, the search for a vCPU to yield to, and the entry", Domain::Time(SOME, LONG), |h| Some(&mut h.pause_exit.cost)),
    Key::new("heavy_barrier", "A full memory barrier on all CPUs, requested by one", Domain::Time(SOME, LONG), |h| Some(&mut h.heavy_barrier)),
    Key::new("spins", "A wait in a queue begins with a spin where that is worth it; not one of a peer's model", Domain::Flag, |h| Some(&mut h.spins)),
];

impl Spec for Host {
    const WHAT: &'static str = "host";
    const RULES: &'static [Rule<Self>] = &[
        Rule {
            keys: &["granularity", "latency"],
            what: "granularity must be at most latency",
            holds: |host| host.scheduler.granularity <= host.scheduler.latency,
        },
        Rule {
            keys: &["chores_length", "chores_every"],
            what: "chores_length must be less than chores_every",
            holds: |host| host.chores.length < host.chores.every,
        },
        Rule {
            keys: &["chores_length"],
            what: "chores_length must be 0, or at least 1ns",
            holds: |host| host.chores.length == NONE || host.chores.length >= SOME,
        },
        Rule {
            keys: &["pause_window"],
            what: "pause_window must be 0, or at least 1ns",
            holds: |host| host.pause_exit.window == NONE || host.pause_exit.window >= SOME,
        },
        Rule {
            keys: &["eevdf_request"],
            what: "eevdf_request must be 0, or at least 1us",
            holds: |host| host.scheduler.request.is_none_or(|time| time >= TICK),
        },
    ];
    const FORMER: &'static [(&'static str, &'static str)] = &[
        ("chores", "chores_length"),
        ("pause_exit", "pause_window"),
        ("eevdf", "eevdf_request"),
    ];

    fn keys() -> &'static [Key<Self>] {
        KEYS
    }

    fn presets() -> &'static [Self] {
        &PRESETS
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &str {
        &self.about
    }

    fn rename(&mut self, name: String, about: String) {
        self.name = name.into();
        self.about = about.into();
    }
}

impl Words for Placement {
    const ALL: &'static [Self] = &[Self::Spread, Self::Numa, Self::Pack];
    const WORDS: &'static [&'static str] = &["spread", "numa", "pack"];
}

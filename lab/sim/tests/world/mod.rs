//! Machines and hosts that differ in all that matters to a lock, with slices so short that
//! preemptions are frequent.

#![allow(dead_code)] // each test uses a part of it

use std::borrow::Cow;
use std::sync::LazyLock;

use overlock_sim::Time;
use overlock_sim::engine::Setup;
use overlock_sim::host::{Chores, Host, PauseExit, Placement, Scheduler};
use overlock_sim::machine::{Costs, Level, Links, Machine};

const COSTS: Costs = Costs {
    hit: Time::ps(1_700),
    locked: Time::ps(8_300),
    cluster: Time::ZERO,
    socket: Time::ns(50),
    shared: Time::ns(22),
    across: Time::ns(114),
    hop: Time::ns(40),
    gap: Time::ns(12),
    memory: Time::ns(96),
    turn: Time::ns(5),
    jitter: 0.25,
    ring: 0.5,
    sibling: 0.6,
    ..Costs::USUAL
};

const fn machine(name: &'static str, sockets: usize, cores: usize, threads: usize) -> Machine {
    Machine {
        name: Cow::Borrowed(name),
        about: Cow::Borrowed(""),
        sockets,
        clusters: 1,
        cores,
        threads,
        last_level: Level::Socket,
        inclusive: sockets <= 2,
        migratory: cores == 2 && sockets <= 2,
        links: if sockets > 2 { Links::Cube } else { Links::All },
        costs: COSTS,
    }
}

/// One CPU; two; hardware threads on two sockets; four sockets.
pub static MACHINES: [Machine; 4] = [
    machine("single", 1, 1, 1),
    machine("pair", 1, 2, 1),
    machine("threads", 2, 2, 2),
    machine("square", 4, 2, 1),
];

const SHORT: Scheduler = Scheduler {
    latency: Time::us(60),
    granularity: Time::us(15),
    wakeup: Time::us(20),
    request: None,
    tick: Time::us(10),
    switch: Time::ns(1_500),
    migration: Time::us(2),
    worth: Time::us(10),
    balance: (Time::us(40), Time::us(300)),
    placement: Placement::Pack,
};

/// A scheduler only.
const PLAIN: Host = Host {
    name: Cow::Borrowed("plain"),
    about: Cow::Borrowed(""),
    hypervisor: true,
    tells_preempted: true,
    scheduler: SHORT,
    halt: Time::ns(2_000),
    brief: Time::ns(1_500),
    kick: Time::ns(2_000),
    kick_nobody: Time::ns(1_500),
    bucket_lines: 0,
    bucket_hold: Time::ZERO,
    wake_idle: Time::us(12),
    wake_busy: Time::ns(3_500),
    awake: Time::us(50),
    poll: Time::ZERO,
    first_poll: Time::us(10),
    chores: None,
    pause_exit: None,
    heavy_barrier: Time::us(3),
    spins: false,
};

/// It polls for halted vCPUs, has work of its own, and has pause-loop exits.
fn busy() -> Host {
    Host {
        name: Cow::Borrowed("busy"),
        poll: Time::us(20),
        chores: Some(Chores {
            every: Time::us(100),
            length: Time::us(5),
        }),
        pause_exit: Some(PauseExit {
            window: Time::us(2),
            grow: 2,
            gap: Time::ns(56),
            cost: Time::ns(1_500),
        }),
        ..PLAIN
    }
}

/// Pause-loop exits with a window that does not grow.
fn exits() -> Host {
    Host {
        name: Cow::Borrowed("exits"),
        pause_exit: Some(PauseExit {
            window: Time::us(1),
            grow: 1,
            gap: Time::ns(56),
            cost: Time::ns(1_500),
        }),
        ..PLAIN
    }
}

/// Cheap halts and kicks, and spins before halts.
fn cheap() -> Host {
    Host {
        name: Cow::Borrowed("cheap"),
        halt: Time::ns(600),
        brief: Time::ns(180),
        kick: Time::ns(1_000),
        kick_nobody: Time::ns(130),
        bucket_lines: 2,
        bucket_hold: Time::ns(50),
        wake_idle: Time::us(5),
        wake_busy: Time::ns(1_500),
        awake: Time::us(1),
        spins: true,
        ..PLAIN
    }
}

/// EEVDF in the place of CFS.
fn deadlines() -> Host {
    Host {
        name: Cow::Borrowed("deadlines"),
        scheduler: Scheduler {
            request: Some(Time::us(15)),
            ..SHORT
        },
        ..PLAIN
    }
}

pub static HOSTS: LazyLock<[Host; 5]> =
    LazyLock::new(|| [PLAIN, busy(), exits(), cheap(), deadlines()]);

pub fn setup<'a>(machine: &'a Machine, host: &'a Host, vcpus: usize, seed: u64) -> Setup<'a> {
    Setup {
        machine,
        host,
        vcpus,
        guests: 1,
        others: 0,
        seed,
        stop_after: Time::ms(200),
        windows: None,
        patience: Time::ms(200),
        trace: true,
    }
}

/// Small variations, which depend on the arguments only.
pub fn vary(vcpu: usize, section: u64) -> u64 {
    (vcpu as u64 * 7_919 + section * 104_729) % 97
}

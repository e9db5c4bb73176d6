//! The engine in scenes computed by hand, on machines and hosts without random variation, so that
//! every time can be computed.

mod ahead;
mod buffer;
mod host;
mod interrupt;
mod memory;
mod preempted;
mod spins;
mod threads;

use std::borrow::Cow;

use super::*;
use crate::account::State;
use crate::cache::Access;
use crate::host::{Host, Placement, Scheduler};
use crate::machine::{Costs, Level, Links, Machine};
use crate::word::U32;

use overlock_core::platform::Atomic;

/// One socket. A line that another core has changed arrives after 60 ns: 20 for the request, 15 for
/// the snoop, 25 for the data.
pub(super) fn machine(cores: usize, threads: usize) -> Machine {
    Machine {
        name: Cow::Borrowed("test"),
        about: Cow::Borrowed(""),
        sockets: 1,
        clusters: 1,
        cores,
        threads,
        last_level: Level::Socket,
        inclusive: true,
        migratory: false,
        links: Links::All,
        costs: Costs {
            hit: Time::ns(2),
            locked: Time::ns(8),
            cluster: Time::ZERO,
            socket: Time::ns(60),
            shared: Time::ns(20),
            across: Time::ns(120),
            hop: Time::ns(30),
            gap: Time::ns(10),
            memory: Time::ns(90),
            turn: Time::ns(5),
            jitter: 0.0,
            ring: 0.0,
            sibling: 0.5,
            ..Costs::USUAL
        },
    }
}

/// No cost is the sum of others by accident.
pub(super) const HOST: Host = Host {
    name: Cow::Borrowed("test"),
    about: Cow::Borrowed(""),
    hypervisor: true,
    tells_preempted: true,
    scheduler: Scheduler {
        latency: Time::ms(8),
        granularity: Time::ms(1),
        wakeup: Time::ms(2),
        request: None,
        tick: Time::us(500),
        switch: Time::ns(1_100),
        migration: Time::ns(3_300),
        worth: Time::ZERO,
        balance: (Time::ms(4), Time::ms(64)),
        placement: Placement::Pack,
    },
    halt: Time::ns(1_700),
    brief: Time::ns(700),
    kick: Time::ns(900),
    kick_nobody: Time::ns(300),
    bucket_lines: 0,
    bucket_hold: Time::ZERO,
    wake_idle: Time::us(13),
    wake_busy: Time::ns(2_900),
    awake: Time::us(50),
    poll: Time::ZERO,
    first_poll: Time::us(10),
    chores: None,
    pause_exit: None,
    heavy_barrier: Time::ns(4_100),
    spins: false,
};

pub(super) fn setup<'a>(machine: &'a Machine, host: &'a Host, vcpus: usize) -> Setup<'a> {
    Setup {
        machine,
        host,
        vcpus,
        guests: 1,
        others: 0,
        seed: 1,
        stop_after: Time::ms(100),
        windows: None,
        patience: Time::ms(100),
        trace: false,
    }
}

/// Runs `body` on this many vCPUs.
pub(super) fn simulate<T>(
    machine: &Machine,
    host: &Host,
    vcpus: usize,
    body: impl Fn(usize) -> T,
) -> Result<Outcome<T>, Stuck> {
    run(&setup(machine, host, vcpus), body, || true)
}

/// All vCPUs wait until this time before the scene begins: by then their first context switches are
/// over.
pub(super) const BEGIN: Time = Time::us(10);

/// Shares its cache line with no other data.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Own(pub U32);

impl Own {
    pub const fn new() -> Self {
        Own(U32::ZERO)
    }
}

/// Computes until that time.
pub(super) fn at(moment: Time) {
    work(moment.saturating_sub(now()));
}

//! The engine in scenes computed by hand, on machines and hosts without random variation.

mod costs;
mod ends;
mod locks;
mod published;
mod scenes;

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use overlock_core::platform::{Atomic, ByteLanes, Kick, Pause};
use overlock_core::{Cpu, FutexPlatform, Instant, Platform, Spin};

use super::*;
use crate::account::State;
use crate::cache::Access;
use crate::host::PauseExit;
use crate::machine::tests::plain;
use crate::spec;
use crate::trace::What;
use crate::word::U32;

/// One socket. A line that another core has changed arrives after 60 ns: 20 for the request, 15 for
/// the snoop, 25 for the data.
fn machine(cores: usize, threads: usize) -> Machine {
    Machine {
        sockets: 1,
        cores,
        threads,
        ..plain()
    }
}

/// No cost is the sum of others by accident.
fn host() -> Host {
    let keys = "kvm:tells_preempted=true:latency=8ms:granularity=1ms:wakeup=2ms:tick=500us:\
                switch=1.1us:migration=3.3us:worth=0:balance_idle=4ms:balance_all=64ms:\
                placement=pack:halt=1.7us:brief=700:kick=900:kick_nobody=300:bucket_lines=0:\
                bucket_hold=0:wake_idle=13us:wake_busy=2.9us:awake=50us:\
                chores_length=0:pause_window=0:heavy_barrier=4.1us:spins=false";
    Host::named(keys).expect("a host")
}

/// Pauses that follow each other for 2 us leave the guest for 1.3 us.
fn exits() -> Host {
    let pause_exit = PauseExit {
        window: Time::us(2),
        grow: 2,
        gap: Time::ns(56),
        cost: Time::ns(1_300),
    };
    Host {
        pause_exit,
        ..host()
    }
}

fn setup<'a>(machine: &'a Machine, host: &'a Host, vcpus: usize) -> Setup<'a> {
    Setup {
        machine,
        host,
        vcpus,
        guests: 1,
        others: 0,
        seed: 1,
        stop_after: Time::ms(200),
        windows: None,
        patience: Time::ms(200),
        trace: true,
    }
}

/// Runs `body` on this many vCPUs.
fn simulate<T>(
    machine: &Machine,
    host: &Host,
    vcpus: usize,
    body: impl Fn(usize) -> T,
) -> Outcome<T> {
    run(&setup(machine, host, vcpus), body, || true).expect("it ends")
}

/// When a scene begins, in nanoseconds: the first context switches are over by then.
const BEGIN: u64 = 10_000;

/// Computes until that time, in nanoseconds.
fn at(moment: u64) {
    work(Time::ns(moment).saturating_sub(now()));
}

/// Shares its cache lines with nothing else, wherever the program's memory is.
#[derive(Debug)]
#[repr(align(128))]
struct Own<T = U32>(T);

impl Own {
    const fn new() -> Self {
        Own(U32::ZERO)
    }

    /// Gets the line.
    fn take(&self) {
        let _ = self.0.swap(self.0.load(Relaxed), Relaxed);
    }

    /// Spins until the word has that value.
    fn wait_for(&self, value: u32) {
        let is_there = |seen: u32| seen == value;
        Sim::wait_until(&self.0, Acquire, Spin::Forever, is_there).expect("it has no limit");
    }
}

/// How often the trace has such an entry.
fn marks<T>(outcome: &Outcome<T>, is_one: impl Fn(&Mark) -> bool) -> u64 {
    outcome.trace.iter().filter(|mark| is_one(mark)).count() as u64
}

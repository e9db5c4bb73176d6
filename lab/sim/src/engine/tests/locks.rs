//! Every lock of the family on simulated machines, with one, two and three vCPUs for each CPU.

use std::sync::LazyLock;

use overlock_core::raw::{RawLock, RawRwLock};
use overlock_core::sleep::{Overlock, Semaphore};
use overlock_family::rw::Qrwlock;
use overlock_family::sleep::{rwsem::RwSemCounted, *};
use overlock_family::spin::faulty::{
    Faulty, FaultyRw, Flaw, LostKick, NoExclusion, Relaxed as Sound,
};
use overlock_family::spin::*;

use super::*;
use crate::forget;

const COSTS: &str = "hit=1.7:locked=8.3:socket=50:shared=22:across=114:hop=40:gap=12:memory=96:\
                     turn=5:snoop=0.25:jitter=0.25:ring=0.5:sibling=0.6";

/// One CPU; two; hardware threads on two sockets; four sockets.
static MACHINES: LazyLock<[Machine; 4]> = LazyLock::new(|| {
    [
        "sockets=1:cores_per_socket=1:threads_per_core=1:migratory=false",
        "sockets=1:cores_per_socket=2:threads_per_core=1:migratory=true",
        "sockets=2:cores_per_socket=2:threads_per_core=2:migratory=true",
        "sockets=4:cores_per_socket=2:threads_per_core=1:migratory=false:inclusive=false:\
         links=cube",
    ]
    .map(|keys| Machine::named(&format!("e5-2699v3:{COSTS}:{keys}")).expect("a machine"))
});

const SCHEDULER: &str = "latency=60us:granularity=15us:wakeup=20us:tick=10us:switch=1.5us:\
                         migration=2us:worth=10us:balance_idle=40us:balance_all=300us:\
                         placement=pack:heavy_barrier=3us";
const DEAR: &str = "halt=2us:brief=1.5us:kick=2us:kick_nobody=1.5us:wake_idle=12us:\
                    wake_busy=3.5us:awake=50us";
const CHEAP: &str = "halt=600:brief=180:kick=1us:kick_nobody=130:wake_idle=5us:wake_busy=1.5us:\
                     awake=1us:bucket_lines=2:bucket_hold=50:spins=true";
const EXITS: &str = "pause_gap=56:pause_cost=1.5us";
const PLAIN: &str = "chores_length=0";

/// A scheduler only. One that has work of its own, and pause-loop exits. Such exits with a window
/// that does not grow. Cheap halts and kicks, and spins before halts. EEVDF in the place of CFS.
static HOSTS: LazyLock<[Host; 5]> = LazyLock::new(|| {
    [
        format!("{DEAR}:{PLAIN}:pause_window=0"),
        format!(
            "{DEAR}:{EXITS}:pause_window=2us:pause_grow=2:\
             chores_every=100us:chores_length=5us"
        ),
        format!("{DEAR}:{EXITS}:{PLAIN}:pause_window=1us:pause_grow=1"),
        format!("{CHEAP}:{PLAIN}:pause_window=0"),
        format!("{DEAR}:{PLAIN}:pause_window=0:eevdf_request=15us"),
    ]
    .map(|keys| Host::named(&format!("kvm:{SCHEDULER}:{keys}")).expect("a host"))
});

/// Critical sections of each vCPU.
const SECTIONS: u64 = 25;

/// Small variations, which depend on the arguments only.
fn vary(vcpu: usize, section: u64) -> u64 {
    (vcpu as u64 * 7_919 + section * 104_729) % 97
}

/// Increments the word by a load and a store, with a delay in between.
fn count(word: &Own<U32>, vcpu: usize, section: u64) {
    let seen = word.0.load(Relaxed);
    work(Time::ns(20 + vary(vcpu, section)));
    word.0.store(seen + 1, Relaxed);
}

/// The value of the word, and the result of the simulation.
type Counted = (u64, Result<Outcome<u64>, Stuck>);

type Simulate = fn(&Machine, &Host, usize, u64) -> Counted;

/// Each vCPU runs all sections of the lock, and lets time pass after each.
fn sections<L>(
    setup: Setup<'_>,
    seed: u64,
    create: impl Fn() -> L,
    section: impl Fn(&L, &Own<U32>, usize, u64),
) -> Counted {
    forget();
    let (place, word) = (Own(create()), Own(U32::ZERO));
    let body = |vcpu| {
        for number in 0..SECTIONS {
            section(&place.0, &word, vcpu, number);
            work(Time::ns(3 * vary(vcpu, number)));
        }
        SECTIONS
    };
    let outcome = run(&Setup { seed, ..setup }, body, || true);
    if outcome.is_err() {
        // Remaining fibres still refer to it.
        std::mem::forget(place);
    }
    (word.0.load(Relaxed).into(), outcome)
}

fn exclusive<L: RawLock>(machine: &Machine, host: &Host, vcpus: usize, seed: u64) -> Counted {
    let create = || L::create().expect("tickets are left");
    let section = |lock: &L, word: &Own<U32>, vcpu, section| {
        let token = lock.lock();
        count(word, vcpu, section);
        // SAFETY: locked above, with this token.
        unsafe { lock.unlock(token) };
    };
    sections(setup(machine, host, vcpus), seed, create, section)
}

/// Whether a vCPU writes, with a reader-writer lock.
fn writes(vcpu: usize) -> bool {
    vcpu % 3 != 1
}

/// As above; every third vCPU reads, and two loads of a reader have the same result.
fn shared<L: RawRwLock>(machine: &Machine, host: &Host, vcpus: usize, seed: u64) -> Counted {
    let section = |lock: &L, word: &Own<U32>, vcpu, section| {
        if writes(vcpu) {
            let token = lock.write();
            count(word, vcpu, section);
            // SAFETY: locked above, with this token.
            return unsafe { lock.unlock_write(token) };
        }
        let token = lock.read();
        let seen = word.0.load(Relaxed);
        work(Time::ns(20 + vary(vcpu, section)));
        assert_eq!(word.0.load(Relaxed), seen, "a writer during a reader");
        // SAFETY: locked above, with this token.
        unsafe { lock.unlock_read(token) };
    };
    sections(setup(machine, host, vcpus), seed, || L::INIT, section)
}

/// Each machine, each host, each overcommit: mutual exclusion, termination, and no lost waiter.
/// Fails where a waiter misses a change: the line's count in `watch`, or `changed` after an access.
/// Fails where a CPU is not given to the next vCPU: `dispatch` after a halt, a chore, an end. Fails
/// where vCPUs that yield make a CPU do nothing but switch (`again`). Fails where a vCPU is in no
/// state for a while, or in two (without `since` updated in `enter`), or where two have one CPU.
fn everywhere(name: &str, writes: fn(usize) -> bool, simulate: Simulate) {
    for machine in MACHINES.iter() {
        for host in HOSTS.iter() {
            for overcommit in 1..=3 {
                let vcpus = (overcommit * machine.cpus()).max(2);
                let (counted, outcome) = simulate(machine, host, vcpus, overcommit as u64);
                let scene = format!("{name} on {}, {}, {vcpus} vCPUs", machine.name, host.name);
                let outcome = outcome.unwrap_or_else(|stuck| panic!("{scene}: {stuck}"));
                assert_eq!(outcome.results, vec![SECTIONS; vcpus], "{scene}");
                let writers = (0..vcpus).filter(|&vcpu| writes(vcpu)).count();
                assert_eq!(counted, SECTIONS * writers as u64, "{scene}");
                for account in &outcome.accounts {
                    assert_eq!(account.total(), outcome.elapsed, "{scene}");
                }
                let cpus = outcome.elapsed.times(machine.cpus() as u64);
                assert!(outcome.account().on_cpu() <= cpus, "{scene}");
            }
        }
    }
}

macro_rules! tests {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {
        $(#[test]
        fn $name() {
            everywhere(stringify!($name), |_| true, exclusive::<$lock<Sim>>);
        })*
    };
    ($($name:ident: $module:ident::$lock:ident, $can:ident;)*) => {
        $(#[test]
        fn $name() {
            everywhere(stringify!($name), writes, shared::<overlock_family::$module::$lock<Sim>>);
        })*
    };
}

overlock_family::spin_locks!(tests);
overlock_family::sleep_locks!(tests);
overlock_family::rw_locks!(tests);

/// Fails where a check for misuse takes simulated time, or which words of a stack share a line
/// matters (rwsem has a list there). The figures are of a build without checks: `cargo test
/// --release -p overlock-sim --lib all_builds` has them after a change of these locks or of
/// the costs.
#[test]
fn all_builds_have_the_same_results() {
    let locks: [Simulate; 6] = [
        exclusive::<Unfair<Sim>>,
        exclusive::<Queued<Sim>>,
        exclusive::<Overlock<Sim>>,
        shared::<Qrwlock<Sim>>,
        shared::<RwSem<Sim>>,
        shared::<RwSemCounted<Sim>>,
    ];
    let elapsed = locks.map(|simulate| {
        let outcome = simulate(&MACHINES[3], &HOSTS[1], 8, 1).1;
        outcome.expect("these locks are correct").elapsed.as_ps()
    });
    let expected = [
        106_359_605,
        167_462_710,
        138_618_830,
        81_435_819,
        100_870_683,
        131_616_746,
    ];
    assert_eq!(elapsed, expected);
}

/// Three vCPUs, each with a CPU: an owner, and two that a broken lock can let in. Fails where the
/// counter does not show it. Fails where a body whose panic has reached the caller still runs: the
/// thread could not simulate again.
#[test]
fn a_lock_without_exclusion_is_caught() {
    fn caught<F: Flaw>() -> usize {
        let is_caught = |seed: &u64| {
            let (counted, outcome) = exclusive::<Faulty<Sim, F>>(&MACHINES[3], &HOSTS[0], 3, *seed);
            outcome.is_err() || counted < 3 * SECTIONS
        };
        (0..20).filter(is_caught).count()
    }
    let writer = || shared::<FaultyRw<Sim>>(&MACHINES[2], &HOSTS[0], 8, 1);
    let said = catch_unwind(writer).expect_err("a reader sees the writer");
    let said = said.downcast_ref::<String>().expect("an assertion");
    assert!(said.contains("during a reader"));
    assert_eq!(caught::<Sound>(), 0);
    assert!(caught::<NoExclusion>() > 10);
}

/// An owner keeps the lock until the two others sleep, and their kick is lost; or it never releases
/// a spinlock. Fails where sleepers are not distinguished from vCPUs that have work to do.
#[test]
fn a_lost_waiter_is_caught() {
    fn stuck<F: Flaw>() -> Option<Stuck> {
        forget();
        let lock = Faulty::<Sim, F>::new();
        let body = |vcpu| {
            work(Time::us(10 * vcpu as u64));
            lock.lock();
            work(Time::us(if vcpu == 0 { 200 } else { 1 }));
            // SAFETY: locked above.
            unsafe { lock.unlock(()) };
        };
        run(&setup(&MACHINES[3], &HOSTS[0], 3), body, || true).err()
    }
    assert_eq!(stuck::<LostKick>(), Some(Stuck::Asleep { vcpus: 1 }));
    assert_eq!(stuck::<Sound>(), None);
    let lock = Ticket::<Sim>::new();
    let mut setup = setup(&MACHINES[1], &HOSTS[0], 2);
    (setup.stop_after, setup.patience) = (Time::ms(1), Time::ms(2));
    let stuck = run(&setup, |_| lock.lock(), || true).expect_err("nobody unlocks");
    assert_eq!(stuck, Stuck::Running { vcpus: 1 });
}

/// The same seed gives the same outcome, to the last event of the trace: after other simulations,
/// and on another thread. Fails where a simulation depends on addresses, on data that the one
/// before has left (without `forget`), or on a real clock.
#[test]
fn the_seed_determines_the_outcome() {
    fn decides<L: RawLock>() {
        let outcome = |seed| format!("{:?}", exclusive::<L>(&MACHINES[2], &HOSTS[1], 20, seed));
        let first = outcome(1);
        assert_ne!(first, outcome(2));
        assert_eq!(first, outcome(1));
        let padding = vec![0_u8; 12_345];
        let elsewhere = std::thread::spawn(move || {
            let _ = shared::<RwSem<Sim>>(&MACHINES[3], &HOSTS[0], 9, 3);
            outcome(1)
        });
        assert_eq!(first, elsewhere.join().expect("it does not panic"));
        drop(padding);
    }
    decides::<Overlock<Sim>>();
    decides::<PvQueued<Sim>>();
    decides::<PvTicket<Sim>>();
    decides::<FastQueue<Sim>>();
    decides::<KernelMutex<Sim>>();
}

#[test]
fn a_thousand_vcpus_take_turns() {
    for host in &HOSTS[..2] {
        let (counted, outcome) = exclusive::<PvQueued<Sim>>(&MACHINES[2], host, 1024, 1);
        outcome.unwrap_or_else(|stuck| panic!("{}: {stuck}", host.name));
        assert_eq!(counted, 1024 * SECTIONS);
    }
}

/// Two threads on two CPUs pass a turn to and fro 200 times, and compute for this long in each. So
/// many others compute all the time.
fn pass(length: Time, others: usize, spins: bool) -> Outcome<()> {
    forget();
    let host = Host {
        spins,
        ..Host::threads()
    };
    let mut setup = setup(&MACHINES[1], &host, 2);
    setup.others = others;
    let turns = [1, 0].map(|count| Own(Semaphore::<Sim>::new(count)));
    let body = |vcpu: usize| {
        for _ in 0..200 {
            turns[vcpu].0.acquire();
            work(length);
            turns[1 - vcpu].0.release();
        }
    };
    run(&setup, body, || true).expect("it ends")
}

/// The rule of threads on Linux: without the spin each turn is a wake-up. Fails if a crowded
/// machine has room, if an object learns nothing from spins in vain, or if what it has learned
/// outlives its simulation.
#[test]
fn a_short_turn_is_passed_without_a_wake_up() {
    let [with, without] = [true, false].map(|spins| pass(Time::ns(100), 0, spins));
    assert!(without.counts.halts > 200 && with.counts.halts < 10);
    assert!(without.elapsed > with.elapsed.times(3));
    let [with, without] = [true, false].map(|spins| pass(Time::ns(100), 2, spins));
    assert!(format!("{with:?}") == format!("{without:?}"));
    // Long waits soon begin without a spin.
    let long = pass(Time::us(200), 0, true);
    let spun = long.account()[State::Spin];
    assert!(spun > Time::us(5) && spun.times(200) < long.elapsed);
    assert!(format!("{long:?}") == format!("{:?}", pass(Time::us(200), 0, true)));
}

/// Fails where the recommended mutex kicks newcomers with the lock in hand: behind the other CPUs,
/// which all wait for the kernel's bucket. It takes 12.1 ms, and took more than 46 with fewer
/// sections when that was so.
#[test]
fn hundreds_of_threads_do_not_meet_in_the_kernel() {
    const EACH: u64 = 100;
    forget();
    let [machine, host] = ["xeon-8480:sockets=1:cores_per_socket=32", "threads-6.12"];
    let machine = Machine::named(machine).expect("a machine");
    let host = Host::named(host).expect("a host");
    let lock = Own(Overlock::<Sim>::new());
    let body = |_| {
        for _ in 0..EACH {
            lock.0.lock();
            work(Time::ns(200));
            // SAFETY: locked above.
            unsafe { lock.0.unlock(()) };
            work(Time::us(2));
        }
    };
    let setup = setup(&machine, &host, 4 * machine.cpus());
    let outcome = run(&setup, body, || true).expect("all end");
    assert!(outcome.elapsed < Time::ms(25), "{:?}", outcome.elapsed);
}

//! Every lock of the family on simulated machines, with one, two and three vCPUs for each CPU.

mod world;

use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::Atomic;
use overlock_core::raw::{RawLock, RawRwLock};
use overlock_family::spin::faulty::{
    Faulty, FaultyRw, Flaw, LostKick, NoExclusion, Relaxed as Sound, Starving,
};
use overlock_sim::engine::{self, Outcome, Stuck};
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use overlock_sim::word::U32;
use overlock_sim::{Sim, Time, forget, run};
use world::{HOSTS, MACHINES, setup, vary};

/// Critical sections of each vCPU.
const SECTIONS: u64 = 25;

/// A word on a cache line of its own, which only the lock under test protects.
#[repr(align(128))]
struct Own(U32);

/// Increments the word by a load and a store, with a delay in between.
fn count(word: &Own, vcpu: usize, section: u64) {
    let seen = word.0.load(Relaxed);
    engine::work(Time::ns(20 + vary(vcpu, section)));
    word.0.store(seen + 1, Relaxed);
}

/// Begins at a cache line, so that the placement of the program's memory does not matter.
#[repr(align(128))]
struct Place<L>(L);

/// The value of the word, and the result of the simulation.
type Counted = (u32, Result<Outcome<u64>, Stuck>);

/// Each vCPU runs all sections of the lock, and lets time pass after each.
fn simulate<L>(
    (machine, host, vcpus, seed): (&Machine, &Host, usize, u64),
    lock: L,
    section: impl Fn(&L, &Own, usize, u64),
) -> Counted {
    let place = Place(lock);
    let word = Own(U32::ZERO);
    let body = |vcpu| {
        for number in 0..SECTIONS {
            section(&place.0, &word, vcpu, number);
            engine::work(Time::ns(3 * vary(vcpu, number)));
        }
        SECTIONS
    };
    let outcome = run(&setup(machine, host, vcpus, seed), body, || true);
    if outcome.is_err() {
        // Remaining fibres still refer to it.
        std::mem::forget(place);
    }
    (word.0.load(Relaxed), outcome)
}

fn exclusive<L: RawLock>(machine: &Machine, host: &Host, vcpus: usize, seed: u64) -> Counted {
    forget();
    let lock = L::create().expect("tickets are left");
    simulate(
        (machine, host, vcpus, seed),
        lock,
        |lock, word, vcpu, section| {
            let token = lock.lock();
            count(word, vcpu, section);
            // SAFETY: locked above, with this token.
            unsafe { lock.unlock(token) };
        },
    )
}

/// As above; every third vCPU reads, and two loads of a reader have the same result.
fn shared<L: RawRwLock>(machine: &Machine, host: &Host, vcpus: usize, seed: u64) -> Counted {
    forget();
    simulate(
        (machine, host, vcpus, seed),
        L::INIT,
        |lock, word, vcpu, section| {
            if vcpu % 3 == 1 {
                let token = lock.read();
                let seen = word.0.load(Relaxed);
                engine::work(Time::ns(20 + vary(vcpu, section)));
                assert_eq!(word.0.load(Relaxed), seen, "a writer during a reader");
                // SAFETY: locked above, with this token.
                unsafe { lock.unlock_read(token) };
            } else {
                let token = lock.write();
                count(word, vcpu, section);
                // SAFETY: locked above, with this token.
                unsafe { lock.unlock_write(token) };
            }
        },
    )
}

/// Each machine, each host, each overcommit. Fails where a waiter misses a change: the line's count
/// in `watch`, or `changed` after an access. Fails where a CPU is not given to the next vCPU:
/// `dispatch` after a halt, a chore, an end. Fails where vCPUs that yield make a CPU do nothing but
/// switch (`again`).
fn everywhere(
    name: &str,
    writers: fn(usize) -> usize,
    simulate: fn(&Machine, &Host, usize, u64) -> Counted,
) {
    for machine in MACHINES.iter() {
        for host in HOSTS.iter() {
            for overcommit in 1..=3 {
                let vcpus = (overcommit * machine.cpus()).max(2);
                let seed = overcommit as u64;
                let (counted, outcome) = simulate(machine, host, vcpus, seed);
                let scene = format!("{name} on {}, {}, {vcpus} vCPUs", machine.name, host.name);
                let outcome = outcome.unwrap_or_else(|stuck| panic!("{scene}: {stuck}"));
                assert_eq!(outcome.results, vec![SECTIONS; vcpus], "{scene}");
                assert_eq!(
                    u64::from(counted),
                    SECTIONS * writers(vcpus) as u64,
                    "{scene}"
                );
            }
        }
    }
}

macro_rules! locks {
    ($module:ident, $($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {
        /// Mutual exclusion, termination, and no lost waiter.
        mod $module {
            $(#[test]
            fn $name() {
                type Lock = overlock_family::$module::$lock<super::Sim>;
                super::everywhere(stringify!($name), |vcpus| vcpus, super::exclusive::<Lock>);
            })*
        }
    };
}

macro_rules! spin { ($($lock:tt)*) => { locks!(spin, $($lock)*); }; }
macro_rules! sleep { ($($lock:tt)*) => { locks!(sleep, $($lock)*); }; }

macro_rules! rw {
    ($($name:ident: $module:ident::$lock:ident, $can:ident;)*) => {
        /// The same for reader-writer locks.
        mod rw {
            $(#[test]
            fn $name() {
                type Lock = overlock_family::$module::$lock<super::Sim>;
                let writers = |vcpus| (0..vcpus).filter(|vcpu| vcpu % 3 != 1).count();
                super::everywhere(stringify!($name), writers, super::shared::<Lock>);
            })*
        }
    };
}

overlock_family::spin_locks!(spin);
overlock_family::sleep_locks!(sleep);
overlock_family::rw_locks!(rw);

/// Fails where a check for misuse takes simulated time, or which words of a stack share a line
/// matters (rwsem has a list there). The figures are of a build without checks: `cargo test
/// --release -p overlock-sim --test locks all_builds` has them after a change of these locks or of
/// the costs.
#[test]
fn all_builds_have_the_same_results() {
    type Simulate = fn(&Machine, &Host, usize, u64) -> Counted;
    let simulate: [Simulate; 6] = [
        exclusive::<overlock_family::spin::Unfair<Sim>>,
        exclusive::<overlock_family::spin::Queued<Sim>>,
        exclusive::<overlock_core::sleep::Overlock<Sim>>,
        shared::<overlock_family::rw::Qrwlock<Sim>>,
        shared::<overlock_family::sleep::RwSem<Sim>>,
        shared::<overlock_family::sleep::rwsem::RwSemCounted<Sim>>,
    ];
    let elapsed = simulate.map(|simulate| {
        let (_, outcome) = simulate(&MACHINES[3], &HOSTS[1], 8, 1);
        outcome.expect("these locks are correct").elapsed.as_ps()
    });
    assert_eq!(
        elapsed,
        [
            99_378_318,
            158_445_330,
            147_283_997,
            87_667_335,
            105_962_633,
            139_338_751
        ]
    );
}

/// Three vCPUs, each with a CPU: an owner, and two that a broken lock can let in or lose.
fn broken<F: Flaw>(seed: u64) -> Counted {
    exclusive::<Faulty<Sim, F>>(&MACHINES[3], &HOSTS[0], 3, seed)
}

/// Without flaws the lock is correct: so the other tests here detect the flaws.
#[test]
fn a_lock_without_a_flaw_passes() {
    for seed in 0..20 {
        let (counted, outcome) = broken::<Sound>(seed);
        assert_eq!((u64::from(counted), outcome.is_ok()), (3 * SECTIONS, true));
    }
}

#[test]
fn a_lock_without_exclusion_is_caught_by_the_counter() {
    let mut stuck = 0;
    let caught = (0..20).filter(|&seed| {
        let (counted, outcome) = broken::<NoExclusion>(seed);
        stuck += usize::from(outcome.is_err());
        outcome.is_ok() && u64::from(counted) < 3 * SECTIONS
    });
    let caught = caught.count();
    assert!(caught > 10, "{caught}");
    // Its store can erase the mark of a sleeper, too, as one seed shows.
    assert!(stuck <= 1, "{stuck}");
}

#[test]
fn a_writer_during_readers_is_caught() {
    let machine = &MACHINES[2];
    let caught = std::panic::catch_unwind(|| shared::<FaultyRw<Sim>>(machine, &HOSTS[0], 8, 1));
    assert!(caught.is_err_and(|said| {
        said.downcast_ref::<String>()
            .is_some_and(|said| said.contains("during a reader"))
    }));
    // The thread can simulate again.
    a_lock_without_a_flaw_passes();
}

/// An owner keeps the lock until the two others sleep. Fails where sleepers are not distinguished
/// from vCPUs that have work to do.
#[test]
fn a_lost_kick_leaves_a_sleeper() {
    fn stuck<F: Flaw>() -> Option<Stuck> {
        forget();
        let lock = Faulty::<Sim, F>::new();
        let body = |vcpu| {
            engine::work(Time::us(10 * vcpu as u64));
            lock.lock();
            engine::work(Time::us(if vcpu == 0 { 200 } else { 1 }));
            // SAFETY: locked above.
            unsafe { lock.unlock(()) };
        };
        run(&setup(&MACHINES[3], &HOSTS[0], 3, 1), body, || true).err()
    }
    assert_eq!(stuck::<LostKick>(), Some(Stuck::Asleep { vcpus: 1 }));
    assert_eq!(stuck::<Sound>(), None);
}

/// The same seed gives the same outcome, to the last event of the trace: after other simulations,
/// and on another thread. Fails where a simulation depends on addresses, on data that the one
/// before has left (without `forget`), or on a real clock.
#[test]
fn the_seed_determines_the_outcome() {
    fn outcome<L: RawLock>(seed: u64) -> String {
        let (counted, outcome) = exclusive::<L>(&MACHINES[2], &HOSTS[1], 20, seed);
        format!("{counted} {outcome:?}")
    }
    fn decides<L: RawLock>() {
        let first = outcome::<L>(1);
        assert_ne!(first, outcome::<L>(2));
        assert_eq!(first, outcome::<L>(1));
        let padding = vec![0_u8; 12_345];
        let elsewhere = std::thread::spawn(|| {
            let _ = shared::<overlock_family::sleep::RwSem<Sim>>(&MACHINES[3], &HOSTS[0], 9, 3);
            outcome::<L>(1)
        });
        assert_eq!(first, elsewhere.join().expect("it does not panic"));
        drop(padding);
    }
    decides::<overlock_core::sleep::Overlock<Sim>>();
    decides::<overlock_family::spin::PvQueued<Sim>>();
    decides::<overlock_family::spin::PvTicket<Sim>>();
    decides::<overlock_family::spin::FastQueue<Sim>>();
    decides::<overlock_family::sleep::KernelMutex<Sim>>();
}

/// Fails where a vCPU is in no state for a while, or in two (without `since` updated in `enter`),
/// or where two have one CPU.
#[test]
fn all_time_is_accounted_for() {
    for (machine, host) in MACHINES.iter().zip(HOSTS.iter()) {
        for vcpus in [2, machine.cpus() * 3] {
            type Lock = overlock_core::sleep::Overlock<Sim>;
            let (_, outcome) = exclusive::<Lock>(machine, host, vcpus, 1);
            let outcome = outcome.expect("it ends");
            assert!(!outcome.stopped);
            for account in &outcome.accounts {
                assert_eq!(account.total(), outcome.elapsed);
            }
            let on_cpu = outcome.account().on_cpu();
            assert!(on_cpu <= outcome.elapsed.times(machine.cpus() as u64));
        }
    }
}

/// All vCPUs end at the stop or later: then the simulation has lasted until the stop, and accounts
/// end there.
#[test]
fn a_run_lasts_until_the_stop() {
    let mut setup = setup(&MACHINES[1], &HOSTS[0], 4, 1);
    setup.stop_after = Time::ms(3);
    let body = |_| {
        while !engine::stopped() {
            engine::work(Time::us(30));
        }
        engine::now()
    };
    let outcome = run(&setup, body, || true).expect("it ends");
    assert_eq!((outcome.stopped, outcome.elapsed), (true, Time::ms(3)));
    assert!(outcome.results.iter().all(|&end| end >= Time::ms(3)));
    for account in &outcome.accounts {
        assert_eq!(account.total(), Time::ms(3));
    }
}

#[test]
fn a_thousand_vcpus_take_turns() {
    for host in [&HOSTS[0], &HOSTS[1]] {
        type Lock = overlock_family::spin::PvQueued<Sim>;
        let (counted, outcome) = exclusive::<Lock>(&MACHINES[2], host, 1024, 1);
        outcome.unwrap_or_else(|stuck| panic!("{}: {stuck}", host.name));
        assert_eq!(u64::from(counted), 1024 * SECTIONS);
    }
}

/// The first waiter is bypassed for as long as others arrive: here they arrive until the stop, and
/// it waits that long.
#[test]
fn the_first_to_wait_is_starved() {
    forget();
    let lock = Faulty::<Sim, Starving>::new();
    let mut setup = setup(&MACHINES[3], &HOSTS[0], 8, 1);
    setup.stop_after = Time::ms(1);
    let body = |_| {
        let mut longest = Time::ZERO;
        while !engine::stopped() {
            let begin = engine::now();
            lock.lock();
            longest = longest.max(engine::now() - begin);
            engine::work(Time::ns(100));
            // SAFETY: locked above.
            unsafe { lock.unlock(()) };
        }
        longest
    };
    let outcome = run(&setup, body, || true).expect("it ends");
    assert!(outcome.results.into_iter().max() > Some(Time::us(900)));
}

/// A lock that is never released keeps its waiters spinning for ever.
#[test]
fn a_lock_that_is_never_released_is_caught() {
    forget();
    let lock = overlock_family::spin::Ticket::<Sim>::new();
    let mut setup = setup(&MACHINES[1], &HOSTS[0], 2, 1);
    (setup.stop_after, setup.patience) = (Time::ms(1), Time::ms(2));
    let stuck = run(&setup, |_| lock.lock(), || true).expect_err("nobody unlocks");
    assert_eq!(stuck, Stuck::Running { vcpus: 1 });
}

#[test]
fn a_simulation_can_be_interrupted() {
    forget();
    let mut setup = setup(&MACHINES[1], &HOSTS[0], 2, 1);
    setup.stop_after = Time::ms(10_000);
    let body = |_| {
        while !engine::stopped() {
            engine::work(Time::ns(7));
        }
    };
    let stuck = run(&setup, body, || false).expect_err("interrupted");
    assert_eq!(stuck, Stuck::Interrupted);
}

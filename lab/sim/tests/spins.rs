//! Spins before sleeps: the rule of threads on Linux, on a simulated machine of two CPUs.

mod world;

use overlock_core::sleep::Semaphore;
use overlock_sim::account::State;
use overlock_sim::engine::{self, Outcome};
use overlock_sim::host::Host;
use overlock_sim::{Sim, Time, forget, run};
use world::{MACHINES, setup};

/// How often each thread of a pair waits for the other.
const ROUNDS: usize = 200;

/// Shares its cache lines with no other data.
#[repr(align(128))]
struct Own(Semaphore<Sim>);

/// Two threads pass a turn to and fro, and compute for this long in each. So many others compute
/// all the time.
fn pass(work: Time, others: usize, spins: bool) -> Outcome<()> {
    forget();
    let host = Host {
        spins,
        ..Host::THREADS
    };
    let setup = engine::Setup {
        others,
        ..setup(&MACHINES[1], &host, 2, 1)
    };
    let turns = [Own(Semaphore::new(1)), Own(Semaphore::new(0))];
    let body = |vcpu: usize| {
        for _ in 0..ROUNDS {
            turns[vcpu].0.acquire();
            engine::work(work);
            turns[1 - vcpu].0.release();
        }
    };
    run(&setup, body, || true).expect("it ends")
}

/// Fails without the spin: each turn is a wake-up.
#[test]
fn a_turn_is_passed_without_a_wake_up() {
    let [with, without] = [true, false].map(|spins| pass(Time::ns(100), 0, spins));
    assert!(without.counts.halts as usize > ROUNDS);
    assert!(with.counts.halts < 10, "{}", with.counts.halts);
    assert!(
        without.elapsed > with.elapsed.times(3),
        "{} and {}",
        without.elapsed,
        with.elapsed
    );
}

/// Fails if what an object has learned outlives its simulation.
#[test]
fn the_seed_determines_the_spins() {
    let outcome = || format!("{:?}", pass(Time::us(200), 0, true));
    let first = outcome();
    assert!(first == outcome());
    let elsewhere = std::thread::spawn(outcome).join();
    assert!(first == elsewhere.expect("it does not panic"));
}

/// Fails if an object learns nothing from spins in vain.
#[test]
fn long_waits_soon_begin_without_a_spin() {
    let outcome = pass(Time::us(200), 0, true);
    let spun = outcome.account()[State::Spin];
    assert!(spun > Time::us(5), "it was tried: {spun}");
    assert!(spun.times(200) < outcome.elapsed, "{spun}");
}

/// Fails if a crowded machine has room.
#[test]
fn nobody_spins_in_a_crowd() {
    let [with, without] = [true, false].map(|spins| pass(Time::ns(100), 2, spins));
    assert!(format!("{with:?}") == format!("{without:?}"));
}

//! The cost model against published figures that it was not fitted to: results/simulator-sources.md
//! has them in sections 1.7 and 5. Those that it does not reach are in docs/evidence/simulator.md.

mod world;

use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::Atomic;
use overlock_core::raw::RawLock;
use overlock_family::spin::{Mcs, Queued, Ticket};
use overlock_sim::engine::{now, work};
use overlock_sim::host::Host;
use overlock_sim::machine::{Machine, Place};
use overlock_sim::word::U32;
use overlock_sim::{Sim, Time, forget, run};
use world::{Own, setup};

/// Measured from the first time to the second.
const WINDOW: [Time; 2] = [Time::us(50), Time::us(350)];

/// So many sockets of the preset, with so many cores each.
fn part(preset: &str, sockets: usize, cores: usize) -> Machine {
    let whole = Machine::preset(preset).expect("tests name presets");
    assert!(sockets <= whole.sockets && cores <= whole.cores);
    Machine {
        sockets,
        cores,
        ..whole.clone()
    }
}

/// Nanoseconds from one operation to the next, with a thread on each core.
fn interval(machine: &Machine, operation: impl Fn()) -> f64 {
    // It has no chores: the published runs of seconds had few.
    let host = Host::threads();
    let setup = setup(machine, &host, machine.all_cores(), 1);
    let body = |_| {
        let mut operations = 0_u64;
        loop {
            operation();
            match now() {
                now if now >= WINDOW[1] => return operations,
                now if now >= WINDOW[0] => operations += 1,
                _ => {}
            }
        }
    };
    let outcome = run(&setup, body, || true).expect("it ends");
    let total = outcome.results.iter().sum::<u64>();
    (WINDOW[1] - WINDOW[0]).as_ns_f64() / total as f64
}

/// The section increments a counter next to the lock, the published columns "embedded"; or it is
/// empty, "standalone".
fn lock<L: RawLock>(machine: &Machine, counts: bool) -> f64 {
    forget();
    let shared = Own((L::create().expect("a lock"), U32::ZERO));
    let (lock, counter) = &shared.0;
    interval(machine, || {
        let token = lock.lock();
        if counts {
            counter.store(counter.load(Relaxed) + 1, Relaxed);
        }
        // SAFETY: locked above, with this token.
        unsafe { lock.unlock(token) };
    })
}

/// All threads add to one word: million operations a second. Each pauses after an addition for as
/// long as a line takes across the machine, so that no thread adds twice in a row. David et al.
/// (SOSP 2013) do so, too.
fn additions(machine: &Machine) -> f64 {
    let word = Own(U32::ZERO);
    let transfer = |to| machine.transfer(Place::default(), to);
    let longest = machine.places().map(transfer).max().expect("a socket");
    let interval = interval(machine, || {
        word.0.fetch_add(1, Relaxed);
        work(longest);
    });
    1_000.0 / interval
}

fn one_socket(tasks: usize) -> Machine {
    part("westmere-ex", 1, tasks)
}

/// Fails for each figure that is not within the published range, and a quarter below or above.
fn check(rows: &[(&str, f64, [f64; 2])]) {
    let is_near = |&(what, figure, [low, high]): &(&str, f64, [f64; 2])| {
        println!("{what}: {figure:.1}, published {low} to {high}");
        (low * 0.75..=high * 1.25).contains(&figure)
    };
    let near = rows.iter().filter(|row| is_near(row)).count();
    assert_eq!(near, rows.len());
}

/// Checks 1 to 3 of section 5. Fails where stores and the locked instructions after them are paid
/// for one after the other. Fails where readers of a shared line wait for each other longer than
/// the gap.
#[test]
fn locks_within_a_socket_cost_what_was_published() {
    let word = Own(U32::ZERO);
    let add = || {
        word.0.fetch_add(1, Relaxed);
    };
    let [four, eight] = [4, 8].map(one_socket);
    let ticket = [&four, &eight].map(|machine| lock::<Ticket<Sim>>(machine, true));
    let [mcs, queued] = [lock::<Mcs<Sim>>, lock::<Queued<Sim>>].map(|lock| lock(&eight, true));
    check(&[
        (
            "a locked instruction",
            interval(&one_socket(1), add),
            [8.0, 9.0],
        ),
        (
            "ticket, 1 task",
            lock::<Ticket<Sim>>(&one_socket(1), false),
            [14.9; 2],
        ),
        ("ticket, 4 tasks", ticket[0], [136.0; 2]),
        ("ticket, 8 tasks", ticket[1], [189.0; 2]),
        (
            "ticket, a further waiter",
            (ticket[1] - ticket[0]) / 4.0,
            [10.1, 15.5],
        ),
        (
            "mcs, 4 tasks",
            lock::<Mcs<Sim>>(&four, true),
            [143.0, 146.0],
        ),
        (
            "queued, 4 tasks",
            lock::<Queued<Sim>>(&four, true),
            [143.0, 146.0],
        ),
        ("mcs, 8 tasks", mcs, [143.0, 146.0]),
        ("queued, 8 tasks", queued, [143.0, 146.0]),
        ("ticket over mcs", ticket[1] / mcs, [1.31; 2]),
        ("ticket over queued", ticket[1] / queued, [1.31; 2]),
    ]);
    // The reason for which queue locks are used.
    assert!(mcs < ticket[1] && queued < ticket[1]);
}

/// Fails where an owner always keeps a wanted line for its next operation if transfers are a little
/// faster: with 36 ns the interval was a quarter of that with 40 ns.
#[test]
fn a_queue_lock_has_no_cliff_beside_a_preset() {
    let intervals = [30, 36, 40, 46, 53].map(|socket| {
        let mut machine = one_socket(10);
        machine.costs.socket = Time::ns(socket);
        lock::<Queued<Sim>>(&machine, true)
    });
    for two in intervals.windows(2) {
        assert!((0.9..1.25).contains(&(two[1] / two[0])), "{intervals:?}");
    }
}

/// Section 1.7: an addition for each transfer of the line, on one socket and across sockets.
#[test]
fn contended_additions_have_the_published_rates() {
    let rows = [
        ("e5-2699v3", 1, [20.0, 30.0]),
        ("e5-2620v4", 1, [20.0, 30.0]),
        ("sandy-bridge", 1, [20.0, 30.0]),
        ("x7560", 1, [20.0, 30.0]),
        ("westmere-ex", 1, [10.0, 20.0]),
        ("barcelona", 1, [10.0, 20.0]),
        ("e5-2699v3", 2, [10.0, 15.0]),
        ("e5-2620v4", 2, [10.0, 15.0]),
        ("x7560", 2, [10.0, 15.0]),
        ("barcelona", 4, [0.0, 10.0]),
    ];
    check(&rows.map(|(preset, sockets, published)| {
        let machine = Machine::preset(preset).expect("a preset");
        let machine = part(preset, sockets, machine.cores);
        (preset, additions(&machine), published)
    }));
}

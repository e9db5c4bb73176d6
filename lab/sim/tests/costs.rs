//! The cost model against published figures that it was not fitted to: results/simulator-sources.md
//! has them in sections 1.7 and 5. Each figure may be a quarter off.

mod published;
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
use published::{Own, Published, Queue, QueuedSpinlock};
use world::setup;

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
fn interval(machine: &Machine, operation: impl Fn(usize)) -> f64 {
    forget();
    let host = Host::preset("threads").expect("there is a host of threads");
    // No chores: the published runs of seconds had few.
    let host = Host {
        chores: None,
        ..host.clone()
    };
    let setup = setup(machine, &host, machine.all_cores(), 1);
    let body = |vcpu| {
        let mut operations = 0_u64;
        loop {
            operation(vcpu);
            match now() {
                now if now >= WINDOW[1] => return operations,
                now if now >= WINDOW[0] => operations += 1,
                _ => {}
            }
        }
    };
    let outcome = run(&setup, body, || true).expect("it ends");
    let total = outcome.results.iter().sum::<u64>();
    (WINDOW[1] - WINDOW[0]).as_ps() as f64 / 1_000.0 / total as f64
}

/// The section increments a counter next to the lock: the published columns "embedded".
fn embedded<L: Published>(machine: &Machine) -> f64 {
    let shared = Own((L::new(machine.all_cores()), U32::ZERO));
    let (lock, counter) = &shared.0;
    interval(machine, |task| {
        lock.lock(task);
        counter.store(counter.load(Relaxed) + 1, Relaxed);
        lock.unlock(task);
    })
}

/// An empty section: the published columns "standalone".
fn standalone<L: Published>(machine: &Machine) -> f64 {
    let lock = Own(L::new(machine.all_cores()));
    interval(machine, |task| {
        lock.0.lock(task);
        lock.0.unlock(task);
    })
}

/// As `embedded`, with a lock of overlock-core.
fn ours<L: RawLock>(machine: &Machine) -> f64 {
    let shared = Own((L::create().expect("a lock"), U32::ZERO));
    let (lock, counter) = &shared.0;
    interval(machine, |_| {
        let token = lock.lock();
        counter.store(counter.load(Relaxed) + 1, Relaxed);
        // SAFETY: locked above, with this token.
        unsafe { lock.unlock(token) };
    })
}

/// All threads add to one word: million operations a second. Each pauses after an addition for as
/// long as a line takes across the machine, so that no thread adds twice in a row. David et al.
/// (SOSP 2013) do so, too.
fn additions(machine: &Machine) -> f64 {
    let word = Own(U32::ZERO);
    let longest = machine
        .places()
        .map(|to| machine.transfer(Place::default(), to))
        .max();
    let interval = interval(machine, |_| {
        word.0.fetch_add(1, Relaxed);
        work(longest.expect("a socket"));
    });
    1_000.0 / interval
}

/// Whether the figure is within the published range, or at most a quarter below or above.
fn check(what: &str, figure: f64, published: (f64, f64)) -> bool {
    let (low, high) = published;
    let holds = (low * 0.75..=high * 1.25).contains(&figure);
    let verdict = if holds { "" } else { "  NOT WITHIN A QUARTER" };
    println!("{what}: {figure:.1}, published {low} to {high}{verdict}");
    holds
}

fn one_socket(tasks: usize) -> Machine {
    part("westmere-ex", 1, tasks)
}

/// Check 1 of section 5.
#[test]
fn uncontended_locks_cost_what_was_published() {
    let word = Own(U32::ZERO);
    let add = interval(&one_socket(1), |_| {
        word.0.fetch_add(1, Relaxed);
    });
    assert!(check("a locked instruction", add, (8.0, 9.0)));
    let ticket = standalone::<Ticket<Sim>>(&one_socket(1));
    assert!(check("ticket alone", ticket, (14.9, 14.9)));
}

/// Check 2 of section 5. Fails where stores and the locked instructions after them are paid for one
/// after the other.
#[test]
fn a_queue_lock_hands_off_within_a_socket_as_published() {
    let mut all = true;
    for tasks in [4, 8] {
        let machine = one_socket(tasks);
        for (name, queue) in [
            ("queue", embedded::<Queue>(&machine)),
            ("queued spinlock", embedded::<QueuedSpinlock>(&machine)),
            ("our mcs", ours::<Mcs<Sim>>(&machine)),
            ("our queued", ours::<Queued<Sim>>(&machine)),
        ] {
            all &= check(&format!("{name}, {tasks} tasks"), queue, (143.0, 146.0));
        }
    }
    assert!(all);
}

/// Check 3 of section 5, its second half. Fails where readers of a shared line wait for each other
/// longer than the gap.
#[test]
fn a_ticket_lock_slows_with_each_waiter() {
    let [four, eight] = [4, 8].map(|tasks| embedded::<Ticket<Sim>>(&one_socket(tasks)));
    let mut all = check("ticket, 4 tasks", four, (136.0, 136.0));
    all &= check("ticket, 8 tasks", eight, (189.0, 189.0));
    all &= check(
        "ticket, a further waiter",
        (eight - four) / 4.0,
        (10.1, 15.5),
    );
    assert!(all);
}

/// The reason for which queue locks are used. Fails where stores and the locked instructions after
/// them are paid for one after the other.
#[test]
fn a_queue_lock_of_eight_tasks_is_faster_than_a_ticket_lock() {
    let machine = one_socket(8);
    let ticket = embedded::<Ticket<Sim>>(&machine);
    for (name, queue) in [
        ("queue", embedded::<Queue>(&machine)),
        ("queued spinlock", embedded::<QueuedSpinlock>(&machine)),
        ("our mcs", ours::<Mcs<Sim>>(&machine)),
        ("our queued", ours::<Queued<Sim>>(&machine)),
    ] {
        let what = format!("ticket over {name}, 8 tasks");
        assert!(check(&what, ticket / queue, (1.31, 1.31)));
        assert!(ticket > queue, "{what}");
    }
}

/// Fails where an owner always keeps a wanted line for its next operation if transfers are a little
/// faster: with 36 ns the interval was a quarter of that with 40 ns.
#[test]
fn a_queue_lock_has_no_cliff_beside_a_preset() {
    let interval = |socket| {
        let mut machine = one_socket(10);
        machine.costs.socket = Time::ns(socket);
        ours::<Queued<Sim>>(&machine)
    };
    let intervals = [30, 36, 40, 46, 53].map(interval);
    for two in intervals.windows(2) {
        assert!((0.9..1.25).contains(&(two[1] / two[0])), "{intervals:?}");
    }
}

/// Section 1.7, on one socket: an addition for each transfer of the line.
#[test]
fn contended_additions_on_a_socket_have_the_published_rates() {
    for (preset, published) in [
        ("e5-2699v3", (20.0, 30.0)),
        ("e5-2620v4", (20.0, 30.0)),
        ("sandy-bridge", (20.0, 30.0)),
        ("x7560", (20.0, 30.0)),
        ("westmere-ex", (10.0, 20.0)),
        ("barcelona", (10.0, 20.0)),
    ] {
        let machine = Machine::preset(preset).expect("a preset");
        let rate = additions(&part(preset, 1, machine.cores));
        assert!(check(&format!("additions, {preset}"), rate, published));
    }
}

/// The same across sockets.
#[test]
fn contended_additions_across_sockets_have_the_published_rates() {
    for (preset, sockets, published) in [
        ("e5-2699v3", 2, (10.0, 15.0)),
        ("e5-2620v4", 2, (10.0, 15.0)),
        ("x7560", 2, (10.0, 15.0)),
        ("barcelona", 4, (0.0, 10.0)),
    ] {
        let machine = Machine::preset(preset).expect("a preset");
        let rate = additions(&part(preset, sockets, machine.cores));
        let what = format!("additions, {sockets} sockets of {preset}");
        assert!(check(&what, rate, published));
    }
}

/// Checks that the model does not pass; docs/evidence/simulator.md says by how much, and why.
mod not_reached {
    use super::*;

    /// Check 3 of section 5, its first half. A spinner that has seen its turn owns the line, and
    /// needs no other transfer before it can release.
    #[test]
    #[ignore = "half the published time: reads within a socket take a line over, which may be wrong"]
    fn a_ticket_lock_of_two_tasks_hands_off_in_two_transfers() {
        let ticket = standalone::<Ticket<Sim>>(&one_socket(2));
        assert!(check("ticket, 2 tasks", ticket, (89.0, 89.0)));
    }

    /// Section 5, with a task on each of four nodes.
    #[test]
    #[ignore = "0.6 of the published time"]
    fn a_queue_lock_hands_off_across_sockets_as_published() {
        let machine = part("westmere-ex", 4, 1);
        let mut all = true;
        for (name, queue) in [
            ("queue", embedded::<Queue>(&machine)),
            ("queued spinlock", embedded::<QueuedSpinlock>(&machine)),
        ] {
            all &= check(&format!("{name}, across"), queue, (534.0, 534.0));
        }
        assert!(all);
    }

    /// Check 4 of section 5.
    #[test]
    #[ignore = "2.1 times as long, since handoffs across sockets are too fast"]
    fn a_handoff_across_sockets_takes_three_to_five_times_as_long() {
        let [near, far] = [one_socket(4), part("westmere-ex", 4, 1)];
        let queue = embedded::<Queue>(&far) / embedded::<Queue>(&near);
        let spinlock = embedded::<QueuedSpinlock>(&far) / embedded::<QueuedSpinlock>(&near);
        let mut all = check("queue, across over within", queue, (3.0, 5.0));
        all &= check("queued spinlock, across over within", spinlock, (3.0, 5.0));
        assert!(all);
    }

    /// Section 1.7.
    #[test]
    #[ignore = "1.5 times the published rates"]
    fn contended_additions_across_sockets_of_the_others() {
        let rate = |preset, cores| additions(&part(preset, 2, cores));
        let sandy_bridge = rate("sandy-bridge", 8);
        let mut all = check(
            "additions, 2 sockets of sandy-bridge",
            sandy_bridge,
            (10.0, 15.0),
        );
        let westmere = rate("westmere-ex", 10);
        all &= check("additions, 2 sockets of westmere-ex", westmere, (0.0, 10.0));
        assert!(all);
    }
}

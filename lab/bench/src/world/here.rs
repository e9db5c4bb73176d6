//! This machine as a simulated one, by a short measurement of its caches, its pauses and its system
//! calls.
//!
//! A simulation of few CPUs, compared to a measurement on as many, shows how good the cost model
//! is.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use overlock_sim::Time;
use overlock_sim::host::{Host, Scheduler};
use overlock_sim::machine::{Costs, Links, MOST_CORES, Machine};
use rustix::thread::{CpuSet, futex, sched_setaffinity};

/// The name of the machine, and of the host that goes with it.
pub const NAME: &str = "this-machine";

/// Measures for about half a second, on two of these CPUs. One socket is assumed: what a line costs
/// is measured between the first and the last of them.
pub fn measure(cpus: &[usize]) -> (Machine, Host) {
    let first = cpus.first().copied().unwrap_or(0);
    let last = cpus.last().copied().unwrap_or(first);
    let costs = on(first, alone);
    let transfer = if first == last {
        USUAL
    } else {
        plausible(ping_pong(first, last))
    };
    let machine = Machine {
        name: NAME.into(),
        about: "the machine that this runs on, as a short measurement finds it".into(),
        sockets: 1,
        clusters: 1,
        cores: cpus.len().clamp(1, MOST_CORES),
        threads: 1,
        inclusive: true,
        migratory: false,
        links: Links::All,
        costs: Costs {
            hit: Time::from_ns(costs.hit),
            locked: Time::from_ns(costs.locked),
            cluster: Time::ZERO,
            socket: Time::from_ns(transfer),
            shared: Time::from_ns(transfer * SHARED),
            across: Time::from_ns(transfer),
            hop: Time::ZERO,
            memory: Time::from_ns(transfer.max(100.0)),
            turn: Time::from_ns(costs.turn),
            ring: 0.0,
            sibling: 1.0,
            // Most machines have these in common, and nothing here measures them.
            ..Machine::preset("e5-2699v3").expect("a preset").costs
        },
    };
    let wakes = wake_up(first, last);
    let threads = Host::threads();
    let host = Host {
        name: NAME.into(),
        about: "threads of a process on the machine that this runs on".into(),
        brief: Time::from_ns(costs.futile_wait),
        yields: Time::from_ns(costs.yields),
        kick_nobody: Time::from_ns(costs.futile_wake),
        wake_idle: Time::from_ns(wakes.idle),
        wake_busy: Time::from_ns(wakes.busy),
        scheduler: Scheduler {
            switch: Time::from_ns(wakes.busy / 2.0),
            ..on_cpus(threads.scheduler, cpus.len())
        },
        ..threads
    };
    (machine, host)
}

/// The scheduler as Linux's defaults are for this many CPUs, given those for eight and more: they
/// grow with the logarithm.
fn on_cpus(scheduler: Scheduler, cpus: usize) -> Scheduler {
    let share = |time: Time| time.scale(f64::from(1 + cpus.clamp(1, 8).ilog2()) / 4.0);
    Scheduler {
        latency: share(scheduler.latency),
        granularity: share(scheduler.granularity),
        wakeup: share(scheduler.wakeup),
        ..scheduler
    }
}

/// A copy from the last-level cache compared to a line that another core has changed, as on the
/// machines of the documents.
const SHARED: f64 = 0.45;

/// Nanoseconds of a transfer where none can be measured.
const USUAL: f64 = 60.0;

/// A transfer takes no longer: the two threads never ran side by side, on a busy machine.
const LONGEST: f64 = 2_000.0;

fn plausible(transfer: f64) -> f64 {
    if transfer <= LONGEST { transfer } else { USUAL }
}

struct Alone {
    hit: f64,
    locked: f64,
    turn: f64,
    futile_wait: f64,
    yields: f64,
    futile_wake: f64,
}

/// The costs that one thread can measure.
fn alone() -> Alone {
    let word = AtomicU64::new(0);
    let sleeper = AtomicU32::new(1);
    let private = futex::Flags::PRIVATE;
    Alone {
        // Each load waits for the store before: a chain as in a lock's code.
        hit: each(10_000, || {
            word.store(black_box(word.load(Relaxed)) + 1, Relaxed)
        }) / 2.0,
        locked: each(10_000, || word.fetch_add(1, Relaxed)),
        turn: each(10_000, || {
            spin_loop();
            black_box(word.load(Relaxed));
        }),
        futile_wait: each(1_000, || futex::wait(&sleeper, private, 0, None).is_ok()),
        yields: each(1_000, thread::yield_now),
        futile_wake: each(1_000, || futex::wake(&sleeper, private, 1).is_ok()),
    }
}

/// Nanoseconds of one call: the best of ten batches, since whatever disturbs makes it longer.
fn each<R>(calls: u32, call: impl Fn() -> R) -> f64 {
    let batch = || {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(call());
        }
        each_of(start, calls)
    };
    (0..10).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

/// Runs `what` on a thread that is bound to a CPU.
fn on<T: Send>(cpu: usize, what: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let bound = scope.spawn(|| {
            pin(cpu);
            what()
        });
        bound.join().expect("it does not panic")
    })
}

fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // Without it the figures are less exact, no more.
    let _ = sched_setaffinity(None, &set);
}

/// How long threads pass a word to and fro at most: on a busy machine a trip can take a slice.
const LIMIT: Duration = Duration::from_millis(250);
/// The word that ends it. The others are odd on their way there, and even on their way back.
const END: u32 = u32::MAX;

/// The cost of a line's transfer from one CPU to the other: half of a round trip, less the polls.
/// It is the best of several batches, since whatever disturbs makes it longer.
fn ping_pong(one: usize, other: usize) -> f64 {
    // Short, so that some lie within the slices that both have at the same time.
    const TRIPS: u32 = 1_000;
    const BATCHES: u32 = 100;
    let word = AtomicU32::new(0);
    let returns = || {
        pin(other);
        loop {
            match word.load(Relaxed) {
                END => return,
                there if there % 2 == 1 => word.store(there + 1, Relaxed),
                _ => spin_loop(),
            }
        }
    };
    let sends = || {
        pin(one);
        let began = Instant::now();
        let mut best = f64::INFINITY;
        'all: for batch in 0..BATCHES {
            let start = Instant::now();
            let mut late = false;
            for trip in batch * TRIPS..(batch + 1) * TRIPS {
                word.store(2 * trip + 1, Relaxed);
                for polls in 1u32.. {
                    if word.load(Relaxed) == 2 * trip + 2 {
                        break;
                    }
                    spin_loop();
                    // The clock is read only where a thread has lost its CPU.
                    late |= polls.is_multiple_of(1 << 12) && began.elapsed() > LIMIT;
                }
                if late {
                    best = best.min(each_of(start, trip - batch * TRIPS + 1));
                    break 'all;
                }
            }
            best = best.min(each_of(start, TRIPS));
        }
        word.store(END, Relaxed);
        // There and back, each the store's way to the line and the load's.
        best / 4.0
    };
    beside(returns, sends)
}

/// Nanoseconds since `start` for each of so many.
fn each_of(start: Instant, count: u32) -> f64 {
    start.elapsed().as_nanos() as f64 / f64::from(count)
}

/// Runs both on threads, and returns what the second returns.
fn beside<T: Send>(first: impl FnOnce() + Send, second: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        scope.spawn(first);
        scope.spawn(second).join().expect("it does not panic")
    })
}

struct WakeUps {
    idle: f64,
    busy: f64,
}

/// From a wake-up until the sleeper runs: on another CPU that has gone to sleep, and on the waker's
/// own.
fn wake_up(one: usize, other: usize) -> WakeUps {
    // On one CPU the waker sleeps next, so a round trip is two wake-ups and two switches.
    let busy = round_trip(one, one, 500, Duration::ZERO) / 2.0;
    let idle = if one == other {
        busy
    } else {
        round_trip(one, other, 40, Duration::from_millis(1)) / 2.0
    };
    WakeUps { idle, busy }
}

/// The median nanoseconds of passing a word to and fro by futex, up to `trips` times; before each
/// trip both have slept for `rest`.
fn round_trip(one: usize, other: usize, trips: u32, rest: Duration) -> f64 {
    let word = AtomicU32::new(0);
    let hand = |to: u32| {
        word.store(to, Relaxed);
        let _ = futex::wake(&word, futex::Flags::PRIVATE, 1);
    };
    let next = |after: u32| {
        loop {
            match word.load(Relaxed) {
                seen if seen != after => return seen,
                seen => _ = futex::wait(&word, futex::Flags::PRIVATE, seen, None),
            }
        }
    };
    let returns = || {
        pin(other);
        let mut back = 0;
        loop {
            match next(back) {
                END => return,
                there => back = there + 1,
            }
            hand(back);
        }
    };
    let sends = || {
        pin(one);
        let began = Instant::now();
        let trip = |trip: u32| {
            thread::sleep(rest);
            let start = Instant::now();
            hand(2 * trip + 1);
            next(2 * trip + 1);
            each_of(start, 1)
        };
        let mut times: Vec<f64> = (0..trips)
            .take_while(|trip| *trip == 0 || began.elapsed() < LIMIT)
            .map(trip)
            .collect();
        hand(END);
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    beside(returns, sends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_plausible() {
        let (machine, host) = measure(&[0]);
        assert_eq!((machine.cpus(), &*machine.name), (1, NAME));
        let ns = |time: Time| time.as_ns_f64();
        let Costs {
            hit,
            locked,
            turn,
            socket,
            ..
        } = machine.costs;
        for (what, time, most) in [
            ("hit", hit, 100.0),
            ("locked", locked, 1e3),
            ("turn", turn, 1e3),
            ("socket", socket, 1e4),
        ] {
            assert!((0.05..most).contains(&ns(time)), "{what}: {} ns", ns(time));
        }
        assert!(host.wake_busy > host.kick_nobody);
    }

    /// Fails where a machine of a busy moment cannot be read back.
    #[test]
    fn a_slice_is_no_transfer() {
        assert_eq!(plausible(169e6), USUAL);
        assert_eq!(plausible(80.5), 80.5);
    }

    /// Fails where each of the trips takes a slice: two threads that spin on one CPU.
    #[test]
    fn a_busy_machine_does_not_prolong_it() {
        let start = Instant::now();
        let transfer = ping_pong(0, 0);
        assert!(transfer.is_finite() && transfer > 0.0);
        assert!(start.elapsed() < Duration::from_secs(120));
    }
}

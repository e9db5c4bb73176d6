//! Time slices of spinners, and futexes: threads have them, and vCPUs have not.

use super::*;

/// Two threads on one CPU: the one that runs first spins until the other one has run.
fn spins(host: &Host, yields: bool) -> Time {
    let word = Own::new();
    let body = |_| {
        word.0.fetch_add(1, Relaxed);
        while word.0.load(Relaxed) < 2 {
            if yields {
                Sim::yield_slice(Sim::ticks());
            }
            Sim::pause(Pause::Nanos(150));
        }
    };
    simulate(&machine(1, 1), host, 2, body).elapsed
}

/// Fails where a spinner keeps its CPU until the scheduler takes it.
#[test]
fn a_spinner_yields_after_its_slice() {
    let [threads, kvm] = ["threads", "kvm"].map(|name| Host::preset(name).expect("a preset"));
    assert!(spins(threads, false) > Time::ms(2));
    assert!(spins(threads, true) < Time::us(300));
    // A vCPU is not asked.
    assert_eq!(spins(kvm, true), spins(kvm, false));
}

/// Four threads, each on a CPU of its own, call the kernel for one futex at the same time. Fails
/// where futex calls for one word are free of each other, or where the bucket's lines do not move
/// from core to core.
#[test]
fn calls_for_a_futex_wait_for_its_bucket() {
    let transfers = machine(4, 1).costs.socket.times(16 * 2);
    for (bucket_hold, bucket_lines, apart) in [
        (Time::ZERO, 0, Time::ZERO..Time::us(1)),
        (Time::us(2), 0, Time::us(5)..Time::MAX),
        (Time::ZERO, 16, transfers..Time::MAX),
    ] {
        let word = Own::new();
        let host = Host {
            bucket_hold,
            bucket_lines,
            ..Host::threads()
        };
        let body = |_| {
            at(BEGIN);
            let sleeps = Sim::halt(&word.0, 1, None, WakeClass::Waiter);
            assert!(!sleeps, "the word has changed");
            now()
        };
        let ends = simulate(&machine(4, 1), &host, 4, body).results;
        let (first, last) = (ends.iter().min(), ends.iter().max());
        let took = *last.expect("four") - *first.expect("four");
        assert!(apart.contains(&took), "{took}");
    }
}

/// Fails where words on a stack have buckets by their addresses: two builds place them differently,
/// so that one finds in the bucket the core of an earlier call, and the other does not.
#[test]
fn words_on_a_stack_share_a_bucket() {
    let body = |_| {
        let words = [U32::ZERO, U32::ZERO];
        for word in &words {
            Sim::halt(word, 1, None, WakeClass::Waiter);
        }
        with(|engine| engine.buckets.len())
    };
    let host = Host::preset("threads").expect("a preset");
    assert_eq!(simulate(&machine(1, 1), host, 1, body).results, [1]);
}

/// Fails where a CPU that is idle at the start takes a thread that is placed on another one before
/// that has begun: then all threads begin on the first CPUs.
#[test]
fn threads_begin_where_they_are_placed() {
    let machine = Machine {
        sockets: 2,
        ..machine(4, 1)
    };
    for (placement, cpus) in [("spread", [0, 4]), ("numa", [0, 1]), ("pack", [0, 1])] {
        let host = Host::named(&format!("threads:placement={placement}")).expect("a host");
        let begun = simulate(&machine, &host, 2, |_| Sim::cpu().0).results;
        assert_eq!(begun, cpus, "{placement}");
    }
}

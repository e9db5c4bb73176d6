//! Preemptions, yields, and the share of the CPUs that vCPUs get.

use super::*;

fn is_preemption(mark: &Mark) -> bool {
    mark.what == What::Preempted
}

/// Preemptions of lock holders and of waiters are counted as such.
#[test]
fn preempted_holders_and_waiters_are_counted() {
    let outcome = simulate(&machine(1, 1), &host(), 3, |vcpu| {
        match vcpu {
            0 => holds(0x1000),
            1 => waits(0x1000),
            _ => {}
        }
        work(Time::ms(20));
        if vcpu == 0 {
            releases(0x1000);
        }
    });
    let of = |vcpu| marks(&outcome, |mark| is_preemption(mark) && mark.vcpu == vcpu);
    let counts = outcome.counts;
    assert!(counts.holders > 3 && counts.waiters > 3);
    assert_eq!([counts.holders, counts.waiters], [0, 1].map(of));
    assert_eq!(counts.preemptions, (0..3).map(of).sum());
}

/// Two vCPUs on one CPU pause for 10 ms each. One guest's host yields between them; that of two
/// guests has nobody to yield to. Fails where a host looks for a target in other guests.
#[test]
fn a_yield_stays_in_its_guest() {
    let (machine, host) = (machine(1, 1), exits());
    let counts = [1, 2].map(|guests| {
        let mut setup = setup(&machine, &host, 2);
        setup.guests = guests;
        let body = |_| Sim::pause(Pause::Iterations(2_000_000));
        run(&setup, body, || true).unwrap().counts
    });
    assert!(counts[0].yields > 0);
    assert_eq!(counts[1].yields, 0);
    assert!(counts[1].pause_exits > 0 && counts[1].preemptions > 0);
}

/// Two vCPUs on one CPU alternate by yielding. Fails where `rests` counts as a preemption.
#[test]
fn a_yield_is_no_preemption() {
    let outcome = simulate(&machine(1, 1), &host(), 2, |_| {
        for _ in 0..50 {
            work(Time::us(10));
            rest();
        }
    });
    assert!(marks(&outcome, is_preemption) > 50);
    assert_eq!(outcome.counts.preemptions, 0);
}

/// One vCPU works and three spin for it, on one CPU. A spinner that has left the guest yields its
/// CPU to a preempted one, so the worker need not wait for three slices. Fails where no spinner
/// yields, where no vCPU counts as preempted, or where yields count as preemptions.
#[test]
fn spinners_yield_to_preempted_vcpus() {
    let [yielding, slices] = [exits(), host()].map(|mut host| {
        host.scheduler.wakeup = Time::ms(50);
        let word = Own::new();
        let outcome = simulate(&machine(1, 1), &host, 4, |vcpu| match vcpu {
            0 => {
                work(Time::ms(20));
                word.0.store(1, Relaxed);
            }
            _ => {
                // Until the worker has had a CPU, and lost it.
                work(Time::ms(5));
                word.wait_for(1);
                // It is in the guest again.
                assert!(!with(|engine| engine.vcpus[vcpu].spinning));
            }
        });
        let counts = outcome.counts;
        assert_eq!(counts.yields > 0, host.pause_exit.used().is_some());
        let given = marks(&outcome, is_preemption) - counts.preemptions;
        assert!(given <= counts.yields && (given > 0) == (counts.yields > 0));
        outcome.elapsed
    });
    assert!(yielding < Time::ms(40) && slices > Time::ms(60));
}

/// Three other vCPUs compute on the two CPUs. When vCPU 1 has ended, one of the three on the other
/// CPU moves to its CPU. Fails where events of other guests are counted.
#[test]
fn other_guests_do_not_count() {
    let (machine, host) = (machine(2, 1), host());
    let (mut moved, mut left) = (0, 0);
    for seed in 0..6 {
        let mut setup = setup(&machine, &host, 2);
        (setup.others, setup.seed, setup.stop_after) = (3, seed, Time::ms(1_000));
        let body = |vcpu: usize| work(Time::ms(60 * (1 - vcpu as u64)));
        let outcome = run(&setup, body, || true).unwrap();
        let lost = |own| {
            marks(&outcome, |mark| {
                is_preemption(mark) && own == (mark.vcpu < 2)
            })
        };
        let (mut place, mut moves) = ([None; 5], [0; 2]);
        for mark in &outcome.trace {
            if let What::On(cpu) = mark.what {
                let before = place[mark.vcpu].replace(cpu);
                let moves = &mut moves[usize::from(mark.vcpu < 2)];
                *moves += u64::from(before.is_some_and(|before| before != cpu));
            }
        }
        assert_eq!(outcome.counts.preemptions, lost(true));
        assert_eq!(outcome.counts.migrations, moves[1]);
        left += lost(false);
        moved += moves[0];
    }
    assert!(left > 0 && moved > 0, "{left} {moved}");
}

/// A preempted vCPU continues in its state when it has a CPU again. Fails where that is always
/// work. A switch costs 1,100, and nothing else takes host time.
#[test]
fn a_preempted_spinner_still_spins() {
    let outcome = simulate(&machine(1, 1), &host(), 2, |vcpu| match vcpu {
        0 => Sim::pause(Pause::Iterations(2_000_000)),
        _ => work(Time::ms(10)),
    });
    for (account, [spin, work]) in outcome.accounts.iter().zip([[10, 0], [0, 10]]) {
        assert_eq!(account[State::Spin], Time::ms(spin));
        assert_eq!(account[State::Work], Time::ms(work));
        assert_eq!(account[State::Host].as_ps() % 1_100_000, 0);
    }
    assert_eq!(outcome.account().on_cpu(), outcome.elapsed);
}

/// With CFS and with EEVDF: vCPUs that compute until they are stopped. Exact up to a few slices at
/// the end. Fails where `charge` charges no vCPU or another one, or no slice ends.
#[test]
fn all_vcpus_get_the_same_share_of_the_cpus() {
    for request in [None, Some(Time::ms(3))] {
        for (cpus, vcpus) in [(1, 2), (1, 7), (2, 4), (4, 12), (8, 32)] {
            let (machine, mut host) = (machine(cpus, 1), host());
            host.scheduler.request = request;
            let mut setup = setup(&machine, &host, vcpus);
            setup.stop_after = Time::ms(2_000);
            let body = |_| {
                while !stopped() {
                    work(Time::us(100));
                }
            };
            let outcome = run(&setup, body, || true).unwrap();
            for account in &outcome.accounts {
                let share = account[State::Work].as_ns_f64() / 2e9 * vcpus as f64 / cpus as f64;
                assert!((share - 1.0).abs() < 0.03, "{vcpus} on {cpus}: {share}");
            }
        }
    }
}

/// Two vCPUs run on the threads of one core, and the other core has become idle: one of the two
/// moves there at the next balancing, and from then on both compute at full speed. Fails where only
/// queues are balanced.
#[test]
fn an_idle_core_takes_one_of_two_siblings() {
    // CPUs 0 and 2 are threads of core 0, CPU 1 is one of core 1.
    let outcome = simulate(&machine(2, 2), &host(), 3, |vcpu| {
        for _ in 0..if vcpu == 1 { 0 } else { 1_000 } {
            work(Time::us(100));
        }
    });
    let balance = host().scheduler.balance.0;
    assert!(outcome.elapsed < Time::ms(100) + balance.times(3));
    assert_eq!(outcome.counts.migrations, 1);
}

/// Two vCPUs share a CPU for three slices. A guest sees its vCPUs, and its host may tell which are
/// preempted. A thread sees the machine's CPU, and knows that the thread which was there before is
/// preempted. Fails where they see anything else, or a vCPU that runs counts as preempted.
#[test]
fn a_guest_sees_vcpus_and_a_thread_sees_cpus() {
    for (hypervisor, tells_preempted, seen) in [
        (true, true, [(true, false, 0), (true, false, 1)]),
        (true, false, [(false, false, 0), (false, false, 1)]),
        (false, true, [(true, false, 0), (true, false, 1)]),
        (false, false, [(false, true, 0), (true, false, 0)]),
    ] {
        let host = Host {
            hypervisor,
            tells_preempted,
            ..host()
        };
        let outcome = simulate(&machine(1, 1), &host, 2, |me| {
            let (mut other, mut own) = (false, false);
            for _ in 0..120 {
                work(Time::us(100));
                other |= preempted(1 - me);
                own |= preempted(me);
                assert_eq!(cpu(), Some(seen[me].2));
            }
            (other, own, seen[me].2)
        });
        assert_eq!(outcome.results, seen);
    }
}

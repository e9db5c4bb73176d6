//! Preemptions, yields, and the share of the CPUs that vCPUs get.

use super::*;

fn is_preemption(mark: &Mark) -> bool {
    mark.what == What::Preempted
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

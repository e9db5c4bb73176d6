//! The arrivals of waiting requests while their line moves.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::spec::Spec;

/// A request: how long after the one before, by which core, and whether it is a buffered store's.
#[derive(Clone, Copy, Debug)]
struct Plan {
    pause: u64,
    core: usize,
    line: usize,
    access: Access,
    buffered: bool,
}

fn plan() -> impl Strategy<Value = Plan> {
    let access = prop_oneof![
        Just(Access::Read),
        Just(Access::Write),
        Just(Access::Locked)
    ];
    // Few cores make many requests each.
    (0..60_000_u64, 0..16_usize, 0..2_usize, access, 0..4_u8).prop_map(
        |(pause, core, line, access, buffered)| Plan {
            pause,
            core,
            line,
            access,
            buffered: buffered == 0,
        },
    )
}

fn machines() -> impl Strategy<Value = Machine> {
    let sockets = prop_oneof![Just(1), Just(2), Just(4)];
    let links = prop_oneof![Just(Links::All), Just(Links::Cube)];
    let last_level = prop_oneof![Just(Level::Socket), Just(Level::Cluster)];
    let flags = prop::array::uniform2(any::<bool>());
    (sockets, 1..3_usize, links, last_level, flags, 0.0..0.8_f64).prop_map(
        |(sockets, clusters, links, last_level, [inclusive, migratory], ring)| {
            let mut machine = Machine {
                sockets,
                clusters,
                links,
                last_level,
                inclusive,
                migratory,
                ..machine()
            };
            machine.costs = Costs {
                cluster: Time::ns(24),
                ring,
                jitter: 0.2,
                ..machine.costs
            };
            machine
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each request is of another vCPU, so a core may have made several that wait. Fails (where
    /// `next` compares them) where `grant` leaves out requests that the move of a line affects.
    #[test]
    fn a_move_updates_the_arrivals_that_it_affects(
        machine in machines(),
        plans in prop::collection::vec(plan(), 1..60),
        seed in any::<u64>(),
    ) {
        prop_assert_eq!(machine.check(), Ok(()));
        let mut cache = Cache::new(&machine, seed);
        let lines = [0, LINE].map(|address| cache.line(address));
        let (mut begins, mut now) = (Time::ZERO, Time::ZERO);
        let mut steps = BTreeSet::new();
        for (vcpu, plan) in plans.iter().enumerate() {
            begins += Time::ps(plan.pause);
            steps.insert((begins, Ok(vcpu)));
        }
        let mut answered = 0;
        while let Some((at, step)) = steps.pop_first() {
            prop_assert!(at >= now);
            now = at;
            match step {
                Ok(vcpu) => {
                    let Plan { core, line, access, buffered, .. } = plans[vcpu];
                    let (core, line) = (core % machine.all_cores(), lines[line]);
                    if buffered && !cache.owns(now, core, line) {
                        cache.request_ownership(now, vcpu, core, line);
                    } else if cache.access(now, vcpu, core, line, access) != Answer::Wait {
                        answered += 1;
                    }
                }
                Err(line) => cache.serve(now, line),
            }
            for signal in std::mem::take(&mut cache.signals) {
                match signal {
                    Signal::Serve { line, at } => drop(steps.insert((at, Err(line)))),
                    Signal::Done { vcpu, .. } | Signal::Owned { vcpu, .. } => {
                        answered += 1;
                        if !plans[vcpu].access.is_load() {
                            cache.changed(lines[plans[vcpu].line], vcpu);
                        }
                    }
                    Signal::Lost { .. } => unreachable!("nobody watches"),
                }
            }
        }
        prop_assert_eq!(answered, plans.len());
    }
}

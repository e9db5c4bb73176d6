//! Scenes computed by hand and random ones, whose vCPUs obey the signals of the cache. The
//! invariants are checked after each event.

mod scenes;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::machine::tests::{plain, plain_but};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Access(Access),
    /// A store that is buffered if its core does not own the line.
    Buffer,
    Watch,
    /// Ends the watches of its core.
    Unwatch,
}

/// A vCPU with one thing to do, after which it may watch the line. Some vCPUs share a core.
#[derive(Clone, Copy, Debug)]
struct Plan {
    at: Time,
    core: usize,
    line: usize,
    op: Op,
    watches: bool,
}

impl Plan {
    fn access(&self) -> Access {
        match self.op {
            Op::Access(access) => access,
            _ => Access::Write,
        }
    }
}

/// An event of the vCPU of this number, or of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Ends(usize),
    Begins(usize),
    /// A locked instruction that has hit locks its line.
    Locks(usize),
    /// The line of a buffered store has arrived.
    Owned(usize),
    Serve(usize),
}

/// How far a vCPU has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    is_buffered: bool,
    has_locked: bool,
    ends: usize,
    watched: Option<usize>,
}

struct Scene {
    machine: Machine,
    cache: Cache,
    plans: Vec<Plan>,
    progress: Vec<Progress>,
    now: Time,
    steps: BTreeSet<(Time, Step)>,
    /// The periods in which exclusive accesses must have had their line, the line, and the core.
    exclusive: Vec<(Time, Time, usize, usize)>,
    /// Ends of accesses, `+` arrivals of the lines of buffered stores, `!` notifications, and `?`
    /// refused watches: when, and of which core.
    shown: Vec<(Time, usize, &'static str)>,
}

impl Scene {
    /// Runs all of it.
    fn run(machine: &Machine, seed: u64, plans: &[Plan]) -> Self {
        let mut cache = Cache::new(machine, seed);
        assert_eq!([0, LINE].map(|address| cache.line(address)), [0, 1]);
        let begins = |(vcpu, plan): (usize, &Plan)| (plan.at, Step::Begins(vcpu));
        let mut scene = Scene {
            machine: machine.clone(),
            cache,
            plans: plans.to_vec(),
            progress: vec![Progress::default(); plans.len()],
            now: Time::ZERO,
            steps: plans.iter().enumerate().map(begins).collect(),
            exclusive: Vec::new(),
            shown: Vec::new(),
        };
        while let Some((at, step)) = scene.steps.pop_first() {
            assert!(at >= scene.now, "time goes back");
            scene.now = at;
            scene.step(step);
        }
        assert!(
            scene.progress.iter().all(|progress| progress.ends == 1),
            "C3"
        );
        let apart = |one: &(Time, Time, usize, usize), other: &(Time, Time, usize, usize)| {
            one.2 != other.2 || one.3 == other.3 || one.1 <= other.0 || other.1 <= one.0
        };
        let periods = &scene.exclusive;
        let are_apart = |one| periods.iter().all(|other| apart(one, other));
        assert!(periods.iter().all(are_apart), "C2");
        scene
    }

    /// Which cores may read and write each line.
    fn rights(&self) -> [Vec<[bool; 2]>; 2] {
        let accesses = [Access::Read, Access::Write];
        [0, 1].map(|line| {
            let rights = |core| accesses.map(|access| self.cache.has(line, core, access));
            (0..self.machine.all_cores()).map(rights).collect()
        })
    }

    fn show(&mut self, vcpu: usize, what: &'static str) {
        self.shown.push((self.now, self.plans[vcpu].core, what));
    }

    fn step(&mut self, step: Step) {
        let before = self.rights();
        let mut changed = None;
        match step {
            Step::Begins(vcpu) => match self.plans[vcpu].op {
                Op::Watch => self.ends(vcpu, true),
                Op::Unwatch => {
                    let core = self.plans[vcpu].core;
                    for (other, plan) in self.plans.iter().enumerate() {
                        if plan.core == core
                            && let Some(line) = self.progress[other].watched.take()
                        {
                            self.cache.unwatch(other, line);
                        }
                    }
                    self.ends(vcpu, false);
                }
                Op::Access(_) | Op::Buffer => self.access(vcpu),
            },
            Step::Locks(vcpu) => {
                let Plan { core, line, .. } = self.plans[vcpu];
                if self.cache.has(line, core, Access::Locked) {
                    let rest = self
                        .machine
                        .costs
                        .locked
                        .scale(1.0 - self.machine.costs.locks_line);
                    self.cache.keep(line, self.now + rest);
                    self.progress[vcpu].has_locked = true;
                    self.steps.insert((self.now + rest, Step::Ends(vcpu)));
                } else {
                    self.access(vcpu);
                }
            }
            Step::Owned(vcpu) => {
                let Plan { core, line, .. } = self.plans[vcpu];
                assert!(self.cache.owns(self.now, core, line), "C2");
                self.show(vcpu, "+");
                changed = Some(vcpu);
            }
            Step::Ends(vcpu) => {
                self.show(vcpu, "");
                let plan = self.plans[vcpu];
                let progress = self.progress[vcpu];
                // A buffered store becomes visible when its line arrives.
                if !plan.access().is_load() && !progress.is_buffered {
                    let share = if progress.has_locked {
                        1.0 - self.machine.costs.locks_line
                    } else {
                        1.0
                    };
                    let takes = self.cache.takes(plan.access()).scale(share);
                    self.exclusive
                        .push((self.now - takes, self.now, plan.line, plan.core));
                    changed = Some(vcpu);
                }
                self.ends(vcpu, plan.watches);
            }
            Step::Serve(line) => self.cache.serve(self.now, line),
        }
        if let Some(vcpu) = changed {
            self.cache.changed(self.plans[vcpu].line, vcpu);
        }
        self.check(&before, changed);
    }

    fn ends(&mut self, vcpu: usize, watches: bool) {
        let Plan { core, line, .. } = self.plans[vcpu];
        self.progress[vcpu].ends += 1;
        if watches && self.cache.watch(vcpu, core, line) {
            self.progress[vcpu].watched = Some(line);
        } else if watches {
            self.show(vcpu, "?");
        }
    }

    fn access(&mut self, vcpu: usize) {
        let (now, plan) = (self.now, self.plans[vcpu]);
        let (core, line, access) = (plan.core, plan.line, plan.access());
        let answer = if plan.op == Op::Buffer && !self.cache.owns(now, core, line) {
            self.progress[vcpu].is_buffered = true;
            self.cache.request_ownership(now, vcpu, core, line);
            Answer::Hit(self.cache.takes(access))
        } else {
            self.cache.access(now, vcpu, core, line, access)
        };
        if let Answer::Hit(time) = answer {
            self.steps.insert(match access {
                Access::Locked => {
                    let until = time.scale(self.machine.costs.locks_line);
                    (now + until, Step::Locks(vcpu))
                }
                Access::Read | Access::Write => (now + time, Step::Ends(vcpu)),
            });
        }
    }

    /// Acts on the signals of the cache. Checks C1, and C4: who is notified of the loss or of a
    /// change of a line.
    fn check(&mut self, before: &[Vec<[bool; 2]>; 2], changed: Option<usize>) {
        let mut lost = vec![0; self.plans.len()];
        for signal in std::mem::take(&mut self.cache.signals) {
            let step = match signal {
                Signal::Done { vcpu, at } => (at, Step::Ends(vcpu)),
                Signal::Owned { vcpu, at, .. } => (at, Step::Owned(vcpu)),
                Signal::Serve { line, at } => (at, Step::Serve(line)),
                Signal::Lost { vcpu } => {
                    self.show(vcpu, "!");
                    lost[vcpu] += 1;
                    continue;
                }
            };
            self.steps.insert(step);
        }
        let after = self.rights();
        for rights in &after {
            let [readers, writers] =
                [0, 1].map(|right| rights.iter().filter(|rights| rights[right]).count());
            assert!(writers == 0 || (writers, readers) == (1, 1), "C1");
        }
        for (vcpu, lost) in lost.into_iter().enumerate() {
            let Some(line) = self.progress[vcpu].watched else {
                assert_eq!(lost, 0, "C4");
                continue;
            };
            let core = self.plans[vcpu].core;
            let loses = before[line][core][0] && !after[line][core][0]
                || changed.is_some_and(|by| by != vcpu && self.plans[by].line == line);
            // A grant to a sibling notifies, too, though the core keeps the line.
            let siblings = self
                .plans
                .iter()
                .filter(|plan| (plan.core, plan.line) == (core, line));
            let most = usize::from(loses || siblings.count() > 1);
            assert!((usize::from(loses)..=most).contains(&lost), "C4");
            self.progress[vcpu].watched.take_if(|_| lost > 0);
        }
    }
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let ops = [Access::Read, Access::Write, Access::Locked].map(Op::Access);
    let ops = select([&ops[..], &[Op::Buffer, Op::Watch, Op::Unwatch]].concat());
    let plan = (0..60_000_u64, 0..16_usize, 0..2_usize, ops, any::<bool>());
    prop::collection::vec(plan, 1..80).prop_map(|plans| {
        let mut at = Time::ZERO;
        let plan = |(pause, core, line, op, watches)| {
            at += Time::ps(pause);
            Plan {
                at,
                core,
                line,
                op,
                watches,
            }
        };
        plans.into_iter().map(plan).collect()
    })
}

fn machines() -> impl Strategy<Value = Machine> {
    let keys = [
        &["sockets=1", "sockets=2", "sockets=4"][..],
        &["clusters=1", "clusters=2"],
        &["links=all", "links=cube"],
        &["last_level=socket", "last_level=cluster"],
        &["inclusive=true", "inclusive=false"],
        &["migratory=true", "migratory=false"],
        &["jitter=0", "jitter=0.2", "jitter=0.5"],
        &["ring=0", "ring=0.4", "ring=0.8"],
    ];
    keys.map(select).prop_map(|keys| plain_but(&keys.join(":")))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// C1 to C4. Fails where `serve` serves before `free`, or leaves a request in the queue, or
    /// grants twice. Fails where `grant` leaves a sharer next to an owner, does not notify
    /// watchers, or (where `due` compares them) leaves out requests that the move of a line
    /// affects. Fails where a line leaves while it is used.
    #[test]
    fn lines_are_shared_or_owned_and_all_requests_are_answered(
        machine in machines(),
        mut plans in plans(),
        seed in any::<u64>(),
    ) {
        plans.iter_mut().for_each(|plan| plan.core %= machine.all_cores());
        let cache = Scene::run(&machine, seed, &plans).cache;
        prop_assert!(cache.lines.iter().all(|line| line.leaving.is_none()));
        prop_assert!(cache.queues.iter().all(Queue::is_empty));
    }
}

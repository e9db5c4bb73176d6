//! Invariants C1 to C4 under random accesses.

use proptest::prelude::*;

use super::*;

const CORES: usize = 6;

/// The next access of a core: its delay after the last one, its line, and whether the core watches
/// the line afterwards.
#[derive(Clone, Copy, Debug)]
struct Plan {
    core: usize,
    pause: u64,
    line: usize,
    access: Access,
    watches: bool,
}

fn plan() -> impl Strategy<Value = Plan> {
    let access = prop_oneof![
        Just(Access::Read),
        Just(Access::Write),
        Just(Access::Locked)
    ];
    (0..CORES, 0..200_000_u64, 0..2_usize, access, any::<bool>()).prop_map(
        |(core, pause, line, access, watches)| Plan {
            core,
            pause,
            line,
            access,
            watches,
        },
    )
}

/// Runs a plan for each core, whose accesses follow each other.
struct Run {
    scene: Scene,
    left: Vec<Vec<Plan>>,
    /// The access of each core that is under way, and whether it has been answered.
    under_way: [Option<Plan>; CORES],
    /// The line that each core watches.
    watched: [Option<usize>; CORES],
    /// The periods in which exclusive accesses must have had each line.
    exclusive: [Vec<(u64, u64)>; 2],
    /// Answered accesses that have not ended yet, in the order of their ends.
    ends: std::collections::BTreeSet<(Time, usize)>,
    answered: usize,
}

impl Run {
    fn new(machine: &Machine, plans: &[Plan], seed: u64) -> Self {
        let mut scene = Scene::new(machine);
        scene.cache = Cache::new(machine, seed);
        scene.buffers = true;
        let lines = [0, LINE].map(|address| scene.cache.line(address));
        assert_eq!(lines, [0, 1]);
        let of = |core| plans.iter().rev().filter(move |plan| plan.core == core);
        let mut run = Run {
            scene,
            left: (0..CORES).map(|core| of(core).copied().collect()).collect(),
            under_way: [None; CORES],
            watched: [None; CORES],
            exclusive: [vec![], vec![]],
            ends: Default::default(),
            answered: 0,
        };
        (0..CORES).for_each(|core| run.next(core, Time::ZERO));
        run
    }

    fn next(&mut self, core: usize, now: Time) {
        self.under_way[core] = self.left[core].pop();
        if let Some(plan) = self.under_way[core] {
            self.scene.requests.push((core, plan.access));
            let step = Step::Request(self.scene.requests.len() - 1, plan.line);
            self.scene.plan(now + Time::ps(plan.pause), step);
        }
    }

    /// The cores' rights to read and write each line.
    fn rights(&self) -> [[(bool, bool); CORES]; 2] {
        let cache = &self.scene.cache;
        [0, 1].map(|line| {
            std::array::from_fn(|core| {
                let has = |access| cache.has(line, core, access);
                (has(Access::Read), has(Access::Write))
            })
        })
    }

    /// Runs the next event, and checks the invariants after it.
    fn step(&mut self) -> bool {
        let next = self.scene.steps.first().map(|&(at, ..)| at);
        let ends = self.ends.first().copied();
        if let Some((at, core)) = ends.filter(|&(at, _)| next.is_none_or(|next| at <= next)) {
            self.ends.pop_first();
            self.scene.now = at;
            self.end(core);
            return true;
        }
        if let Some(&(_, _, Step::Request(index, line))) = self.scene.steps.first() {
            let core = self.scene.requests[index].0;
            // It stops watching: it accesses another line now.
            if let Some(watched) = self.watched[core].take() {
                self.scene.cache.unwatch(core, watched);
            }
            assert_eq!(self.under_way[core].map(|plan| plan.line), Some(line));
        }
        let before = self.rights();
        if !self.scene.step() {
            return false;
        }
        self.check_losses(before);
        for (core, at) in std::mem::take(&mut self.scene.done) {
            let at = Time::ps(at);
            assert!(at >= self.scene.now, "answered in the past");
            self.answered += 1;
            self.ends.insert((at, core));
        }
        true
    }

    /// Checks C1, and which watchers are notified of the loss of a line.
    fn check_losses(&mut self, before: [[(bool, bool); CORES]; 2]) {
        let after = self.rights();
        for rights in &after {
            let readers = rights.iter().filter(|rights| rights.0).count();
            let writers = rights.iter().filter(|rights| rights.1).count();
            assert!(writers == 0 || (writers, readers) == (1, 1), "C1");
        }
        let lost: Vec<usize> = std::mem::take(&mut self.scene.lost)
            .into_iter()
            .map(|(core, _)| core)
            .collect();
        for core in 0..CORES {
            let loses =
                self.watched[core].is_some_and(|line| before[line][core].0 && !after[line][core].0);
            let check_losses = lost.iter().filter(|&&other| other == core).count();
            assert_eq!(check_losses, usize::from(loses), "notified of a loss");
            if loses {
                self.watched[core] = None;
            }
        }
    }

    /// The access of `core` ends.
    fn end(&mut self, core: usize) {
        let now = self.scene.now;
        let plan = self.under_way[core].expect("only requests are answered");
        if plan.access == Access::Read {
            if plan.watches && self.scene.cache.watch(core, core, plan.line) {
                self.watched[core] = Some(plan.line);
            }
        } else {
            let buffered = self.scene.buffered.iter().position(|&other| other == core);
            if let Some(buffered) = buffered {
                // It becomes visible when its line arrives.
                self.scene.buffered.remove(buffered);
                return self.next(core, now);
            }
            {
                let held = self.scene.held.iter().position(|&other| other == core);
                let mut takes = self.scene.cache.takes(plan.access);
                if let Some(held) = held {
                    // It had locked its line just now.
                    self.scene.held.remove(held);
                    takes = takes.scale(1.0 - LOCKS_LINE);
                }
                self.exclusive[plan.line].push(((now - takes).as_ps(), now.as_ps()));
            }
            let before = self.rights();
            self.scene.cache.changed(plan.line, core);
            self.scene.signals();
            self.check_losses(before);
        }
        self.next(core, now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// C1 to C4. Fails where `serve` serves before `free`, or leaves a request in the queue, or
    /// grants twice. Fails where `grant` leaves a sharer next to an owner, or does not notify
    /// watchers. Fails where a line leaves while it is used.
    #[test]
    fn lines_are_shared_or_owned_and_all_requests_are_answered(
        plans in prop::collection::vec(plan(), 1..80),
        seed in any::<u64>(),
        jitter in 0.0..0.5_f64,
        ring in 0.0..0.8_f64,
        clusters in prop_oneof![Just(1), Just(3)],
        last_level in prop_oneof![Just(Level::Socket), Just(Level::Cluster)],
    ) {
        let mut machine = Machine { sockets: 2, clusters, cores: 3, last_level, ..machine() };
        machine.costs = Costs { jitter, ring, ..machine.costs };
        let mut run = Run::new(&machine, &plans, seed);
        while run.step() {}
        prop_assert_eq!(run.answered, plans.len());
        prop_assert!(run.under_way.iter().all(Option::is_none));
        for line in &mut run.exclusive {
            line.sort_unstable();
            prop_assert!(line.is_sorted_by(|one, next| one.1 <= next.0), "{:?}", line);
        }
        let cache = &run.scene.cache;
        prop_assert!(cache.lines.iter().all(|line| line.leaving.is_none()));
        prop_assert!(cache.queues.iter().all(Queue::is_empty));
    }
}

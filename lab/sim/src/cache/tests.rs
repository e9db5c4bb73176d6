//! Scenes computed by hand and random ones, whose vCPUs obey the signals of the cache. The
//! invariants are checked after each event.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::machine::tests::{plain, plain_but, rows};

/// A vCPU with one thing to do, by its letter in scenes.txt, after which it may watch the line.
/// Some vCPUs share a core.
#[derive(Clone, Copy, Debug, Default)]
struct Vcpu {
    at: Time,
    core: usize,
    line: usize,
    does: u8,
    watches: bool,
    has_locked: bool,
    ends: usize,
    watched: Option<usize>,
}

impl Vcpu {
    fn access(&self) -> Access {
        match self.does {
            b'R' => Access::Read,
            b'L' => Access::Locked,
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
    Serve(usize),
}

struct Scene {
    machine: Machine,
    cache: Cache,
    vcpus: Vec<Vcpu>,
    now: Time,
    steps: BTreeSet<(Time, Step)>,
    /// The periods in which exclusive accesses must have had their line, the line, and the core.
    exclusive: Vec<(Time, Time, usize, usize)>,
    /// Ends of accesses, `!` notifications, and `?` refused watches: when, and of which core.
    shown: Vec<(Time, usize, &'static str)>,
}

impl Scene {
    /// Runs all of it.
    fn run(machine: &Machine, seed: u64, vcpus: Vec<Vcpu>) -> Self {
        let mut cache = Cache::new(machine, seed);
        assert_eq!([0, LINE].map(|address| cache.line(address)), [0, 1]);
        let begins = |(number, vcpu): (usize, &Vcpu)| (vcpu.at, Step::Begins(number));
        let mut scene = Scene {
            machine: machine.clone(),
            cache,
            now: Time::ZERO,
            steps: vcpus.iter().enumerate().map(begins).collect(),
            vcpus,
            exclusive: Vec::new(),
            shown: Vec::new(),
        };
        while let Some((at, step)) = scene.steps.pop_first() {
            assert!(at >= scene.now, "time goes back");
            scene.now = at;
            scene.step(step);
        }
        assert!(scene.vcpus.iter().all(|vcpu| vcpu.ends == 1), "C3");
        for one in &scene.exclusive {
            for other in &scene.exclusive {
                let differ = one.2 != other.2 || one.3 == other.3;
                assert!(differ || one.1 <= other.0 || other.1 <= one.0, "C2");
            }
        }
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
        self.shown.push((self.now, self.vcpus[vcpu].core, what));
    }

    fn step(&mut self, step: Step) {
        let before = self.rights();
        let costs = self.machine.costs;
        let mut changed = None;
        match step {
            Step::Begins(number) => match self.vcpus[number] {
                Vcpu { does: b'V', .. } => self.ends(number, true),
                Vcpu {
                    does: b'U', core, ..
                } => {
                    for (other, vcpu) in self.vcpus.iter_mut().enumerate() {
                        if vcpu.core == core
                            && let Some(line) = vcpu.watched.take()
                        {
                            self.cache.unwatch(other, line);
                        }
                    }
                    self.ends(number, false);
                }
                _ => self.access(number),
            },
            Step::Locks(number) => {
                let Vcpu { core, line, .. } = self.vcpus[number];
                if self.cache.has(line, core, Access::Locked) {
                    let end = self.now + costs.locked.scale(1.0 - costs.locks_line);
                    self.cache.keep(line, end);
                    self.vcpus[number].has_locked = true;
                    self.steps.insert((end, Step::Ends(number)));
                } else {
                    self.access(number);
                }
            }
            Step::Ends(number) => {
                self.show(number, "");
                let vcpu = self.vcpus[number];
                if !vcpu.access().is_load() {
                    let takes = match vcpu.has_locked {
                        true => costs.locked.scale(1.0 - costs.locks_line),
                        false => self.cache.takes(vcpu.access()),
                    };
                    let begin = self.now - takes;
                    self.exclusive.push((begin, self.now, vcpu.line, vcpu.core));
                    changed = Some(number);
                }
                self.ends(number, vcpu.watches);
            }
            Step::Serve(line) => self.cache.serve(self.now, line),
        }
        if let Some(number) = changed {
            self.cache.changed(self.vcpus[number].line, number);
        }
        self.check(&before, changed);
    }

    fn ends(&mut self, number: usize, watches: bool) {
        let vcpu = &mut self.vcpus[number];
        vcpu.ends += 1;
        if watches && self.cache.watch(self.now, number, vcpu.core, vcpu.line) {
            vcpu.watched = Some(vcpu.line);
        } else if watches {
            self.show(number, "?");
        }
    }

    fn access(&mut self, number: usize) {
        let (now, vcpu) = (self.now, &self.vcpus[number]);
        let (core, line, access) = (vcpu.core, vcpu.line, vcpu.access());
        if let Answer::Hit(time) = self.cache.access(now, number, core, line, access) {
            self.steps.insert(match access {
                Access::Locked => {
                    let until = time.scale(self.machine.costs.locks_line);
                    (now + until, Step::Locks(number))
                }
                Access::Read | Access::Write => (now + time, Step::Ends(number)),
            });
        }
    }

    /// Acts on the signals of the cache. Checks C1, and C4: who is notified of the loss or of a
    /// change of a line.
    fn check(&mut self, before: &[Vec<[bool; 2]>; 2], changed: Option<usize>) {
        let mut lost = vec![0; self.vcpus.len()];
        for signal in std::mem::take(&mut self.cache.signals) {
            self.steps.insert(match signal {
                Signal::Done(Granted { request, at }) => (at, Step::Ends(request.vcpu as usize)),
                Signal::Serve { line, at } => (at, Step::Serve(line)),
                Signal::Lost(watchers) => {
                    for number in watchers {
                        let vcpu = self.cache.watcher(number).vcpu as usize;
                        self.show(vcpu, "!");
                        lost[vcpu] += 1;
                    }
                    continue;
                }
            });
        }
        self.cache.forget_signals();
        let after = self.rights();
        for rights in &after {
            let [readers, writers] =
                [0, 1].map(|right| rights.iter().filter(|rights| rights[right]).count());
            assert!(writers == 0 || (writers, readers) == (1, 1), "C1");
        }
        for (number, lost) in lost.into_iter().enumerate() {
            let vcpu = self.vcpus[number];
            let Some(line) = vcpu.watched else {
                assert_eq!(lost, 0, "C4");
                continue;
            };
            let loses = before[line][vcpu.core][0] && !after[line][vcpu.core][0]
                || changed.is_some_and(|by| by != number && self.vcpus[by].line == line);
            // A grant to a sibling notifies, too, though the core keeps the line.
            let is_sibling = |other: &&Vcpu| (other.core, other.line) == (vcpu.core, line);
            let has_siblings = self.vcpus.iter().filter(is_sibling).count() > 1;
            let most = usize::from(loses || has_siblings);
            assert!((usize::from(loses)..=most).contains(&lost), "C4");
            self.vcpus[number].watched.take_if(|_| lost > 0);
        }
    }
}

fn play(machine: &Machine, script: &str) -> Scene {
    let vcpu = |word: &str| {
        let (what, at) = word.split_once('@').expect("a time");
        Vcpu {
            at: Time::from_ns(at.parse().expect("nanoseconds")),
            core: what[1..].parse().expect("a core"),
            does: what.as_bytes()[0],
            ..Vcpu::default()
        }
    };
    Scene::run(machine, 1, script.split_whitespace().map(vcpu).collect())
}

/// Returns all that is seen in a scene, and who has the line in the end.
fn shows(machine: &Machine, script: &str) -> String {
    let mut scene = play(machine, script);
    scene.shown.sort();
    let word = |&(at, core, what): &(Time, usize, _)| format!("{what}{core}@{} ", at.as_ns_f64());
    let words: String = scene.shown.iter().map(word).collect();
    let having = |access| {
        let has = |&core: &usize| scene.cache.has(0, core, access);
        let cores = (0..machine.all_cores()).filter(has);
        cores.map(|core| core.to_string()).collect::<Vec<_>>()
    };
    let is_shared = having(Access::Write).is_empty();
    let state = if is_shared { "shared" } else { "owned" };
    format!("{words}{state}:{}", having(Access::Read).join(","))
}

/// Fails without one of the parts of a transfer, with other shares of it, where a request waits for
/// the wrong others, or where watchers are notified at another time.
#[test]
fn scenes_are_as_computed() {
    let mut machine = plain();
    for row in rows(include_str!("tests/scenes.txt")) {
        if let Some(keys) = row.strip_prefix("machine") {
            machine = plain_but(keys.trim());
        } else {
            let (script, seen) = row.split_once(" -> ").expect(row);
            assert_eq!(shows(&machine, script), seen, "{script}");
        }
    }
    let traffic = play(&plain(), "W0@0 R0@200 R1@500 R4@700 R2@900 R8@1100")
        .cache
        .traffic();
    let counts = [traffic.hits, traffic.near, traffic.far, traffic.memory];
    assert_eq!(counts, [1, 2, 2, 1]);
}

/// Four loads arrive at 1010, and are answered at intervals of 11. The vCPU of the first one
/// watches the line until a time. Fails where a load at that time or later is answered ahead of it:
/// when all requests have arrived, or when another one has not.
#[test]
fn no_load_is_answered_ahead_after_the_end_of_a_watch() {
    let machine = plain_but("sockets=1:cores_per_socket=8");
    for (others, end, answered) in [(0, 1015, 1), (0, 1022, 2), (1, 1015, 1), (1, 1022, 2)] {
        let mut cache = play(&machine, "W0@0 R1@500").cache;
        for core in 2..6 + others {
            let at = Time::ns(if core < 6 { 1000 } else { 1050 });
            let watcher = cache.request(Time::ZERO, core, core, 0);
            cache.lost.push(watcher);
            cache.request_ahead(core as u32 - 2, at);
        }
        cache.forget_signals();
        let (mut now, mut ends) = (Time::ns(1010), Vec::new());
        let granted = cache.serve_until(&mut now, 0, Time::MAX, |granted| {
            ends.push(granted.at.as_ns());
            let is_first = ends.len() == 1;
            Some(if is_first { Time::ns(end) } else { Time::MAX })
        });
        assert!(granted.is_none());
        assert_eq!(ends, [1022, 1033][..answered]);
        let at = Time::ns(1010 + 11 * answered as u64);
        assert_eq!(cache.signals, [Signal::Serve { line: 0, at }]);
    }
}

fn vcpus() -> impl Strategy<Value = Vec<Vcpu>> {
    let vcpu = (
        0..60_000_u64,
        0..16_usize,
        0..2_usize,
        select(b"RWLVU"),
        any::<bool>(),
    );
    prop::collection::vec(vcpu, 1..80).prop_map(|vcpus| {
        let mut at = Time::ZERO;
        let vcpu = |(pause, core, line, does, watches)| {
            at += Time::ps(pause);
            Vcpu {
                at,
                core,
                line,
                does,
                watches,
                ..Vcpu::default()
            }
        };
        vcpus.into_iter().map(vcpu).collect()
    })
}

fn machines() -> impl Strategy<Value = Machine> {
    let keys = [
        &["sockets=1", "sockets=2", "sockets=4"][..],
        &["clusters=1", "clusters=2"],
        &["links=all", "links=cube"],
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
    /// grants twice. Fails where `grant` leaves a sharer next to an owner, or does not notify
    /// watchers. Fails where a line leaves while it is used.
    #[test]
    fn lines_are_shared_or_owned_and_all_requests_are_answered(
        machine in machines(),
        mut vcpus in vcpus(),
        seed in any::<u64>(),
    ) {
        vcpus.iter_mut().for_each(|vcpu| vcpu.core %= machine.all_cores());
        let cache = Scene::run(&machine, seed, vcpus).cache;
        let is_done = |line: &Line| line.leaving.is_none() && line.queue.is_empty();
        prop_assert!(cache.lines.iter().all(is_done));
    }
}

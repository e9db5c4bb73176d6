//! Scenes computed by hand, on a machine where only the order of concurrent requests is random.
//!
//! A transfer within a socket takes 60 ns: 20 for the request, 15 for the snoop and 25 for the
//! data. All costs that are divided like that are multiples of 12 ns, so that there is no rounding.

mod moves;
mod random;
mod scenes;
mod watch;

use std::borrow::Cow;

use super::*;
use crate::machine::{Costs, Level, Links, MOST_CORES};

/// Four sockets at the corners of a square, of four cores each.
fn machine() -> Machine {
    Machine {
        name: Cow::Borrowed("test"),
        about: Cow::Borrowed(""),
        sockets: 4,
        clusters: 1,
        cores: 4,
        threads: 1,
        last_level: Level::Socket,
        inclusive: true,
        migratory: false,
        links: Links::Cube,
        costs: Costs {
            hit: Time::ns(2),
            locked: Time::ns(8),
            cluster: Time::ZERO,
            socket: Time::ns(60),
            shared: Time::ns(20),
            across: Time::ns(120),
            hop: Time::ns(36),
            gap: Time::ns(11),
            memory: Time::ns(96),
            turn: Time::ns(5),
            jitter: 0.0,
            ring: 0.0,
            sibling: 1.0,
            ..Costs::USUAL
        },
    }
}

/// When a locked instruction locks its line.
const LOCKS_LINE: f64 = Costs::USUAL.locks_line;

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Request(usize, usize),
    /// The locked instruction of a request that has hit locks its line.
    Hold(usize, usize),
    Serve(usize),
    /// The line of a core's buffered store has arrived.
    Owned(usize, usize),
}

/// A machine with one vCPU on each core, of the same number, which obeys the signals of the cache.
struct Scene {
    cache: Cache,
    now: Time,
    steps: std::collections::BTreeSet<(Time, usize, Step)>,
    requests: Vec<(usize, Access)>,
    count: usize,
    /// The cores whose accesses have ended, and when, in the order of the answers.
    done: Vec<(usize, u64)>,
    lost: Vec<(usize, u64)>,
    /// Whether stores are buffered, the cores that have issued such a store, and when lines of
    /// buffered stores arrived.
    buffers: bool,
    buffered: Vec<usize>,
    owned: Vec<(usize, u64)>,
    /// The cores whose locked instructions have locked their line.
    held: Vec<usize>,
}

impl Scene {
    fn new(machine: &Machine) -> Self {
        Scene {
            cache: Cache::new(machine, 1),
            now: Time::ZERO,
            steps: Default::default(),
            requests: Vec::new(),
            count: 0,
            done: Vec::new(),
            lost: Vec::new(),
            buffers: false,
            buffered: Vec::new(),
            owned: Vec::new(),
            held: Vec::new(),
        }
    }

    fn plan(&mut self, at: Time, step: Step) {
        assert!(at >= self.now, "time goes back");
        self.count += 1;
        self.steps.insert((at, self.count, step));
    }

    /// `core` accesses line 0 at `at`, in picoseconds.
    fn request(&mut self, at: u64, core: usize, access: Access) {
        self.requests.push((core, access));
        let line = self.cache.line(0);
        self.plan(Time::ps(at), Step::Request(self.requests.len() - 1, line));
    }

    fn step(&mut self) -> bool {
        let Some((at, _, step)) = self.steps.pop_first() else {
            return false;
        };
        self.now = at;
        match step {
            Step::Request(index, line) => self.requests_now(index, line),
            Step::Hold(index, line) => {
                let (core, access) = self.requests[index];
                if self.cache.has(line, core, access) {
                    let end = at + self.cache.takes(access).scale(1.0 - LOCKS_LINE);
                    self.cache.keep(line, end);
                    self.held.push(core);
                    self.done.push((core, end.as_ps()));
                } else {
                    self.requests_now(index, line);
                }
            }
            Step::Serve(line) => self.cache.serve(at, line),
            Step::Owned(core, line) => {
                assert!(self.cache.owns(at, core, line));
                self.owned.push((core, at.as_ps()));
                self.cache.changed(line, core);
            }
        }
        self.signals();
        true
    }

    fn requests_now(&mut self, index: usize, line: usize) {
        let at = self.now;
        let (core, access) = self.requests[index];
        let behind = self.buffers && access == Access::Write && !self.cache.owns(at, core, line);
        let answer = if behind {
            self.buffered.push(core);
            self.cache.request_ownership(at, core, core, line);
            Answer::Hit(self.cache.takes(access))
        } else {
            self.cache.access(at, core, core, line, access)
        };
        match answer {
            Answer::Hit(time) if access == Access::Locked => {
                self.plan(at + time.scale(LOCKS_LINE), Step::Hold(index, line));
            }
            Answer::Hit(time) => self.done.push((core, (at + time).as_ps())),
            Answer::Wait => {}
        }
    }

    fn signals(&mut self) {
        for signal in std::mem::take(&mut self.cache.signals) {
            match signal {
                Signal::Done { vcpu, at } => self.done.push((vcpu, at.as_ps())),
                Signal::Owned { core, line, at, .. } => self.plan(at, Step::Owned(core, line)),
                Signal::Serve { line, at } => self.plan(at, Step::Serve(line)),
                Signal::Lost { vcpu } => self.lost.push((vcpu, self.now.as_ps())),
            }
        }
    }

    /// Runs all events. Returns the cores whose accesses have ended, and when.
    fn run(&mut self) -> Vec<(usize, u64)> {
        while self.step() {}
        std::mem::take(&mut self.done)
    }
}

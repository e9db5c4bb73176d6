//! Cache lines: who has them, who wants them, and when they arrive.
//!
//! A line is *owned* by one core (modified or exclusive: nobody else has it), *shared* by a set of cores, or in no cache.
//! A core that needs more than it has asks for the line. In a third of what the transfer costs the request travels to the
//! cache that answers for the line, the last-level one of the socket where it is; in a quarter that one tells whoever has it,
//! who may go on using it until then; in the rest the data travel. Requests that find the line busy wait at its place, and
//! chance decides which of them is next. When the line goes to another socket, the requests that wait follow it and
//! travel again, unless they come from there: so cores near to the owner are served more often than distant ones.
//!
//! A line that was handed over stays until the access that it was sent for is done. A locked instruction needs the line at its
//! end: one that has lost it by then asks for it and begins again. A last-level cache that has a line
//! which nobody may change answers readers by itself, one after another; the next waits for no more than the gap that
//! it needs between two answers.
//!
//! # Invariants
//!
//! - C1: a line has one owner and nobody sharing it, or no owner.
//! - C2: an access takes effect while its core has the line in the way that it needs, or, for a load, when data arrive that
//!   were right when they were sent.
//! - C3: whoever asks is answered once.
//! - C4: whoever watches a line is told of each change that takes effect from then on, at that moment at the latest.

use rand::rngs::Xoshiro256PlusPlus as Random;
use rand::{RngExt, SeedableRng};
use rustc_hash::FxHashMap;

use crate::machine::{MOST_CORES, Machine};
use crate::time::Time;

/// The shares of a transfer that go by until the request is where the line is, and then until its owner is told. The data travel in
/// what is left.
const REQUEST: f64 = 1.0 / 3.0;
const SNOOP: f64 = 0.25;

/// Bytes of a line.
pub const LINE: usize = 64;

/// What a core wants to do to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A locked instruction: reads and writes at once.
    Locked,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done after this time.
    Hit(Time),
    /// A [`Signal::Done`] will say when.
    Wait,
}

/// What the caller has to do at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The access of this vCPU is done at `at`.
    Done {
        /// Who had asked.
        vcpu: usize,
        /// When.
        at: Time,
    },
    /// Call [`Cache::serve`] for the line at `at`.
    Serve {
        /// The line.
        line: usize,
        /// When.
        at: Time,
    },
    /// This vCPU watched a line and has lost it now.
    Lost {
        /// Who.
        vcpu: usize,
    },
}

#[derive(Clone, Copy, Debug)]
struct Request {
    vcpu: usize,
    core: usize,
    access: Access,
    asked: Time,
}

/// How long a request and its answer travel.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    /// To the cache that answers for the line.
    request: Time,
    /// From there to whoever has it, who may use it until then.
    snoop: Time,
    /// From there to whoever asked.
    data: Time,
    /// The next request need not wait for this one.
    pipelined: bool,
}

/// Who has a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copies {
    /// Nobody.
    None,
    /// One core, alone.
    Owned(usize),
    /// The cores of this set.
    Shared(u128),
}

#[derive(Debug)]
struct Line {
    copies: Copies,
    /// The socket whose caches answer for the line, and since when.
    home: usize,
    since: Time,
    /// When the next request may be served.
    free: Time,
    queue: Vec<Request>,
    /// Who is being served: the line leaves its place then, and travels for so long.
    leaving: Option<(Request, Time, Time)>,
    /// When the queue is looked at next, if that is planned.
    planned: Option<Time>,
    /// When the owner has it.
    arrival: Time,
    /// When its last store that hit ends.
    used: Time,
    watchers: Vec<Watcher>,
    /// How often it has been changed.
    changes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Watcher {
    vcpu: usize,
}

/// How often what happened to lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Accesses to a line that the core had.
    pub hits: u64,
    /// Lines that came from the core's own socket.
    pub near: u64,
    /// Lines that came from another socket.
    pub far: u64,
    /// Lines that came from memory.
    pub memory: u64,
}

/// All lines of a machine.
#[derive(Debug)]
pub struct Cache {
    machine: Machine,
    numbers: FxHashMap<usize, usize>,
    lines: Vec<Line>,
    random: Random,
    traffic: Traffic,
    signals: Vec<Signal>,
}

fn bit(core: usize) -> u128 {
    1 << core
}

impl Cache {
    /// Empty caches. `seed` decides how transfers vary.
    pub fn new(machine: &Machine, seed: u64) -> Self {
        Self {
            machine: machine.clone(),
            numbers: FxHashMap::default(),
            lines: Vec::new(),
            random: Random::seed_from_u64(seed),
            traffic: Traffic::default(),
            signals: Vec::new(),
        }
    }

    /// What has happened so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// The signals since the last call.
    pub fn signals(&mut self, into: &mut Vec<Signal>) {
        into.append(&mut self.signals);
    }

    /// The line of an address.
    pub fn line(&mut self, address: usize) -> usize {
        let next = self.lines.len();
        let line = *self.numbers.entry(address / LINE).or_insert(next);
        if line == next {
            self.lines.push(Line {
                copies: Copies::None,
                home: 0,
                since: Time::ZERO,
                free: Time::ZERO,
                queue: Vec::new(),
                leaving: None,
                planned: None,
                arrival: Time::ZERO,
                used: Time::ZERO,
                watchers: Vec::new(),
                changes: 0,
            });
        }
        line
    }

    /// Whether `core` could do this without asking.
    pub fn has(&self, line: usize, core: usize, access: Access) -> bool {
        match self.lines[line].copies {
            Copies::None => false,
            Copies::Owned(owner) => owner == core,
            Copies::Shared(cores) => access == Access::Read && cores & bit(core) != 0,
        }
    }

    /// `vcpu`, on `core`, accesses a line.
    pub fn access(
        &mut self,
        now: Time,
        vcpu: usize,
        core: usize,
        line: usize,
        access: Access,
    ) -> Answer {
        let here = now >= self.lines[line].arrival;
        if here && self.has(line, core, access) {
            self.traffic.hits += 1;
            let takes = self.takes(access);
            if access == Access::Write {
                self.lines[line].used = now + takes;
            }
            return Answer::Hit(takes);
        }
        self.lines[line].queue.push(Request {
            vcpu,
            core,
            access,
            asked: now,
        });
        self.serve(now, line);
        Answer::Wait
    }

    /// A store that the core need not wait for, since nobody else wants the line: it is the core's at once, but of no use to
    /// others before it has arrived. `None` where others want it.
    pub fn store_behind(
        &mut self,
        now: Time,
        vcpu: usize,
        core: usize,
        line: usize,
    ) -> Option<Time> {
        let state = &self.lines[line];
        let idle = state.queue.is_empty() && state.leaving.is_none() && state.free <= now;
        if !idle || self.has(line, core, Access::Write) {
            return None;
        }
        let request = Request {
            vcpu,
            core,
            access: Access::Write,
            asked: now,
        };
        let path = self.path(line, &request);
        let arrives = now + path.request + path.snoop + path.data;
        self.grant(line, &request, arrives);
        self.lines[line].free = arrives;
        Some(arrives)
    }

    /// A store or a locked instruction of `vcpu` has had its effect on the line: whoever watches it, on the same core or since the
    /// line has left for ours, looks again.
    pub fn changed(&mut self, line: usize, vcpu: usize) {
        self.lines[line].changes += 1;
        self.lose(line, vcpu);
    }

    /// The owner of the line needs it until then.
    pub fn keep(&mut self, line: usize, until: Time) {
        self.lines[line].used = until;
    }

    /// How often the line has been changed.
    pub fn changes(&self, line: usize) -> u64 {
        self.lines[line].changes
    }

    /// From now on [`Signal::Lost`] tells `vcpu` when its core loses the line, or the line is changed. False where the core does
    /// not have it.
    pub fn watch(&mut self, vcpu: usize, core: usize, line: usize) -> bool {
        let has = self.has(line, core, Access::Read);
        if has {
            self.lines[line].watchers.push(Watcher { vcpu });
        }
        has
    }

    /// `vcpu` no longer watches.
    pub fn unwatch(&mut self, vcpu: usize, line: usize) {
        self.lines[line]
            .watchers
            .retain(|watcher| watcher.vcpu != vcpu);
    }

    /// Serves whoever is next, if it is time.
    pub fn serve(&mut self, now: Time, line: usize) {
        loop {
            if let Some((request, at, data)) = self.lines[line].leaving {
                if at > now {
                    return;
                }
                self.lines[line].leaving = None;
                // An instruction that is under way comes to its end.
                let arrives = now.max(self.lines[line].used) + data;
                let done = arrives + self.takes(request.access);
                self.grant(line, &request, arrives);
                self.lines[line].free = done;
                self.done(&request, done);
            }
            let Some((request, path)) = self.next(now, line) else {
                return;
            };
            if path.pipelined {
                // The last-level cache answers by itself, and goes on to the next one.
                let arrives = now + path.data;
                self.grant(line, &request, arrives);
                self.lines[line].free = now + self.machine.costs.gap;
                self.done(&request, arrives + self.takes(request.access));
            } else {
                let at = now + path.snoop;
                self.lines[line].leaving = Some((request, at, path.data));
                self.signals.push(Signal::Serve { line, at });
            }
        }
    }

    fn done(&mut self, request: &Request, at: Time) {
        self.signals.push(Signal::Done {
            vcpu: request.vcpu,
            at,
        });
    }

    /// Takes the request that is served now out of the queue: chance decides among those that have arrived. Where it is too
    /// early, plans another look.
    fn next(&mut self, now: Time, line: usize) -> Option<(Request, Path)> {
        let state = &self.lines[line];
        let mut arrived = 0;
        let mut earliest = Time::MAX;
        for request in &state.queue {
            let arrival = self.arrival(line, request);
            arrived += usize::from(arrival <= now);
            earliest = earliest.min(arrival);
        }
        let at = earliest.max(state.free);
        if state.queue.is_empty() {
            return None;
        }
        if at > now {
            let planned = &mut self.lines[line].planned;
            if planned.is_none_or(|planned| planned <= now || planned > at) {
                *planned = Some(at);
                self.signals.push(Signal::Serve { line, at });
            }
            return None;
        }
        let mut chosen = self.random.random_range(0..arrived);
        let index = state.queue.iter().position(|request| {
            let here = self.arrival(line, request) <= now;
            chosen = chosen.wrapping_sub(usize::from(here));
            here && chosen == usize::MAX
        });
        let request = self.lines[line]
            .queue
            .remove(index.expect("so many have arrived"));
        let path = self.path(line, &request);
        Some((request, path))
    }

    /// When a request arrives where the line is. One from another socket follows it.
    fn arrival(&self, line: usize, request: &Request) -> Time {
        let state = &self.lines[line];
        if self.has(line, request.core, request.access) {
            return request.asked.max(state.arrival);
        }
        let socket = self.machine.socket_of(request.core);
        let near = match state.copies {
            Copies::None => true,
            Copies::Owned(_) => socket == state.home,
            Copies::Shared(cores) => self.reaches(cores, socket),
        };
        let asked = if near {
            request.asked
        } else {
            request.asked.max(state.since)
        };
        asked + self.ways(line, request).request
    }

    /// The ways of a request and its answer.
    fn path(&mut self, line: usize, request: &Request) -> Path {
        let path = self.ways(line, request);
        Path {
            snoop: self.vary(path.snoop),
            data: self.vary(path.data),
            ..path
        }
    }

    /// The same, before chance makes them longer or shorter.
    fn ways(&self, line: usize, request: &Request) -> Path {
        let socket = self.machine.socket_of(request.core);
        let state = &self.lines[line];
        let costs = &self.machine.costs;
        if self.has(line, request.core, request.access) {
            // It was on its way here already.
            return Path::default();
        }
        let way = self.machine.way(request.core, line);
        let whole = |time: Time| Path {
            request: time.scale(REQUEST).scale(way),
            snoop: time.scale(SNOOP),
            data: time.scale(1.0 - REQUEST - SNOOP).scale(way),
            pipelined: false,
        };
        match state.copies {
            Copies::None => whole(costs.memory),
            Copies::Owned(_) => whole(self.machine.transfer(state.home, socket)),
            Copies::Shared(cores) if request.access == Access::Read => {
                if !self.machine.inclusive {
                    whole(self.machine.transfer(state.home, socket))
                } else if self.reaches(cores, socket) {
                    Path {
                        request: costs.shared.half().scale(way),
                        snoop: Time::ZERO,
                        data: costs.shared.half().scale(way),
                        pipelined: true,
                    }
                } else {
                    whole(self.machine.transfer(state.home, socket))
                }
            }
            // All copies have to go, the most distant one too.
            Copies::Shared(cores) => whole(self.invalidation(cores, request.core)),
        }
    }

    /// The core gets the line, or a copy, which arrives then; whoever has to lose it has lost it.
    fn grant(&mut self, line: usize, request: &Request, arrives: Time) {
        let socket = self.machine.socket_of(request.core);
        let had = self.has(line, request.core, request.access);
        let near = match self.lines[line].copies {
            Copies::None => None,
            Copies::Owned(_) => Some(self.lines[line].home == socket),
            Copies::Shared(cores) => Some(self.reaches(cores, socket)),
        };
        match near {
            _ if had => self.traffic.hits += 1,
            None => self.traffic.memory += 1,
            Some(true) => self.traffic.near += 1,
            Some(false) => self.traffic.far += 1,
        }
        let state = &mut self.lines[line];
        let all = match (request.access, state.copies) {
            (Access::Read, Copies::Shared(cores)) => Copies::Shared(cores | bit(request.core)),
            (Access::Read, Copies::Owned(owner)) if owner != request.core => {
                Copies::Shared(bit(owner) | bit(request.core))
            }
            _ => Copies::Owned(request.core),
        };
        state.copies = all;
        if matches!(all, Copies::Owned(_)) {
            state.arrival = arrives;
            if state.home != socket {
                state.home = socket;
                state.since = arrives;
            }
            if request.access != Access::Read {
                self.lose(line, request.vcpu);
            }
        }
    }

    /// What taking a shared line away from everybody else takes.
    fn invalidation(&self, cores: u128, core: usize) -> Time {
        let socket = self.machine.socket_of(core);
        let others = cores & !bit(core);
        (0..self.machine.all_cores())
            .filter(|&other| others & bit(other) != 0)
            .map(|other| self.machine.transfer(self.machine.socket_of(other), socket))
            .max()
            .unwrap_or(self.machine.costs.shared)
    }

    /// Whether one of these cores is on the socket, whose last-level cache has the line then.
    fn reaches(&self, cores: u128, socket: usize) -> bool {
        let all = u128::MAX >> (MOST_CORES - self.machine.cores);
        cores & (all << (socket * self.machine.cores)) != 0
    }

    fn takes(&self, access: Access) -> Time {
        match access {
            Access::Read | Access::Write => self.machine.costs.hit,
            Access::Locked => self.machine.costs.locked,
        }
    }

    fn vary(&mut self, time: Time) -> Time {
        let jitter = self.machine.costs.jitter;
        if jitter == 0.0 {
            return time;
        }
        time.scale(self.random.random_range(1.0 - jitter..=1.0 + jitter))
    }

    /// All watchers but one have to look again.
    fn lose(&mut self, line: usize, but: usize) {
        let signals = &mut self.signals;
        self.lines[line].watchers.retain(|watcher| {
            let stays = watcher.vcpu == but;
            if !stays {
                signals.push(Signal::Lost { vcpu: watcher.vcpu });
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests;

//! Cache lines: who has them, who wants them, and when they arrive.
//!
//! A line is *owned* by one core (modified or exclusive: nobody else has it), *shared* by a set of
//! cores, or in no cache. A core that needs more than it has asks for the line. In a third of what
//! the transfer costs the request travels to the cache that answers for the line, the last-level
//! one of the socket where it is; in a quarter that one tells whoever has it, who may go on using
//! it until then; in the rest the data travel. Requests that find the line busy wait at its place,
//! and chance decides which of them is next. When the line goes to another socket, the requests
//! that wait follow it and travel again, unless they come from there: so cores near to the owner
//! are served more often than distant ones.
//!
//! A line that was handed over stays until the access that it was sent for is done; so it does
//! while a store that found it is under way. A locked instruction takes hold of its line late: one
//! that has lost it by then asks for it and begins again. An inclusive last-level cache that has a
//! line which nobody may change answers readers by itself, one after another; the next waits for no
//! more than the gap that it needs between two answers. Where caches are not inclusive each reader
//! gets a whole transfer.
//!
//! # Invariants
//!
//! - C1: a line has one owner and nobody sharing it, or no owner.
//! - C2: an access takes effect while its core has the line in the way that it needs, or, for a
//!   load, when data arrive that were right when they were sent.
//! - C3: whoever asks is answered once.
//! - C4: whoever watches a line is told of each change that takes effect from then on, at that
//!   moment at the latest.

mod line;
mod paths;
#[cfg(test)]
mod tests;

use rand::rngs::Xoshiro256PlusPlus as Random;
use rand::{RngExt, SeedableRng};
use rustc_hash::FxHashMap;

use crate::machine::Machine;
use crate::time::Time;
use line::{Copies, Line, Request, Watcher, bit};
use paths::Path;

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
    /// Of the queue that was looked at last: the places of those that had arrived.
    arrived: Vec<usize>,
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
            arrived: Vec::new(),
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
            self.lines.push(Line::new());
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
                self.keep(line, now + takes);
            }
            return Answer::Hit(takes);
        }
        let request = self.request(now, vcpu, core, line, access);
        self.lines[line].queue.push(request);
        self.serve(now, line);
        Answer::Wait
    }

    fn request(&self, now: Time, vcpu: usize, core: usize, line: usize, access: Access) -> Request {
        let mut request = Request {
            vcpu,
            core,
            access,
            asked: now,
            way: self.machine.way(core, line),
            arrives: now,
        };
        request.arrives = self.arrival(line, &request);
        request
    }

    /// A store that the core need not wait for, since nobody else wants the line: it is the core's
    /// at once, but of no use to others before it has arrived. `None` where others want it.
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
        let request = self.request(now, vcpu, core, line, Access::Write);
        let path = self.path(line, &request);
        let arrives = now + path.request + path.snoop + path.data;
        self.grant(line, &request, arrives);
        self.lines[line].free = arrives;
        Some(arrives)
    }

    /// A store or a locked instruction of `vcpu` has had its effect on the line: whoever watches
    /// it, on the same core or since the line has left for ours, looks again.
    pub fn changed(&mut self, line: usize, vcpu: usize) {
        self.lines[line].changes += 1;
        self.lose(line, vcpu);
    }

    /// The owner of the line needs it until then.
    pub fn keep(&mut self, line: usize, until: Time) {
        let used = &mut self.lines[line].used;
        *used = until.max(*used);
    }

    /// How often the line has been changed.
    pub fn changes(&self, line: usize) -> u64 {
        self.lines[line].changes
    }

    /// From now on [`Signal::Lost`] tells `vcpu` when its core loses the line, or the line is
    /// changed. False where the core does not have it.
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

    /// Takes the request that is served now out of the queue: chance decides among those that have
    /// arrived. Where it is too early, plans another look.
    fn next(&mut self, now: Time, line: usize) -> Option<(Request, Path)> {
        let state = &self.lines[line];
        if state.queue.is_empty() {
            return None;
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        arrived.clear();
        let mut earliest = Time::MAX;
        for (index, request) in state.queue.iter().enumerate() {
            debug_assert_eq!(request.arrives, self.arrival(line, request));
            earliest = earliest.min(request.arrives);
            if request.arrives <= now {
                arrived.push(index);
            }
        }
        self.arrived = arrived;
        let at = earliest.max(state.free);
        if at > now {
            let planned = &mut self.lines[line].planned;
            if planned.is_none_or(|planned| planned <= now || planned > at) {
                *planned = Some(at);
                self.signals.push(Signal::Serve { line, at });
            }
            return None;
        }
        let chosen = self.random.random_range(0..self.arrived.len());
        let request = self.lines[line].queue.remove(self.arrived[chosen]);
        let path = self.path(line, &request);
        Some((request, path))
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
        let before = state.copies;
        let all = match (request.access, before) {
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
        // One reader more of a line that its socket shares changes nothing for those who wait, but
        // on its own core.
        let joins =
            matches!((before, all), (Copies::Shared(_), Copies::Shared(_))) && near == Some(true);
        self.redirect(line, joins.then_some(request.core));
    }

    /// The line has moved: the requests that wait for it, or those of one core, arrive at another
    /// time.
    fn redirect(&mut self, line: usize, only: Option<usize>) {
        let mut queue = std::mem::take(&mut self.lines[line].queue);
        for request in &mut queue {
            if only.is_none_or(|core| core == request.core) {
                request.arrives = self.arrival(line, request);
            }
        }
        self.lines[line].queue = queue;
    }

    fn takes(&self, access: Access) -> Time {
        match access {
            Access::Read | Access::Write => self.machine.costs.hit,
            Access::Locked => self.machine.costs.locked,
        }
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

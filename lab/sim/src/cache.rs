//! Cache lines: which cores have them, which request them, and when they arrive.
//!
//! A line is *owned* by one core (modified or exclusive: no other core has it), *shared* by a set
//! of cores, or in no cache. A core that lacks the right for an access requests the line. A
//! transfer has three parts:
//!
//! - A third of its cost: the request travels to the home of the line, the last-level cache of the
//!   socket or cluster where it is.
//! - A sixth in the mean, from nothing to a third: the home's snoop travels to the owner or
//!   sharers, which may use the line until then.
//! - The rest: the data travel.
//!
//! Requests that find the line busy wait at its home, in random order. When the line goes to
//! another home, the waiting requests follow it and travel again, unless they come from there. So
//! cores near the owner are served more often than distant ones.
//!
//! A transferred line stays until the access that requested it is done, and likewise while a store
//! that hits is under way. A locked instruction locks its line late: if it has lost the line by
//! then, it requests it and begins again. An inclusive last-level cache that has a shared line
//! answers readers by itself, one after another; the next one waits only for the gap between two
//! answers. If caches are not inclusive, each reader takes a whole transfer.
//!
//! A read of a line that its owner has changed makes both sharers of it. On a machine with
//! migratory reads it makes the reader the owner instead: a spinner that has seen its turn can then
//! store without another request. The next reader of an unchanged line shares it.
//!
//! # Invariants
//!
//! - C1: a line has one owner and no sharer, or no owner.
//! - C2: an access takes effect while its core has the right that it needs, or, for a load, when
//!   data arrive that were valid when they were sent.
//! - C3: each request is answered once.
//! - C4: a watcher of a line is notified of each later change, at the latest when the change takes
//!   effect.

mod line;
mod map;
mod serve;
#[cfg(test)]
mod tests;

use std::ops::Range;

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus as Random;
use rustc_hash::FxHashMap;

use crate::machine::Machine;
use crate::time::Time;
use line::Line;
pub use line::Request;
use map::Map;
pub use serve::Granted;

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// An access of a core to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A locked instruction: a read-modify-write.
    Locked,
}

impl Access {
    /// Whether it is a load, and so leaves the line as it is.
    pub fn is_load(self) -> bool {
        matches!(self, Access::Read)
    }
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A hit: done after this time.
    Hit(Time),
    /// A miss: a [`Signal::Done`] will follow.
    Wait,
}

/// A request of the cache to its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// An access is done: for a store, its line has arrived.
    Done(Granted),
    /// Call [`Cache::serve`] for the line at `at`.
    Serve {
        /// The line.
        line: usize,
        /// The time.
        at: Time,
    },
    /// A line was watched, and cores have lost it or it has changed. The numbers of its watchers
    /// for [`Cache::watcher`].
    Lost(Range<u32>),
}

/// Counts of line transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Hits: accesses to a line that the core had.
    pub hits: u64,
    /// Lines that came from the core's own socket.
    pub near: u64,
    /// Lines that came from another socket.
    pub far: u64,
    /// Lines that came from memory.
    pub memory: u64,
}

/// The state of all lines of a machine.
#[derive(Debug)]
pub struct Cache {
    map: Map,
    numbers: FxHashMap<usize, usize>,
    lines: Vec<Line>,
    random: Random,
    traffic: Traffic,
    signals: Vec<Signal>,
    /// The watchers of which signals tell. A signal for each watcher would be most of the signals,
    /// and would make each one larger.
    lost: Vec<Request>,
}

impl Cache {
    /// Makes empty caches. `seed` determines the variation of transfers.
    pub fn new(machine: &Machine, seed: u64) -> Self {
        Self {
            map: Map::new(machine),
            numbers: FxHashMap::default(),
            lines: Vec::new(),
            random: Random::seed_from_u64(seed),
            traffic: Traffic::default(),
            signals: Vec::new(),
            lost: Vec::new(),
        }
    }

    /// Returns the counts so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Counts from zero again.
    pub fn forget_traffic(&mut self) {
        self.traffic = Traffic::default();
    }

    /// Returns the signal of that number.
    pub fn signal(&self, number: usize) -> Option<Signal> {
        self.signals.get(number).cloned()
    }

    /// Forgets all signals, on which the caller has acted.
    pub fn forget_signals(&mut self) {
        self.signals.clear();
        self.lost.clear();
    }

    /// Returns the last request of a watcher that has lost its line, as if made when it began to
    /// watch.
    pub fn watcher(&self, number: u32) -> Request {
        self.lost[number as usize]
    }

    /// Returns the line of an address.
    pub fn line(&mut self, address: usize) -> usize {
        let next = self.lines.len();
        let line = *self.numbers.entry(address / LINE).or_insert(next);
        if line == next {
            self.lines.push(Line {
                slice: self.map.machine.slice_of(line),
                ..Line::default()
            });
        }
        line
    }

    /// Returns the line of an address if it has been used.
    pub fn known(&self, address: usize) -> Option<usize> {
        self.numbers.get(&(address / LINE)).copied()
    }

    /// Counts an access that hits, to a line that is not simulated. Returns how long it takes.
    pub fn hits(&mut self, access: Access) -> Time {
        self.traffic.hits += 1;
        self.takes(access)
    }

    /// Whether `core` has the right for this access.
    pub fn has(&self, line: usize, core: usize, access: Access) -> bool {
        self.lines[line].has(core, access)
    }

    /// Accesses a line on behalf of `vcpu`, which runs on `core`.
    pub fn access(
        &mut self,
        now: Time,
        vcpu: usize,
        core: usize,
        line: usize,
        access: Access,
    ) -> Answer {
        let state = &self.lines[line];
        if now >= state.arrival && state.has(core, access) {
            let takes = self.hits(access);
            if access == Access::Write {
                self.keep(line, now + takes);
            }
            return Answer::Hit(takes);
        }
        let request = Request {
            access,
            ..self.request(now, vcpu, core, line)
        };
        self.enqueue(now, request);
        Answer::Wait
    }

    /// Whether a store of `core` can take effect now: the core owns the line, and it is there.
    pub fn owns(&self, now: Time, core: usize, line: usize) -> bool {
        self.has(line, core, Access::Write) && now >= self.lines[line].arrival
    }

    /// Makes a request for a load later than now, of a line that its core does not have, for this
    /// watcher. [`Cache::requested_ahead`] has to follow.
    #[inline]
    pub fn request_ahead(&mut self, number: u32, at: Time) {
        let watcher = &self.lost[number as usize];
        let state = &mut self.lines[watcher.line as usize];
        debug_assert!(!state.has(watcher.core as usize, Access::Read));
        state.queue.push(watcher.made_at(at));
    }

    /// Serves the line of these watchers, some of which have requested it, when that is due.
    pub fn requested_ahead(&mut self, now: Time, watchers: Range<u32>) {
        let line = self.watcher(watchers.start).line as usize;
        let at = self.map.due(now, &self.lines[line]);
        if at < Time::MAX {
            self.becomes_due(now, line, at);
        }
    }

    fn request(&self, at: Time, vcpu: usize, core: usize, line: usize) -> Request {
        self.map
            .request(at, vcpu, core, line, self.lines[line].slice)
    }

    /// Returns since when `vcpu` watches the line, if it does.
    pub fn watched(&self, line: usize, vcpu: usize) -> Option<Time> {
        let mut watchers = self.lines[line].watchers.iter();
        let watcher = watchers.find(|watcher| watcher.is_of(vcpu));
        watcher.map(|watcher| watcher.requested_at)
    }

    /// Returns when `vcpu` has requested the line for a load, if that waits.
    pub fn requested(&self, line: usize, vcpu: usize) -> Option<Time> {
        let Line { leaving, queue, .. } = &self.lines[line];
        let leaving = leaving.iter().map(|(request, ..)| request);
        let mut requests = leaving.chain(queue);
        let request = requests.find(|request| request.is_of(vcpu));
        request.map(|request| request.requested_at)
    }

    /// Takes back the request of `vcpu` for a load that it has not made yet.
    pub fn withdraw(&mut self, line: usize, vcpu: usize) {
        let queue = &mut self.lines[line].queue;
        if let Some(index) = queue.iter().position(|request| request.is_of(vcpu)) {
            queue.swap_remove(index);
        }
    }

    /// Queues a request, and serves it if it is due.
    #[inline(always)]
    fn enqueue(&mut self, now: Time, request: Request) {
        let line = request.line as usize;
        let state = &mut self.lines[line];
        let arrives = self.map.arrival(state, &request);
        state.queue.push(request);
        self.becomes_due(now, line, arrives);
    }

    /// A request arrives then. Serves the line, now or then.
    fn becomes_due(&mut self, now: Time, line: usize, arrives: Time) {
        let state = &mut self.lines[line];
        let at = arrives.max(state.free);
        if state.leaving.is_some() || at <= now {
            self.serve(now, line);
        } else if state.plans(now, at) {
            // Those before it are planned already.
            self.signals.push(Signal::Serve { line, at });
        }
    }

    /// A store or a locked instruction of `vcpu` has taken effect on the line: notifies the
    /// watchers, which are on the same core or began to watch after the line was granted to it.
    pub fn changed(&mut self, line: usize, vcpu: usize) {
        self.lines[line].changes += 1;
        self.lines[line].dirty = true;
        self.lose(line, vcpu);
    }

    /// The owner of the line keeps it until then.
    pub fn keep(&mut self, line: usize, until: Time) {
        let used = &mut self.lines[line].used;
        *used = until.max(*used);
    }

    /// Returns how often the line has been changed.
    pub fn changes(&self, line: usize) -> u64 {
        self.lines[line].changes
    }

    /// Begins to watch a line, from `at` on: [`Signal::Lost`] then notifies `vcpu` when its core
    /// loses the line, or the line changes. Returns false if the core does not have the line.
    pub fn watch(&mut self, at: Time, vcpu: usize, core: usize, line: usize) -> bool {
        let has = self.has(line, core, Access::Read);
        if has {
            let watcher = self.request(at, vcpu, core, line);
            self.lines[line].watchers.push(watcher);
        }
        has
    }

    /// Ends a watch of `vcpu`.
    pub fn unwatch(&mut self, vcpu: usize, line: usize) {
        let watchers = &mut self.lines[line].watchers;
        if let Some(index) = watchers.iter().position(|watcher| watcher.is_of(vcpu)) {
            watchers.remove(index);
        }
    }

    fn takes(&self, access: Access) -> Time {
        match access {
            Access::Read | Access::Write => self.map.machine.costs.hit,
            Access::Locked => self.map.machine.costs.locked,
        }
    }
}

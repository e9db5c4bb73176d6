//! The state of a cache line, and the requests that wait for it.

use super::Access;
use super::map::Map;
use crate::time::Time;

/// A request for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The vCPU that makes the access.
    pub vcpu: u32,
    /// The core.
    pub core: u32,
    /// The line.
    pub line: u32,
    /// The number of the core's place.
    pub(super) place: u32,
    /// How far the core is from the line on the ring.
    pub(super) distance: u32,
    /// When it was made.
    pub requested_at: Time,
    /// A store is in the store buffer: its vCPU does not wait for it.
    pub access: Access,
}

impl Request {
    /// Returns the same, made at another time.
    pub fn made_at(self, requested_at: Time) -> Self {
        Self {
            requested_at,
            ..self
        }
    }

    /// Whether it is for a load of this vCPU.
    pub(super) fn is_of(&self, vcpu: usize) -> bool {
        self.vcpu as usize == vcpu && self.access.is_load()
    }
}

/// The cores that share a line.
#[derive(Debug)]
pub(super) struct Sharers {
    pub cores: Vec<bool>,
    /// How many there are at each place.
    pub counts: Vec<u16>,
}

impl Sharers {
    /// Adds a core. Returns whether it is the first one of its place.
    #[inline(always)]
    pub fn insert(&mut self, core: usize, place: usize) -> bool {
        let is_new = !std::mem::replace(&mut self.cores[core], true);
        self.counts[place] += u16::from(is_new);
        is_new && self.counts[place] == 1
    }

    /// Whether the last-level cache of this place has a copy.
    pub fn are_near(&self, place: usize) -> bool {
        self.counts[place] > 0
    }
}

/// The copies of a line.
#[derive(Debug, Default)]
pub(super) enum Copies {
    /// In no cache.
    #[default]
    None,
    /// Owned by this core.
    Owned(usize),
    Shared(Sharers),
}

/// A line. At first it is in no cache, and has never been requested.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The slice of the last-level cache that has it.
    pub slice: usize,
    pub copies: Copies,
    /// The number of its last owner's place, whose last-level cache is the home of the line: it
    /// answers for the line. And since when that is the home.
    pub home: usize,
    pub since: Time,
    /// When the next request may be served.
    pub free: Time,
    /// The request that is being served, when the line leaves its home, and how long it travels.
    pub leaving: Option<(Request, Time, Time)>,
    /// When the queue is served next, if that is scheduled.
    pub planned: Option<Time>,
    /// When the owner has it.
    pub arrival: Time,
    /// Until when the owner cannot release it: a store that hit, or a locked instruction that has
    /// locked it, is under way.
    pub used: Time,
    /// Whether the owner has changed it.
    pub dirty: bool,
    /// The last requests of those that watch it, as if made when they began to.
    pub watchers: Vec<Request>,
    /// How often it has been changed.
    pub changes: u64,
    pub queue: Queue,
}

impl Line {
    /// Whether `core` has the right for this access.
    #[inline]
    pub fn has(&self, core: usize, access: Access) -> bool {
        match &self.copies {
            Copies::None => false,
            Copies::Owned(owner) => *owner == core,
            Copies::Shared(sharers) => access.is_load() && sharers.cores[core],
        }
    }

    /// Adds the core of a read to those that share it, if some do.
    #[inline(always)]
    pub fn add_sharer(&mut self, now: Time, map: &Map, request: &Request) {
        let (core, place) = (request.core as usize, request.place as usize);
        let Copies::Shared(sharers) = &mut self.copies else {
            return;
        };
        // The first reader of a place, to which the line has come from another, affects waiting
        // requests near it, and all that invalidate copies. Another reader affects only those of
        // its own core: it is as near as a copy that they wait for already.
        if sharers.insert(core, place) {
            self.comes_nearer(now, map, |other| other == place);
        } else if !self.queue.are_here(now) {
            self.redirect(map, |request, _| request.core as usize == core);
        }
    }

    /// There is another copy of it, for the last-level caches of these places. Loads from there
    /// have a new way to it, mostly a shorter one: then it does not matter to those that have
    /// arrived. All that invalidate copies may arrive later.
    pub fn comes_nearer(&mut self, now: Time, map: &Map, is_near: impl Fn(usize) -> bool) {
        self.redirect(map, |request, at| {
            let may_come_sooner = at > now || !map.copies_are_near;
            !request.access.is_load() || may_come_sooner && is_near(request.place as usize)
        });
    }

    /// Updates the arrivals of some waiting requests.
    #[inline(always)]
    pub fn redirect(&mut self, map: &Map, is_affected: impl Fn(&Request, Time) -> bool) {
        let mut queue = std::mem::take(&mut self.queue);
        for (at, request) in queue.arrivals.iter_mut().zip(&queue.requests) {
            if is_affected(request, *at) {
                *at = map.arrival(self, request);
                queue.latest = queue.latest.max(*at);
            }
        }
        self.queue = queue;
    }

    /// The queue has to be served at the time `at`. Returns whether that is not planned yet.
    pub fn plans(&mut self, now: Time, at: Time) -> bool {
        let is_known = |planned: &Time| now < *planned && *planned <= at;
        let known = self.planned.filter(is_known);
        self.planned = known.or(Some(at));
        known.is_none()
    }
}

/// The requests that wait for a line, and when each arrives at the line's home, unless that
/// changes.
///
/// One is taken from anywhere, and the last one moves to its place. Of one that has arrived it does
/// not matter when.
#[derive(Debug, Default)]
pub(super) struct Queue {
    arrivals: Vec<Time>,
    requests: Vec<Request>,
    /// No request arrives later. Mostly all of them have arrived, and none has to be looked at.
    latest: Time,
}

impl Queue {
    pub fn push(&mut self, request: Request, arrives: Time) {
        self.latest = match self.arrivals.is_empty() {
            true => arrives,
            false => arrives.max(self.latest),
        };
        self.arrivals.push(arrives);
        self.requests.push(request);
    }

    /// Whether all have arrived.
    pub fn are_here(&self, now: Time) -> bool {
        self.latest <= now
    }

    /// Returns the number of those that have arrived, and when the first one does, or `now` if it
    /// has.
    #[inline]
    pub fn arrived(&self, now: Time) -> Option<(usize, Time)> {
        if self.arrivals.is_empty() {
            return None;
        }
        if self.are_here(now) {
            return Some((self.arrivals.len(), now));
        }
        // The sign of the difference, which takes fewer instructions than a comparison.
        let here = |at: &Time| at.as_ps().wrapping_sub(now.as_ps() + 1) >> 63;
        match self.arrivals.iter().map(here).sum() {
            0 => self.arrivals.iter().min().map(|&first| (0, first)),
            here => Some((here as usize, now)),
        }
    }

    /// Returns all of them.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// Takes one of those that have arrived.
    #[inline]
    pub fn take(&mut self, now: Time, chosen: usize) -> Request {
        if self.are_here(now) {
            return self.remove(chosen);
        }
        let here = |&index: &usize| self.arrivals[index] <= now;
        let mut arrived = (0..self.arrivals.len()).filter(here);
        let index = arrived.nth(chosen).expect("so many have arrived");
        self.remove(index)
    }

    /// Takes the request of `vcpu` for a load.
    pub fn withdraw(&mut self, vcpu: usize) {
        let mut requests = self.requests.iter();
        if let Some(index) = requests.position(|request| request.is_of(vcpu)) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: usize) -> Request {
        // One of them is chosen at random: their order does not matter.
        self.arrivals.swap_remove(index);
        self.requests.swap_remove(index)
    }

    /// Whether all that have not arrived arrive at these times.
    #[cfg(test)]
    pub fn arrive_as(&self, now: Time, arrival: impl Fn(&Request) -> Time) -> bool {
        let expected = self.requests.iter().map(arrival);
        let mut both = self.arrivals.iter().zip(expected);
        both.all(|(&at, expected)| at.max(now) == expected.max(now))
    }
}

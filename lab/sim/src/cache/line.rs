//! The state of a cache line, and the requests that wait for it.

use super::Access;
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
    /// Adds a core.
    #[inline(always)]
    pub fn insert(&mut self, core: usize, place: usize) {
        let is_new = !std::mem::replace(&mut self.cores[core], true);
        self.counts[place] += u16::from(is_new);
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
    /// The requests that wait for it, in no order.
    pub queue: Vec<Request>,
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
    pub fn add_sharer(&mut self, request: &Request) {
        if let Copies::Shared(sharers) = &mut self.copies {
            sharers.insert(request.core as usize, request.place as usize);
        }
    }

    /// The queue has to be served at the time `at`. Returns whether that is not planned yet.
    pub fn plans(&mut self, now: Time, at: Time) -> bool {
        let is_known = |planned: &Time| now < *planned && *planned <= at;
        let known = self.planned.filter(is_known);
        self.planned = known.or(Some(at));
        known.is_none()
    }
}

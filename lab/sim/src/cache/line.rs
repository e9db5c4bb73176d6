//! The state of a cache line.

use super::Access;
use super::cores::Cores;
use crate::time::Time;

#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub vcpu: u32,
    pub core: u32,
    /// The number of the core's place.
    pub place: u32,
    pub access: Access,
    /// Whether a buffered store needs the line, for which no vCPU waits.
    pub buffered: bool,
    pub requested_at: Time,
    /// The length of the core's way to the line, relative to the mean.
    pub way: f64,
}

/// The copies of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copies {
    /// In no cache.
    None,
    /// Owned by this core.
    Owned(usize),
    /// Shared by the cores of this set.
    Shared(Cores),
}

#[derive(Debug)]
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
    /// The vCPUs that watch it.
    pub watchers: Vec<u32>,
    /// How often it has been changed.
    pub changes: u64,
}

impl Line {
    /// A line that is in no cache and has never been requested.
    pub fn new(slice: usize) -> Self {
        Self {
            slice,
            copies: Copies::None,
            home: 0,
            since: Time::ZERO,
            free: Time::ZERO,
            leaving: None,
            planned: None,
            arrival: Time::ZERO,
            used: Time::ZERO,
            dirty: false,
            watchers: Vec::new(),
            changes: 0,
        }
    }
}

impl Line {
    /// The queue has to be served at the time `at`. Returns whether that is not planned yet.
    pub fn plans(&mut self, now: Time, at: Time) -> bool {
        let known = self
            .planned
            .filter(|&planned| now < planned && planned <= at);
        self.planned = known.or(Some(at));
        known.is_none()
    }
}

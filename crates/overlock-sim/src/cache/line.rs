//! What is known of a line.

use super::Access;
use crate::time::Time;

#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub vcpu: usize,
    pub core: usize,
    pub access: Access,
    pub asked: Time,
    /// How long the core's way to the line is compared to the mean.
    pub way: f64,
    /// When it arrives where the line is, as long as that does not change.
    pub arrives: Time,
}

/// Who has a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copies {
    /// Nobody.
    None,
    /// One core, alone.
    Owned(usize),
    /// The cores of this set.
    Shared(u128),
}

/// The set of this core alone.
pub(super) fn bit(core: usize) -> u128 {
    1 << core
}

#[derive(Debug)]
pub(super) struct Line {
    pub copies: Copies,
    /// The socket whose caches answer for the line, and since when.
    pub home: usize,
    pub since: Time,
    /// When the next request may be served.
    pub free: Time,
    pub queue: Vec<Request>,
    /// Who is being served: the line leaves its place then, and travels for so long.
    pub leaving: Option<(Request, Time, Time)>,
    /// When the queue is looked at next, if that is planned.
    pub planned: Option<Time>,
    /// When the owner has it.
    pub arrival: Time,
    /// Until when the owner cannot let it go: a store that hit, or a locked instruction that has
    /// taken hold of it, is under way.
    pub used: Time,
    pub watchers: Vec<Watcher>,
    /// How often it has been changed.
    pub changes: u64,
}

impl Line {
    /// In no cache, and nobody has asked for it yet.
    pub fn new() -> Self {
        Self {
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
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Watcher {
    pub vcpu: usize,
}

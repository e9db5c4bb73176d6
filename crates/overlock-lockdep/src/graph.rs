//! The order in which classes were taken: a directed graph, and the search for a way back.
//!
//! An edge says that its second class was requested while its first was held, and in which modes:
//! whether the holder would have kept readers out, and whether the request waits behind writers
//! that only wait. (The kernel publishes this as its four kinds of dependencies, `-(EN)->` and so
//! on.) Two edges in a row can be part of a deadlock unless the first ends in a recursive reader
//! and the second begins in a reader: readers do not block such a reader. A path without such a
//! pair, its ends included, is *strong*.
//!
//! An edge also has its *guards*: the locks that the thread held besides the first. The threads of
//! a deadlock hold all their locks at a time. So edges of which two were seen under one lock, not
//! both as its readers, are no deadlock: it is a *gate lock*. An edge that was seen under different
//! guards is in the graph once for each, up to a bound.
//!
//! A strong cycle without a gate lock is reported. The edge that would close it is not added, so
//! one mistake is not reported again by all that follows from it.

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::class::Nodes;
use super::gate::Inside;
use super::site::{How, Site};
use super::thread::Held;
use super::trace::Trace;
use crate::mapped::{Chunks, Mapped, Temporary, Zeroed};

/// The most edges of a cycle that a report shows.
pub(super) const SHOWN: usize = 16;

/// The most guards of an edge that are kept, the oldest ones.
pub(super) const GUARDS: usize = 6;

/// The most guarded edges from one class to another.
const SIGHTINGS: usize = 6;

/// The most steps of the search for a cycle without a gate lock, where the shortest cycle has one.
const STEPS: usize = 4096;

/// Capacity for what is known of edges; a power of two.
const KNOWN: usize = 1 << if cfg!(miri) { 10 } else { 19 };

/// Capacity for edges, in thousands.
const EDGE_CHUNKS: usize = if cfg!(miri) { 4 } else { 128 };

#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// The nodes; 0 for a free place.
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) from_how: How,
    pub(super) to_how: How,
    /// The places where `from` was acquired and `to` was requested.
    pub(super) sites: [Site; 2],
    /// The locks' addresses and numbers.
    pub(super) locks: [usize; 2],
    pub(super) numbers: [u64; 2],
    /// The thread, as the kernel names it.
    pub(super) thread: u32,
    /// 0 for none.
    pub(super) guards: [u64; GUARDS],
    /// The callers of the second place.
    pub(super) trace: Trace,
    /// The next edge out of `from`, + 1; of a free place the next free one.
    next: u32,
}

impl Edge {
    pub(super) fn new(nodes: [u32; 2], ends: [&Held; 2], thread: u32) -> Edge {
        Edge {
            from: nodes[0],
            to: nodes[1],
            from_how: ends[0].how,
            to_how: ends[1].how,
            sites: ends.map(|held| held.site),
            locks: ends.map(|held| held.lock),
            numbers: ends.map(|held| held.class.number()),
            thread,
            guards: [0; GUARDS],
            trace: Trace::NONE,
            next: 0,
        }
    }

    fn guards(&self) -> impl Iterator<Item = u64> {
        self.guards.into_iter().filter(|guard| *guard != 0)
    }

    /// Returns all locks that its thread holds, as guards.
    fn keeps(&self) -> impl Iterator<Item = u64> {
        let own = guard(self.numbers[0], self.from_how);
        self.guards().chain([own]).filter(|lock| *lock != 0)
    }

    /// Whether the threads of the two edges cannot be there at a time.
    fn excludes(&self, other: &Edge) -> bool {
        let keeps_out = |one: u64, two: u64| number(one) == number(two) && one & two & READER == 0;
        self.keeps()
            .any(|one| other.keeps().any(|two| keeps_out(one, two)))
    }

    /// Whether all that it says follows from `other`, as far as guards go: it has fewer of them.
    fn implies(&self, other: &Edge) -> bool {
        let is_one = |guard| {
            let mut others = other.guards();
            others.any(|held| held == guard || guard & READER != 0 && held == number(guard))
        };
        self.guards().all(is_one)
    }

    /// Whether all its guards still exist.
    fn is_alive(&self, alive: &impl Alive) -> bool {
        self.guards().all(|guard| alive.guard(number(guard)))
    }

    fn is_of(&self, other: &Edge) -> bool {
        self.to == other.to
            && self.from_how.is_shared() == other.from_how.is_shared()
            && self.to_how.is_recursive() == other.to_how.is_recursive()
    }
}

/// The identities of an edge in the set of those that are known.
#[derive(Clone, Copy)]
pub(super) struct Key(u64);

/// Odd, so that a product keeps all bits of its other factor.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl Key {
    /// The two are [units](super::class::ClassId::unit).
    #[inline]
    pub(super) fn new(from: u64, from_how: How, to: u64, to_how: How) -> Key {
        let kind = u64::from(from_how.is_shared()) << 1 | u64::from(to_how.is_recursive());
        let half = (from ^ kind << 61).wrapping_mul(MIX).rotate_left(29);
        Key::full((half ^ to).wrapping_mul(MIX))
    }

    /// 0 is an empty place.
    #[inline]
    fn full(key: u64) -> Key {
        Key((key ^ key >> 32) | 1)
    }

    /// The same edge, seen under guards of this sum; not under any if that is 0.
    #[inline]
    fn under(self, guards: u64) -> Key {
        match guards {
            0 => self,
            _ => Key::full((self.0 ^ guards).wrapping_mul(MIX)),
        }
    }

    /// The same edge, which was seen under too many different guards.
    #[inline]
    fn crowded(self) -> Key {
        self.under(MIX)
    }
}

/// In a guard: it is held by a reader. The rest is its number.
const READER: u64 = 1 << 62;

/// Returns a held lock as a guard; 0 if it is not known which lock it is.
#[inline]
pub(super) fn guard(number: u64, how: How) -> u64 {
    match number != 0 && how.is_shared() {
        true => number | READER,
        false => number,
    }
}

fn number(guard: u64) -> u64 {
    guard & !READER
}

/// Returns the part of a guard in a sum of guards.
#[inline]
pub(super) fn summand(guard: u64) -> u64 {
    let mixed = guard.wrapping_mul(MIX);
    mixed ^ mixed >> 31
}

/// The parts of the graph that still count.
pub(super) trait Alive {
    fn node(&self, node: u32) -> bool;
    fn guard(&self, number: u64) -> bool;
}

/// Outcome of adding an edge.
pub(super) enum Added {
    /// It is in the graph, and closes no cycle, or nothing was to be added.
    Fine,
    /// Each cycle that it closes has a gate lock.
    Gated,
    /// It closes a cycle with these edges, which lead from its end to its beginning.
    Circle(Temporary<Path>),
    Full,
}

pub(super) struct Path {
    edges: [Edge; SHOWN],
    length: usize,
}

// SAFETY: no edges are a path, and zero bytes a valid value of each edge's fields.
unsafe impl Zeroed for Path {}

impl Path {
    /// In order.
    pub(super) fn edges(&self) -> &[Edge] {
        &self.edges[..self.length.min(SHOWN)]
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }
}

/// A state of the search: a node, and whether it was only reached as a recursive reader (the low
/// bit).
type State = u32;

/// Of a state.
#[derive(Default)]
struct Reached {
    /// The search that last reached it, by which edge and from which state.
    search: AtomicU32,
    by: AtomicU32,
    from: AtomicU32,
}

// SAFETY: zero bytes are a valid value of each field.
unsafe impl Zeroed for Reached {}

struct Slot(UnsafeCell<Edge>);

// SAFETY: only threads inside the gate touch what is in it.
unsafe impl Sync for Slot {}

// SAFETY: zero bytes are a valid value of each field: a free place.
unsafe impl Zeroed for Slot {}

// SAFETY: zero bytes are a valid value.
unsafe impl Zeroed for AtomicU64 {}

// SAFETY: zero bytes are a valid value.
unsafe impl Zeroed for AtomicU32 {}

/// Only the atomic fields are touched outside of the gate.
pub(super) struct Graph {
    /// Keys of edges that add nothing: a hash set, emptied when it is full.
    known: Mapped<[AtomicU64; KNOWN]>,
    known_count: AtomicU32,
    /// Whether it was emptied: an edge may be in the graph and not there.
    forgot: AtomicBool,
    /// Edges in use; places that were ever used; the first free one of them, + 1.
    count: AtomicU32,
    end: AtomicU32,
    free: AtomicU32,
    full: AtomicBool,
    /// The first edge out of each node, + 1.
    first: Nodes<AtomicU32>,
    edges: Chunks<Slot, EDGE_CHUNKS>,
    reached: [Nodes<Reached>; 2],
    queue: [Nodes<AtomicU32>; 2],
    search: AtomicU32,
}

/// Returns the place for the key in the set, if it is not there.
#[inline]
fn find(known: &[AtomicU64; KNOWN], key: Key) -> Result<(), usize> {
    let mut place = (key.0 >> 20) as usize;
    loop {
        place %= KNOWN;
        // Relaxed: the presence of the key is the only data.
        match known[place].load(Relaxed) {
            0 => return Err(place),
            seen if seen == key.0 => return Ok(()),
            _ => place += 1,
        }
    }
}

impl Graph {
    pub(super) const fn new() -> Graph {
        Graph {
            known: Mapped::new(),
            known_count: AtomicU32::new(0),
            forgot: AtomicBool::new(false),
            count: AtomicU32::new(0),
            end: AtomicU32::new(0),
            free: AtomicU32::new(0),
            full: AtomicBool::new(false),
            first: Nodes::new(),
            edges: Chunks::new(),
            reached: [Nodes::new(), Nodes::new()],
            queue: [Nodes::new(), Nodes::new()],
            search: AtomicU32::new(0),
        }
    }

    pub(super) fn edges(&self) -> usize {
        self.count.load(Relaxed) as usize
    }

    /// Whether the edge, under guards of this sum, adds nothing.
    #[inline]
    pub(super) fn knows(&self, key: Key, guards: u64) -> bool {
        self.has(key)
            || guards != 0 && (self.has(key.under(guards)) || self.has(key.crowded()))
            || self.full.load(Relaxed)
    }

    #[inline]
    fn has(&self, key: Key) -> bool {
        // Without memory for what is known, nothing is checked.
        (self.known.get()).is_none_or(|known| find(known, key).is_ok())
    }

    /// A quarter stays free, so that searches end.
    fn note(&self, key: Key) {
        let Some(known) = self.known.get() else {
            return;
        };
        if self.known_count.load(Relaxed) as usize >= KNOWN / 4 * 3 {
            for place in known {
                place.store(0, Relaxed);
            }
            self.known_count.store(0, Relaxed);
            self.forgot.store(true, Relaxed);
        }
        if let Err(place) = find(known, key) {
            known[place].store(key.0, Relaxed);
            self.known_count.fetch_add(1, Relaxed);
        }
    }

    /// Returns a copy of an edge.
    fn edge(&self, number: u32) -> Option<Edge> {
        // SAFETY: the callers are inside, and only `set` writes, for less than this call.
        Some(unsafe { *self.edges.get(number as usize)?.0.get() })
    }

    fn set(&self, number: u32, edge: Edge) {
        if let Some(place) = self.edges.get(number as usize) {
            // SAFETY: as above; there is no reference.
            unsafe { *place.0.get() = edge }
        }
    }

    /// Returns the edges out of a node, the newest first.
    fn out(&self, node: u32) -> impl Iterator<Item = (u32, Edge)> {
        let first = self.first.get(node as usize);
        let mut next = first.map_or(0, |first| first.load(Relaxed));
        std::iter::from_fn(move || {
            let number = next.checked_sub(1)?;
            let edge = self.edge(number)?;
            next = edge.next;
            Some((number, edge))
        })
    }

    /// Adds an edge, unless it closes a cycle that is reported. `guards` is the sum of its guards.
    pub(super) fn add(
        &self,
        new: Edge,
        key: Key,
        guards: u64,
        alive: &impl Alive,
        _: &Inside<'_>,
    ) -> Added {
        if self.knows(key, guards) {
            return Added::Fine; // another thread was faster
        }
        if guards != 0 || self.forgot.load(Relaxed) {
            let mut sightings = 0;
            for (_, edge) in self.out(new.from).filter(|(_, edge)| edge.is_of(&new)) {
                if !edge.is_alive(alive) {
                    continue;
                }
                if edge.implies(&new) {
                    self.note(key.under(guards));
                    return Added::Fine;
                }
                sightings += 1;
            }
            if guards != 0 && sightings >= SIGHTINGS {
                self.note(key.crowded());
                return Added::Fine;
            }
        }
        let added = match self.circle(&new, alive) {
            Some(Some(path)) => return Added::Circle(path),
            Some(None) => Added::Gated,
            None => Added::Fine,
        };
        if !self.insert(new) {
            self.full.store(true, Relaxed);
            return Added::Full;
        }
        self.note(key.under(guards));
        added
    }

    /// Such an edge is not to be looked at again.
    pub(super) fn settle(&self, key: Key, _: &Inside<'_>) {
        self.note(key);
    }

    /// Returns false without room.
    fn insert(&self, new: Edge) -> bool {
        let number = match self.free.load(Relaxed).checked_sub(1) {
            Some(free) => free,
            None => self.end.load(Relaxed),
        };
        let Some(first) = self.first.make(new.from as usize) else {
            return false;
        };
        if self.edges.make(number as usize).is_none() {
            return false;
        }
        if number == self.end.load(Relaxed) {
            self.end.store(number + 1, Relaxed);
        } else if let Some(edge) = self.edge(number) {
            self.free.store(edge.next, Relaxed);
        }
        let next = first.load(Relaxed);
        self.set(number, Edge { next, ..new });
        first.store(number + 1, Relaxed);
        self.count.fetch_add(1, Relaxed);
        true
    }

    /// Changes the edges in use by `f`, which returns false for one that does not count any more.
    pub(super) fn update(&self, mut f: impl FnMut(&mut Edge) -> bool, _: &Inside<'_>) {
        for number in 0..self.end.load(Relaxed) {
            let edge = self.edge(number).filter(|edge| edge.from != 0);
            if let Some(first) = edge.and_then(|edge| self.first.get(edge.from as usize)) {
                first.store(0, Relaxed);
            }
        }
        self.free.store(0, Relaxed);
        let mut count = 0;
        for number in 0..self.end.load(Relaxed) {
            let Some(mut edge) = self.edge(number) else {
                continue;
            };
            let stays = edge.from != 0 && f(&mut edge);
            let list = match self.first.make(edge.from as usize) {
                Some(first) if stays => first,
                _ => {
                    edge.from = 0;
                    &self.free
                }
            };
            count += u32::from(edge.from != 0);
            edge.next = list.load(Relaxed);
            list.store(number + 1, Relaxed);
            self.set(number, edge);
        }
        self.count.store(count, Relaxed);
        self.full.store(false, Relaxed);
    }

    /// Frees what leads from, to, or under a lock that is gone.
    pub(super) fn sweep(&self, alive: &impl Alive, inside: &Inside<'_>) {
        let counts = |edge: &mut Edge| {
            let [from, to] = [edge.from, edge.to].map(|node| alive.node(node));
            from && to && edge.is_alive(alive)
        };
        self.update(counts, inside);
    }

    /// Returns a cycle that the edge closes: `Some(None)` if each one that was found has a gate
    /// lock.
    fn circle(&self, new: &Edge, alive: &impl Alive) -> Option<Option<Temporary<Path>>> {
        let closes =
            |node, as_reader: bool| node == new.from && !(as_reader && new.from_how.is_shared());
        let (_, path) = self.way((new.to, new.to_how), closes, alive)?;
        let edges = path.edges();
        let is_gated = edges.iter().enumerate().any(|(number, edge)| {
            edge.excludes(new) || edges[..number].iter().any(|other| edge.excludes(other))
        });
        match is_gated {
            true => Some(self.ungated(new, alive, path)),
            false => Some(Some(path)),
        }
    }

    /// As [`leads`](Self::leads), for the edge's cycles: depth first, with no edge that excludes
    /// one before it, and a bound for the search.
    fn ungated(
        &self,
        new: &Edge,
        alive: &impl Alive,
        mut path: Temporary<Path>,
    ) -> Option<Temporary<Path>> {
        // The next edge to look at from each step, + 1.
        let mut next = [0u32; SHOWN];
        let first = |node: u32| (self.first.get(node as usize)).map_or(0, |it| it.load(Relaxed));
        let mut length = 0;
        next[0] = first(new.to);
        for _ in 0..STEPS {
            let Some(edge) = next[length].checked_sub(1).and_then(|at| self.edge(at)) else {
                length = length.checked_sub(1)?;
                continue;
            };
            next[length] = edge.next;
            let last = length.checked_sub(1).map_or(new, |last| &path.edges[last]);
            let before = &path.edges[..length];
            let is_weak = last.to_how.is_recursive() && edge.from_how.is_shared();
            if is_weak
                || edge.to == new.to
                || !alive.node(edge.to)
                || !edge.is_alive(alive)
                || before
                    .iter()
                    .any(|one| one.to == edge.to || one.excludes(&edge))
                || edge.excludes(new)
            {
                continue;
            }
            let ends = edge.to == new.from;
            if ends && edge.to_how.is_recursive() && new.from_how.is_shared() {
                continue;
            }
            path.edges[length] = edge;
            if ends {
                path.length = length + 1;
                return Some(path);
            }
            if length + 1 < SHOWN {
                length += 1;
                next[length] = first(edge.to);
            }
        }
        None
    }

    /// Finds a strong path from a class that is requested as `start` says to the first node for
    /// which `is_end` is true. Returns that node and the path. `is_end` is passed each node with a
    /// path to it, and whether it was only reached as a recursive reader; perhaps a node in both
    /// modes.
    pub(super) fn leads(
        &self,
        start: (u32, How),
        is_end: impl FnMut(u32, bool) -> bool,
        alive: &impl Alive,
        _: &Inside<'_>,
    ) -> Option<(u32, Temporary<Path>)> {
        self.way(start, is_end, alive)
    }

    fn reached(&self, state: State) -> Option<&Reached> {
        self.reached[state as usize & 1].make(state as usize >> 1)
    }

    fn queue(&self, place: usize) -> Option<&AtomicU32> {
        self.queue[place & 1].make(place >> 1)
    }

    /// As [`leads`](Self::leads). Breadth first: the path is a shortest one. Without memory for the
    /// search there is none.
    fn way(
        &self,
        (node, how): (u32, How),
        mut is_end: impl FnMut(u32, bool) -> bool,
        alive: &impl Alive,
    ) -> Option<(u32, Temporary<Path>)> {
        let search = self.search.load(Relaxed).wrapping_add(1).max(1);
        self.search.store(search, Relaxed);
        let is_reached = |state: State| {
            let reached = self.reached(state)?;
            Some(reached.search.load(Relaxed) == search)
        };
        let start = node << 1 | u32::from(how.is_recursive());
        let (mut head, mut tail) = (0, 1);
        self.queue(0)?.store(start, Relaxed);
        self.reached(start)?.search.store(search, Relaxed);
        while head < tail {
            let state = self.queue(head)?.load(Relaxed);
            head += 1;
            let as_reader = state & 1 != 0;
            for (number, edge) in self.out(state >> 1) {
                if as_reader && edge.from_how.is_shared() {
                    continue; // readers do not block this one
                }
                let recursive = edge.to_how.is_recursive();
                let at = edge.to << 1 | u32::from(recursive);
                // The search has been here with a request that waits behind everything, which
                // reaches all that this one can.
                if is_reached(at)? || is_reached(at & !1)? {
                    continue;
                }
                if !alive.node(edge.to) || !edge.is_alive(alive) {
                    continue;
                }
                let reached = self.reached(at)?;
                reached.search.store(search, Relaxed);
                reached.by.store(number, Relaxed);
                reached.from.store(state, Relaxed);
                if is_end(edge.to, recursive) {
                    return Some((edge.to, self.path(at, start)?));
                }
                self.queue(tail)?.store(at, Relaxed);
                tail += 1;
            }
        }
        None
    }

    /// Returns the path from `start` to `end`, from the tables of the search.
    fn path(&self, end: State, start: State) -> Option<Temporary<Path>> {
        let mut path = Temporary::<Path>::new()?;
        let mut state = end;
        while state != start {
            path.length += 1;
            state = self.reached(state)?.from.load(Relaxed);
        }
        let (mut state, mut index) = (end, path.length);
        while state != start {
            index -= 1;
            let reached = self.reached(state)?;
            if let Some(place) = path.edges.get_mut(index) {
                *place = self.edge(reached.by.load(Relaxed))?;
            }
            state = reached.from.load(Relaxed);
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests;

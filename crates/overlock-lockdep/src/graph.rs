//! The order in which classes were taken: a directed graph.
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
//! And it has its *threads*. A deadlock has a thread at each of its edges. So two edges are no part
//! of one if the same thread alone has made both. Nor are they if each thread of the one had ended
//! when those of the other began. A thread that makes a known edge for the first time is looked at
//! as a new edge is, unless two older ones that exist still have made it: they meet all that it
//! meets.
//!
//! A strong cycle without such a reason is reported. The edge that would close it is not added, so
//! one mistake is not reported again by all that follows from it.

mod edge;
mod known;
mod search;

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::class::Nodes;
use super::gate::Inside;
use super::lives::ANY;
use crate::mapped::{Chunks, Mapped, Temporary, Zeroed};

use edge::Link;
pub(super) use edge::{Edge, GUARDS, Key, Reason, guard, summand};
use search::{Circle, Reached};
pub(super) use search::{Path, STEPS};

/// The most guarded edges from one class to another.
const SIGHTINGS: usize = 6;

/// Capacity for what is known of edges; a power of two.
const KNOWN: usize = 1 << if cfg!(miri) { 10 } else { 20 };

/// Capacity for edges, in thousands.
const EDGE_CHUNKS: usize = if cfg!(miri) { 4 } else { 128 };

/// The parts of the graph that still count.
pub(super) trait Alive {
    fn node(&self, node: u32) -> bool;
    fn guard(&self, number: u64) -> bool;
}

/// Outcome of adding an edge.
pub(super) enum Added {
    /// It is in the graph, and closes no cycle, or nothing was to be added.
    Fine,
    /// No cycle that it closes can happen. With the shortest.
    Harmless(Reason, Temporary<Path>),
    /// It closes a cycle with these edges, which lead from its end to its beginning.
    Circle(Found),
    Full,
}

/// A cycle to report.
pub(super) struct Found {
    /// Without its last edge.
    pub(super) path: Temporary<Path>,
    /// Perhaps it cannot happen: the search for one that can was given up.
    pub(super) is_unknown: bool,
    /// How many of its edges had closed a cycle that was counted, for the sake of its threads.
    pub(super) were_alone: u32,
}

struct Slot(UnsafeCell<Edge>);

// SAFETY: only threads inside the gate touch what is in it.
unsafe impl Sync for Slot {}

// SAFETY: zero bytes are a valid value of each field: a free place.
unsafe impl Zeroed for Slot {}

/// Only the atomic fields are touched outside of the gate.
pub(super) struct Graph {
    /// Keys of edges that add nothing: a hash set, emptied when it is full.
    known: Mapped<[AtomicU64; KNOWN]>,
    /// Beside them, for [`Key::place`], the edge + 1. It may be another's by now.
    places: Mapped<[AtomicU32; KNOWN]>,
    known_count: AtomicU32,
    /// Whether it was emptied: an edge may be in the graph and not there.
    forgot: AtomicBool,
    /// Edges in use; places that were ever used; the first free one of them, + 1.
    count: AtomicU32,
    end: AtomicU32,
    free: AtomicU32,
    full: AtomicBool,
    /// Whether there may be cycles, which cannot happen.
    has_cycles: AtomicBool,
    /// The first edge out of each node, + 1.
    first: Nodes<AtomicU32>,
    edges: Chunks<Slot, EDGE_CHUNKS>,
    reached: [Nodes<Reached>; 2],
    queue: [Nodes<AtomicU32>; 2],
    search: AtomicU32,
}

impl Graph {
    pub(super) const fn new() -> Graph {
        Graph {
            known: Mapped::new(),
            places: Mapped::new(),
            known_count: AtomicU32::new(0),
            forgot: AtomicBool::new(false),
            count: AtomicU32::new(0),
            end: AtomicU32::new(0),
            free: AtomicU32::new(0),
            full: AtomicBool::new(false),
            has_cycles: AtomicBool::new(false),
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

    /// Returns the little of an edge that a search needs to pass it by.
    fn link(&self, number: u32) -> Option<Link> {
        let edge = self.edges.get(number as usize)?.0.get();
        // SAFETY: as in `edge`; the reference ends here.
        Some(Link::of(unsafe { &*edge }))
    }

    /// Returns the edges out of a node, the newest first.
    fn out(&self, node: u32) -> impl Iterator<Item = (u32, Link)> {
        let first = self.first.get(node as usize);
        let mut next = first.map_or(0, |first| first.load(Relaxed));
        std::iter::from_fn(move || {
            let number = next.checked_sub(1)?;
            let link = self.link(number)?;
            next = link.next;
            Some((number, link))
        })
    }

    /// A thread makes an edge that others have made before, and no cycle of its can happen for the
    /// sake of this thread alone: notes it, and returns true.
    pub(super) fn join(&self, new: &Edge, key: Key, guards: u64, _: &Inside<'_>) -> bool {
        let Some((number, edge)) = self.same(new, key, guards) else {
            return false;
        };
        if self.has_cycles.load(Relaxed) && !edge.covers(new.life()) {
            return false;
        }
        self.made_by(number, edge, new.life(), key.under(guards));
        true
    }

    /// Notes a thread that has made an edge.
    fn made_by(&self, number: u32, mut edge: Edge, life: u32, key: Key) {
        edge.is_made_by(life);
        self.set(number, edge);
        self.note(if edge.is_by(ANY) { key } else { key.by(life) });
    }

    /// Adds an edge, unless it closes a cycle that is reported. `guards` is the sum of its guards.
    pub(super) fn add(
        &self,
        mut new: Edge,
        key: Key,
        guards: u64,
        alive: &impl Alive,
        inside: &Inside<'_>,
    ) -> Added {
        let life = new.life();
        if self.knows(key, guards, life) {
            return Added::Fine; // another thread was faster
        }
        let mut same = self.same(&new, key, guards);
        // Whether the new one closes no cycle that could happen and was not looked at.
        let mut is_covered = same.is_some_and(|(_, edge)| edge.covers(life));
        let is_known = self.has(key.place()) || self.has(key.guarded());
        if same.is_none() && (is_known || self.forgot.load(Relaxed)) {
            let mut sightings = 0;
            let kind = Link::of(&new);
            for (number, _) in self.out(new.from).filter(|(_, link)| link.is_of(&kind)) {
                let Some(edge) = self.edge(number).filter(|edge| edge.is_alive(alive)) else {
                    continue;
                };
                if edge.implies(&new) && edge.is_by(life) {
                    let under = key.under(guards);
                    self.note(if edge.is_by(ANY) {
                        under
                    } else {
                        under.by(life)
                    });
                    return Added::Fine;
                }
                is_covered |= edge.implies(&new) && edge.covers(life);
                if edge.implies(&new) && new.implies(&edge) {
                    self.note_place(number, key, guards); // it was forgotten
                    same = Some((number, edge));
                }
                sightings += 1;
            }
            if same.is_none() && guards != 0 && sightings >= SIGHTINGS {
                self.note(key.crowded());
                return Added::Fine;
            }
        }
        let circle = match same.is_some() {
            _ if is_covered => Circle::None,
            true if !self.has_cycles.load(Relaxed) => Circle::None,
            true => self.circle_again(&new, alive),
            false => self.circle(&new, alive),
        };
        let harmless = match circle {
            Circle::Found(path) => return self.found(path, false, same, inside),
            Circle::Unknown(path) => return self.found(path, true, same, inside),
            Circle::Harmless(reason, path) => Some((reason, path)),
            Circle::None => None,
        };
        if let Some((number, edge)) = same {
            self.made_by(number, edge, life, key.under(guards));
            return Added::Fine;
        }
        if let Some((reason, _)) = harmless {
            self.has_cycles.store(true, Relaxed);
            new.is_alone = reason == Reason::Threads;
        }
        let Some(number) = self.insert(new) else {
            self.full.store(true, Relaxed);
            return Added::Full;
        };
        self.note_place(number, key, guards);
        self.note(key.under(guards).by(life));
        match harmless {
            Some((reason, path)) => Added::Harmless(reason, path),
            None => Added::Fine,
        }
    }

    /// A cycle is to be reported; its last edge is not in the graph afterwards.
    fn found(
        &self,
        path: Temporary<Path>,
        is_unknown: bool,
        last: Option<(u32, Edge)>,
        inside: &Inside<'_>,
    ) -> Added {
        let mut were_alone = 0;
        for edge in path.edges().iter().filter(|edge| edge.is_alone) {
            let is_alone = false;
            self.set(edge.place, Edge { is_alone, ..*edge });
            were_alone += u32::from(!edge.is_early);
        }
        if let Some((number, edge)) = last {
            were_alone += u32::from(edge.is_alone && !edge.is_early);
            self.update(|edge| edge.place != number, inside);
        }
        Added::Circle(Found {
            path,
            is_unknown,
            were_alone,
        })
    }

    /// Such an edge is not to be looked at again.
    pub(super) fn settle(&self, key: Key, _: &Inside<'_>) {
        self.note(key);
    }

    /// Returns its number. `None` without room.
    fn insert(&self, new: Edge) -> Option<u32> {
        let number = match self.free.load(Relaxed).checked_sub(1) {
            Some(free) => free,
            None => self.end.load(Relaxed),
        };
        let first = self.first.make(new.from as usize)?;
        self.edges.make(number as usize)?;
        if number == self.end.load(Relaxed) {
            self.end.store(number + 1, Relaxed);
        } else if let Some(edge) = self.edge(number) {
            self.free.store(edge.next, Relaxed);
        }
        let next = first.load(Relaxed);
        let place = number;
        self.set(number, Edge { place, next, ..new });
        first.store(number + 1, Relaxed);
        self.count.fetch_add(1, Relaxed);
        Some(number)
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
}

#[cfg(test)]
mod tests;

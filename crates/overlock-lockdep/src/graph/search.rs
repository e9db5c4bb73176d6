//! Searches for ways back through the graph.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::super::class;
use super::super::gate::Inside;
use super::super::site::How;
use super::edge::{Edge, Reason};
use super::{Added, Alive, Found, Graph};
use crate::mapped::{Temporary, Zeroed};

/// The most edges of a cycle that a report shows.
pub(in super::super) const SHOWN: usize = 16;

/// The most steps of the search for a cycle that can happen, where the shortest one cannot.
pub(in super::super) const STEPS: usize = 4096;

/// The cycles that an edge closes.
pub(super) enum Circle {
    None,
    /// None that can happen, with the shortest.
    Harmless(Reason, Temporary<Path>),
    Found(Temporary<Path>),
    /// Perhaps none that can happen: the search has given up. With the shortest.
    Unknown(Temporary<Path>),
}

pub(in super::super) struct Path {
    edges: [Edge; SHOWN],
    length: usize,
}

// SAFETY: no edges are a path, and zero bytes a valid value of each edge's fields.
unsafe impl Zeroed for Path {}

impl Path {
    /// In order.
    pub(in super::super) fn edges(&self) -> &[Edge] {
        &self.edges[..self.length.min(SHOWN)]
    }

    pub(in super::super) fn length(&self) -> usize {
        self.length
    }
}

/// A state of the search: a node, and whether it was only reached as a recursive reader (the low
/// bit).
type State = u32;

/// Of a state.
#[derive(Default)]
pub(super) struct Reached {
    /// The search that last reached it, by which edge and from which state.
    search: AtomicU32,
    by: AtomicU32,
    from: AtomicU32,
}

// SAFETY: zero bytes are a valid value of each field.
unsafe impl Zeroed for Reached {}

impl Graph {
    /// Returns what the edge closes.
    pub(super) fn circle(&self, new: &Edge, alive: &impl Alive) -> Circle {
        let any = |_: &Edge| true;
        let Some(path) = self.back(new, any, alive) else {
            return Circle::None;
        };
        let Some(reason) = excluded(new, path.edges()) else {
            return Circle::Found(path);
        };
        // First without the edges that no other cycle with this one can have.
        let Some(other) = self.back(new, |edge| edge.excludes(new).is_none(), alive) else {
            return Circle::Harmless(reason, path);
        };
        match excluded(new, other.edges()) {
            None => Circle::Found(other),
            Some(_) => self.search_all(new, alive, path, reason),
        }
    }

    /// As [`circle`](Self::circle), for an edge in the graph that one more thread makes. The cycles
    /// that cannot happen are known.
    pub(super) fn circle_again(&self, new: &Edge, alive: &impl Alive) -> Circle {
        // Of the edges whose threads the new one does not meet, none is part of another cycle.
        match self.back(new, |edge| edge.excludes(new).is_none(), alive) {
            Some(_) => self.circle(new, alive),
            None => Circle::None,
        }
    }

    /// Returns a shortest way from the edge's end to its beginning, of the edges that may be used.
    pub(super) fn back(
        &self,
        new: &Edge,
        may: impl Fn(&Edge) -> bool,
        alive: &impl Alive,
    ) -> Option<Temporary<Path>> {
        let closes =
            |node, as_reader: bool| node == new.from && !(as_reader && new.from_how.is_shared());
        let (_, path) = self.way((new.to, new.to_how), may, closes, alive)?;
        Some(path)
    }

    /// As [`circle`](Self::circle): depth first, with no edge that excludes one before it, and a
    /// bound for the search.
    fn search_all(
        &self,
        new: &Edge,
        alive: &impl Alive,
        shortest: Temporary<Path>,
        reason: Reason,
    ) -> Circle {
        let Some(mut path) = Temporary::<Path>::new() else {
            return Circle::Unknown(shortest);
        };
        // The next edge to look at from each step, + 1.
        let mut next = [0u32; SHOWN];
        let first = |node: u32| (self.first.get(node as usize)).map_or(0, |it| it.load(Relaxed));
        let (mut length, mut is_cut) = (0, false);
        next[0] = first(new.to);
        for _ in 0..STEPS {
            let at = next[length].checked_sub(1);
            let Some((at, link)) = at.and_then(|at| Some((at, self.link(at)?))) else {
                match length.checked_sub(1) {
                    Some(before) => length = before,
                    None if is_cut => break,
                    None => return Circle::Harmless(reason, shortest),
                }
                continue;
            };
            next[length] = link.next;
            let last = length.checked_sub(1).map_or(new, |last| &path.edges[last]);
            let before = &path.edges[..length];
            let is_weak = last.to_how.is_recursive() && link.from_how.is_shared();
            if is_weak || link.to == new.to || before.iter().any(|one| one.to == link.to) {
                continue;
            }
            let Some(edge) = self.edge(at) else { continue };
            if !alive.node(edge.to)
                || !edge.is_alive(alive)
                || edge.excludes(new).is_some()
                || before.iter().any(|one| one.excludes(&edge).is_some())
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
                return Circle::Found(path);
            }
            if length + 1 < SHOWN {
                length += 1;
                next[length] = first(edge.to);
            } else {
                is_cut = true;
            }
        }
        Circle::Unknown(shortest)
    }

    /// A thread of another life than theirs uses a lock of this class: takes an edge out of the
    /// graph that has closed a cycle with this class while there was one thread, and returns it.
    pub(in super::super) fn take_early(
        &self,
        class: u32,
        life: u32,
        alive: &impl Alive,
        inside: &Inside<'_>,
    ) -> Option<(Edge, Found)> {
        let all = (0..self.end.load(Relaxed)).filter_map(|number| self.edge(number));
        let closing = all.filter(|edge| edge.from != 0 && edge.is_early && edge.is_alone);
        let others = closing.filter(|edge| !edge.is_by(life) && edge.is_alive(alive));
        let is_of = |edge: &Edge| class::family(edge.from) == class;
        let mut cycles = others.filter_map(|last| {
            let path = self.back(&last, |_| true, alive)?;
            let has = is_of(&last) || path.edges().iter().any(is_of);
            let is_gated = excluded(&last, path.edges()) == Some(Reason::Gate);
            (has && !is_gated).then_some((last, path))
        });
        let (last, path) = cycles.next()?;
        match self.found(path, false, Some((last.place, last)), inside) {
            Added::Circle(found) => Some((last, found)),
            _ => None,
        }
    }

    /// Finds a strong path from a class that is requested as `start` says to the first node for
    /// which `is_end` is true. Returns that node and the path. `is_end` is passed each node with a
    /// path to it, and whether it was only reached as a recursive reader; perhaps a node in both
    /// modes.
    pub(in super::super) fn leads(
        &self,
        start: (u32, How),
        is_end: impl FnMut(u32, bool) -> bool,
        alive: &impl Alive,
        _: &Inside<'_>,
    ) -> Option<(u32, Temporary<Path>)> {
        self.way(start, |_| true, is_end, alive)
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
        may: impl Fn(&Edge) -> bool,
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
            for (number, link) in self.out(state >> 1) {
                if as_reader && link.from_how.is_shared() {
                    continue; // readers do not block this one
                }
                let recursive = link.to_how.is_recursive();
                let at = link.to << 1 | u32::from(recursive);
                // The search has been here with a request that waits behind everything, which
                // reaches all that this one can.
                if is_reached(at)? || is_reached(at & !1)? {
                    continue;
                }
                let edge = self.edge(number)?;
                if !alive.node(edge.to) || !edge.is_alive(alive) || !may(&edge) {
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

/// Why a cycle of these edges cannot happen.
fn excluded(new: &Edge, edges: &[Edge]) -> Option<Reason> {
    let pairs = edges.iter().enumerate().flat_map(|(number, edge)| {
        let before = edges[..number].iter();
        before.chain([new]).filter_map(|other| edge.excludes(other))
    });
    // A gate lock says more.
    pairs.min_by_key(|reason| *reason == Reason::Threads)
}

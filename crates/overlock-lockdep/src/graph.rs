//! The order in which classes were taken: a directed graph, and the search for a way back.
//!
//! An edge says that its second class was requested while its first was held, and in which modes:
//! whether the holder would have kept readers out, and whether the request waits behind writers
//! that only wait. (The kernel publishes this as its four kinds of dependencies, `-(EN)->` and so
//! on.) Two edges in a row can be part of a deadlock unless the first ends in a recursive reader
//! and the second begins in a reader: readers do not block such a reader. A path without such a
//! pair, its ends included, is *strong*. A strong cycle is reported.
//!
//! An edge that would close a cycle is reported and not added, so the graph has no strong cycle. So
//! one mistake is not reported again by all that follows from it.

use crate::mapped::Zeroed;
use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::gate::Inside;
use super::site::{How, Site};
use super::trace::Trace;

/// The most edges of a cycle that a report shows.
pub(super) const SHOWN: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) from_how: How,
    pub(super) to_how: How,
    /// The places where `from` was acquired and `to` was requested.
    pub(super) sites: [Site; 2],
    /// The callers of the second place.
    pub(super) trace: Trace,
    /// The next edge out of `from`, + 1.
    next: u32,
}

impl Edge {
    pub(super) fn new(from: (u16, How, Site), to: (u16, How, Site), trace: Trace) -> Edge {
        Edge {
            from: from.0,
            to: to.0,
            from_how: from.1,
            to_how: to.1,
            sites: [from.2, to.2],
            trace,
            next: 0,
        }
    }
}

/// The edge's identity in the search.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u32);

impl Key {
    #[inline]
    pub(super) fn new(from: u16, from_how: How, to: u16, to_how: How) -> Key {
        let kind = u32::from(from_how.is_shared()) << 1 | u32::from(to_how.is_recursive());
        // The top bit distinguishes a key from an empty place; classes have 14 bits.
        Key(1 << 31 | kind << 28 | u32::from(from) << 14 | u32::from(to))
    }
}

/// Outcome of adding an edge.
pub(super) enum Added {
    /// It is in the graph, and closes no cycle.
    Fine,
    /// It closes a cycle with these edges, which lead from its end to its beginning.
    Circle(Path),
    Full,
}

pub(super) struct Path {
    edges: [u32; SHOWN],
    length: usize,
}

impl Path {
    /// In order; the numbers are for [`Graph::edge`].
    pub(super) fn edges(&self) -> &[u32] {
        &self.edges[..self.length.min(SHOWN)]
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }
}

/// A state of the search: a class, and whether it was only reached as a recursive reader (the low
/// bit).
type State = u32;

struct Scratch<const NODES: usize> {
    /// The search that last reached a state, by which edge and from which state.
    reached: [[u32; 2]; NODES],
    by: [[u32; 2]; NODES],
    from: [[State; 2]; NODES],
    queue: [[State; 2]; NODES],
    search: u32,
}

pub(super) struct Graph<const NODES: usize, const EDGES: usize, const KNOWN: usize> {
    /// All keys that need no second check; a hash set.
    known: [AtomicU32; KNOWN],
    known_count: AtomicU32,
    /// Edges in use. They do not change.
    count: AtomicU32,
    full: AtomicU32,
    /// The first edge out of each class, + 1.
    first: UnsafeCell<[u32; NODES]>,
    edges: UnsafeCell<[Edge; EDGES]>,
    scratch: UnsafeCell<Scratch<NODES>>,
}

// SAFETY: only a thread inside the gate writes what is not atomic. Of that, other threads only read
// edges whose number they got from such a thread.
unsafe impl<const NODES: usize, const EDGES: usize, const KNOWN: usize> Sync
    for Graph<NODES, EDGES, KNOWN>
{
}

// SAFETY: zero bytes are a valid value of each field: an empty graph.
unsafe impl<const NODES: usize, const EDGES: usize, const KNOWN: usize> Zeroed
    for Graph<NODES, EDGES, KNOWN>
{
}

impl<const NODES: usize, const EDGES: usize, const KNOWN: usize> Graph<NODES, EDGES, KNOWN> {
    /// Returns an edge, of those that there is room for.
    fn place(&self, number: usize) -> *mut Edge {
        self.edges.get().cast::<Edge>().wrapping_add(number)
    }

    pub(super) fn edges(&self) -> usize {
        self.count.load(Relaxed) as usize
    }

    /// Whether this edge is known: it adds nothing.
    #[inline]
    pub(super) fn knows(&self, key: Key) -> bool {
        self.find(key).is_ok() || self.full.load(Relaxed) != 0
    }

    /// Returns its place in the set, taken or free.
    #[inline]
    fn find(&self, key: Key) -> Result<(), usize> {
        let mut place = key.0.wrapping_mul(0x9e37_79b1) as usize >> 8;
        loop {
            place %= KNOWN;
            // Relaxed: the presence of the key is the only data.
            match self.known[place].load(Relaxed) {
                0 => return Err(place),
                seen if seen == key.0 => return Ok(()),
                _ => place += 1,
            }
        }
    }

    /// Returns false if the set is full. A quarter stays free, so that searches end.
    fn note(&self, key: Key) -> bool {
        let count = self.known_count.load(Relaxed);
        if count as usize >= KNOWN / 4 * 3 {
            return false;
        }
        if let Err(place) = self.find(key) {
            self.known[place].store(key.0, Relaxed);
            self.known_count.store(count + 1, Relaxed);
        }
        true
    }

    /// # Safety
    ///
    /// `number` comes from a [`Path`] of this graph.
    pub(super) unsafe fn edge(&self, number: u32) -> Edge {
        // SAFETY: such an edge is complete, and never changes.
        unsafe { *self.place(number as usize) }
    }

    /// Adds an edge, unless it closes a cycle.
    pub(super) fn add(&self, new: Edge, alive: impl Fn(u16) -> bool, _: &Inside<'_>) -> Added {
        let key = Key::new(new.from, new.from_how, new.to, new.to_how);
        if self.knows(key) {
            return Added::Fine; // another thread was faster
        }
        let count = self.count.load(Relaxed) as usize;
        if count == EDGES || !self.note(key) {
            self.full.store(1, Relaxed);
            return Added::Full;
        }
        // SAFETY: the caller is inside, and nobody else has a reference.
        let first = unsafe { &mut *self.first.get() };
        let closes =
            |class, as_reader: bool| class == new.from && !(as_reader && new.from_how.is_shared());
        if let Some((_, path)) = self.way((new.to, new.to_how), first, closes, alive) {
            // Once for each pair of classes, in any modes.
            for from_how in [How::EXCLUSIVE, How::SHARED] {
                for to_how in [How::EXCLUSIVE, How::SHARED_RECURSIVE] {
                    self.note(Key::new(new.from, from_how, new.to, to_how));
                }
            }
            return Added::Circle(path);
        }
        let head = &mut first[usize::from(new.from)];
        // SAFETY: below EDGES, and not in use yet.
        unsafe {
            *self.place(count) = Edge { next: *head, ..new };
        }
        *head = count as u32 + 1;
        // Last, in case of a fork in between: an edge that is counted is complete.
        self.count.store(count as u32 + 1, Relaxed);
        Added::Fine
    }

    /// Finds a strong path from a class that is requested as `start` says to the first class for
    /// which `is_end` is true. Returns that class and the path. `is_end` is passed each class with
    /// a path to it, and whether it was only reached as a recursive reader; perhaps a class in both
    /// modes.
    pub(super) fn leads(
        &self,
        start: (u16, How),
        is_end: impl FnMut(u16, bool) -> bool,
        alive: impl Fn(u16) -> bool,
        _: &Inside<'_>,
    ) -> Option<(u16, Path)> {
        // SAFETY: the caller is inside, and nobody else has a reference that is not shared.
        let first = unsafe { &*self.first.get() };
        self.way(start, first, is_end, alive)
    }

    /// As [`leads`](Self::leads). Breadth first: the path is a shortest one.
    fn way(
        &self,
        (class, how): (u16, How),
        first: &[u32; NODES],
        mut is_end: impl FnMut(u16, bool) -> bool,
        alive: impl Fn(u16) -> bool,
    ) -> Option<(u16, Path)> {
        // SAFETY: the caller is inside, and this is the only reference.
        let scratch = unsafe { &mut *self.scratch.get() };
        scratch.search += 1;
        let search = scratch.search;
        let start = u32::from(class) << 1 | u32::from(how.is_recursive());
        let queue = scratch.queue.as_flattened_mut();
        let reached = scratch.reached.as_flattened_mut();
        let by = scratch.by.as_flattened_mut();
        let from = scratch.from.as_flattened_mut();
        let (mut head, mut tail) = (0, 1);
        queue[0] = start;
        reached[start as usize] = search;
        while head < tail {
            let state = queue[head];
            head += 1;
            let as_reader = state & 1 != 0;
            let mut next = first[state as usize >> 1];
            while next != 0 {
                let number = next - 1;
                // SAFETY: edges in the lists are in use.
                let edge = unsafe { &*self.place(number as usize) };
                next = edge.next;
                if as_reader && edge.from_how.is_shared() {
                    continue; // readers do not block this one
                }
                let recursive = edge.to_how.is_recursive();
                let at = u32::from(edge.to) << 1 | u32::from(recursive);
                // The search has been here with a request that waits behind everything, which
                // reaches all that this one can.
                if reached[at as usize] == search || reached[at as usize & !1] == search {
                    continue;
                }
                if !alive(edge.to) {
                    continue;
                }
                reached[at as usize] = search;
                by[at as usize] = number;
                from[at as usize] = state;
                if is_end(edge.to, recursive) {
                    return Some((edge.to, path(at, start, by, from)));
                }
                queue[tail] = at;
                tail += 1;
            }
        }
        None
    }
}

/// Returns the path from `start` to `end`, from the tables of the search.
fn path(end: State, start: State, by: &[u32], from: &[State]) -> Path {
    let mut path = Path {
        edges: [0; SHOWN],
        length: 0,
    };
    let mut state = end;
    while state != start {
        path.length += 1;
        state = from[state as usize];
    }
    let (mut state, mut index) = (end, path.length);
    while state != start {
        index -= 1;
        if let Some(place) = path.edges.get_mut(index) {
            *place = by[state as usize];
        }
        state = from[state as usize];
    }
    path
}

#[cfg(test)]
mod tests;

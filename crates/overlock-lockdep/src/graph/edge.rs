//! An edge of the graph, and its identity.

use super::super::class::ClassId;
use super::super::lives::{self, ANY};
use super::super::site::{How, Site};
use super::super::thread::Held;
use super::super::trace::Trace;
use super::Alive;

/// The most guards of an edge that are kept, the oldest ones.
pub(in super::super) const GUARDS: usize = 6;

/// The most threads of an edge that are kept: of more that exist at a time, any can have made it.
const THREADS: usize = 4;

#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Edge {
    /// The nodes; 0 for a free place.
    pub(in super::super) from: u32,
    pub(in super::super) to: u32,
    pub(in super::super) from_how: How,
    pub(in super::super) to_how: How,
    /// The places where `from` was acquired and `to` was requested.
    pub(in super::super) sites: [Site; 2],
    /// The locks' addresses and numbers.
    pub(in super::super) locks: [usize; 2],
    pub(in super::super) numbers: [u64; 2],
    /// The thread that made it first, as the kernel names it.
    pub(in super::super) thread: u32,
    /// The [lives](lives) of those that made it, [`ANY`], or 0.
    pub(super) threads: [u32; THREADS],
    /// It was the last of a cycle that was not reported, for the sake of its threads.
    pub(in super::super) is_alone: bool,
    /// Only one thread had used a lock when it was made.
    pub(in super::super) is_early: bool,
    /// 0 for none.
    pub(in super::super) guards: [u64; GUARDS],
    /// The callers of the second place.
    pub(in super::super) trace: Trace,
    /// Its place in the table.
    pub(super) place: u32,
    /// The next edge out of `from`, + 1; of a free place the next free one.
    pub(super) next: u32,
}

impl Edge {
    /// Made by the thread of that number and life.
    pub(in super::super) fn new(nodes: [u32; 2], ends: [&Held; 2], thread: u32, life: u32) -> Edge {
        Edge {
            from: nodes[0],
            to: nodes[1],
            from_how: ends[0].how,
            to_how: ends[1].how,
            sites: ends.map(|held| held.site),
            locks: ends.map(|held| held.lock),
            numbers: ends.map(|held| held.class.number()),
            thread,
            threads: [life, 0, 0, 0],
            is_alone: false,
            is_early: false,
            guards: [0; GUARDS],
            trace: Trace::NONE,
            place: 0,
            next: 0,
        }
    }

    /// Its first lock, as the thread held it, and the second, as it was requested.
    pub(in super::super) fn ends(&self) -> [Held; 2] {
        let nodes = [self.from, self.to];
        let hows = [self.from_how, self.to_how];
        [0, 1].map(|end| Held {
            lock: self.locks[end],
            class: ClassId::new(nodes[end], self.numbers[end]),
            how: hows[end],
            site: self.sites[end],
        })
    }

    /// The life of the thread that made it first.
    pub(in super::super) fn life(&self) -> u32 {
        self.threads[0]
    }

    /// Whether that thread is known to have made it.
    pub(super) fn is_by(&self, life: u32) -> bool {
        self.threads.contains(&ANY) || self.threads.contains(&life)
    }

    /// Whether more than one thread is known to have made it.
    pub(in super::super) fn is_by_several(&self) -> bool {
        self.lives().count() > 1
    }

    /// One more thread makes it. Of threads that have ended, the last ones are kept: they meet all
    /// of the later threads that the others meet.
    pub(super) fn is_made_by(&mut self, life: u32) {
        if self.is_by(life) {
            return;
        }
        let place = (0..THREADS)
            .filter(|place| {
                self.threads[*place] == 0 || lives::ended(self.threads[*place]).is_some()
            })
            .min_by_key(|place| lives::ended(self.threads[*place]));
        match place {
            Some(place) => self.threads[place] = life,
            None => self.threads = [ANY, 0, 0, 0],
        }
    }

    /// Whether the edge says all that it would say with a thread of this life too, of the threads
    /// that there have been so far: each that the thread meets, one of these two meets as well.
    pub(super) fn covers(&self, life: u32) -> bool {
        self.is_by(ANY)
            || self
                .lives()
                .filter(|one| lives::is_around(*one, life))
                .count()
                > 1
    }

    fn lives(&self) -> impl Iterator<Item = u32> {
        self.threads.into_iter().filter(|life| *life != 0)
    }

    pub(super) fn guards(&self) -> impl Iterator<Item = u64> {
        self.guards.into_iter().filter(|guard| *guard != 0)
    }

    /// Returns all locks that its thread holds, as guards.
    fn keeps(&self) -> impl Iterator<Item = u64> {
        let own = guard(self.numbers[0], self.from_how);
        self.guards().chain([own]).filter(|lock| *lock != 0)
    }

    /// Why no threads can be at the two edges at a time.
    pub(super) fn excludes(&self, other: &Edge) -> Option<Reason> {
        let keeps_out = |one: u64, two: u64| number(one) == number(two) && one & two & READER == 0;
        if (self.keeps()).any(|one| other.keeps().any(|two| keeps_out(one, two))) {
            return Some(Reason::Gate);
        }
        let meets = |one| other.lives().any(|two| lives::meet(one, two));
        (!self.lives().any(meets)).then_some(Reason::Threads)
    }

    /// Whether all that it says follows from `other`, as far as guards go: it has fewer of them.
    pub(super) fn implies(&self, other: &Edge) -> bool {
        let is_one = |guard| {
            let mut others = other.guards();
            others.any(|held| held == guard || guard & READER != 0 && held == number(guard))
        };
        self.guards().all(is_one)
    }

    /// Whether all its guards still exist.
    pub(super) fn is_alive(&self, alive: &impl Alive) -> bool {
        self.guards().all(|guard| alive.guard(number(guard)))
    }

    pub(super) fn is_of(&self, other: &Edge) -> bool {
        Link::of(self).is_of(&Link::of(other))
    }
}

/// An edge out of a known node, for searches that pass many: a copy of all of it takes long.
pub(super) struct Link {
    pub(super) to: u32,
    pub(super) from_how: How,
    pub(super) to_how: How,
    pub(super) next: u32,
}

impl Link {
    #[inline]
    pub(super) fn of(edge: &Edge) -> Link {
        Link {
            to: edge.to,
            from_how: edge.from_how,
            to_how: edge.to_how,
            next: edge.next,
        }
    }

    #[inline]
    pub(super) fn is_of(&self, other: &Link) -> bool {
        self.to == other.to
            && self.from_how.is_shared() == other.from_how.is_shared()
            && self.to_how.is_recursive() == other.to_how.is_recursive()
    }
}

/// Why a cycle is no deadlock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Reason {
    /// One lock is held around two of its edges.
    Gate,
    /// Two of its edges were made by one thread alone, or by threads of which one had ended when
    /// the other began.
    Threads,
}

/// The identities of an edge in the set of those that are known.
#[derive(Clone, Copy)]
pub(in super::super) struct Key(pub(super) u64);

/// Odd, so that a product keeps all bits of its other factor.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl Key {
    /// The two are [units](super::class::ClassId::unit).
    #[inline]
    pub(in super::super) fn new(from: u64, from_how: How, to: u64, to_how: How) -> Key {
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
    pub(super) fn under(self, guards: u64) -> Key {
        match guards {
            0 => self,
            _ => Key::full((self.0 ^ guards).wrapping_mul(MIX)),
        }
    }

    /// The same edge, made by the thread of that life.
    #[inline]
    pub(super) fn by(self, life: u32) -> Key {
        match life {
            ANY => self,
            _ => Key::full((self.0 ^ u64::from(life) << 24).wrapping_mul(MIX)),
        }
    }

    /// The same edge, made by anybody: its place in the table is noted.
    #[inline]
    pub(super) fn place(self) -> Key {
        self.under(READER)
    }

    /// The same edge, made by anybody under any guards but none.
    #[inline]
    pub(super) fn guarded(self) -> Key {
        self.under(READER | 1)
    }

    /// The same edge, which was seen under too many different guards.
    #[inline]
    pub(super) fn crowded(self) -> Key {
        self.under(MIX)
    }
}

/// In a guard: it is held by a reader. The rest is its number.
pub(super) const READER: u64 = 1 << 62;

/// Returns a held lock as a guard; 0 if it is not known which lock it is.
#[inline]
pub(in super::super) fn guard(number: u64, how: How) -> u64 {
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
pub(in super::super) fn summand(guard: u64) -> u64 {
    let mixed = guard.wrapping_mul(MIX);
    mixed ^ mixed >> 31
}

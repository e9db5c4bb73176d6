//! Knowledge of edges: a hash set of their identities, which threads read outside of the gate.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::super::lives::ANY;
use super::edge::{Edge, Key};
use super::{Graph, KNOWN};

/// Returns the place of the key in the set, or if it is not there the place for it.
#[inline]
fn find(known: &[AtomicU64; KNOWN], key: Key) -> Result<usize, usize> {
    let mut place = (key.0 >> 20) as usize;
    loop {
        place %= KNOWN;
        // Relaxed: the presence of the key is the only data.
        match known[place].load(Relaxed) {
            0 => return Err(place),
            seen if seen == key.0 => return Ok(place),
            _ => place += 1,
        }
    }
}

impl Graph {
    /// Whether the edge, under guards of this sum and by a thread of this life, adds nothing.
    #[inline]
    pub(in super::super) fn knows(&self, key: Key, guards: u64, life: u32) -> bool {
        self.has(key.by(life))
            || life != ANY && self.has(key)
            || guards != 0 && self.knows_under(key, guards, life)
            || self.full.load(Relaxed)
    }

    #[inline]
    fn knows_under(&self, key: Key, guards: u64, life: u32) -> bool {
        let under = key.under(guards);
        self.has(under.by(life)) || life != ANY && self.has(under) || self.has(key.crowded())
    }

    #[inline]
    pub(super) fn has(&self, key: Key) -> bool {
        // Without memory for what is known, nothing is checked.
        (self.known.get()).is_none_or(|known| find(known, key).is_ok())
    }

    /// A quarter stays free, so that searches end.
    pub(super) fn note(&self, key: Key) {
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

    /// Notes where an edge is in the table.
    pub(super) fn note_place(&self, number: u32, key: Key, guards: u64) {
        let under = key.under(guards).place();
        self.note(under);
        if guards != 0 {
            self.note(key.guarded());
        }
        if let (Some(known), Some(places)) = (self.known.get(), self.places.get()) {
            if let Ok(place) = find(known, under) {
                places[place].store(number + 1, Relaxed);
            }
        }
    }

    /// Returns the edge that differs from this one in its threads alone, if it was noted.
    pub(super) fn same(&self, new: &Edge, key: Key, guards: u64) -> Option<(u32, Edge)> {
        let place = find(self.known.get()?, key.under(guards).place()).ok()?;
        let number = self.places.get()?[place].load(Relaxed).checked_sub(1)?;
        let edge = self.edge(number)?;
        let is_same = edge.from == new.from && edge.is_of(new);
        (is_same && edge.implies(new) && new.implies(&edge)).then_some((number, edge))
    }
}

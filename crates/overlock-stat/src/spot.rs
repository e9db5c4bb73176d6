//! Spots: entries of the table, for a lock or another object at a call site.
//!
//! A thread finds the spot before it acquires a lock, so that nobody waits for the walk through its
//! callers and for the look-up. The record of the acquisition then needs neither.

use core::sync::atomic::Ordering::Relaxed;

use overlock_shared::{Entry, NAMED, ObjectKind, Path, Place, Table, place};

use crate::Site;
use crate::objects::{Init, initialiser};
use crate::unwind::{self, From};
use crate::{modules, stacks, table, threads};

/// An object and a call site.
#[derive(Clone, Copy, Debug)]
pub struct Where {
    pub object: usize,
    pub kind: ObjectKind,
    /// The call's return address; 0 if that is not known.
    pub site: Site,
    /// The object's [mark](crate::objects::initialised); 0 if no call has initialised it.
    pub mark: u32,
}

/// The same with the number of its entry.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// [`NO_ENTRY`] without one.
    pub entry: u32,
    pub object: usize,
    pub site: Site,
    /// The number of the call's stack, from 1 on; 0 where that is not known.
    pub stack: u32,
}

/// Not the number of an entry: there is no table, or no room in it.
pub const NO_ENTRY: u32 = u32::MAX;

impl Spot {
    /// The spot of this object and call site. The call is found where it is 0.
    pub fn of(at: Where) -> Spot {
        let from = match at.site {
            0 => From::Outside,
            site => From::Site(site),
        };
        Spot::from(at, from, |_| initialiser(at.object, at.mark))
    }

    /// The spot of a lock with a name, at the call from the frame with the variable at `frame`.
    pub fn named(object: usize, kind: ObjectKind, name: &[u8], frame: usize) -> Spot {
        let at = Where {
            object,
            kind,
            site: 0,
            mark: 0,
        };
        Spot::from(at, From::Frame(frame), |table| match number(table, name) {
            0 => Init::default(),
            stack => Init {
                site: NAMED as usize,
                stack,
            },
        })
    }

    fn from(at: Where, from: From, init: impl FnOnce(&Table) -> Init) -> Spot {
        let mut spot = Spot {
            entry: NO_ENTRY,
            object: at.object,
            site: at.site,
            stack: 0,
        };
        let Some(table) = table::get() else {
            return spot;
        };
        threads::works(table);
        (spot.site, spot.stack) = stacks::of(table, from);
        let init = init(table);
        let found = find(table, &spot, at.kind, init).or_else(|| {
            // There may be room for all callers together.
            let (site, stack) = (spot.site, 0);
            find(
                table,
                &Spot {
                    site,
                    stack,
                    ..spot
                },
                at.kind,
                init,
            )
        });
        match found {
            Some(entry) => spot.entry = entry,
            None => _ = table.header.lost_entries.fetch_add(1, Relaxed),
        }
        spot
    }

    /// Its entry and the table.
    pub fn entry(&self) -> Option<(&'static Table, &'static Entry)> {
        let table = table::get()?;
        Some((table, table.entries.get(self.entry as usize)?))
    }
}

/// The number of a name, from 1 on; 0 where there is no room for it.
fn number(table: &Table, name: &[u8]) -> u32 {
    match place(&table.names, &words(name)) {
        None => 0,
        Some(Place::Known(index, _)) => index as u32 + 1,
        Some(Place::New(index, item)) => {
            item.text.set(name);
            table::show(&item.ready);
            index as u32 + 1
        }
    }
}

/// The name as words of a hash.
pub fn words(name: &[u8]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(name.chunks(8)) {
        let mut whole = [0; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_ne_bytes(whole);
    }
    words
}

const WORDS: usize = Path::MAX / 8;

/// The number of the entry.
fn find(table: &Table, spot: &Spot, kind: ObjectKind, init: Init) -> Option<u32> {
    // Variables have names. Of other objects those are alike that were initialised alike; without
    // such a call all that are acquired there. Those of one name are alike.
    let is_named = init.site == NAMED as usize;
    let own = match is_named || unwind::is_able() && !unwind::is_static(spot.object) {
        true => 0,
        false => spot.object,
    };
    let stacks = u64::from(spot.stack) << 32 | u64::from(init.stack);
    let words = [
        own as u64,
        kind as u64,
        spot.site as u64,
        init.site as u64,
        stacks,
    ];
    match place(&table.entries, &words)? {
        Place::Known(index, _) => Some(index as u32),
        Place::New(index, entry) => {
            entry.object.store(spot.object as u64, Relaxed);
            entry.site.store(spot.site as u64, Relaxed);
            entry.init.store(init.site as u64, Relaxed);
            entry.stack.store(spot.stack, Relaxed);
            entry.init_stack.store(init.stack, Relaxed);
            entry.kind.store(kind as u32, Relaxed);
            table::show(&entry.ready);
            stacks::has_entry();
            modules::read_if_unknown(table, spot.site);
            Some(index as u32)
        }
    }
}

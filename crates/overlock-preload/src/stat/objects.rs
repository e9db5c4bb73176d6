//! The call sites that initialised locks, by address: the report names locks without a symbol by
//! them.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::config;
use crate::site::Site;

/// The number of objects kept. Beyond that later ones replace others.
const OBJECTS: usize = 16384;

/// The number of places that are tried for an object.
const REACH: usize = 8;

#[derive(Debug)]
struct Object {
    address: AtomicUsize,
    init: AtomicUsize,
}

static KNOWN: [Object; OBJECTS] = [const {
    Object {
        address: AtomicUsize::new(0),
        init: AtomicUsize::new(0),
    }
}; OBJECTS];

fn near(address: usize) -> impl Iterator<Item = &'static Object> {
    let start = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    (0..REACH).map(move |step| &KNOWN[(start + step) % OBJECTS])
}

/// Records that the object is initialised at `site`, with statistics.
pub(crate) fn initialised(address: usize, site: Site) {
    if config::get().stat {
        note(address, site);
    }
}

/// Two threads that do this at the same place at the same time may leave a wrong site behind: a
/// wrong name in a report.
fn note(address: usize, site: Site) {
    let mine = near(address).find(|object| [0, address].contains(&object.address.load(Relaxed)));
    if let Some(object) = mine.or_else(|| near(address).nth(address >> 7 & (REACH - 1))) {
        object.init.store(site, Relaxed);
        object.address.store(address, Relaxed);
    }
}

/// Returns where the object was initialised; 0 if that is not known, as for a static one. The site
/// of a destroyed object stays: its last release may be recorded after its destruction.
pub(super) fn initialiser(address: usize) -> Site {
    let known = near(address).find(|object| object.address.load(Relaxed) == address);
    known.map_or(0, |object| object.init.load(Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_initialiser_is_known_and_old_ones_are_replaced() {
        note(0x1000, 7);
        note(0x1000, 8);
        assert_eq!(initialiser(0x1000), 8);
        assert_eq!(initialiser(0x1008), 0);
        for address in (0x10_0000..0x80_0000).step_by(40) {
            note(address, address + 1);
            assert_eq!(initialiser(address), address + 1);
        }
    }
}

//! Where locks were initialised, by their address: what names one that has no name of its own.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::config;
use crate::site::Site;

/// How many are kept. Beyond that the later ones take the places of others.
const OBJECTS: usize = 16384;

/// How many are looked at.
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

/// The object is initialised at `site`, which matters with statistics.
pub(crate) fn initialised(address: usize, site: Site) {
    if config::get().stat {
        note(address, site);
    }
}

/// Two threads that do this in one place at a time may leave a wrong site behind, which is a wrong
/// name in a report.
fn note(address: usize, site: Site) {
    let mine = near(address).find(|object| [0, address].contains(&object.address.load(Relaxed)));
    if let Some(object) = mine.or_else(|| near(address).nth(address >> 7 & (REACH - 1))) {
        object.init.store(site, Relaxed);
        object.address.store(address, Relaxed);
    }
}

/// Where it was initialised; 0 where that is not known, as of a static one. A destroyed object's
/// stays: its last release may be recorded after that.
pub(super) fn initialiser(address: usize) -> Site {
    let known = near(address).find(|object| object.address.load(Relaxed) == address);
    known.map_or(0, |object| object.init.load(Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_initialiser_is_known_and_room_is_made() {
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

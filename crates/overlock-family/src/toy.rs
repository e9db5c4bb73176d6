//! The family's tables of the platforms for unit tests.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::ptr;
use std::sync::Mutex;

use overlock_core::Platform;
use overlock_core::node::NodeId;
use overlock_core::toy::watch::Watch;
use overlock_core::toy::{SLOTS, Toy};

use crate::tables::{FamilyPlatform, Storage, Tables};

/// Tickets for locks, besides those of the threads: three fast queue spinlocks at a time.
pub(crate) const LOCK_TICKETS: usize = 6;

/// Those of a test, which its actors share, as they do its queue nodes.
fn of_test<P: Platform>(all: &Mutex<BTreeMap<usize, Tables<P>>>) -> Tables<P> {
    let test = ptr::from_ref(NodeId::new(0, 0).node::<P>()).addr();
    *all.lock().unwrap().entry(test).or_insert_with(|| {
        let storage = Box::<Storage<P, SLOTS, 4, LOCK_TICKETS>>::default();
        Tables::new(Box::leak(storage))
    })
}

impl FamilyPlatform for Toy {
    fn family_tables() -> Tables<Toy> {
        static ALL: Mutex<BTreeMap<usize, Tables<Toy>>> = Mutex::new(BTreeMap::new());
        of_test(&ALL)
    }
}

impl FamilyPlatform for Watch {
    fn family_tables() -> Tables<Watch> {
        static ALL: Mutex<BTreeMap<usize, Tables<Watch>>> = Mutex::new(BTreeMap::new());
        of_test(&ALL)
    }
}

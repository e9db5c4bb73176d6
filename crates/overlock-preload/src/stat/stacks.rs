//! The table's stacks.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use overlock_shared::{DEPTH, ENTRIES, Place, Table, place};

use super::{modules, table, unwind};
use crate::site::Site;

/// Frames of a stack where the table has little room: programs that lock at many depths of a
/// recursion would fill it.
const FEW: usize = 8;

/// Entries from which on stacks are short.
const MANY: u32 = ENTRIES as u32 / 2;

/// Entries of the process's table.
static USED: AtomicU32 = AtomicU32::new(0);

/// Says that a stack has become part of an entry's key.
pub fn has_entry() {
    USED.fetch_add(1, Relaxed);
}

/// Forgets the entries after fork() in the child, whose table has none.
pub fn after_fork() {
    USED.store(0, Relaxed);
}

/// The call site, found where it is 0, and the number of its stack from 1 on: 0 if there is no room
/// for it, or it has no callers. A stack that finds room for a part has its inner frames alone.
pub fn of(table: &Table, site: Site) -> (Site, u32) {
    let most = if USED.load(Relaxed) < MANY {
        DEPTH
    } else {
        FEW
    };
    let mut first = site;
    let (mut count, mut number) = (0, 0);
    let mut unknown = 0;
    unwind::callers(site, &mut |caller| {
        if count == 0 {
            first = caller;
        }
        let words = [u64::from(number), caller as u64];
        number = match place(&table.frames, &words) {
            Some(Place::Known(index, _)) => index as u32 + 1,
            Some(Place::New(index, frame)) => {
                frame.address.store(caller as u64, Relaxed);
                frame.inner.store(number, Relaxed);
                table::show(&frame.ready);
                if count > 0 && !modules::knows(table, caller) {
                    unknown = caller;
                }
                index as u32 + 1
            }
            None => return false,
        };
        count += 1;
        count < most
    });
    modules::read_if_unknown(table, unknown);
    (first, if count < 2 { 0 } else { number })
}

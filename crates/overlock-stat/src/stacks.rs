//! The table's stacks.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use overlock_shared::{DEPTH, ENTRIES, FRAMES, Place, Table, place};

use crate::Site;
use crate::{modules, table, unwind};

/// Frames of a stack where the table has little room: programs that lock at many depths of a
/// recursion would fill it.
const FEW: usize = 8;

/// Entries, and frames, from which on stacks are short.
const MANY_ENTRIES: u32 = ENTRIES as u32 / 2;
const MANY_FRAMES: u32 = FRAMES as u32 / 2;

/// Entries of the process's table.
static USED: AtomicU32 = AtomicU32::new(0);

/// Frames of the process's table.
static USED_FRAMES: AtomicU32 = AtomicU32::new(0);

/// Says that a stack has become part of an entry's key.
pub fn has_entry() {
    USED.fetch_add(1, Relaxed);
}

/// Forgets the entries after fork() in the child, whose table has none.
pub fn after_fork() {
    USED.store(0, Relaxed);
    USED_FRAMES.store(0, Relaxed);
}

/// The call site, found where it is 0, and the number of its stack from 1 on: 0 if there is no room
/// for it, or it has no callers.
pub fn of(table: &Table, site: Site) -> (Site, u32) {
    let has_room = USED.load(Relaxed) < MANY_ENTRIES && USED_FRAMES.load(Relaxed) < MANY_FRAMES;
    let most = if has_room { DEPTH } else { FEW };
    let mut frames = [0; DEPTH];
    let mut count = 0;
    unwind::callers(site, &mut |caller| {
        frames[count] = caller;
        count += 1;
        count < most
    });
    let frames = &frames[..count];
    let site = frames.first().copied().unwrap_or(site);
    match count {
        0 | 1 => (site, 0),
        _ => (site, number(table, frames).unwrap_or(0)),
    }
}

/// The number of a stack, which becomes part of the table.
fn number(table: &Table, frames: &[Site]) -> Option<u32> {
    let (mut number, mut unknown) = (0, 0);
    for &address in frames.iter().rev() {
        let words = [u64::from(number), address as u64];
        let index = match place(&table.frames, &words)? {
            Place::Known(index, _) => index,
            Place::New(index, frame) => {
                frame.address.store(address as u64, Relaxed);
                frame.caller.store(number, Relaxed);
                table::show(&frame.ready);
                USED_FRAMES.fetch_add(1, Relaxed);
                if !modules::knows(table, address) {
                    unknown = address;
                }
                index
            }
        };
        number = index as u32 + 1;
    }
    modules::read_if_unknown(table, unknown);
    Some(number)
}

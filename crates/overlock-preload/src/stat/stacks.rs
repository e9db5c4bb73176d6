//! The table's stacks.

use core::sync::atomic::Ordering::Relaxed;

use overlock_shared::{DEPTH, Place, Table, place};

use super::{modules, table, unwind};
use crate::site::Site;

/// The call site, found where it is 0, and the number of its stack from 1 on: 0 if there is no room
/// for it, or it has no callers.
pub fn of(table: &Table, site: Site) -> (Site, u32) {
    let mut frames = [0; DEPTH];
    let count = unwind::callers(site, &mut frames);
    let site = frames[0] as Site;
    if count < 2 {
        return (site, 0);
    }
    let number = match place(&table.stacks, &frames) {
        Some(Place::Known(index, _)) => index + 1,
        Some(Place::New(index, stack)) => {
            for (place, frame) in stack.frames.iter().zip(frames) {
                place.store(frame, Relaxed);
            }
            table::show(&stack.ready);
            for frame in &frames[1..count] {
                modules::read_if_unknown(table, *frame as Site);
            }
            index + 1
        }
        None => 0,
    };
    (site, number as u32)
}

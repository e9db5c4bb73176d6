//! The table's stacks.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use overlock_shared::{DEPTH, ENTRIES, FRAMES, Place, Table, place};

use crate::unwind::From;
use crate::walked::{Found, Return};
use crate::{Site, modules, table, unwind, walked};

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

/// The call site, found where it is not known, and the number of its stack from 1 on: 0 if there is
/// no room for it, or it has no callers.
#[inline(never)]
pub fn of(table: &Table, from: From) -> (Site, u32) {
    let here = 0_u64;
    let sp = core::ptr::from_ref(&here).addr();
    let (end, is_bounded) = unwind::end_of_stack(sp);
    let load = |at: usize| {
        let word = core::ptr::with_exposed_provenance::<usize>(at);
        // SAFETY: a word of this thread's stack, since it is below the end, and the frame that it
        // belongs to is the one of the return address that was compared before.
        (at < end).then(|| unsafe { word.read() } & unwind::ADDRESS)
    };
    // Of another stack the end is only guessed.
    let known = match is_bounded {
        true => walked::known(sp, from.word(), load),
        false => None,
    };
    let found = known.unwrap_or_else(|| walk(table, (sp, is_bounded), from));
    (found.site, found.stack)
}

/// Walks through the callers, and keeps what that finds, if the stack is bounded.
#[cold]
#[inline(never)]
fn walk(table: &Table, (sp, is_bounded): (usize, bool), from: From) -> Found {
    table.header.walks.fetch_add(1, Relaxed);
    let has_room = USED.load(Relaxed) < MANY_ENTRIES && USED_FRAMES.load(Relaxed) < MANY_FRAMES;
    let most = if has_room { DEPTH } else { FEW };
    // The call site is not among the callers where it is known.
    let site = from.site();
    let first = Some(site).filter(|&site| site != 0);
    let mut returns = [Return::default(); walked::MOST];
    let (mut count, mut own, mut last) = (0, 0, sp);
    unwind::callers(from, &mut |frame| {
        // Those of the walk itself are below.
        if frame.is_own && frame.at < sp {
            return true;
        }
        own += usize::from(frame.is_own);
        returns[count] = Return::new(frame.address, frame.at.wrapping_sub(last));
        last = frame.at;
        count += 1;
        count < walked::MOST && count - own + usize::from(first.is_some()) < most
    });
    let callers = &returns[own..count];
    let frames = || {
        first
            .into_iter()
            .chain(callers.iter().map(|known| known.address()))
    };
    let found = Found {
        site: frames().next().unwrap_or(site),
        stack: match frames().nth(1) {
            Some(_) => number(table, frames()).unwrap_or(0),
            None => 0,
        },
    };
    if is_bounded {
        walked::keep(sp, from.word(), &returns[..count], found);
    }
    found
}

/// The number of a stack, which becomes part of the table.
fn number(table: &Table, frames: impl DoubleEndedIterator<Item = Site>) -> Option<u32> {
    let (mut number, mut unknown) = (0, 0);
    for address in frames.rev() {
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

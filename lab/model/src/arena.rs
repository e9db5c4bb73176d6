//! The memory that the threads of a scenario share: at the same address in each execution, since
//! locks hash theirs.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr;

const BYTES: usize = 1 << 16;

#[repr(align(128))]
struct Room(#[allow(dead_code)] [MaybeUninit<u8>; BYTES]);

thread_local! {
    static KEPT: Cell<usize> = const { Cell::new(0) };
    static USED: Cell<usize> = const { Cell::new(0) };
    static PLACE: *mut Room = Box::into_raw(Box::<Room>::new_uninit()).cast();
}

/// An execution begins: what the last one has placed is gone, or forgotten if that one failed.
pub(crate) fn reset() {
    USED.set(KEPT.get());
}

/// Keeps all that has been placed until now, for all executions.
pub(crate) fn keep() {
    KEPT.set(USED.get());
}

/// Returns the place of `thing` within the arena, or `None` outside of it.
pub(crate) fn offset<T>(thing: &T) -> Option<usize> {
    let start = PLACE.with(|place| place.addr());
    let offset = ptr::from_ref(thing).addr().checked_sub(start)?;
    (offset < BYTES).then_some(offset)
}

/// The shared state of a scenario. Its first thread drops it when all others have ended; or, of a
/// lock whose end is what is checked, the last owner does.
#[derive(Debug)]
pub struct Placed<T: 'static>(&'static T);

impl<T> Placed<T> {
    /// Puts `value` in its place.
    ///
    /// # Panics
    ///
    /// If it does not fit.
    pub fn new(value: T) -> Self {
        let start = USED.get().next_multiple_of(align_of::<Room>());
        USED.set(start + size_of::<T>());
        assert!(
            USED.get() <= BYTES && align_of::<T>() <= align_of::<Room>(),
            "the scenario's state does not fit: raise BYTES"
        );
        // SAFETY: `start` lies within the room.
        let place = unsafe { PLACE.with(|place| *place).byte_add(start) }.cast::<T>();
        // SAFETY: the room is large enough, aligned, and never freed. This execution has not placed
        // anything here; and nobody uses what earlier ones have: their threads have ended,
        // or will never run again.
        unsafe { place.write(value) };
        // SAFETY: just written; `end` is the only one to drop it.
        Placed(unsafe { &*place })
    }

    /// The reference for the other threads.
    pub fn share(&self) -> &'static T {
        self.0
    }

    /// Drops it.
    ///
    /// # Safety
    ///
    /// Nobody uses what [`share`](Self::share) returned any more, and this is called once.
    pub unsafe fn end(&self) {
        let place = ptr::from_ref(self.0).cast_mut();
        // SAFETY: the caller's promise.
        unsafe { place.drop_in_place() };
    }
}

impl<T> Deref for Placed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

//! Tables that grow, and memory for a while: beside the [`Mapped`] table.

use std::ops::{Deref, DerefMut};

pub(crate) use overlock_linux::__private::{Mapped, Zeroed};
use overlock_linux::__private::{calls, extras};

/// Number of elements of a chunk.
const CHUNK: usize = if cfg!(miri) { 64 } else { 1024 };

/// A table of zero bytes that grows: `N` chunks, each mapped by the first access to it.
pub(crate) struct Chunks<T, const N: usize>([Mapped<[T; CHUNK]>; N]);

impl<T: Zeroed, const N: usize> Chunks<T, N> {
    /// The largest number of elements.
    pub(crate) const LENGTH: usize = N * CHUNK;

    pub(crate) const fn new() -> Self {
        Chunks([const { Mapped::new() }; N])
    }

    /// Returns the element, if its chunk is mapped.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.0.get(index / CHUNK)?.mapped()?.get(index % CHUNK)
    }

    /// As [`get`](Self::get); maps the chunk. `None` beyond the table, and without memory.
    #[inline]
    pub(crate) fn make(&self, index: usize) -> Option<&T> {
        self.0.get(index / CHUNK)?.get()?.get(index % CHUNK)
    }
}

/// Maps zero bytes for so many elements, for ever. `None` without memory.
pub(crate) fn map_slice<T>(length: usize) -> Option<*mut T> {
    let size = size_of::<T>().checked_mul(length)?;
    // A filter may allow no more calls than those of the locks.
    let new = extras::ask(|| calls::map(size))?;
    Some(new?.cast())
}

/// Zero bytes for a while, not on the stack: a thread's may be small.
pub(crate) struct Temporary<T>(*mut T);

impl<T: Zeroed> Temporary<T> {
    /// `None` without memory.
    pub(crate) fn new() -> Option<Self> {
        map_slice(1).map(Temporary)
    }
}

impl<T> Deref for Temporary<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: mapped until it is dropped, and zero bytes are a valid value.
        unsafe { &*self.0 }
    }
}

impl<T> DerefMut for Temporary<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and this is the only owner.
        unsafe { &mut *self.0 }
    }
}

impl<T> Drop for Temporary<T> {
    fn drop(&mut self) {
        // A mapping that stays is lost memory, no more.
        // SAFETY: mapped by `map_slice` for one element, and nobody else knows it.
        extras::ask(|| unsafe { calls::unmap(self.0, size_of::<T>()) });
    }
}

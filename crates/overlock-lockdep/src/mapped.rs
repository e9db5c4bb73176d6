//! Tables that take memory, of the process and of its limits, from their first use on: a process
//! whose order nobody validates has none.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use overlock_linux::__private::extras;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// A type of which zero bytes are a valid value.
///
/// # Safety
///
/// They are, and its alignment is at most that of a page.
pub(crate) unsafe trait Zeroed: Sync + 'static {}

// SAFETY: zero bytes are a valid value of each element.
unsafe impl<T: Zeroed, const N: usize> Zeroed for [T; N] {}

/// A table of zero bytes, mapped by the first access. Usable in signal handlers, and in a child of
/// fork, which has a copy. A process that may have no more memory goes on without.
pub(crate) struct Mapped<T>(AtomicPtr<T>, PhantomData<T>);

impl<T: Zeroed> Mapped<T> {
    pub(crate) const fn new() -> Self {
        Mapped(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }

    /// `None` without memory for it.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        // Acquire: pairs with the exchange in `publish`.
        let mut table = self.0.load(Acquire);
        if table.is_null() {
            table = publish(&self.0)?;
        }
        // SAFETY: mapped by `publish`, never unmapped, zero at first, which is a valid value.
        Some(unsafe { &*table })
    }
}

/// Number of elements of a chunk.
const CHUNK: usize = if cfg!(miri) { 64 } else { 1024 };

/// A table of zero bytes that grows: `N` chunks, each mapped by the first access to it.
pub(crate) struct Chunks<T, const N: usize>([Chunk<T>; N]);

/// Null until it is mapped.
type Chunk<T> = AtomicPtr<[T; CHUNK]>;

impl<T: Zeroed, const N: usize> Chunks<T, N> {
    /// The largest number of elements.
    pub(crate) const LENGTH: usize = N * CHUNK;

    pub(crate) const fn new() -> Self {
        Chunks([const { AtomicPtr::new(ptr::null_mut()) }; N])
    }

    /// Returns the element, if its chunk is mapped.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        // Acquire: pairs with the exchange in `publish`.
        let chunk = self.0.get(index / CHUNK)?.load(Acquire);
        // SAFETY: null, or mapped by `publish`, never unmapped, and a valid value.
        Some(&unsafe { chunk.as_ref() }?[index % CHUNK])
    }

    /// As [`get`](Self::get); maps the chunk. `None` beyond the table, and without memory.
    #[inline]
    pub(crate) fn make(&self, index: usize) -> Option<&T> {
        self.get(index).or_else(|| {
            publish(self.0.get(index / CHUNK)?)?;
            self.get(index)
        })
    }
}

/// Maps zero bytes for a `T`.
fn map<T>() -> Option<*mut T> {
    map_slice(1)
}

/// Maps zero bytes for so many elements, for ever. `None` without memory.
pub(crate) fn map_slice<T>(length: usize) -> Option<*mut T> {
    let size = size_of::<T>().checked_mul(length)?;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // A filter may allow no more calls than those of the locks.
    let new = extras::ask(|| {
        // SAFETY: a new private mapping, at an address of the kernel's choice, overlaps no other.
        unsafe { mmap_anonymous(ptr::null_mut(), size, protection, flags) }
    });
    Some(new?.ok()?.cast())
}

fn unmap<T>(table: *mut T) {
    // SAFETY: the callers': mapped by `map` for this type, and nobody else knows it. A mapping that
    // stays is lost memory, no more.
    let _ = extras::ask(|| unsafe { munmap(table.cast(), size_of::<T>()) });
}

/// Maps a table, unless another thread has. `None` without memory.
#[cold]
fn publish<T>(place: &AtomicPtr<T>) -> Option<*mut T> {
    let new = map()?;
    // null -> new. Acquire and release: with the loads of the place, and for the loser.
    match place.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
        Ok(_) => Some(new),
        Err(others) => {
            unmap(new);
            Some(others)
        }
    }
}

/// Zero bytes for a while, not on the stack: a thread's may be small.
pub(crate) struct Temporary<T>(*mut T);

impl<T: Zeroed> Temporary<T> {
    /// `None` without memory.
    pub(crate) fn new() -> Option<Self> {
        map().map(Temporary)
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
        unmap(self.0);
    }
}

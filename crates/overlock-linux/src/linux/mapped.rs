//! Tables that take memory, of the process and of its limits, from their first use on.

use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use super::{calls, extras};

/// A type of which zero bytes are a valid value.
///
/// # Safety
///
/// They are, and its alignment is at most that of a page.
pub unsafe trait Zeroed: Sync + 'static {}

// SAFETY: zero bytes are a valid value of each element.
unsafe impl<T: Zeroed, const N: usize> Zeroed for [T; N] {}

// SAFETY: zero bytes are the number 0.
unsafe impl Zeroed for std::sync::atomic::AtomicU64 {}

// SAFETY: as above.
unsafe impl Zeroed for std::sync::atomic::AtomicU32 {}

// SAFETY: as above.
unsafe impl Zeroed for u8 {}

/// Has a table of zero bytes at this place, which is null or names one. `None` where the process
/// gets no memory for it, or makes no [system call](extras) for that any more. Takes no lock, so it
/// may happen in signal handlers; a child of fork has a copy.
#[inline]
pub fn map<T>(place: &AtomicPtr<T>) -> Option<*mut T> {
    // Acquire: pairs with the exchange below.
    let table = place.load(Acquire);
    if table.is_null() {
        return extras::ask(|| map_anew(place))?;
    }
    Some(table)
}

#[cold]
fn map_anew<T>(place: &AtomicPtr<T>) -> Option<*mut T> {
    let new = calls::map(size_of::<T>())?.cast::<T>();
    // null -> new. Acquire and release: with the load in `map`, and for the loser.
    match place.compare_exchange(ptr::null_mut(), new, AcqRel, Acquire) {
        Ok(_) => Some(new),
        Err(others) => {
            // SAFETY: mapped above, of this size, and nobody else knows it.
            unsafe { calls::unmap(new, size_of::<T>()) };
            Some(others)
        }
    }
}

/// A table of zero bytes, mapped by the first access.
#[derive(Debug)]
pub struct Mapped<T>(AtomicPtr<T>);

impl<T: Zeroed> Mapped<T> {
    /// A table that is not mapped yet.
    pub const fn new() -> Self {
        Mapped(AtomicPtr::new(ptr::null_mut()))
    }

    /// The table; `None` where there is no memory for it.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: mapped by `map` for this type, never unmapped, zero at first, which is a valid
        // value.
        map(&self.0).map(|table| unsafe { &*table })
    }

    /// The table, if an access has mapped it.
    #[inline]
    pub fn mapped(&self) -> Option<&T> {
        // Acquire: pairs with the exchange in `map_anew`.
        let table = self.0.load(Acquire);
        // SAFETY: null, or as in `get`.
        unsafe { table.as_ref() }
    }
}

impl<T: Zeroed> Default for Mapped<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// A long table: its first elements are in place, the others are mapped in chunks by the first
/// access to one of them.
#[derive(Debug)]
pub struct Growing<T, const FIRST: usize, const CHUNK: usize, const CHUNKS: usize> {
    first: [T; FIRST],
    chunks: [Mapped<[T; CHUNK]>; CHUNKS],
}

impl<T: Zeroed, const FIRST: usize, const CHUNK: usize, const CHUNKS: usize>
    Growing<T, FIRST, CHUNK, CHUNKS>
{
    /// A table that begins with these elements, which are zero bytes as the others.
    pub const fn new(first: [T; FIRST]) -> Self {
        const { assert!(FIRST <= CHUNK) };
        Growing {
            first,
            chunks: [const { Mapped::new() }; CHUNKS],
        }
    }

    /// The element of this index; `None` beyond the end, and where there is no memory for it.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        match self.first.get(index) {
            Some(element) => Some(element),
            None => self.chunks.get(index / CHUNK)?.get()?.get(index % CHUNK),
        }
    }

    /// Maps this many elements, as far as there is memory.
    pub fn reserve(&self, elements: usize) {
        for chunk in self.chunks.iter().take(elements.div_ceil(CHUNK)) {
            chunk.get();
        }
    }

    /// The table in parts, each with the index of its first element; it ends where there is no
    /// memory.
    pub fn parts(&self) -> impl Iterator<Item = (usize, &[T])> {
        let chunks = self.chunks.iter().enumerate();
        let chunks = chunks.map_while(|(index, chunk)| {
            // The elements in place stand for the beginning of the first chunk.
            let skipped = if index == 0 { FIRST } else { 0 };
            Some((index * CHUNK + skipped, &chunk.get()?[skipped..]))
        });
        std::iter::once((0, &self.first[..])).chain(chunks)
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn a_growing_table_has_each_element_once() {
        static TABLE: Growing<AtomicU64, 3, 512, 2> =
            Growing::new([const { AtomicU64::new(0) }; 3]);
        for index in 0..1024 {
            TABLE.get(index).unwrap().fetch_add(index as u64, Relaxed);
        }
        assert!(TABLE.get(1024).is_none());
        let parts: Vec<_> = TABLE.parts().collect();
        assert_eq!(
            parts.iter().map(|part| part.0).collect::<Vec<_>>(),
            [0, 3, 512]
        );
        let all = parts.iter().flat_map(|part| part.1);
        assert!(all.map(|element| element.load(Relaxed)).eq(0..1024));
    }

    #[test]
    fn threads_that_come_at_once_share_one_table() {
        static TABLE: Mapped<[AtomicU64; 512]> = Mapped::new();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| TABLE.get().unwrap()[511].fetch_add(1, Relaxed));
            }
        });
        assert_eq!(TABLE.get().unwrap()[511].load(Relaxed), 8);
    }
}

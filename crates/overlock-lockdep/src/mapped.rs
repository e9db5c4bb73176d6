//! Tables that take memory, of the process and of its limits, from their first use on: a process
//! whose order nobody validates has none.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

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
/// fork, which has a copy.
pub(crate) struct Mapped<T>(AtomicPtr<T>, PhantomData<T>);

impl<T: Zeroed> Mapped<T> {
    pub(crate) const fn new() -> Self {
        Mapped(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }

    #[cold]
    fn map(&self) -> &T {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new private mapping, at an address of the kernel's choice, overlaps no other.
        let new = unsafe { mmap_anonymous(ptr::null_mut(), size_of::<T>(), protection, flags) };
        let new = new.expect("there is memory for the tables of the validator of lock order");
        let new = new.cast::<T>();
        // null -> new. Acquire and release: with the load in `deref`, and for the loser.
        let exchange = (self.0).compare_exchange(ptr::null_mut(), new, AcqRel, Acquire);
        let table = match exchange {
            Ok(_) => new,
            Err(others) => {
                // SAFETY: mapped above, of this size, and nobody else knows it.
                let _ = unsafe { munmap(new.cast(), size_of::<T>()) };
                others
            }
        };
        // SAFETY: mapped by this function, never unmapped, zero at first, which is a valid value.
        unsafe { &*table }
    }
}

impl<T: Zeroed> Deref for Mapped<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // Acquire: pairs with the exchange in `map`.
        let table = self.0.load(Acquire);
        if table.is_null() {
            return self.map();
        }
        // SAFETY: as there.
        unsafe { &*table }
    }
}

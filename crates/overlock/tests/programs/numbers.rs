//! The data under the locks.

use std::cell::UnsafeCell;

use crate::how::Pause;

/// Two numbers that are equal whenever nobody writes.
pub struct Numbers {
    lock: &'static str,
    numbers: UnsafeCell<[u64; 2]>,
}

// SAFETY: callers guarantee that nobody else has access.
unsafe impl Sync for Numbers {}
// SAFETY: plain numbers.
unsafe impl Send for Numbers {}

impl Numbers {
    pub fn new(lock: &'static str) -> Self {
        Numbers {
            lock,
            numbers: UnsafeCell::new([0; 2]),
        }
    }

    /// Returns the number of changes, read before `pause` and after it.
    ///
    /// # Safety
    ///
    /// The lock keeps writers out.
    pub unsafe fn inspect(&self, pause: Pause) -> u64 {
        let numbers = self.numbers.get();
        // SAFETY: valid, and the caller's promise.
        let before = unsafe { (*numbers)[0] };
        pause.take();
        // SAFETY: as above.
        let after = unsafe { (*numbers)[1] };
        assert_eq!(before, after, "{}: somebody wrote meanwhile", self.lock);
        after
    }

    /// Makes one change, with `pause` between its halves, and returns the number of changes.
    ///
    /// # Safety
    ///
    /// The lock keeps all others out.
    pub unsafe fn change(&self, pause: Pause) -> u64 {
        // SAFETY: the caller's promise.
        let numbers = unsafe { &mut *self.numbers.get() };
        numbers[0] += 1;
        pause.take();
        numbers[1] += 1;
        assert_eq!(numbers[0], numbers[1], "two were inside {}", self.lock);
        numbers[1]
    }
}

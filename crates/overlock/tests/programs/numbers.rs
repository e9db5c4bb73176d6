//! The data under the locks.

use std::cell::UnsafeCell;

use crate::how::Pause;

/// Two numbers that are equal whenever no thread writes.
pub struct Numbers {
    lock: &'static str,
    numbers: UnsafeCell<[u64; 2]>,
}

// SAFETY: callers promise exclusive access.
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

    /// Returns the number of changes, and checks that it is the same before and after `pause`.
    ///
    /// # Safety
    ///
    /// The lock excludes writers.
    pub unsafe fn look(&self, pause: Pause) -> u64 {
        let numbers = self.numbers.get();
        // SAFETY: valid, and the caller's promise.
        let before = unsafe { (*numbers)[0] };
        pause.take();
        // SAFETY: as above.
        let after = unsafe { (*numbers)[1] };
        assert_eq!(before, after, "{}: somebody wrote meanwhile", self.lock);
        after
    }

    /// Changes the numbers, with `pause` between the halves. Returns the number of changes.
    ///
    /// # Safety
    ///
    /// The lock excludes all others.
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

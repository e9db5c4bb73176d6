//! Common parts of the behaviour tests.

use std::cell::UnsafeCell;

use overlock::spin::RawLock;

/// Two numbers that are equal whenever nobody is inside the lock.
pub struct Pair<L> {
    pub lock: L,
    numbers: UnsafeCell<[u64; 2]>,
}

// SAFETY: only the lock's holder touches the numbers.
unsafe impl<L: RawLock> Sync for Pair<L> {}

impl<L: RawLock> Pair<L> {
    pub fn new() -> Self {
        Pair {
            lock: L::create().expect("a ticket is left"),
            numbers: UnsafeCell::new([0; 2]),
        }
    }

    /// One section, after `token` was got from this pair's lock: finds torn writes.
    pub fn section(&self, token: L::Token, inside: impl FnOnce()) {
        self.change(inside);
        // SAFETY: the token is of this lock and this thread.
        unsafe { self.lock.unlock(token) };
    }

    /// The section's body. The caller holds the lock.
    pub fn change(&self, inside: impl FnOnce()) {
        // SAFETY: the caller's promise.
        let numbers = unsafe { &mut *self.numbers.get() };
        numbers[0] += 1;
        inside();
        numbers[1] += 1;
        assert_eq!(
            numbers[0],
            numbers[1],
            "two threads were inside {}",
            L::NAME
        );
    }

    pub fn count(&self) -> u64 {
        let token = self.lock.lock();
        // SAFETY: the lock is held.
        let count = unsafe { (*self.numbers.get())[1] };
        // SAFETY: the token is of this lock and this thread.
        unsafe { self.lock.unlock(token) };
        count
    }
}

//! For tests of queues: who gets the lock, in which order.

use std::boxed::Box;
use std::sync::{Arc, Mutex};
use std::vec::Vec;

use overlock_core::raw::RawLock;
use overlock_core::toy::stage::{Actor, actor};

/// A lock and its owners so far.
#[derive(Debug)]
pub struct Course<L: RawLock> {
    pub lock: &'static L,
    owners: Arc<Mutex<Vec<usize>>>,
}

impl<L: RawLock> Course<L> {
    pub fn new() -> Self {
        Course {
            lock: Box::leak(Box::new(L::create().unwrap())),
            owners: Arc::default(),
        }
    }

    /// A thread that acquires the lock, does this, and releases it.
    pub fn thread(&self, number: usize, inside: impl FnOnce(&L::Token) + Send + 'static) -> Actor {
        let (lock, owners) = (self.lock, Arc::clone(&self.owners));
        actor(number, move || {
            let token = lock.lock();
            owners.lock().unwrap().push(number);
            inside(&token);
            // SAFETY: it is the token of this thread's acquisition.
            unsafe { lock.unlock(token) };
        })
    }

    /// Releases an acquisition of the test's own thread.
    pub fn unlock(&self, token: L::Token) {
        // SAFETY: the test has acquired it by its own thread.
        unsafe { self.lock.unlock(token) };
    }

    /// The owners so far, where the lock is free.
    pub fn owners(&self) -> Vec<usize> {
        assert!(!self.lock.is_locked() && !self.lock.is_contended());
        self.owners.lock().unwrap().clone()
    }
}

//! Locks for the tests: two of the simplest kind.

use std::sync::atomic::AtomicU32;

use super::super::*;
use crate::node::NodeGuard;
use crate::raw::ConstLock;
use crate::toy::Toy;

/// A lock that stops an actor after each release: test and test-and-set.
pub(super) struct Loud(AtomicU32);

impl ConstLock for Loud {
    const INIT: Self = Loud(AtomicU32::ZERO);
}

// SAFETY: only one thread's exchange finds 0, and only its unlock brings 0 back.
unsafe impl RawLock for Loud {
    type Token = ();
    const NAME: &'static str = "loud";

    fn lock(&self) {
        while self.try_lock().is_none() {
            let _ = Toy::wait_until(
                &self.0,
                Relaxed,
                crate::platform::Spin::Forever,
                |owned: u32| owned == 0,
            );
        }
    }
    fn try_lock(&self) -> Option<()> {
        (self.0.swap(1, Acquire) == 0).then_some(())
    }
    unsafe fn unlock(&self, (): ()) {
        self.0.store(0, Release);
        Toy::light_barrier();
    }
    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) == 1
    }
    fn is_contended(&self) -> bool {
        false
    }
}

/// The same with a queue node as its token.
pub(super) struct WithNode(Loud);

impl ConstLock for WithNode {
    const INIT: Self = WithNode(Loud::INIT);
}

// SAFETY: as `Loud`.
unsafe impl RawLock for WithNode {
    type Token = NodeGuard<Toy>;
    const NAME: &'static str = "with_node";

    fn lock(&self) -> NodeGuard<Toy> {
        let token = NodeGuard::new().unwrap();
        self.0.lock();
        token
    }
    fn try_lock(&self) -> Option<NodeGuard<Toy>> {
        self.0.try_lock().and_then(|()| NodeGuard::new())
    }
    unsafe fn unlock(&self, token: NodeGuard<Toy>) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock(()) };
        drop(token);
    }
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
    fn is_contended(&self) -> bool {
        false
    }
}

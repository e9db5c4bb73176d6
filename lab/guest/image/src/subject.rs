//! A lock as the image uses it: alone, or together with other readers.

use overlock_core::raw::{RawLock, RawRwLock};

use crate::shared::Protected;

/// A lock that the image measures and tests.
pub trait Subject: Sized + 'static {
    /// The lock's name.
    const NAME: &'static str;

    /// A free lock; `None` if a resource that it needs is used up.
    fn create() -> Option<Self>;

    /// Whether somebody holds the lock or waits for it.
    fn is_busy(&self) -> bool;

    /// Runs `section` on the data under the lock. Reads if `reads` says so and the lock knows
    /// readers. Returns whether it did.
    fn visit(&self, reads: bool, data: &Protected, section: impl FnOnce()) -> bool;
}

/// A mutual-exclusion lock.
pub struct Exclusive<L>(L);

impl<L: RawLock> Subject for Exclusive<L> {
    const NAME: &'static str = L::NAME;

    fn create() -> Option<Self> {
        L::create().ok().map(Exclusive)
    }

    fn is_busy(&self) -> bool {
        self.0.is_locked() || self.0.is_contended()
    }

    #[inline]
    fn visit(&self, _: bool, data: &Protected, section: impl FnOnce()) -> bool {
        let token = self.0.lock();
        data.visit(section);
        // SAFETY: of the acquisition above.
        unsafe { self.0.unlock(token) };
        false
    }
}

/// A reader-writer lock.
pub struct Shared<L>(L);

impl<L: RawRwLock> Subject for Shared<L> {
    const NAME: &'static str = L::NAME;

    fn create() -> Option<Self> {
        Some(Shared(L::INIT))
    }

    fn is_busy(&self) -> bool {
        self.0.is_locked() || self.0.is_contended()
    }

    #[inline]
    fn visit(&self, reads: bool, data: &Protected, section: impl FnOnce()) -> bool {
        if reads {
            let token = self.0.read();
            data.observe(section);
            // SAFETY: of the acquisition above.
            unsafe { self.0.unlock_read(token) };
        } else {
            let token = self.0.write();
            data.visit(section);
            // SAFETY: of the acquisition above.
            unsafe { self.0.unlock_write(token) };
        }
        reads
    }
}

/// A reader-writer lock whose readers do not acquire it: the image must notice.
pub struct FaultyReaders<L>(Shared<L>);

impl<L: RawRwLock> Subject for FaultyReaders<L> {
    const NAME: &'static str = "faulty_readers";

    fn create() -> Option<Self> {
        Shared::create().map(FaultyReaders)
    }

    fn is_busy(&self) -> bool {
        self.0.is_busy()
    }

    #[inline]
    fn visit(&self, reads: bool, data: &Protected, section: impl FnOnce()) -> bool {
        if reads {
            data.observe(section);
            return true;
        }
        self.0.visit(false, data, section)
    }
}

//! A fast queue spinlock that can be a static: it takes its tickets at its first use.
//!
//! # States
//!
//! (latest, reserve), where the lock has no tickets yet; any number of threads may do this at the
//! same time:
//!
//! ```text
//! (0, 0)  --ours-->  (0, r)  --ours-->  (t, r)     from here on it is a `FastQueue`
//! (0, r)             (t, r)                        another one is there: ours goes back to the pool
//! ```

use core::sync::atomic::Ordering::{AcqRel, Acquire};

use super::{FastQueue, FastQueueToken, first_word, take_two};
use crate::tables::FamilyPlatform;
use overlock_core::facts::{Facts, HasFacts};
use overlock_core::platform::Atomic;
use overlock_core::raw::{ConstLock, CreateError, RawLock};

/// A [`FastQueue`] with a `const` constructor, for statics and for `lock_api`.
///
/// The price is a load before each acquisition. The first `lock` panics if the platform's tickets
/// are used up, before anything has changed. Dropping the lock returns its tickets; a static is
/// never dropped.
#[derive(Debug)]
pub struct LazyFastQueue<P: FamilyPlatform> {
    queue: FastQueue<P>,
}

impl<P: FamilyPlatform> Default for LazyFastQueue<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: FamilyPlatform> ConstLock for LazyFastQueue<P> {
    const INIT: Self = Self::new();
}

impl<P: FamilyPlatform> LazyFastQueue<P> {
    /// A new, unlocked lock, without tickets yet.
    pub const fn new() -> Self {
        LazyFastQueue {
            queue: FastQueue {
                latest: Atomic::ZERO,
                reserve: Atomic::ZERO,
            },
        }
    }

    /// Returns the lock with its tickets, which it takes now if it has none.
    #[inline]
    fn ready(&self) -> Result<&FastQueue<P>, CreateError> {
        // Acquire: pairs with the exchange in `prepare`, after which the reserve is there too.
        if self.queue.latest.load(Acquire) == 0 {
            self.prepare()?;
        }
        Ok(&self.queue)
    }

    /// Gives the lock its tickets, unless another thread is faster. Does not block.
    #[cold]
    fn prepare(&self) -> Result<(), CreateError> {
        let [latest, reserve] = match take_two::<P>() {
            // Another thread gave it its tickets, and the pool is empty.
            Err(_) if self.queue.latest.load(Acquire) != 0 => return Ok(()),
            tickets => tickets?,
        };
        // The reserve first: a thread that finds a latest ticket finds a reserve. It is never 0
        // again, so a late thread cannot store a second one. FR: release, pairs with the exchange
        // that takes it; acquire, so that the next exchange passes on another thread's reserve.
        let first = self
            .queue
            .reserve
            .compare_exchange(0, reserve.bits(), AcqRel, Acquire);
        if first.is_err() {
            P::family_tables().tickets.give(reserve);
        }
        // FT: release, the ticket and the reserve come before; acquire where another thread's did.
        let word = first_word::<P>(latest);
        let first = self.queue.latest.compare_exchange(0, word, AcqRel, Acquire);
        if first.is_err() {
            P::family_tables().tickets.give(latest);
        }
        Ok(())
    }
}

impl<P: FamilyPlatform> HasFacts for LazyFastQueue<P> {
    const FACTS: Facts = FastQueue::<P>::FACTS;
}

// SAFETY: as for `FastQueue`, which does all the work once it has its tickets. It gets them once.
unsafe impl<P: FamilyPlatform> RawLock for LazyFastQueue<P> {
    type Token = FastQueueToken;

    const NAME: &'static str = "fast_queue_lazy";

    /// # Panics
    ///
    /// If this is the lock's first use, and the platform's tickets are used up.
    #[inline]
    fn lock(&self) -> FastQueueToken {
        match self.ready() {
            Ok(queue) => queue.lock(),
            Err(error) => panic!("{error}"),
        }
    }

    /// Also fails if this is the lock's first use, and the platform's tickets are used up.
    #[inline]
    fn try_lock(&self) -> Option<FastQueueToken> {
        self.ready().ok()?.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self, token: FastQueueToken) {
        // SAFETY: the caller passes its token of this lock, which is one of `queue`.
        unsafe { self.queue.unlock(token) }
    }

    fn is_locked(&self) -> bool {
        self.queue.is_locked()
    }

    fn is_contended(&self) -> bool {
        self.queue.is_contended()
    }
}

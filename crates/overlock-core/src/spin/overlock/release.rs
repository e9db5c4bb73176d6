//! The unlock of the policy [`Posix`](super::Posix), whose release is its last access to the lock.
//!
//! POSIX lets a program free a mutex as soon as no thread holds it or waits for it, even while the unlock of an earlier owner has not returned: thread A
//! unlocks a mutex that lies in an object with a count, thread B locks it after that, finds that it has the last
//! reference, unlocks it, and frees the object. So whatever an unlocker has to learn of the lock, it learns before the release.
//!
//! # Who touches it last
//!
//! - An unlocker, with the store that makes the lock free (UL). It has looked at the kick table before (UK). Where that entry is not 0, and `kick` is
//!   1, it has called the first sleeper and dropped the guard before the store too: once the lock is free, another thread may take it and free its
//!   memory, and the guard with it. The node that it then kicks is immortal.
//! - An unlocker that hands over, with the exchange that drops the guard. It stores HANDED before that, and I7 says why the lock is still there: the
//!   one that it was handed to needs the guard before its lock call returns. All its ways: `was_given` and `compete` (a hand-over that `spin`
//!   or `claim` took) call `settle` with the guard, `fall_back` has the guard when it looks. `brief_look`, the
//!   first spin and threads without a node take nothing but a free lock, of which the unlocker knows nothing any more.
//! - A thread that waits, or gives up, may touch the lock until its call returns. Nobody marks the guard, so nobody has work
//!   that was left to it when it drops it: a thread that finds the guard held looks for a while, and goes without.
//! - A kick that the owner [keeps](super::deferred) lies in its thread's slot. It is taken out before the release, and made after it; the kick table
//!   is static.
//!
//! Rust lets `&self` outlive its memory here: it is a reference to atomics, which promises nothing about memory that nobody accesses.
//!
//! # Why a missed announcement does no harm
//!
//! Between UK and UL nothing orders an announcement (OK) and the look that follows it (OL): both sides may miss each other. Then
//!
//! - a sleeper in the list has a timer (I2). It also goes on looking for a microsecond after its announcement, which is longer than the
//!   window, unless the unlocker loses its CPU, or takes an interrupt, right there. So all that is lost is some time: the next unlock sees the announcement, and if there is none, the first
//!   sleeper's timer ends after 0.5 ms (16 ms at most for those behind it, where nobody unlocks);
//! - a claim has a timer as well, unlike with other policies, and looks at the lock each time;
//! - who gives up and leaves others behind looks once, without a barrier: those have their timers.
//!
//! An owner that sets `kick` sees it in its own unlock, as ever, and the deferred kick is its own thread's.
//!
//! So no heavy barrier is run, and no light one: what it costs is that sleepers are called inside the section. A section in which somebody waits for the
//! guard becomes longer by up to 1000 looks at it, if the guard's holder has lost its CPU.

use super::queue::Queue;
use super::states::Step;
use super::{FREE, HAND_OVER, KICK, NOTHING, Overlock, Policy};
use crate::node::NodeId;
use crate::platform::{Atomic, Platform};
use crate::sleep::wait_list::kick;

impl<P: Platform, Y: Policy> Overlock<P, Y> {
    /// The last access of an owner.
    #[inline(always)]
    pub(super) fn release(&self) {
        // held -> free. UL: release, pairs with LA; UK stays before it.
        self.locked.store(FREE, Y::RELEASE);
        Step::Release.taken::<P>();
    }

    /// Unlocks where the entry of the kick table is not 0; another lock may share it.
    #[cold]
    pub(super) fn serve_and_release(&self) {
        let kept = self.take_deferred();
        if self.request() == NOTHING {
            self.release();
        } else {
            self.call_and_release();
        }
        if let Some(id) = kept {
            kick::<P>(id);
        }
    }

    /// Hands the lock over to the one that has asked for that, or calls the first sleeper and releases it.
    fn call_and_release(&self) {
        // Where its holder does not move, that may be the thread that the caller has interrupted.
        let Some(queue) = self.queue_soon() else {
            Step::GiveBlocked.taken::<P>();
            self.release();
            return;
        };
        if self.request() == HAND_OVER {
            self.give(queue);
            return;
        }
        let called = self.call_if_asked(&queue);
        // Before the lock is free, and may be gone.
        drop(queue);
        self.release();
        if let Some(id) = called {
            kick::<P>(id);
        }
    }

    /// For a thread that gives up beside a free lock: calls the first sleeper.
    pub(super) fn call_one(&self) {
        let Some(queue) = self.queue_soon() else {
            return;
        };
        let called = self.call_if_asked(&queue);
        drop(queue);
        if let Some(id) = called {
            kick::<P>(id);
        }
    }

    fn call_if_asked(&self, queue: &Queue<'_, P, Y>) -> Option<NodeId> {
        let asked = self.request() == KICK;
        asked.then(|| self.call_first(queue)).flatten()
    }
}

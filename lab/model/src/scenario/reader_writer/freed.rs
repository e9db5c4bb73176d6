//! A lock that its last owner frees, while the unlock that let it in may not have returned.
//!
//! The threads find out under the lock which of them that is: each writes there for the last time,
//! and counts itself. The explorer fails where a thread accesses an atomic that was dropped.

use overlock_core::platform::Atomic;
use overlock_core::raw::RawRwLock;
use std::sync::atomic::Ordering::Relaxed;

use super::{Abilities, Shared, Threads};
use crate::arena::Placed;
use crate::world::World;

/// The lock and what is beside it.
struct Freed<W: World, L: RawRwLock> {
    shared: Placed<Shared<W, L>>,
    /// How many have not written for the last time. Beside the lock, which is freed; accessed
    /// under it.
    left: W::U32,
}

/// Each thread does its acts, then writes; the last one frees the lock.
pub fn play<W: World, L: RawRwLock>(abilities: Abilities<W, L>, threads: Threads) {
    let freed = Placed::new(Freed {
        shared: Placed::new(Shared::<W, L>::new(threads)),
        left: W::U32::new(threads.len() as u32),
    });
    let run = move |freed: &'static Freed<W, L>, acts: &[super::Act]| {
        let shared = freed.shared.share();
        acts.iter().for_each(|&act| shared.perform(abilities, act));
        freed.write_and_free();
    };
    let others: Vec<_> = threads[1..]
        .iter()
        .map(|&acts| {
            let freed = freed.share();
            W::spawn(move || run(freed, acts))
        })
        .collect();
    run(freed.share(), threads[0]);
    others.into_iter().for_each(W::join);
    // SAFETY: all other threads have ended.
    unsafe { freed.end() };
}

impl<W: World, L: RawRwLock> Freed<W, L> {
    fn write_and_free(&self) {
        let shared = self.shared.share();
        let token = shared.lock.write();
        shared.change();
        // Relaxed: under the lock.
        let left = self.left.load(Relaxed) - 1;
        self.left.store(left, Relaxed);
        // SAFETY: just acquired by this thread.
        unsafe { shared.lock.unlock_write(token) };
        if left == 0 {
            // SAFETY: all threads have acquired the lock for the last time, and this was the last
            // of them. Their unlocks do not touch it after what let this thread in, or
            // the check fails: the memory itself is there until the execution ends.
            unsafe { self.shared.end() };
        }
    }
}

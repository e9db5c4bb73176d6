//! The locks of the published measurements, as their documents describe them. The queue locks of
//! overlock-core take a node by a locked instruction, and give it back by another one: the
//! published ones do neither.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use overlock_core::platform::{Atomic, ByteLanes, Lanes};
use overlock_core::raw::RawLock;
use overlock_core::{Platform, Spin};
use overlock_family::spin::Ticket;
use overlock_sim::Sim;
use overlock_sim::word::U32;

/// Shares its cache line with nothing else.
#[repr(align(128))]
pub struct Own<T>(pub T);

/// A lock for so many tasks, which have numbers.
pub trait Published {
    /// An unlocked lock for this many tasks.
    fn new(tasks: usize) -> Self;
    /// Acquires it.
    fn lock(&self, task: usize);
    /// Releases it.
    fn unlock(&self, task: usize);
}

impl Published for Ticket<Sim> {
    fn new(_: usize) -> Self {
        Ticket::new()
    }

    fn lock(&self, _: usize) {
        RawLock::lock(self);
    }

    fn unlock(&self, _: usize) {
        // SAFETY: locked by this task.
        unsafe { RawLock::unlock(self, ()) };
    }
}

struct Node {
    next: U32,
    granted: U32,
}

fn nodes(tasks: usize) -> Vec<Own<Node>> {
    let node = |_| {
        Own(Node {
            next: U32::ZERO,
            granted: U32::ZERO,
        })
    };
    (0..tasks).map(node).collect()
}

fn spin(word: &U32, done: impl Fn(u32) -> bool) -> u32 {
    let Ok(seen) = Sim::wait_until(word, Acquire, Spin::Forever, done) else {
        unreachable!("the wait has no limit")
    };
    seen
}

/// Mellor-Crummey's and Scott's lock of 1991. The tail names the last task, from 1.
pub struct Queue {
    tail: U32,
    nodes: Vec<Own<Node>>,
}

impl Published for Queue {
    fn new(tasks: usize) -> Self {
        Queue {
            tail: U32::ZERO,
            nodes: nodes(tasks),
        }
    }

    fn lock(&self, task: usize) {
        let node = &self.nodes[task].0;
        node.next.store(0, Relaxed);
        node.granted.store(0, Relaxed);
        let name = task as u32 + 1;
        let before = self.tail.swap(name, AcqRel);
        if before != 0 {
            self.nodes[before as usize - 1].0.next.store(name, Release);
            spin(&node.granted, |granted| granted != 0);
        }
    }

    fn unlock(&self, task: usize) {
        let node = &self.nodes[task].0;
        let name = task as u32 + 1;
        let mut next = node.next.load(Acquire);
        if next == 0 {
            if self
                .tail
                .compare_exchange(name, 0, Release, Relaxed)
                .is_ok()
            {
                return;
            }
            next = spin(&node.next, |next| next != 0);
        }
        self.nodes[next as usize - 1].0.granted.store(1, Release);
    }
}

/// The queued spinlock of Linux 4.2 without its pending bit: locked in the lowest byte, tail in
/// the upper half.
pub struct QueuedSpinlock {
    word: U32,
    nodes: Vec<Own<Node>>,
}

impl Published for QueuedSpinlock {
    fn new(tasks: usize) -> Self {
        QueuedSpinlock {
            word: U32::ZERO,
            nodes: nodes(tasks),
        }
    }

    fn lock(&self, task: usize) {
        if self.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
            return;
        }
        let node = &self.nodes[task].0;
        node.next.store(0, Relaxed);
        node.granted.store(0, Relaxed);
        let name = task as u16 + 1;
        let before = self.word.high_swap(name, AcqRel);
        if before != 0 {
            let before = &self.nodes[usize::from(before) - 1].0;
            before.next.store(u32::from(name), Release);
            spin(&node.granted, |granted| granted != 0);
        }
        let alone = u32::from(name) << 16;
        let seen = spin(&self.word, |word| word & 0xff == 0);
        if seen == alone
            && self
                .word
                .compare_exchange(alone, 1, Acquire, Relaxed)
                .is_ok()
        {
            return;
        }
        self.word.byte0_store(1, Relaxed);
        let next = spin(&node.next, |next| next != 0);
        self.nodes[next as usize - 1].0.granted.store(1, Release);
    }

    fn unlock(&self, _: usize) {
        self.word.byte0_store(0, Release);
    }
}

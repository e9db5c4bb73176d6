//! Store buffers, of one store each.
//!
//! A store whose line is there takes effect at once. Any other enters the buffer and requests its
//! line, while the vCPU goes on; it becomes visible when the line arrives. The vCPU's own loads see
//! it. The next store, a locked instruction, or a call of the host waits until it is visible.
//!
//! The buffer belongs to a vCPU. It keeps the core on which the store was issued, so that becomes
//! visible while the vCPU is preempted, too. A store to the vCPU's own stack does not enter it.
//!
//! # Invariants
//!
//! - B1: a vCPU's stores become visible in the order in which it issued them.
//! - B2: a buffered store becomes visible when its line arrives at the core that issued it.
//! - B3: while a store is buffered, one request of its vCPU for ownership is under way.
//! - B4: no buffered store is to a word that has ended, or that may be moved.

use super::state::Engine;
use crate::cache::{Access, Answer};
use crate::time::Time;

/// A store: which bits of a word it sets, and to what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    /// The word.
    pub word: *const (),
    /// Performs a store of these bits of this value.
    pub perform: unsafe fn(*const (), u64, u64),
    /// The bits.
    pub bits: u64,
    /// The value.
    pub value: u64,
}

/// The store in the buffer of a vCPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffered {
    /// `None` if the word has ended.
    store: Option<Store>,
    line: usize,
    core: usize,
    since: Time,
    /// Whether the vCPU waits until it is visible.
    is_awaited: bool,
}

impl Engine {
    /// Waits until the store that `vcpu` has buffered is visible. Returns whether the fibre has to
    /// be suspended.
    pub fn drain(&mut self, vcpu: usize) -> bool {
        let buffered = &mut self.vcpus[vcpu].buffered;
        let waits = buffered.as_mut().map(|it| it.is_awaited = true).is_some();
        if waits {
            self.waits_for_memory(vcpu);
        }
        waits
    }

    /// Whether a store of `vcpu` takes effect at once: the line is there.
    pub fn owns(&mut self, vcpu: usize, address: usize) -> bool {
        let line = self.cache.line(address);
        self.cache.owns(self.now, self.core(vcpu), line)
    }

    /// Buffers a store, and requests its line.
    pub fn buffers(&mut self, vcpu: usize, store: Store) {
        let (line, core) = (self.cache.line(store.word.addr()), self.core(vcpu));
        self.vcpus[vcpu].buffered = Some(Buffered {
            store: Some(store),
            line,
            core,
            since: self.now,
            is_awaited: false,
        });
        let answer = (self.cache).access(self.now, vcpu, core, line, Access::Write);
        debug_assert_eq!(answer, Answer::Wait);
        self.answer();
    }

    /// The line that the buffered store of `vcpu` needs has arrived: it becomes visible.
    pub fn owned(&mut self, vcpu: usize) {
        let buffered = self.vcpus[vcpu].buffered.take();
        let buffered = buffered.expect("only the arrival of its line ends it");
        debug_assert!((self.cache).has(buffered.line, buffered.core, Access::Write));
        if let Some(store) = buffered.store {
            // SAFETY: the word exists: one that ends takes its stores out of all buffers
            // (`forget_stores`). It is an atomic of the type of `perform`, which came with it.
            unsafe { (store.perform)(store.word, store.bits, store.value) };
            self.cache.changed(buffered.line, vcpu);
        }
        if buffered.is_awaited {
            self.goes(vcpu, self.now);
        }
        self.answer();
    }

    /// Whether a load waits for the line that the buffered store has requested, without a request
    /// of its own.
    pub fn joins(&mut self, vcpu: usize, core: usize, line: usize) -> bool {
        let is_it = |it: Buffered| (it.line, it.core) == (line, core);
        self.vcpus[vcpu].buffered.is_some_and(is_it)
            && !self.cache.has(line, core, Access::Read)
            && self.drain(vcpu)
    }

    /// Returns which bits of the word at `address` the buffered store of `vcpu` sets, and to what.
    pub fn buffered(&self, vcpu: usize, address: usize) -> (u64, u64) {
        let store = self.vcpus[vcpu].buffered.and_then(|it| it.store);
        let store = store.filter(|store| store.word.addr() == address);
        store.map_or((0, 0), |store| (store.bits, store.value & store.bits))
    }

    /// A load of `vcpu` got its value from the store buffer.
    pub fn loaded_own(&mut self, vcpu: usize, address: usize) {
        let line = self.cache.line(address);
        self.vcpus[vcpu].changes_seen = self.cache.changes(line);
    }

    /// Takes stores to the word at `address`, which ends, out of all buffers.
    pub fn forget_stores(&mut self, address: usize) {
        for buffered in self
            .vcpus
            .iter_mut()
            .filter_map(|vcpu| vcpu.buffered.as_mut())
        {
            (buffered.store).take_if(|store| store.word.addr() == address);
        }
    }

    /// Whether all stores that were issued until then are visible.
    pub fn are_visible(&self, until: Time) -> bool {
        let mut buffered = self.vcpus.iter().filter_map(|vcpu| vcpu.buffered);
        buffered.all(|buffered| buffered.since > until)
    }
}

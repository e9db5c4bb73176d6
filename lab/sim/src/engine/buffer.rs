//! Store buffers.
//!
//! A store whose line is there, behind no other, takes effect at once. Any other enters the buffer
//! and requests its line, while the vCPU goes on. Stores become visible in their order: each when
//! its line has arrived and all before it are visible. Requests overlap; a line that has arrived
//! too early may be lost again, and is then requested once more. The vCPU's own loads see its
//! buffered stores. A locked instruction or a call of the host waits until the buffer is empty.
//!
//! The buffer belongs to a vCPU. It keeps the core on which a store was issued, so it goes on to
//! drain while the vCPU is preempted. A store to the vCPU's own stack does not enter it.
//!
//! # Invariants
//!
//! - B1: a vCPU's stores become visible in the order in which it issued them.
//! - B2: a store becomes visible while the core that issued it owns the line.
//! - B3: while the buffer is not empty, a request of its vCPU is under way; its arrival drains it.
//! - B4: no buffered store is to a word that has ended, or that may be moved.

use std::collections::VecDeque;

use super::state::Engine;
use super::vcpu::Vcpu;
use crate::cache::{Access, Answer, Request};
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

#[derive(Clone, Copy, Debug)]
struct Entry {
    store: Store,
    line: usize,
    core: usize,
}

/// The store buffer of a vCPU.
#[derive(Debug, Default)]
pub(super) struct Stores {
    entries: VecDeque<Entry>,
    /// The lines that were requested, and have not arrived, for which core.
    requested: Vec<(usize, usize)>,
    /// Whether the vCPU waits until the buffer is empty.
    draining: bool,
    /// The requested line for which the vCPU waits with a load.
    joined: Option<(usize, usize)>,
    /// The number of stores that have entered the buffer.
    issued: u64,
}

impl Stores {
    /// Whether no store is in the buffer, and no line has been requested for one.
    pub fn are_empty(&self) -> bool {
        self.entries.is_empty() && self.requested.is_empty()
    }
}

impl Engine {
    /// Waits until the store buffer of `vcpu` is empty. Returns whether the fibre has to be
    /// suspended.
    pub fn drain(&mut self, vcpu: usize) -> bool {
        let waits = !self.vcpus[vcpu].stores.entries.is_empty();
        if waits {
            self.waits_for_memory(vcpu);
            self.vcpus[vcpu].stores.draining = true;
        }
        waits
    }

    /// The same if the buffer is full.
    pub fn make_room(&mut self, vcpu: usize) -> bool {
        self.vcpus[vcpu].stores.entries.len() >= self.machine.costs.stores && self.drain(vcpu)
    }

    /// Begins a store. Returns how long it takes if it can take effect without the buffer.
    pub fn stores_at_once(&mut self, vcpu: usize, address: usize) -> Option<Time> {
        let line = self.cache.line(address);
        let core = self.core(vcpu);
        let first = self.vcpus[vcpu].stores.entries.is_empty();
        if !first || !self.cache.owns(self.now, core, line) {
            return None;
        }
        self.vcpus[vcpu].line = line;
        match self.cache.access(self.now, vcpu, core, line, Access::Write) {
            Answer::Hit(time) => Some(time),
            Answer::Wait => unreachable!("the core owns the line"),
        }
    }

    /// Buffers a store, and requests its line.
    pub fn buffers(&mut self, vcpu: usize, store: Store) {
        let line = self.cache.line(store.word.addr());
        let core = self.core(vcpu);
        let entry = Entry { store, line, core };
        let stores = &mut self.vcpus[vcpu].stores;
        stores.entries.push_back(entry);
        stores.issued += 1;
        if !self.cache.owns(self.now, core, line) {
            self.requests(vcpu, line, core);
        }
        self.answer();
    }

    fn requests(&mut self, vcpu: usize, line: usize, core: usize) {
        let requested = &mut self.vcpus[vcpu].stores.requested;
        if !requested.contains(&(line, core)) {
            requested.push((line, core));
            self.cache.request_ownership(self.now, vcpu, core, line);
        }
    }

    /// The line that a buffered store needs has arrived.
    pub fn owned(&mut self, request: Request) {
        let [vcpu, core, line] = [request.vcpu, request.core, request.line].map(|it| it as usize);
        let stores = &mut self.vcpus[vcpu].stores;
        let requested = &mut stores.requested;
        requested.retain(|&requested| requested != (line, core));
        if stores.joined == Some((line, core)) {
            stores.joined = None;
            self.goes(vcpu, self.now);
        }
        self.drains(vcpu);
    }

    /// Makes buffered stores visible, in their order, as long as their lines are there.
    fn drains(&mut self, vcpu: usize) {
        while let Some(&Entry { store, line, core }) = self.vcpus[vcpu].stores.entries.front() {
            if !self.cache.owns(self.now, core, line) {
                self.requests(vcpu, line, core);
                break;
            }
            // SAFETY: the word exists: one that ends takes its stores out of all buffers
            // (`forget_stores`). It is an atomic of the type of `perform`, which came with it.
            unsafe { (store.perform)(store.word, store.bits, store.value) };
            self.vcpus[vcpu].stores.entries.pop_front();
            self.cache.changed(line, vcpu);
        }
        let stores = &mut self.vcpus[vcpu].stores;
        if stores.entries.is_empty() && std::mem::take(&mut stores.draining) {
            self.goes(vcpu, self.now);
        }
        self.answer();
    }

    /// Whether a load waits for a line that a buffered store has requested, without a request of
    /// its own.
    pub fn joins(&mut self, vcpu: usize, core: usize, line: usize) -> bool {
        let requested = self.vcpus[vcpu].stores.requested.contains(&(line, core));
        let joins = requested && !self.cache.has(line, core, Access::Read);
        if joins {
            self.waits_for_memory(vcpu);
            self.vcpus[vcpu].stores.joined = Some((line, core));
        }
        joins
    }

    /// Returns which bits of the word at `address` the store buffer sets, and to what.
    pub fn buffered(&self, vcpu: usize, address: usize) -> (u64, u64) {
        let stores = &self.vcpus[vcpu].stores.entries;
        let (mut bits, mut value) = (0, 0);
        for Entry { store, .. } in stores {
            if store.word.addr() == address {
                bits |= store.bits;
                value = value & !store.bits | store.value & store.bits;
            }
        }
        (bits, value)
    }

    /// A load of `vcpu` got its value from the store buffer.
    pub fn loaded_own(&mut self, vcpu: usize, address: usize) {
        let line = self.cache.line(address);
        self.vcpus[vcpu].changes_seen = self.cache.changes(line);
    }

    /// Takes the stores to the word at `address`, which ends, out of all buffers.
    pub fn forget_stores(&mut self, address: usize) {
        for vcpu in &mut self.vcpus {
            let entries = &mut vcpu.stores.entries;
            entries.retain(|entry| entry.store.word.addr() != address);
        }
    }

    /// Returns how many stores each vCPU has issued.
    pub fn issued(&self) -> Vec<u64> {
        self.vcpus.iter().map(|vcpu| vcpu.stores.issued).collect()
    }

    /// Whether those stores are visible.
    pub fn are_visible(&self, issued: &[u64]) -> bool {
        let mut vcpus = self.vcpus.iter().zip(issued);
        vcpus.all(|(Vcpu { stores, .. }, issued)| {
            stores.issued - stores.entries.len() as u64 >= *issued
        })
    }
}

//! The tables that locks keep outside of themselves, for threads and for waiters.
//!
//! A platform provides room for it, and hands it out by [`Platform::tables`](crate::Platform):
//!
//! ```ignore
//! static STORAGE: Storage<MyKernel, THREADS> = Storage::new();
//!
//! fn tables() -> Tables<MyKernel> {
//!     Tables::new(&STORAGE)
//! }
//! ```
//!
//! There is a [slot](crate::node) for each thread, and a count of the numbers that were given to
//! locks. Locks with further tables bring a trait of their own: see `overlock_family`.

use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Acquire;

use crate::platform::atomic::Atomic;
use crate::platform::atomics::Atomics;
use crate::slot::{MAX_SLOTS, MOST_SLOTS, Slot};

/// The last number that was given to a lock, on a cache line of its own; 0 at first.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Numbers<A: Atomics>(pub(crate) A::U32);

/// Room for the tables of a platform. All zero bytes at first: a static takes no space in the
/// program's file, and a page of it no memory until it is used.
///
/// `SLOTS` is the most threads that can wait in a queue at a time, at most [`MAX_SLOTS`]. A
/// platform may have [further ones](Chunks).
#[derive(Debug)]
#[repr(C)]
pub struct Storage<A: Atomics, const SLOTS: usize> {
    slots: [Slot<A>; SLOTS],
    numbers: Numbers<A>,
}

impl<A: Atomics, const SLOTS: usize> Storage<A, SLOTS> {
    /// Empty tables.
    pub const fn new() -> Self {
        Storage {
            slots: [const { Slot::new() }; SLOTS],
            numbers: Numbers(Atomic::ZERO),
        }
    }
}

impl<A: Atomics, const SLOTS: usize> Default for Storage<A, SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

/// The number of slots of a [`Chunk`].
pub const CHUNK: usize = 1024;

/// Slots that a platform provides when threads need them. All zero bytes at first.
#[derive(Debug)]
#[repr(C)]
pub struct Chunk<A: Atomics>([Slot<A>; CHUNK]);

/// The slots beyond those of a [`Storage`], up to [`MOST_SLOTS`]: null pointers at first. The slot
/// of a number is in the chunk of that number divided by [`CHUNK`].
#[derive(Debug)]
pub struct Chunks<A: Atomics>([AtomicPtr<Chunk<A>>; MOST_SLOTS / CHUNK]);

impl<A: Atomics> Chunks<A> {
    /// No chunks.
    pub const fn new() -> Self {
        Chunks([const { AtomicPtr::new(core::ptr::null_mut()) }; MOST_SLOTS / CHUNK])
    }

    /// The place of the chunk with this slot.
    ///
    /// # Safety
    ///
    /// The caller changes it at most once, by a release, from null to the address of zero bytes of
    /// a chunk's size and alignment. They live for ever, and nobody else uses them.
    ///
    /// # Panics
    ///
    /// If there is no such slot.
    pub unsafe fn place(&self, slot: usize) -> &AtomicPtr<Chunk<A>> {
        &self.0[slot / CHUNK]
    }

    #[inline]
    fn get(&self, slot: usize) -> Option<&'static Slot<A>> {
        // Acquire: pairs with the release of who has put the chunk there.
        let chunk = self.0[slot / CHUNK].load(Acquire);
        // SAFETY: null, or as `place` demands: zero bytes are a valid slot that nobody owns.
        let chunk = unsafe { chunk.as_ref() }?;
        Some(&chunk.0[slot % CHUNK])
    }
}

impl<A: Atomics> Default for Chunks<A> {
    fn default() -> Self {
        Self::new()
    }
}

/// The tables of a platform: see the [module's page](self).
#[derive(Debug)]
pub struct Tables<A: Atomics> {
    slots: &'static [Slot<A>],
    chunks: Option<&'static Chunks<A>>,
    pub(crate) numbers: &'static Numbers<A>,
}

impl<A: Atomics> Clone for Tables<A> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Atomics> Copy for Tables<A> {}

impl<A: Atomics> Tables<A> {
    /// The tables in `storage`. Costs nothing if the storage is a static.
    ///
    /// Does not compile if the storage has more than [`MAX_SLOTS`] slots.
    #[inline(always)]
    pub const fn new<const SLOTS: usize>(storage: &'static Storage<A, SLOTS>) -> Self {
        const {
            assert!(
                SLOTS <= MAX_SLOTS,
                "a queue's tail cannot name so many slots"
            );
        }
        Tables {
            slots: &storage.slots,
            chunks: None,
            numbers: &storage.numbers,
        }
    }

    /// The same tables with the slots of these chunks behind those of the storage.
    #[inline(always)]
    pub const fn with_chunks(self, chunks: &'static Chunks<A>) -> Self {
        Tables {
            chunks: Some(chunks),
            ..self
        }
    }

    /// How many slots there may be: see [`Platform::slot`](crate::Platform::slot).
    #[inline(always)]
    pub fn slots(&self) -> usize {
        self.chunks.map_or(self.slots.len(), |_| MOST_SLOTS)
    }

    /// A slot that a thread has, or has had.
    #[inline]
    pub(crate) fn slot(&self, number: usize) -> &'static Slot<A> {
        self.slots
            .get(number)
            .or_else(|| self.chunks?.get(number))
            .expect("a slot that threads have had is there")
    }

    /// The first so many slots, as far as they are there.
    pub(crate) fn first(self, count: usize) -> impl Iterator<Item = &'static Slot<A>> {
        let beyond = self.slots.len()..count.min(self.slots());
        let chunks = self.chunks;
        let beyond = beyond.filter_map(move |number| chunks?.get(number));
        self.slots.iter().take(count).chain(beyond)
    }

    /// Whether the thread of `slot` neither waits in a queue nor holds a lock by a node, an entry
    /// or a [guard](crate::node::SlotGuard) of its slot. A thread that has forgotten such a guard
    /// exits with a slot that is not idle. A platform must not give that slot to another thread: a
    /// queue may still name its node.
    ///
    /// Called by that thread after its last use of the slot: the loads are Relaxed.
    /// [In a kernel](crate::platform#idle-unplugged-exited) says when a slot may get another owner.
    ///
    /// # Panics
    ///
    /// If there is no such slot.
    pub fn is_idle(&self, slot: usize) -> bool {
        self.slot(slot).is_idle()
    }

    /// The slot whose queue node has a word at `address`. `None` if it is not a word of a node:
    /// several threads may then halt on it. Knows only the slots of the [`Storage`].
    ///
    /// Only the thread of that slot halts on a word of its nodes. So a platform whose kick needs a
    /// CPU, as a hypercall does, kicks the CPU of this slot. Does not access the word, which may
    /// have been freed.
    pub fn slot_of(&self, address: usize) -> Option<usize> {
        let offset = address.checked_sub(self.slots.as_ptr().addr())?;
        let slot = self.slots.get(offset / size_of::<Slot<A>>())?;
        let nodes = slot.nodes.as_ptr_range();
        (nodes.start.addr()..nodes.end.addr())
            .contains(&address)
            .then_some(offset / size_of::<Slot<A>>())
    }
}

#[cfg(test)]
mod tests {
    use crate::node::NodeId;
    use crate::platform::Platform;
    use crate::toy::{SLOTS, Toy};

    #[test]
    fn a_word_of_a_node_leads_to_its_slot() {
        let tables = Toy::tables();
        for (slot, context) in [(0, 0), (3, 2), (SLOTS - 1, 3)] {
            let node = NodeId::new(slot, context).node::<Toy>();
            for word in [&node.kicks, &node.state] {
                assert_eq!(tables.slot_of(core::ptr::from_ref(word).addr()), Some(slot));
            }
        }
        // An entry is a word of the slot on which others halt.
        let slots = tables.slots.as_ptr_range();
        let entries = core::ptr::from_ref(&tables.slots[2].entries).addr();
        for other in [0, slots.start.addr() - 4, slots.end.addr(), entries] {
            assert_eq!(tables.slot_of(other), None);
        }
    }
}

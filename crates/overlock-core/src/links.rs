//! A list of sleepers, linked through their queue nodes, and the back-off of threads that are in
//! none.

use core::sync::atomic::Ordering::Relaxed;

use crate::node::NodeId;
use crate::platform::{self, Atomic, Platform};

/// The back-off of a thread that nobody can wake: it has no queue node, or it waits for another to
/// get its CPU back. About as long as a wake-up across CPUs.
pub const BACKOFF_SLEEP_NS: u64 = 50_000;

/// Gives the CPU away for [`BACKOFF_SLEEP_NS`].
pub fn backoff_sleep<P: Platform>() {
    platform::backoff_sleep::<P>(BACKOFF_SLEEP_NS);
}

/// A doubly linked ring of nodes, through their `next` and `wait`. Its user holds its wait lock,
/// which orders all accesses: they are Relaxed.
#[derive(Debug)]
pub struct Links<P: Platform> {
    head: P::U32,
}

fn name(id: Option<NodeId>) -> u32 {
    id.map_or(0, NodeId::name)
}

impl<P: Platform> Links<P> {
    pub const INIT: Self = Links { head: Atomic::ZERO };

    /// After fork() in the child: empties it, since its nodes' threads exist only in the parent.
    pub fn forget(&self) {
        self.head.store(0, Relaxed);
    }

    /// The first node. Without the wait lock: a snapshot.
    pub fn first(&self) -> Option<NodeId> {
        NodeId::from_name(self.head.load(Relaxed))
    }

    pub fn last(&self) -> Option<NodeId> {
        self.first().and_then(Self::left)
    }

    /// The node behind `id`, which is in the list.
    pub fn after(&self, id: NodeId) -> Option<NodeId> {
        Self::right(id).filter(|&right| self.first() != Some(right))
    }

    /// The node in front of `id`, which is in the list.
    pub fn before(&self, id: NodeId) -> Option<NodeId> {
        Self::left(id).filter(|_| self.first() != Some(id))
    }

    /// The nodes from the first to the last. The caller may take out those that it was given.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> {
        core::iter::successors(self.first(), |&id| self.after(id))
    }

    pub fn push_back(&self, id: NodeId) {
        self.insert_before(id, None);
    }

    /// Puts `id` behind those of its rank, and in front of those of lower ones, by `rank_of`.
    pub fn push_ranked(&self, id: NodeId, rank: u32, rank_of: impl Fn(NodeId) -> u32) {
        let lower = match rank {
            0 => None,
            _ => self.ids().find(|&other| rank_of(other) < rank),
        };
        self.insert_before(id, lower);
    }

    /// The next node of the ring.
    fn right(id: NodeId) -> Option<NodeId> {
        NodeId::from_name(id.node::<P>().next.load(Relaxed))
    }

    /// The node before it in the ring.
    fn left(id: NodeId) -> Option<NodeId> {
        NodeId::from_name(id.node::<P>().wait.load(Relaxed))
    }

    /// Puts `id` in front of `after`; at the end where that is `None`.
    pub fn insert_before(&self, id: NodeId, after: Option<NodeId>) {
        let first = self.first();
        let right = after.or(first).unwrap_or(id);
        let left = first.and_then(|_| Self::left(right)).unwrap_or(id);
        Self::link(left, id);
        Self::link(id, right);
        if after == first {
            self.head.store(id.name(), Relaxed);
        }
    }

    /// Takes `id` out, wherever it stands.
    pub fn unlink(&self, id: NodeId) {
        let after = self.after(id);
        if self.first() == Some(id) {
            self.head.store(name(after), Relaxed);
        }
        if let (Some(left), Some(right)) = (Self::left(id), Self::right(id)) {
            Self::link(left, right);
        }
    }

    /// Makes the two neighbours.
    fn link(left: NodeId, right: NodeId) {
        left.node::<P>().next.store(right.name(), Relaxed);
        right.node::<P>().wait.store(left.name(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;
    use std::vec::Vec;

    fn content(links: &Links<Toy>) -> Vec<usize> {
        let forwards: Vec<_> = links.ids().collect();
        let mut backwards: Vec<_> =
            core::iter::successors(links.last(), |&id| links.before(id)).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        forwards.into_iter().map(NodeId::slot).collect()
    }

    #[test]
    fn nodes_are_linked_both_ways_wherever_they_come_and_go() {
        let links = Links::INIT;
        let ids: Vec<_> = (0..5).map(|slot| NodeId::new(slot, 0)).collect();
        assert_eq!(content(&links), []);
        links.push_back(ids[1]);
        links.push_back(ids[2]);
        links.insert_before(ids[0], Some(ids[1]));
        links.insert_before(ids[3], Some(ids[2]));
        links.insert_before(ids[4], Some(ids[0]));
        assert_eq!(content(&links), [4, 0, 1, 3, 2]);
        for (out, rest) in [
            (1, &[4, 0, 3, 2][..]),
            (2, &[4, 0, 3]),
            (4, &[0, 3]),
            (0, &[3]),
            (3, &[]),
        ] {
            links.unlink(ids[out]);
            assert_eq!(content(&links), rest);
        }
    }
}

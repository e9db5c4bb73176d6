//! The queue of events: a tournament.
//!
//! Most events have a *source*, which has one event at most: a vCPU goes on at one time, a CPU has
//! one end of its slice. Planning such an event anew moves it, and cancelling takes it out, so
//! there are no void events. Each source has a leaf of a binary tree; so has each other event while
//! it is planned. A node has the lesser entry of its two children, so the root has the next event.
//!
//! # Invariants
//!
//! - Q1: a leaf has the entry of its event, or `NEVER`.
//! - Q2: every other node has the lesser entry of its children.

use crate::time::Time;

/// An entry is the time, the order of planning, and the leaf, which has so many bits: compared as
/// one number, without a branch.
const LEAF_BITS: u32 = 24;
/// The entry of an event that is not planned.
const NEVER: u128 = u128::MAX;

/// Events of type `E`, and those of sources, which are numbers.
#[derive(Debug)]
pub(super) struct Queue<E> {
    /// The root is the first, the children of `n` are `2 n` and `2 n + 1`, the leaves are the
    /// second half.
    tree: Vec<u128>,
    /// The number of sources. They have the first leaves.
    sources: usize,
    /// The events of the other leaves.
    others: Vec<Option<E>>,
    free: Vec<usize>,
    planned: u128,
}

/// The next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next<E> {
    /// That of a source.
    Of(usize),
    /// Another.
    Other(E),
}

impl<E> Queue<E> {
    pub fn new(sources: usize) -> Self {
        Self {
            tree: vec![NEVER; 2 * sources.max(1).next_power_of_two()],
            sources,
            others: Vec::new(),
            free: Vec::new(),
            planned: 0,
        }
    }

    /// Returns the time of the next event.
    pub fn peek(&self) -> Option<Time> {
        time(self.tree[1])
    }

    /// Plans an event without a source.
    pub fn plan(&mut self, at: Time, event: E) {
        let index = self.free.pop().unwrap_or(self.others.len());
        if index == self.others.len() {
            self.others.push(None);
            if self.sources + index == self.leaves() {
                self.grow();
            }
        }
        self.others[index] = Some(event);
        self.set(self.sources + index, at);
    }

    /// Plans the event of a source, unless an earlier one is planned.
    pub fn plan_of(&mut self, source: usize, at: Time) {
        let planned = time(self.tree[self.leaves() + source]);
        if planned.is_none_or(|planned| at < planned) {
            self.set(source, at);
        }
    }

    /// Takes the event of a source out, if one is planned.
    pub fn cancel(&mut self, source: usize) {
        self.remove(source);
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Time, Next<E>)> {
        let first = self.tree[1];
        let at = time(first)?;
        let leaf = (first & ((1 << LEAF_BITS) - 1)) as usize;
        self.remove(leaf);
        let next = match leaf.checked_sub(self.sources) {
            None => Next::Of(leaf),
            Some(index) => {
                self.free.push(index);
                Next::Other(self.others[index].take().expect("it is planned"))
            }
        };
        Some((at, next))
    }

    fn leaves(&self) -> usize {
        self.tree.len() / 2
    }

    fn set(&mut self, leaf: usize, at: Time) {
        debug_assert!(leaf < 1 << LEAF_BITS);
        self.planned += 1;
        let entry = u128::from(at.as_ps()) << 64 | self.planned << LEAF_BITS | leaf as u128;
        self.put(leaf, entry);
    }

    /// Gives a leaf an entry that is less than the one it has. No other leaf has to be looked at.
    fn put(&mut self, leaf: usize, entry: u128) {
        let mut node = self.leaves() + leaf;
        while node > 0 && entry < self.tree[node] {
            self.tree[node] = entry;
            node /= 2;
        }
    }

    /// Takes the entry of a leaf out, if it has one.
    fn remove(&mut self, leaf: usize) {
        let mut node = self.leaves() + leaf;
        let mut least = NEVER;
        while self.tree[node] != least {
            self.tree[node] = least;
            if node == 1 {
                break;
            }
            least = least.min(self.tree[node ^ 1]);
            node /= 2;
        }
    }

    /// Doubles the leaves.
    fn grow(&mut self) {
        let leaves = self.leaves();
        let old = std::mem::replace(&mut self.tree, vec![NEVER; 4 * leaves]);
        for (leaf, &entry) in old[leaves..].iter().enumerate() {
            self.put(leaf, entry);
        }
    }
}

fn time(entry: u128) -> Option<Time> {
    (entry != NEVER).then(|| Time::ps((entry >> 64) as u64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a sorted list: by time, then in the order of planning. Fails where a node
        /// keeps the entry of an event that has moved.
        #[test]
        fn events_come_in_order(
            steps in proptest::collection::vec((0..4_u8, 0..6_usize, 0..50_u64), 1..200)
        ) {
            let mut queue = Queue::new(6);
            // Time, order, event.
            let mut list: Vec<(u64, usize, Next<usize>)> = Vec::new();
            for (order, (what, source, at)) in steps.into_iter().enumerate() {
                let of = Next::Of(source);
                match what {
                    0 => {
                        queue.plan(Time::ps(at), order);
                        list.push((at, order, Next::Other(order)));
                    }
                    1 => {
                        queue.plan_of(source, Time::ps(at));
                        if !list.iter().any(|known| known.2 == of && known.0 <= at) {
                            list.retain(|known| known.2 != of);
                            list.push((at, order, of));
                        }
                    }
                    2 => {
                        queue.cancel(source);
                        list.retain(|known| known.2 != of);
                    }
                    _ => {
                        list.sort_by_key(|&(at, order, _)| (at, order));
                        let first = (!list.is_empty()).then(|| list.remove(0));
                        let expected = first.map(|(at, _, event)| (Time::ps(at), event));
                        prop_assert_eq!(queue.pop(), expected);
                    }
                }
                let least = list.iter().map(|&(at, ..)| Time::ps(at)).min();
                prop_assert_eq!(queue.peek(), least);
            }
        }
    }
}

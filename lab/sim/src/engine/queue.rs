//! The queue of events: a ring of short spans of time.
//!
//! Most events have a *source*, which has one event at most: a vCPU goes on at one time, a CPU has
//! one end of its slice. Planning such an event anew moves it, and cancelling takes it out. Both
//! are frequent: a vCPU that watches a line plans the end of that, which rarely comes. So an event
//! that is put off or cancelled stays where it is until its time comes, and moves on only then.
//!
//! An event soon to come is in the list of its span, an event beyond the ring in a heap. The list
//! of a span is sorted when the span begins.
//!
//! # Invariants
//!
//! - Q1: an event that is planned has an entry on its way, not later than that of its plan.
//! - Q2: entries of the present span and before it are in `present`, the next of them last.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Time;

/// An entry is the time, the order of planning, and the number of the event, which has so many
/// bits: compared as one number, without a branch.
const NUMBER_BITS: u32 = 24;
/// The entry of an event that is not planned.
const NEVER: u128 = u128::MAX;
/// A span is two to the power of so many picoseconds long: 33 ns.
const SPAN_BITS: u32 = 15;
/// Spans of the ring.
const SPANS: u64 = 512;

/// Events of type `E`.
#[derive(Debug)]
pub(super) struct Queue<E> {
    /// By their numbers, of which the sources have the first: the events, the entries of their
    /// plans, and their first entries on the way.
    events: Vec<E>,
    planned: Vec<u128>,
    placed: Vec<u128>,
    sources: usize,
    /// Numbers that no event has.
    free: Vec<usize>,
    order: u128,
    /// The number of the present span, and its entries.
    span: u64,
    present: Vec<u128>,
    /// The entries of the next spans.
    ring: Vec<Vec<u128>>,
    far: BinaryHeap<Reverse<u128>>,
}

impl<E: Copy> Queue<E> {
    /// An empty queue, for sources with these events.
    pub fn new(events: Vec<E>) -> Self {
        let sources = events.len();
        Self {
            events,
            planned: vec![NEVER; sources],
            placed: vec![NEVER; sources],
            sources,
            free: Vec::new(),
            order: 0,
            span: 0,
            present: Vec::new(),
            ring: vec![Vec::new(); SPANS as usize],
            far: BinaryHeap::new(),
        }
    }

    /// Returns the time of the next event.
    #[inline]
    pub fn peek(&mut self) -> Option<Time> {
        self.next().map(time)
    }

    /// Plans an event without a source.
    pub fn plan(&mut self, at: Time, event: E) {
        let number = self.free.pop().unwrap_or(self.events.len());
        if number == self.events.len() {
            self.events.push(event);
            self.planned.push(NEVER);
            self.placed.push(NEVER);
        }
        self.events[number] = event;
        self.set(number, at);
    }

    /// Plans the event of a source, unless an earlier one is planned, or it never comes.
    pub fn plan_of(&mut self, source: usize, at: Time) {
        let planned = self.planned[source];
        if at < Time::MAX && (planned == NEVER || at < time(planned)) {
            self.set(source, at);
        }
    }

    /// Takes the event of a source out, if one is planned.
    pub fn cancel(&mut self, source: usize) {
        self.planned[source] = NEVER;
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let entry = self.next()?;
        self.present.pop();
        let number = number(entry);
        (self.planned[number], self.placed[number]) = (NEVER, NEVER);
        if number >= self.sources {
            self.free.push(number);
        }
        Some((time(entry), self.events[number]))
    }

    fn set(&mut self, number: usize, at: Time) {
        debug_assert!(number < 1 << NUMBER_BITS);
        self.order += 1;
        let entry = u128::from(at.as_ps()) << 64 | self.order << NUMBER_BITS | number as u128;
        self.planned[number] = entry;
        if entry < self.placed[number] {
            self.place(number, entry);
        }
    }

    /// Puts an entry on its way.
    fn place(&mut self, number: usize, entry: u128) {
        self.placed[number] = entry;
        let span = span(entry);
        if span <= self.span {
            let index = self.present.partition_point(|&other| other > entry);
            self.present.insert(index, entry);
        } else if span < self.span + SPANS {
            self.ring[(span % SPANS) as usize].push(entry);
        } else {
            self.far.push(Reverse(entry));
        }
    }

    /// Returns the entry of the next event, which is then the last one of the present span.
    #[inline]
    fn next(&mut self) -> Option<u128> {
        loop {
            let Some(&entry) = self.present.last() else {
                self.enter_next_span()?;
                continue;
            };
            let number = number(entry);
            let planned = self.planned[number];
            if planned == entry {
                return Some(entry);
            }
            self.present.pop();
            // Another one is on its way, or the event is not planned, or put off.
            if self.placed[number] == entry {
                self.placed[number] = NEVER;
                if planned != NEVER {
                    self.place(number, planned);
                }
            }
        }
    }

    /// Enters the next span that has entries.
    fn enter_next_span(&mut self) -> Option<()> {
        let mut spans = self.span + 1..self.span + SPANS;
        let next = spans.find(|span| !self.ring[(span % SPANS) as usize].is_empty());
        let far = self.far.peek().map(|&Reverse(entry)| span(entry));
        self.span = next.or(far)?;
        std::mem::swap(
            &mut self.present,
            &mut self.ring[(self.span % SPANS) as usize],
        );
        self.present.sort_unstable_by_key(|&entry| Reverse(entry));
        while let Some(&Reverse(entry)) = self.far.peek()
            && span(entry) < self.span + SPANS
        {
            self.far.pop();
            let number = number(entry);
            if self.placed[number] == entry {
                self.place(number, entry);
            }
        }
        Some(())
    }
}

fn number(entry: u128) -> usize {
    (entry & ((1 << NUMBER_BITS) - 1)) as usize
}

fn span(entry: u128) -> u64 {
    (entry >> 64) as u64 >> SPAN_BITS
}

fn time(entry: u128) -> Time {
    Time::ps((entry >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn waits() -> impl Strategy<Value = u64> {
        prop_oneof![
            0..100_u64,
            0..40_000_u64,
            0..20_000_000_u64,
            0..100_000_000_u64
        ]
    }

    proptest! {
        /// Against a sorted list: by time, then in the order of planning. Times are in the present
        /// span, in the ring, and beyond it. Fails where an event that has moved comes at its old
        /// time, or one comes at a wrong time, or not at all.
        #[test]
        fn events_come_in_order(
            steps in proptest::collection::vec((0..4_u8, 0..6_usize, waits()), 1..200)
        ) {
            let mut queue = Queue::new((0..6).collect());
            // Time, order, event.
            let mut list: Vec<(u64, usize, usize)> = Vec::new();
            let mut now = 0;
            for (order, (what, source, wait)) in steps.into_iter().enumerate() {
                let at = now + wait;
                match what {
                    0 => {
                        queue.plan(Time::ps(at), 6 + order);
                        list.push((at, order, 6 + order));
                    }
                    1 => {
                        queue.plan_of(source, Time::ps(at));
                        if !list.iter().any(|known| known.2 == source && known.0 <= at) {
                            list.retain(|known| known.2 != source);
                            list.push((at, order, source));
                        }
                    }
                    2 => {
                        queue.cancel(source);
                        list.retain(|known| known.2 != source);
                    }
                    _ => {
                        list.sort_by_key(|&(at, order, _)| (at, order));
                        let first = (!list.is_empty()).then(|| list.remove(0));
                        now = first.map_or(now, |(at, ..)| at);
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

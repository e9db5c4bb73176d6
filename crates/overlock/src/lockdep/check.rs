//! The rules, at each acquisition.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};

use super::class::{self, ClassId, Origin};
use super::graph::{Added, Edge, Key};
use super::report::{self, Finding};
use super::thread::{Entry, Held, Thread};
use super::trace::Trace;
use super::{GATE, GRAPH, Nesting, notice, signal};

static NESTING: AtomicU8 = AtomicU8::new(0);

pub(super) fn set_nesting(nesting: Nesting) {
    NESTING.store(nesting as u8, Relaxed);
}

/// The thread is about to wait for it.
#[inline]
pub(super) fn wanted(me: &Thread, wanted: Held) {
    if me.depth() != 0 {
        beside(me, wanted);
    }
    if me.signals().load(Relaxed) != 0 {
        signal::waits(me, wanted);
    }
}

/// With locks held.
fn beside(me: &Thread, wanted: Held) {
    let entries = me.entries();
    if let Some(entry) = entries.iter().find(|entry| entry.lock() == wanted.lock) {
        // Taken again: what is held beside it was already, or comes after it.
        return again(me, entry, wanted);
    }
    if wanted.class == ClassId::NONE {
        return;
    }
    for entry in entries {
        let (class, how) = entry.class_and_how();
        if class == wanted.class {
            within(me, entry, wanted);
        } else if entry.lock() != 0 && class != ClassId::NONE {
            let key = Key::new(class.index(), how, wanted.class.index(), wanted.how);
            if !GRAPH.knows(key) {
                new(me, entry, wanted);
            }
        }
    }
}

#[cold]
fn again(me: &Thread, entry: &Entry, wanted: Held) {
    let Some(held) = entry.get() else { return };
    if wanted.how.may_follow(held.how) {
        return;
    }
    report::make(
        me,
        &if held.how.is_shared() && wanted.how.is_shared() {
            Finding::ReadAgain { held, wanted }
        } else {
            Finding::Again { held, wanted }
        },
    );
}

/// Two locks of one class.
fn within(me: &Thread, entry: &Entry, wanted: Held) {
    let pair = Pair::new(entry, &wanted);
    if pair.is_fine() {
        return;
    }
    let Some(held) = entry.get() else { return };
    if NESTING.load(Relaxed) == Nesting::Report as u8 {
        return report::make(me, &Finding::Class { held, wanted });
    }
    let [held, wanted] = [held, wanted].map(|held| Held {
        class: class::class_of(Origin::Member(held.class, held.member)),
        ..held
    });
    if held.class != ClassId::NONE && wanted.class != ClassId::NONE {
        depends(me, held, wanted);
        pair.note();
    }
}

/// Two locks of one class, held together: a hash of what they are.
struct Pair(u64);

/// Pairs that were looked at, each at a place of its own, until another takes it. Finding the two members in the table of classes takes longer.
static PAIRS: [AtomicU64; 1 << 12] = [const { AtomicU64::new(0) }; 1 << 12];

impl Pair {
    #[inline]
    fn new(entry: &Entry, wanted: &Held) -> Pair {
        let (class, how) = entry.class_and_how();
        let mix = |sum: u64, value: usize| {
            (sum.rotate_left(23) ^ value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        let hows = usize::from(how.to_bits()) << 8 | usize::from(wanted.how.to_bits());
        let kind = usize::from(class.index()) << 16 | hows;
        // What was learnt of locks that are gone does not count.
        let all = [kind, class::forgotten(), entry.member(), wanted.member];
        Pair(all.into_iter().fold(1, mix) | 1)
    }

    #[inline]
    fn place(&self) -> &'static AtomicU64 {
        &PAIRS[(self.0 >> 32) as usize % PAIRS.len()]
    }

    #[inline]
    fn is_fine(&self) -> bool {
        self.place().load(Relaxed) == self.0
    }

    fn note(&self) {
        self.place().store(self.0, Relaxed);
    }
}

#[cold]
#[inline(never)]
fn new(me: &Thread, entry: &Entry, wanted: Held) {
    if let Some(held) = entry.get() {
        depends(me, held, wanted);
    }
}

fn depends(me: &Thread, held: Held, wanted: Held) {
    let ends = [held, wanted].map(|held| (held.class.index(), held.how, held.site));
    if GRAPH.knows(Key::new(ends[0].0, ends[0].1, ends[1].0, ends[1].1)) {
        return;
    }
    // Before the gate: see there.
    let edge = Edge::new(ends[0], ends[1], Trace::here(wanted.site));
    let added = GRAPH.add(edge, class::is_alive, &GATE.enter());
    match added {
        Added::Fine => signal::ask(me, held),
        Added::Full => notice::once(notice::EDGES),
        Added::Circle(path) => report::make(
            me,
            &Finding::Order {
                held,
                wanted,
                path: &path,
            },
        ),
    }
}

//! The rules, checked at each acquisition.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};

use super::class::{self, ClassId, Origin};
use super::graph::{Added, Edge, Key};
use super::report::{self, Finding};
use super::site::How;
use super::thread::{Entry, Held, Thread};
use super::trace::Trace;
use super::{GATE, GRAPH, Nesting, notice, signal};

static NESTING: AtomicU8 = AtomicU8::new(0);

pub(super) fn set_nesting(nesting: Nesting) {
    NESTING.store(nesting as u8, Relaxed);
}

/// The thread is about to wait for `wanted`.
#[inline]
pub(super) fn wanted(me: &Thread, wanted: &Held) {
    if me.depth() != 0 {
        with_locks_held(me, wanted);
    }
    if me.signals().load(Relaxed) != 0 {
        signal::waits(me, wanted);
    }
}

fn with_locks_held(me: &Thread, wanted: &Held) {
    let entries = me.entries();
    if let Some(entry) = entries.iter().find(|entry| entry.lock() == wanted.lock) {
        // Acquired again: the other locks held were held before, or come after it.
        return again(me, entry, wanted);
    }
    if wanted.class == ClassId::NONE {
        return;
    }
    let mut half = None;
    for entry in entries {
        let (class, how) = entry.class_and_how();
        if class == wanted.class {
            let half = *half.get_or_insert_with(|| Half::new(wanted));
            if !half.with(entry.member(), how).is_fine() {
                within(me, entry, wanted, half);
            }
        } else if entry.lock() != 0 && class != ClassId::NONE {
            let key = Key::new(class.index(), how, wanted.class.index(), wanted.how);
            if !GRAPH.knows(key) {
                new(me, entry, wanted);
            }
        }
    }
}

#[cold]
fn again(me: &Thread, entry: &Entry, wanted: &Held) {
    let wanted = *wanted;
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
#[cold]
#[inline(never)]
fn within(me: &Thread, entry: &Entry, wanted: &Held, half: Half) {
    let wanted = *wanted;
    let Some(held) = entry.get() else { return };
    let pair = half.with(held.member, held.how);
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

/// The part of a pair without the held lock: the same for all held locks.
#[derive(Clone, Copy)]
struct Half(u64);

/// Checked pairs, each at a place of its own, until another takes the place. Finding the two
/// members in the table of classes takes longer.
static PAIRS: [AtomicU64; 1 << 12] = [const { AtomicU64::new(0) }; 1 << 12];

/// Odd, so that a product keeps all bits of its other factor.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl Half {
    #[inline]
    fn new(wanted: &Held) -> Half {
        let kind = u64::from(wanted.class.index()) << 8 | u64::from(wanted.how.to_bits());
        // Dependencies of locks that are gone do not count.
        let kind = (class::forgotten() as u64) << 24 ^ kind;
        Half((kind.wrapping_mul(MIX).rotate_left(29) ^ wanted.member as u64).wrapping_mul(MIX))
    }

    #[inline]
    fn with(self, member: usize, how: How) -> Pair {
        let held = (member as u64).rotate_left(8) ^ u64::from(how.to_bits());
        Pair((self.0 ^ held).wrapping_mul(MIX) | 1)
    }
}

impl Pair {
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
fn new(me: &Thread, entry: &Entry, wanted: &Held) {
    if let Some(held) = entry.get() {
        depends(me, held, *wanted);
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
        Added::Fine => {
            signal::ask(me, &held);
            signal::chains(me, &wanted);
        }
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

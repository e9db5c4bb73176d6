//! The rules, at each acquisition.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use super::class::{self, ClassId, Origin};
use super::graph::{Added, Edge, Key};
use super::report::{self, Finding};
use super::thread::{Held, Thread};
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
    if let Some(held) = me.held().find(|held| held.lock == wanted.lock) {
        // Taken again: what is held beside it was already, or comes after it.
        if !wanted.how.may_follow(held.how) {
            again(me, held, wanted);
        }
        return;
    }
    if wanted.class == ClassId::NONE {
        return;
    }
    for held in me.held() {
        if held.class == wanted.class {
            within(me, held, wanted);
        } else if held.class != ClassId::NONE {
            follows(me, held, wanted);
        }
    }
}

#[cold]
fn again(me: &Thread, held: Held, wanted: Held) {
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
fn within(me: &Thread, held: Held, wanted: Held) {
    if NESTING.load(Relaxed) == Nesting::Report as u8 {
        return report::make(me, &Finding::Class { held, wanted });
    }
    let [held, wanted] = [held, wanted].map(|held| Held {
        class: class::class_of(Origin::Member(held.class, held.member)),
        ..held
    });
    if held.class != ClassId::NONE && wanted.class != ClassId::NONE {
        follows(me, held, wanted);
    }
}

#[inline]
fn follows(me: &Thread, held: Held, wanted: Held) {
    let key = Key::new(
        held.class.index(),
        held.how,
        wanted.class.index(),
        wanted.how,
    );
    if !GRAPH.knows(key) {
        new(me, held, wanted);
    }
}

#[cold]
#[inline(never)]
fn new(me: &Thread, held: Held, wanted: Held) {
    // Before the gate: see there.
    let trace = Trace::here();
    let ends = [held, wanted].map(|held| (held.class.index(), held.how, held.site));
    let edge = Edge::new(ends[0], ends[1], trace);
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

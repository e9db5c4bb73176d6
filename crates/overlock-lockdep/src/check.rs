//! The rules, checked at each acquisition.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::class::{self, CLASSES, ClassId};
use super::gate::{Inside, Quiet};
use super::graph::{Added, Alive, Edge, Found, GUARDS, Key, Path, Reason, guard, summand};
use super::lives::ANY;
use super::report::{self, Finding, Note};
use super::settings::{self, Nesting};
use super::site::How;
use super::thread::{Entry, Held, Thread};
use super::trace::Trace;
use super::{GATE, GRAPH, notice, signal, sweep, sweep_now, tally, thread};

/// The tables' knowledge of what is gone.
pub(super) struct Known<'a>(pub(super) &'a Inside<'a>);

impl Alive for Known<'_> {
    fn node(&self, node: u32) -> bool {
        class::is_alive(node)
    }

    fn guard(&self, number: u64) -> bool {
        class::is_known(number, self.0)
    }
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
    let node = wanted.class.node();
    let mut guards = 0u64;
    for entry in me.entries() {
        let lock = entry.lock();
        if lock == wanted.lock && again(me, entry, wanted) {
            // The other locks held were held before, or come after it.
            return;
        }
        let (class, how) = entry.class_and_how();
        if class.node() == node && node != 0 && lock != 0 && !within(me, entry, wanted) {
            return;
        }
        guards = guards.wrapping_add(kept(entry.lock(), class, how));
    }
    if node == 0 {
        return;
    }
    let to = wanted.class.unit();
    let life = me.life();
    for entry in me.entries() {
        let (class, how) = entry.class_and_how();
        if entry.lock() == 0 || class == ClassId::NONE {
            continue;
        }
        let key = Key::new(class.unit(), how, to, wanted.how);
        let others = guards.wrapping_sub(kept(entry.lock(), class, how));
        if !GRAPH.knows(key, others, life) {
            new(me, entry, wanted, key, others);
        }
    }
}

/// The part of a held lock in the sum of guards.
#[inline]
fn kept(lock: usize, class: ClassId, how: How) -> u64 {
    match lock == 0 || class.number() == 0 {
        true => 0,
        false => summand(guard(class.number(), how)),
    }
}

/// Returns false if the entry is of an earlier lock at this address, which went with its memory.
#[cold]
fn again(me: &Thread, entry: &Entry, wanted: &Held) -> bool {
    let wanted = *wanted;
    let Some(held) = entry.get() else {
        return false;
    };
    if !held.is_same(&wanted) {
        me.drop_all(wanted.lock);
        return false;
    }
    if wanted.how.may_follow(held.how) {
        return true;
    }
    report::make(
        me,
        &if !held.how.excludes(wanted.how) {
            Finding::ReadAgain { held, wanted }
        } else {
            Finding::Again { held, wanted }
        },
    );
    true
}

/// Two locks of one class. Returns false if that is a mistake; if not, its locks are followed one
/// by one from now on.
#[inline]
fn within(me: &Thread, entry: &Entry, wanted: &Held) -> bool {
    let node = wanted.class.node();
    class::is_split(node) || node as usize >= CLASSES || split(me, entry, wanted)
}

#[cold]
#[inline(never)]
fn split(me: &Thread, entry: &Entry, wanted: &Held) -> bool {
    let wanted = *wanted;
    let Some(held) = entry.get() else { return true };
    if settings::nesting() == Nesting::Report {
        report::make(me, &Finding::Class { held, wanted });
        return false;
    }
    let node = wanted.class.node();
    let quiet = Quiet::begin();
    let Some(inside) = GATE.enter(&quiet) else {
        return false;
    };
    if class::split(node, &inside) {
        // The class's dependencies are those of the locks that it was seen of.
        let single = |number, lock| class::lock_node(ClassId::new(node, number), lock, &inside);
        let update = |edge: &mut Edge| {
            if edge.from == node {
                edge.from = single(edge.numbers[0], edge.locks[0]).unwrap_or(0);
            }
            if edge.to == node {
                edge.to = single(edge.numbers[1], edge.locks[1]).unwrap_or(0);
            }
            edge.from != 0 && edge.to != 0
        };
        GRAPH.update(update, &inside);
    }
    true
}

#[cold]
#[inline(never)]
fn new(me: &Thread, entry: &Entry, wanted: &Held, key: Key, guards: u64) {
    if let Some(held) = entry.get() {
        depends(me, held, *wanted, key, guards);
    }
}

/// Returns the node of a held lock, and the class that names it. `None` for a lock that is gone,
/// and without room.
fn node_of(held: &Held, inside: &Inside<'_>) -> Option<u32> {
    let node = held.class.node();
    if (node as usize) < CLASSES && !class::is_split(node) {
        return Some(node);
    }
    if node as usize >= CLASSES {
        let known = class::node_of(held.class.number(), inside);
        return known.filter(|known| *known == node && class::is_alive(node));
    }
    class::lock_node(held.class, held.lock, inside)
}

/// An edge, for a thread that has entered. `None` if it is one of a lock that is gone, and without
/// room.
fn edge(me: &Thread, held: &Held, wanted: &Held, inside: &Inside<'_>) -> Option<Edge> {
    let [from, to] = [held, wanted].map(|held| node_of(held, inside));
    let mut edge = Edge::new([from?, to?], [held, wanted], me.id(), me.life());
    edge.is_early = !thread::are_several();
    let others = me.held().filter(|other| other.lock != held.lock);
    let mut guarding = others.filter(|other| other.class.number() != 0);
    for place in &mut edge.guards {
        let Some(other) = guarding.next() else { break };
        // So that its end becomes known.
        if class::lock_node(other.class, other.lock, inside).is_some() {
            *place = guard(other.class.number(), other.how);
        }
    }
    Some(edge)
}

fn depends(me: &Thread, held: Held, wanted: Held, key: Key, guards: u64) {
    let quiet = Quiet::begin();
    if me.life() != ANY {
        let Some(inside) = GATE.enter(&quiet) else {
            return;
        };
        let edge = edge(me, &held, &wanted, &inside);
        if edge.is_some_and(|edge| GRAPH.join(&edge, key, guards, &inside)) {
            return;
        }
    }
    // Before the gate: see there.
    let endable = quiet.endable();
    let trace = Trace::here(wanted.site);
    drop(endable);
    let Some(inside) = GATE.enter(&quiet) else {
        return;
    };
    sweep(&inside);
    let Some(mut edge) = edge(me, &held, &wanted, &inside) else {
        return;
    };
    edge.trace = trace;
    let mut added = GRAPH.add(edge, key, guards, &Known(&inside), &inside);
    if matches!(added, Added::Full) && class::any_gone() {
        sweep_now(&inside);
        added = GRAPH.add(edge, key, guards, &Known(&inside), &inside);
    }
    match &added {
        Added::Circle(_) => settle(&edge, &inside),
        Added::Harmless(Reason::Threads, path) if edge.is_early => {
            // Relaxed: there is no other thread.
            EARLY_LIFE.store(edge.life(), Relaxed);
            for edge in path.edges().iter().chain([&edge]) {
                signal::watch(class::family(edge.from));
            }
        }
        _ => {}
    }
    drop(inside);
    drop(quiet);
    match added {
        Added::Fine => learnt(me, &held, &wanted),
        Added::Harmless(reason, path) => {
            match reason {
                Reason::Gate => tally::add(|tally| &tally.gated),
                Reason::Threads if edge.is_early => order(me, &edge, &path, Note::Only),
                Reason::Threads => tally::add(|tally| &tally.alone),
            }
            learnt(me, &held, &wanted);
        }
        Added::Full => notice::once(notice::EDGES),
        Added::Circle(found) => {
            let note = match found.is_unknown {
                true => Note::Unknown,
                false => Note::None,
            };
            circle(me, &edge, &found, note);
        }
    }
}

fn learnt(me: &Thread, held: &Held, wanted: &Held) {
    signal::ask(me, held);
    signal::chains(me, wanted);
}

/// A cycle is reported once for each pair of classes, in any modes.
fn settle(last: &Edge, inside: &Inside<'_>) {
    let [from, to] = last.ends().map(|held| held.class.unit());
    for from_how in [How::EXCLUSIVE, How::SHARED] {
        for to_how in [How::EXCLUSIVE, How::SHARED_RECURSIVE] {
            GRAPH.settle(Key::new(from, from_how, to, to_how), inside);
        }
    }
}

fn circle(me: &Thread, last: &Edge, found: &Found, note: Note) {
    tally::take(|tally| &tally.alone, found.were_alone);
    order(me, last, &found.path, note);
}

fn order(me: &Thread, last: &Edge, path: &Path, note: Note) {
    let [held, wanted] = last.ends();
    let finding = Finding::Order {
        held,
        wanted,
        path,
        note,
    };
    report::make(me, &finding);
}

/// The life of the thread that made a cycle before another one had used a lock.
static EARLY_LIFE: AtomicU32 = AtomicU32::new(0);

/// A lock is used that is part of such a cycle. One thread did everything then, so nothing says
/// that it is alone with these orders. If another thread uses the locks, that may make them too.
#[cold]
pub(super) fn watched(me: &Thread, used: &Held) {
    if !thread::are_several() || EARLY_LIFE.load(Relaxed) == me.life() {
        return;
    }
    let class = class::family(used.class.node());
    loop {
        let quiet = Quiet::begin();
        let Some(inside) = GATE.enter(&quiet) else {
            return;
        };
        let known = Known(&inside);
        let Some((last, found)) = GRAPH.take_early(class, me.life(), &known, &inside) else {
            signal::watch_no_more(class);
            return;
        };
        settle(&last, &inside);
        drop(inside);
        drop(quiet);
        circle(
            me,
            &last,
            &found,
            Note::Early {
                used: *used,
                by: last.thread,
            },
        );
    }
}

const _: () = assert!(GUARDS <= thread::DEPTH);

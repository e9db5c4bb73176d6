//! The steps of a thread of an execution: the accesses, waits and clock readings of its platform.
//! Each is called by the thread that runs, on its own fibre.
//!
//! # Panics
//!
//! All of them, if no execution is running.

use std::cell::{Cell, RefCell};
use std::panic::Location as Place;
use std::sync::atomic::Ordering;

use super::super::handoff;
use super::super::memory::{At, Plain};
use super::super::strategy::Question;
use super::{Rules, State, in_execution, with};
use crate::coverage::{self, Outcome};

/// Lets the chosen thread run. Returns when the caller is chosen again.
fn switch(to_other: bool) {
    if to_other {
        let yielder = in_execution(|this| this.leaving);
        // SAFETY: it is the caller's own: `schedule` has just been called by it. It lives in the
        // frame of the fibre's first function, and so while the fibre runs.
        unsafe { &*yielder }.suspend(());
    }
}

/// A moment at which another thread may come, before an access to `at`.
///
/// # Panics
///
/// If it is [gone](drop_word) then.
#[track_caller]
pub fn point(at: At) {
    point_at(at);
    let gone = in_execution(|this| this.gone.get(at.key as usize) == Some(&true));
    assert!(!gone, "a thread accesses what was freed");
}

/// The same, before something that does not access it.
#[track_caller]
fn point_at(at: At) {
    let place = Place::caller();
    switch(in_execution(|this| {
        this.here(place);
        let visited = this.memory.visit(this.current, at);
        let key = at.key as usize;
        if this.shared.len() <= key {
            this.shared.resize(key + 1, false);
        }
        if !this.shared[key] && !this.share_all {
            if this.threads.len() > 1 && visited.count_ones() > 1 {
                this.shared[key] = true;
                this.discovered = true;
            }
            return false;
        }
        this.schedule(true)
    }));
    deliver();
}

/// A moment at which another thread may come, for no access.
#[track_caller]
pub fn breathe() {
    let place = Place::caller();
    switch(in_execution(|this| {
        this.here(place);
        this.schedule(true)
    }));
    deliver();
}

/// Lets others come first. Without this a thread that waits by polling would do so
/// for ever.
#[track_caller]
pub fn pause() {
    let place = Place::caller();
    switch(in_execution(|this| {
        let current = this.current;
        this.here(place);
        this.strategy.yields(current);
        this.threads[current].state = State::Paused;
        this.schedule(false)
    }));
    deliver();
}

/// Runs the thread's signal handler, if it has one and this is the moment.
fn deliver() {
    let handler = in_execution(|this| {
        let current = this.current;
        this.threads[current].handler.as_ref()?;
        if this.choose(Question::Chance, 2) == 0 {
            return None;
        }
        this.threads[current].handler.take()
    });
    if let Some(handler) = handler {
        // The interrupted wait goes on after the handler.
        let watch = in_execution(|this| std::mem::take(&mut this.threads[this.current].watch));
        handler();
        in_execution(|this| this.threads[this.current].watch = watch);
    }
}

/// Loads; `any` where an old message will do.
#[track_caller]
pub fn load(at: At, order: Ordering) -> u64 {
    point(at);
    let place = Place::caller();
    in_execution(|this| {
        let readable = this.memory.readable(this.current, at, order);
        let back = this.choose(Question::Message, readable);
        let value = this.memory.load(this.current, at, order, back);
        let version = this.memory.version(at) - back as u32;
        this.threads[this.current].watch.push((at, version));
        this.note(place, || {
            let old = if back > 0 { " (old)" } else { "" };
            format!("load {order:?} {:#x}{old}", value)
        });
        value
    })
}

/// Stores.
#[track_caller]
pub fn store(at: At, value: u64, order: Ordering) {
    point(at);
    let place = Place::caller();
    in_execution(|this| {
        let places = this.memory.places(this.current, at, order);
        let late = this.choose(Question::Place, places);
        this.memory.store(this.current, at, value, order, late);
        this.wake_watchers(at.key);
        this.note(place, || {
            let late = if late > 0 { " (late)" } else { "" };
            format!("store {order:?} {value:#x}{late}")
        });
    });
}

/// A read-modify-write: `change` gets the newest value and may leave it; returns what was there.
#[track_caller]
pub fn update(
    at: At,
    success: Ordering,
    failure: Ordering,
    change: impl FnOnce(u64) -> Option<u64>,
) -> Result<u64, u64> {
    point(at);
    let place = Place::caller();
    let (old, new) = in_execution(|this| {
        let old = this.memory.newest(at);
        let new = change(old);
        if let Some(new) = new {
            this.memory.load(this.current, at, success, 0);
            this.memory.replace(this.current, at, new, success);
            if new != old {
                this.wake_watchers(at.key);
            }
            this.note(place, || format!("change {success:?} {old:#x} -> {new:#x}"));
        } else {
            // A failed exchange is a load, and may read an old message; the newest is one of those
            // that it may fail by.
            this.memory.load(this.current, at, failure, 0);
            this.note(place, || format!("exchange refused by {old:#x}"));
        }
        (old, new)
    });
    let Some(new) = new else {
        coverage::count(place, Outcome::Refused);
        return Err(old);
    };
    coverage::count(place, Outcome::Done);
    if place.file().ends_with(handoff::SOURCE) {
        handoff::changed(old as u32, new as u32);
    }
    Ok(old)
}

/// Whether something happens that may happen at any time.
pub fn chance() -> bool {
    in_execution(|this| this.rules.chance && this.choose(Question::Chance, 2) != 0)
}

/// Forgets what the thread has read: a wait begins.
pub fn begin_look() {
    in_execution(|this| this.threads[this.current].watch.clear());
}

/// Blocks until what was read since [`begin_look`] has been stored to: not at all if it has been
/// already. `until`: the longest; whether that time came first.
#[track_caller]
pub fn watch(until: Option<u64>) -> bool {
    let place = Place::caller();
    switch(in_execution(|this| {
        let current = this.current;
        this.here(place);
        for index in 0..this.threads[current].watch.len() {
            let (at, version) = this.threads[current].watch[index];
            if this.memory.version(at) != version {
                return false;
            }
        }
        this.strategy.yields(current);
        this.threads[current].state = State::Watching(until);
        this.note(place, || "waits".to_owned());
        this.schedule(false)
    }));
    deliver();
    in_execution(|this| this.threads[this.current].take_expired())
}

/// Sleeps on `at` while it holds `expected`. Whether it was kicked.
#[track_caller]
pub fn halt(at: At, expected: u64, until: Option<u64>) -> bool {
    point(at);
    let place = Place::caller();
    let slept = Cell::new(false);
    switch(in_execution(|this| {
        let current = this.current;
        // The kernel loads the word under the lock that kicks take: it sees the newest value.
        if this.memory.newest(at) != expected || until.is_some_and(|until| until <= this.now) {
            this.note(place, || "halt: no".to_owned());
            return false;
        }
        if this.rules.chance && this.choose(Question::Chance, 2) != 0 {
            this.note(place, || "halt ends for no reason".to_owned());
            return false;
        }
        this.strategy.yields(current);
        this.threads[current].state = State::Halted(at.key, until);
        slept.set(true);
        this.note(place, || "halts".to_owned());
        this.schedule(false)
    }));
    deliver();
    let expired = in_execution(|this| this.threads[this.current].take_expired());
    slept.get() && !expired
}

/// The atomic is dropped. No moment at which others come: whoever drops it goes on at one.
///
/// # Panics
///
/// If a thread has accessed it and nothing orders that before the drop.
pub fn drop_word(at: At) {
    // Outside of executions too: with what one has made.
    let race = with(|this| {
        let key = at.key as usize;
        if this.gone.len() <= key {
            this.gone.resize(key + 1, false);
        }
        this.gone[key] = true;
        this.memory.end(this.current, at)
    });
    if let Some(Err(other)) = race {
        assert!(
            std::thread::panicking(),
            "a thread ends an atomic, and no release and acquire order thread {other}'s last \
             access to it before that"
        );
    }
}

/// A thread is about to sleep on `at`, which lies at this address.
pub fn sleeps_at(address: usize, at: At) {
    in_execution(|this| {
        this.slept.retain(|(other, _)| *other != address);
        this.slept.push((address, at));
    });
}

/// The atomic at this address that a thread has slept on last, if one has.
pub fn slept_at(address: usize) -> Option<At> {
    in_execution(|this| {
        let slept = this.slept.iter().find(|(other, _)| *other == address);
        slept.map(|(_, at)| *at)
    })
}

/// Ends the sleep of all threads that halted on `at`, which may be gone.
#[track_caller]
pub fn kick_all(at: At) {
    point_at(at);
    let place = Place::caller();
    in_execution(|this| {
        let mut sleepers = 0;
        for thread in &mut this.threads {
            if matches!(thread.state, State::Halted(key, _) if key == at.key) {
                thread.state = State::Ready;
                sleepers += 1;
            }
        }
        this.note(place, || format!("kicks all {sleepers}"));
    });
}

/// Ends the sleep of one thread that halted on `at`, which may be gone.
#[track_caller]
pub fn kick(at: At) {
    point_at(at);
    let place = Place::caller();
    in_execution(|this| {
        this.options.clear();
        let sleepers =
            this.threads.iter().enumerate().filter(
                |(_, thread)| matches!(thread.state, State::Halted(key, _) if key == at.key),
            );
        this.options.extend(sleepers.map(|(index, _)| index));
        let sleepers = this.options.len();
        if sleepers > 0 {
            let which = this.choose(Question::Chance, sleepers);
            let sleeper = this.options[which];
            this.threads[sleeper].state = State::Ready;
            this.note(place, || format!("kicks {sleeper}"));
        } else {
            this.note(place, || "kicks nobody".to_owned());
        }
    });
}

/// The threads that halted on `from` sleep on `to`.
#[track_caller]
pub fn requeue(from: At, to: At) {
    point_at(from);
    let place = Place::caller();
    in_execution(|this| {
        let mut sleepers = 0;
        for thread in &mut this.threads {
            if let State::Halted(key, _) = &mut thread.state
                && *key == from.key
            {
                *key = to.key;
                sleepers += 1;
            }
        }
        this.note(place, || format!("requeues {sleepers}"));
    });
}

/// `FutexPlatform::heavy_barrier`.
pub fn heavy_barrier() {
    in_execution(|this| this.memory.heavy_barrier(this.current));
}

/// `FutexPlatform::light_barrier`.
pub fn light_barrier() {
    in_execution(|this| this.memory.light_barrier(this.current));
}

/// Reads the clock.
pub fn now() -> u64 {
    in_execution(|this| {
        this.now += this.rules.tick;
        this.now
    })
}

/// Time passes; the caller goes on.
pub fn pass(nanos: u64) {
    in_execution(|this| this.now += nanos);
}

/// The last reading of the clock.
pub fn time() -> u64 {
    in_execution(|this| this.now)
}

/// The calling thread's number.
pub fn me() -> usize {
    in_execution(|this| this.current)
}

/// The rules at hand.
pub fn rules() -> Rules {
    in_execution(|this| this.rules)
}

/// Has `handler` run on the calling thread at some moment of its steps, or never.
pub fn signal(handler: Box<dyn FnOnce()>) {
    in_execution(|this| this.threads[this.current].handler = Some(handler));
}

/// The moment for a [`signal`] has passed.
pub fn unsignal() {
    in_execution(|this| this.threads[this.current].handler = None);
}

/// An access to plain data by the calling thread.
///
/// # Panics
///
/// If another access does not lie before it, and one of the two writes.
#[track_caller]
pub fn access(data: &RefCell<Plain>, write: bool) {
    let place = Place::caller();
    let race = in_execution(|this| {
        this.note(place, || {
            (if write { "writes" } else { "reads" }).to_owned()
        });
        this.memory
            .access(this.current, &mut data.borrow_mut(), write)
    });
    if let Err(other) = race {
        panic!("data race with thread {other}: no release and acquire order the two accesses");
    }
}

/// Starts a thread; returns its number.
pub fn spawn(body: Box<dyn FnOnce()>) -> usize {
    in_execution(|this| {
        this.memory.spawn(this.current);
        this.start(body)
    })
}

/// Waits until `thread` has ended.
#[track_caller]
pub fn join(thread: usize) {
    let place = Place::caller();
    switch(in_execution(|this| {
        if this.threads[thread].state == State::Ended {
            return false;
        }
        this.here(place);
        this.threads[this.current].state = State::Joining(thread);
        this.schedule(false)
    }));
    in_execution(|this| this.memory.join(this.current, thread));
}

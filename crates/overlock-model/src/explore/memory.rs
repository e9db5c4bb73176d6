//! The explorer's memory: C11 atomics as an operational model, and happens-before for plain data.
//!
//! Each location keeps the messages that were stored to it, oldest first. A thread has a *view*: for each location the
//! oldest message that it may still read, and for each thread the step up to which that thread's past
//! lies before it. A load may read any message from its view on; a read-modify-write reads the newest. A
//! message carries the view that its reader acquires: the storing thread's, if it was a release, joined with
//! the one of the message that a read-modify-write replaced (release sequences).
//!
//! What it leaves out: a store always becomes the newest message (no reordering of two stores to one location by different
//! threads after the fact), and no load reads what is stored later (no load buffering). Miri leaves out
//! the same. Everything that x86 and store buffers can do is in.

use std::sync::atomic::Ordering;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release, SeqCst};

/// The most threads of an execution.
pub const THREADS: usize = 8;

/// Old messages that stay readable, at most.
const KEPT: usize = 4;

/// What lies before a point of a thread's program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// For each thread, how many of its steps.
    clock: [u16; THREADS],
    /// For each location, by its number in this execution, the index of its oldest message that may still be read.
    oldest: Vec<u16>,
}

impl View {
    fn join(&mut self, other: &View) {
        for (mine, theirs) in self.clock.iter_mut().zip(other.clock) {
            *mine = (*mine).max(theirs);
        }
        if self.oldest.len() < other.oldest.len() {
            self.oldest.resize(other.oldest.len(), 0);
        }
        for (mine, &theirs) in self.oldest.iter_mut().zip(&other.oldest) {
            *mine = (*mine).max(theirs);
        }
    }

    fn oldest(&self, location: usize) -> u16 {
        self.oldest.get(location).copied().unwrap_or(0)
    }

    fn raise(&mut self, location: usize, index: u16) {
        if self.oldest.len() <= location {
            self.oldest.resize(location + 1, 0);
        }
        self.oldest[location] = self.oldest[location].max(index);
    }

    fn clear(&mut self) {
        self.clock = [0; THREADS];
        self.oldest.clear();
    }

    fn set(&mut self, other: &View) {
        self.clock = other.clock;
        self.oldest.clone_from(&other.oldest);
    }
}

/// A thread's views.
#[derive(Debug, Default)]
struct Views {
    /// What it has seen.
    now: View,
    /// What it will have seen after an acquire fence.
    acquirable: View,
    /// What its relaxed stores carry: its view at its last release fence.
    released: View,
    /// What it had seen, and done, at its last light barrier.
    light: View,
}

#[derive(Debug, Default)]
struct Message {
    value: u64,
    view: View,
}

#[derive(Debug, Default)]
struct Location {
    /// The newest messages, oldest first; empty where nobody has been here.
    messages: Vec<Message>,
    /// The index of the first of `messages` among all that there were.
    first: u16,
    /// How many messages there have been.
    version: u32,
    /// Which threads have accessed it, a bit each.
    visitors: u8,
}

impl Location {
    fn newest(&self) -> u16 {
        self.first + self.messages.len() as u16 - 1
    }
}

/// Data that no two threads may access at once, unless both only read.
#[derive(Debug, Default)]
pub struct Plain {
    writer: usize,
    written: u16,
    read: [u16; THREADS],
}

/// The memory of one execution.
#[derive(Debug, Default)]
pub struct Memory {
    /// By the atomics' keys.
    numbers: Vec<u64>,
    /// The execution that `numbers` belongs to is this one where the entry is not below.
    base: u64,
    locations: Vec<Location>,
    used: usize,
    views: Vec<Views>,
    /// What sequentially consistent fences and accesses have agreed on.
    agreed: View,
    /// What the threads had seen, and done, that have passed a heavy barrier.
    heavy: View,
    /// Whether old messages are kept at all.
    weak: bool,
}

/// An atomic, by its place in [`Memory`], and its value where nobody has stored yet.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Its key: the same in each execution.
    pub key: u32,
    /// Its first value.
    pub init: u64,
}

impl Memory {
    /// Forgets everything, for an execution with one thread so far. With `weak`, loads may read old messages.
    pub fn reset(&mut self, weak: bool) {
        self.weak = weak;
        self.base += self.used as u64 + 1;
        for location in &mut self.locations[..self.used] {
            location.messages.truncate(1);
            (location.version, location.visitors) = (0, 0);
        }
        self.used = 0;
        self.agreed.clear();
        self.heavy.clear();
        self.views.clear();
        self.views.push(Views::default());
    }

    fn find(&mut self, at: At) -> usize {
        let key = at.key as usize;
        if self.numbers.len() <= key {
            self.numbers.resize(key + 1, 0);
        }
        if self.numbers[key] > self.base {
            return (self.numbers[key] - self.base - 1) as usize;
        }
        let number = self.used;
        self.used += 1;
        self.numbers[key] = self.base + 1 + number as u64;
        if self.locations.len() == number {
            self.locations.push(Location::default());
        }
        let location = &mut self.locations[number];
        location.first = 0;
        if location.messages.is_empty() {
            location.messages.push(Message::default());
        }
        location.messages[0].value = at.init;
        location.messages[0].view.clear();
        number
    }

    /// A thread starts; `parent`'s past lies before it.
    pub fn spawn(&mut self, parent: usize) {
        self.step(parent);
        let now = self.views[parent].now.clone();
        self.views.push(Views {
            now,
            ..Views::default()
        });
    }

    /// `thread` has waited for `ended` to end.
    pub fn join(&mut self, thread: usize, ended: usize) {
        let [waiter, gone] = self
            .views
            .get_disjoint_mut([thread, ended])
            .expect("two threads");
        waiter.now.join(&gone.now);
    }

    fn step(&mut self, thread: usize) {
        self.views[thread].now.clock[thread] += 1;
    }

    /// Which threads have accessed the atomic in this execution, a bit each.
    pub fn visit(&mut self, thread: usize, at: At) -> u8 {
        let number = self.find(at);
        self.locations[number].visitors |= 1 << thread;
        self.locations[number].visitors
    }

    /// How many messages the atomic has had.
    pub fn version(&mut self, at: At) -> u32 {
        let number = self.find(at);
        self.locations[number].version
    }

    /// The newest value, whoever may see it.
    pub fn newest(&mut self, at: At) -> u64 {
        let number = self.find(at);
        let location = &self.locations[number];
        location.messages[location.messages.len() - 1].value
    }

    /// How many messages a load by `thread` may choose from, the newest counted as one of them.
    pub fn readable(&mut self, thread: usize, at: At, order: Ordering) -> usize {
        if !self.weak {
            return 1;
        }
        let number = self.find(at);
        let mut oldest = self.views[thread].now.oldest(number);
        if order == SeqCst {
            oldest = oldest.max(self.agreed.oldest(number));
        }
        let location = &self.locations[number];
        usize::from(location.newest() - oldest.max(location.first)) + 1
    }

    /// Loads the message that is `back` before the newest.
    pub fn load(&mut self, thread: usize, at: At, order: Ordering, back: usize) -> u64 {
        let number = self.find(at);
        let location = &self.locations[number];
        let place = location.messages.len() - 1 - back;
        let index = location.first + place as u16;
        let message = &location.messages[place];
        let views = &mut self.views[thread];
        if self.weak {
            views.now.raise(number, index);
            views.acquirable.join(&message.view);
        }
        if matches!(order, Acquire | AcqRel | SeqCst) {
            views.now.join(&message.view);
        }
        if order == SeqCst && self.weak {
            self.agreed.raise(number, index);
        }
        message.value
    }

    /// Stores a new newest message.
    pub fn store(&mut self, thread: usize, at: At, value: u64, order: Ordering) {
        self.push(thread, at, value, order, false);
    }

    /// Replaces the newest message, after a [`load`](Self::load) of it.
    pub fn replace(&mut self, thread: usize, at: At, value: u64, order: Ordering) {
        self.push(thread, at, value, order, true);
    }

    fn push(&mut self, thread: usize, at: At, value: u64, order: Ordering, continues: bool) {
        let number = self.find(at);
        self.step(thread);
        let location = &mut self.locations[number];
        location.version += 1;
        let views = &mut self.views[thread];
        let release = matches!(order, Release | AcqRel | SeqCst);
        if self.weak {
            let index = location.newest() + 1;
            views.now.raise(number, index);
            let mut view = if release {
                views.now.clone()
            } else {
                let mut view = views.released.clone();
                view.raise(number, index);
                view
            };
            if continues {
                view.join(&location.messages[location.messages.len() - 1].view);
            }
            location.messages.push(Message { value, view });
            if location.messages.len() > KEPT {
                location.messages.remove(0);
                location.first += 1;
            }
            if order == SeqCst {
                self.agreed.raise(number, index);
            }
        } else {
            let newest = &mut location.messages[0];
            newest.value = value;
            match (release, continues) {
                (true, true) => newest.view.join(&views.now),
                (true, false) => newest.view.set(&views.now),
                (false, true) => newest.view.join(&views.released),
                (false, false) => newest.view.set(&views.released),
            }
        }
    }

    /// A sequentially consistent fence.
    pub fn fence(&mut self, thread: usize) {
        self.step(thread);
        let views = &mut self.views[thread];
        views.now.join(&views.acquirable);
        views.now.join(&self.agreed);
        self.agreed.set(&views.now);
        views.released.set(&views.now);
    }

    /// The light side of an asymmetric fence: it orders the thread's accesses around it against a heavy barrier, and nothing else.
    pub fn light_barrier(&mut self, thread: usize) {
        self.step(thread);
        let views = &mut self.views[thread];
        views.now.join(&views.acquirable);
        views.now.join(&self.heavy);
        views.light.set(&views.now);
    }

    /// What membarrier promises, seen from the light barriers of each other thread: one that was before this call is before it for
    /// the caller too, and one that comes after it is after. Without a light barrier a compiler may move the accesses
    /// that the other thread's fence should stand between.
    pub fn heavy_barrier(&mut self, thread: usize) {
        self.fence(thread);
        for other in 0..self.views.len() {
            let [caller, other] = match self.views.get_disjoint_mut([thread, other]) {
                Ok(both) => both,
                Err(_) => continue,
            };
            caller.now.join(&other.light);
        }
        self.heavy.join(&self.views[thread].now);
        self.fence(thread);
    }

    /// An access to plain data. `Err` names the thread whose access it races with.
    pub fn access(&mut self, thread: usize, data: &mut Plain, write: bool) -> Result<(), usize> {
        self.step(thread);
        let clock = &self.views[thread].now.clock;
        if data.written > clock[data.writer] {
            return Err(data.writer);
        }
        if write
            && let Some(reader) = (0..THREADS).find(|&reader| data.read[reader] > clock[reader])
        {
            return Err(reader);
        }
        if write {
            (data.writer, data.written) = (thread, clock[thread]);
        } else {
            data.read[thread] = clock[thread];
        }
        Ok(())
    }
}

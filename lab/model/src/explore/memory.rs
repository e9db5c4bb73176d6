//! The explorer's memory: C11 atomics as an operational model, and happens-before for plain data.
//!
//! Each location keeps the messages that were stored to it, in their modification order, oldest
//! first. A thread has a *view*: for each location the oldest message that it may still read, and
//! for each thread the step up to which that thread's past lies before it. A load may read any
//! message from its view on; a read-modify-write reads the newest. A message carries the view that
//! its reader acquires: the storing thread's, if it was a release, joined with the one of the
//! message that a read-modify-write replaced (release sequences).
//!
//! A store becomes the newest message, or comes late: it takes a place before messages that its
//! thread has not seen, but not between a read-modify-write and the message that this replaced. So
//! two stores by different threads that nothing orders may take effect in either order, whichever
//! was executed first; x86 does not do that, and Miri leaves it out.
//!
//! The model leaves two things out: no load reads what is stored later (no load buffering), and a
//! read-modify-write always comes last.

use std::sync::atomic::Ordering;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release, SeqCst};

/// The most threads of an execution.
pub const THREADS: usize = 8;

/// Old messages that stay readable, at most.
const KEPT: usize = 4;

/// Between the stamps of a message and of the next newest one: room for those that come late.
const ROOM: u32 = 1 << 10;

/// The past of a point of a thread's program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// For each thread, how many of its steps.
    clock: [u16; THREADS],
    /// For each location, by its number in this execution, the stamp of its oldest message that
    /// may still be read.
    oldest: Vec<u32>,
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

    fn oldest(&self, location: usize) -> u32 {
        self.oldest.get(location).copied().unwrap_or(0)
    }

    fn raise(&mut self, location: usize, stamp: u32) {
        if self.oldest.len() <= location {
            self.oldest.resize(location + 1, 0);
        }
        self.oldest[location] = self.oldest[location].max(stamp);
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
    /// The messages that it has seen.
    now: View,
    /// The same after an acquire fence.
    acquirable: View,
    /// The view that its relaxed stores carry: its own at its last release fence.
    released: View,
    /// The view at its last light barrier.
    light: View,
}

#[derive(Debug, Default)]
struct Message {
    value: u64,
    view: View,
    /// Grows along the modification order.
    stamp: u32,
    /// Whether a read-modify-write replaced the message before: nothing comes between the two.
    continues: bool,
}

#[derive(Debug, Default)]
struct Location {
    /// The newest messages, oldest first; empty where nobody has been here.
    messages: Vec<Message>,
    /// How many messages there have been.
    version: u32,
    /// Which threads have accessed it, a bit each.
    visitors: u8,
    /// For each thread the step of its last access.
    accessed: [u16; THREADS],
}

impl Location {
    /// Behind which messages a store may come whose thread has seen the one with the stamp `seen`:
    /// the newest first.
    fn places(&self, seen: u32) -> impl Iterator<Item = usize> {
        let last = self.messages.len() - 1;
        (0..=last).rev().filter(move |&place| {
            let before = &self.messages[place];
            let Some(after) = self.messages.get(place + 1) else {
                return true;
            };
            before.stamp >= seen && !after.continues && after.stamp - before.stamp > 1
        })
    }

    /// The stamp of a message that comes behind the one at `place`.
    fn stamp(&self, place: usize) -> u32 {
        let before = self.messages[place].stamp;
        match self.messages.get(place + 1) {
            Some(after) => before.midpoint(after.stamp),
            None => before + ROOM,
        }
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
    /// The view that sequentially consistent fences and accesses have agreed on.
    agreed: View,
    /// The views of the threads at their heavy barriers.
    heavy: View,
    /// Whether old messages are kept at all.
    weak: bool,
}

/// An atomic, by its place in [`Memory`], and its value where nobody has stored yet.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Its key, a small number.
    pub key: u32,
    /// Its first value.
    pub init: u64,
}

impl Memory {
    /// Forgets everything, for an execution with one thread so far. With `weak`, loads may read old
    /// messages.
    pub fn reset(&mut self, weak: bool) {
        self.weak = weak;
        self.base += self.used as u64 + 1;
        for location in &mut self.locations[..self.used] {
            location.messages.truncate(1);
            (location.version, location.visitors) = (0, 0);
            location.accessed = [0; THREADS];
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
        if location.messages.is_empty() {
            location.messages.push(Message::default());
        }
        let message = &mut location.messages[0];
        message.value = at.init;
        message.view.clear();
        (message.stamp, message.continues) = (0, false);
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

    /// The oldest message that `thread` may read with this order, and behind which it may store.
    fn seen(&self, thread: usize, number: usize, order: Ordering) -> u32 {
        let seen = self.views[thread].now.oldest(number);
        if order == SeqCst {
            seen.max(self.agreed.oldest(number))
        } else {
            seen
        }
    }

    /// How many messages a load by `thread` may choose from, the newest counted as one of them.
    pub fn readable(&mut self, thread: usize, at: At, order: Ordering) -> usize {
        if !self.weak {
            return 1;
        }
        let number = self.find(at);
        let seen = self.seen(thread, number, order);
        let messages = self.locations[number].messages.iter().rev();
        messages.take_while(|message| message.stamp >= seen).count()
    }

    /// How many places a store by `thread` may choose from, the newest counted as one of them.
    pub fn places(&mut self, thread: usize, at: At, order: Ordering) -> usize {
        if !self.weak {
            return 1;
        }
        let number = self.find(at);
        let seen = self.seen(thread, number, order);
        self.locations[number].places(seen).count()
    }

    /// Loads the message that is `back` before the newest.
    pub fn load(&mut self, thread: usize, at: At, order: Ordering, back: usize) -> u64 {
        let number = self.find(at);
        self.touch(thread, number);
        let location = &self.locations[number];
        let message = &location.messages[location.messages.len() - 1 - back];
        let views = &mut self.views[thread];
        if self.weak {
            views.now.raise(number, message.stamp);
            views.acquirable.join(&message.view);
        }
        if matches!(order, Acquire | AcqRel | SeqCst) {
            views.now.join(&message.view);
        }
        if order == SeqCst && self.weak {
            self.agreed.raise(number, message.stamp);
        }
        message.value
    }

    /// Stores a new message: the newest, or at the place that is `late` before that among its
    /// [`places`](Self::places).
    pub fn store(&mut self, thread: usize, at: At, value: u64, order: Ordering, late: usize) {
        let number = self.find(at);
        let seen = self.seen(thread, number, order);
        let place = self.locations[number].places(seen).nth(late);
        let place = place.expect("one of the places");
        self.push(thread, number, value, order, place, false);
    }

    /// Replaces the newest message, after a [`load`](Self::load) of it.
    pub fn replace(&mut self, thread: usize, at: At, value: u64, order: Ordering) {
        let number = self.find(at);
        let newest = self.locations[number].messages.len() - 1;
        self.push(thread, number, value, order, newest, true);
    }

    fn push(
        &mut self,
        thread: usize,
        number: usize,
        value: u64,
        order: Ordering,
        place: usize,
        continues: bool,
    ) {
        self.touch(thread, number);
        let location = &mut self.locations[number];
        location.version += 1;
        let views = &mut self.views[thread];
        let release = matches!(order, Release | AcqRel | SeqCst);
        if self.weak {
            let stamp = location.stamp(place);
            views.now.raise(number, stamp);
            let mut view = if release {
                views.now.clone()
            } else {
                let mut view = views.released.clone();
                view.raise(number, stamp);
                view
            };
            if continues {
                view.join(&location.messages[place].view);
            }
            let message = Message {
                value,
                view,
                stamp,
                continues,
            };
            location.messages.insert(place + 1, message);
            if location.messages.len() > KEPT {
                location.messages.remove(0);
            }
            if order == SeqCst {
                self.agreed.raise(number, stamp);
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

    fn touch(&mut self, thread: usize, number: usize) {
        self.step(thread);
        let step = self.views[thread].now.clock[thread];
        self.locations[number].accessed[thread] = step;
    }

    /// Whether all accesses to the atomic come before what `thread` does next: then it may end the
    /// atomic. Fails with a thread that has accessed it otherwise.
    pub fn end(&mut self, thread: usize, at: At) -> Result<(), usize> {
        let number = self.find(at);
        let accessed = &self.locations[number].accessed;
        let clock = &self.views[thread].now.clock;
        match (0..THREADS).find(|&other| accessed[other] > clock[other]) {
            Some(other) => Err(other),
            None => Ok(()),
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

    /// The light side of an asymmetric fence: it orders the thread's accesses around it against a
    /// heavy barrier, and nothing else.
    pub fn light_barrier(&mut self, thread: usize) {
        self.step(thread);
        let views = &mut self.views[thread];
        views.now.join(&self.heavy);
        // Its past reads lie before a heavy barrier that comes later, but this acquires nothing: no
        // instruction stands here.
        views.light.set(&views.now);
        views.light.join(&views.acquirable);
    }

    /// The promise of membarrier, seen from the light barriers of each other thread. One that was
    /// before this call is before it for the caller too, and one that comes after it is after.
    /// Without a light barrier a compiler may move the accesses that the other thread's fence
    /// should stand between.
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

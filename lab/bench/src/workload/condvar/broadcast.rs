//! One speaker, all others listen: a barrier, a configuration that changed, a batch for all
//! workers.
//!
//! The speaker notifies all with the lock held, so that all of them want the lock at once. The
//! pattern shows how a condition variable handles that herd. The last listener notifies the
//! speaker.

use super::{Member, judge};
use crate::error::Error;
use crate::lock::{BenchCondvar, BenchLock};
use crate::probe::{Pass, Probe};
use crate::workload::Sample;
use crate::world::{Word, Work, Worker, Workers, World};

/// The lock guards all words.
#[repr(C, align(128))]
struct Stage<V: BenchCondvar, C> {
    lock: V::Mutex,
    /// Listeners wait here for what is said next.
    said: V,
    /// The speaker waits here until all have heard.
    heard: V,
    closed: C,
    /// How many things were said.
    count: C,
    /// Listeners that have yet to hear the last of them.
    deaf: C,
    /// How often anybody has heard anything.
    hearings: C,
}

impl<V: BenchCondvar, C: Word> Stage<V, C> {
    fn new() -> Result<Self, Error> {
        Ok(Self {
            lock: V::Mutex::create()?,
            said: V::create()?,
            heard: V::create()?,
            closed: C::new(0),
            count: C::new(0),
            deaf: C::new(0),
            hearings: C::new(0),
        })
    }

    fn is_closed(&self) -> bool {
        self.closed.get() != 0
    }

    fn close(&self) {
        let guard = self.lock.lock();
        self.closed.set(1);
        drop(guard);
        self.said.notify_all();
        self.heard.notify_all();
    }

    /// Waits until everybody has heard, and says the next thing, unless the stage is closed.
    #[inline]
    fn speak<W: World>(&self, member: &mut Member<'_, W>, item: Work, listeners: usize) {
        member.worker.work(item);
        let ready = || self.deaf.get() == 0 || self.is_closed();
        let guard = member.wait_until(&self.lock, &self.heard, ready);
        if self.is_closed() {
            return;
        }
        self.count.add(1);
        self.deaf.set(listeners as u64);
        self.said.notify_all();
        drop(guard);
        member.probe.released();
        member.operations += 1;
    }

    /// Waits for the next thing and hears it, unless the stage is closed.
    #[inline]
    fn listen<W: World>(&self, member: &mut Member<'_, W>, item: Work) {
        // As many as were said: the speaker waits for everybody.
        let so_far = member.operations;
        let ready = || self.count.get() != so_far || self.is_closed();
        let guard = member.wait_until(&self.lock, &self.said, ready);
        if self.is_closed() {
            return;
        }
        let torn = self.count.get() != so_far + 1;
        self.hearings.add(1);
        let deaf = self.deaf.get().wrapping_sub(1);
        self.deaf.set(deaf);
        drop(guard);
        member.probe.released();
        if deaf == 0 {
            self.heard.notify_one();
        }
        member.torn += u64::from(torn);
        member.operations += 1;
        member.worker.work(item);
    }
}

/// Operations are things said and things heard: as many for each thread, give or take one.
pub(super) fn drive<W: World, V: BenchCondvar>(
    world: &W,
    workers: &Workers,
    item: Work,
    pass: Pass,
) -> Result<Sample, Error> {
    let stage: Stage<V, W::Word> = Stage::new()?;
    let outcome = world.run(workers, &|worker| {
        let mut member = Member::<W>::new(worker, pass);
        while member.goes_on() {
            if worker.index() == 0 {
                stage.speak(&mut member, item, workers.threads - 1);
            } else {
                stage.listen(&mut member, item);
            }
        }
        stage.close();
        member.leave()
    })?;
    judge(outcome, stage.count.get() + stage.hearings.get())
}

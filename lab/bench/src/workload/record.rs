//! Records of two words, each under a reader-writer lock of its own: what [`rw`](super::rw) and
//! [`rwsem`](super::rwsem) read and write.

use super::audit::{audit, sums};
use super::{Extra, InTime, Sample, Tally, many};
use crate::error::Error;
use crate::lock::BenchRwLock;
use crate::probe::{Pass, Probe};
use crate::world::{Word, Workers, World};

/// The words lie next to the lock, as the data of an `RwLock<(u64, u64)>` do, and nothing else lies
/// near. They differ only during a write.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct Record<L, C> {
    lock: L,
    first: C,
    second: C,
}

/// A thread that reads and writes records.
#[derive(Debug)]
pub struct Client<'a, W: World, P> {
    worker: &'a W::Worker,
    readers: P,
    writers: P,
    reads: u64,
    writes: u64,
    torn: u64,
    in_time: InTime,
}

impl<W: World, P: Probe> Client<'_, W, P> {
    /// Reads a record: the one word before what is done `inside`, the other after it, so that a
    /// writer at any time between is noticed.
    #[inline]
    pub fn read<L: BenchRwLock>(&mut self, record: &Record<L, W::Word>, inside: impl FnOnce()) {
        let guard = self.readers.around(self.worker, || record.lock.read());
        let first = record.first.get();
        inside();
        let torn = first != record.second.get();
        drop(guard);
        self.readers.released();
        self.torn += u64::from(torn);
        self.reads += 1;
    }

    /// Writes a record: the one word before what is done `inside`, the other after it.
    #[inline]
    pub fn write<L: BenchRwLock>(&mut self, record: &Record<L, W::Word>, inside: impl FnOnce()) {
        let guard = self.writers.around(self.worker, || record.lock.write());
        record.first.add(1);
        inside();
        record.second.add(1);
        drop(guard);
        self.writers.released();
        self.writes += 1;
    }

    /// Whether there is time for more. If so, all operations so far count.
    #[inline]
    pub fn goes_on(&mut self) -> bool {
        self.in_time.goes_on(self.worker, self.reads + self.writes)
    }
}

/// One round with `count` records. `iterate` is the measured loop.
///
/// # Errors
///
/// [`Error::NotExclusive`] if writes were lost, [`Error::Torn`] if a reader saw half of one, and
/// those of [`World::run`].
pub fn round<W: World, L: BenchRwLock, P: Probe>(
    world: &W,
    workers: &Workers,
    count: usize,
    pass: Pass,
    iterate: impl Fn(&W::Worker, &mut Client<'_, W, P>, &[Record<L, W::Word>]) + Sync,
) -> Result<Sample, Error> {
    let create = || {
        Ok(Record {
            lock: L::create()?,
            first: W::Word::new(0),
            second: W::Word::new(0),
        })
    };
    let records = many(count, create)?;
    let outcome = world.run(workers, &|worker| {
        let mut client = Client {
            worker,
            readers: P::new(pass),
            writers: P::new(pass),
            reads: 0,
            writes: 0,
            torn: 0,
            in_time: InTime::default(),
        };
        iterate(worker, &mut client, &records);
        let Client {
            readers,
            writers,
            reads,
            writes,
            torn,
            in_time,
            ..
        } = client;
        let tally = Tally::of_roles(in_time.count(), readers, writers);
        (tally, [reads, writes, torn])
    })?;
    let (outcome, did) = outcome.split();
    let sample = Sample::new(outcome, Extra::None);
    if L::EXCLUDES {
        let [reads, writes, torn] = sums(&did);
        let (mut first, mut second) = (0, 0);
        for record in &records {
            first += record.first.get();
            second += record.second.get();
        }
        audit(&[(writes, first), (writes, second)], reads, torn)?;
    }
    Ok(sample)
}

//! A network device's queue: a busy lock in front of a root lock, many senders, one dequeuer at a
//! time.
//!
//! The shape of the netperf test in fast-queue-spinlock. The root lock guards the queue. A sender
//! that finds the queue without a dequeuer becomes it, and drains the queue. The dequeuer releases
//! the root lock while it hands a packet to the device, and must get it back for the next. With all
//! senders at that lock, the one thread that puts packets on the wire would be one among many. So
//! a sender that sees a dequeuer at work takes the busy lock first: of all those senders, one at a
//! time competes with the dequeuer. The kernel's own dequeuer stops after a quota of packets and
//! leaves the rest to a softirq; here the next sender finds no dequeuer and becomes it.

use super::audit::sums;
use super::{Extra, InTime, Sample, Tally, Words};
use crate::error::Error;
use crate::lock::BenchLock;
use crate::probe::{Either, Pass, Probe};
use crate::world::{Word, Work, Worker, Workers, World};

/// Packets that the queue takes, as a network device's default.
const CAPACITY: u64 = 1000;

/// Packets that a dequeuer sends before another sender takes over, as in the kernel.
const QUOTA: u32 = 64;

/// The message that the published test sends.
const MESSAGE_BYTES: u64 = 128;

/// So many messages in megabits.
pub fn megabits(messages: f64) -> f64 {
    messages * (MESSAGE_BYTES as f64 * 8.0 / 1e6)
}

/// Building a packet, down to the device's queue.
pub const PREPARE_NS: f64 = 1_000.0;
/// Finding the packet's place in the queue, under the root lock.
pub const ENQUEUE_NS: f64 = 150.0;
/// Choosing the next packet, under the root lock.
pub const DEQUEUE_NS: f64 = 150.0;
/// Handing a packet to the device, without the root lock.
pub const TRANSMIT_NS: f64 = 300.0;

/// The work of each step of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    /// [`PREPARE_NS`]
    pub prepare: Work,
    /// [`ENQUEUE_NS`]
    pub enqueue: Work,
    /// [`DEQUEUE_NS`]
    pub dequeue: Work,
    /// [`TRANSMIT_NS`]
    pub transmit: Work,
}

/// Alone on its cache lines, as the kernel places the busy lock.
#[repr(align(128))]
struct Apart<L>(L);

struct Device<L, C> {
    busy: Apart<L>,
    root: Apart<L>,
    queue: Queue<C>,
}

/// The root lock guards all of it. `running` may be read without: it is a hint then.
struct Queue<C> {
    running: C,
    queued: C,
    sent: C,
    /// The senders of the packets, for something to write and read.
    packets: Words<C>,
}

impl<C: Word> Queue<C> {
    fn new() -> Self {
        Self {
            running: C::new(0),
            queued: C::new(0),
            sent: C::new(0),
            packets: Words::new(CAPACITY as usize, |_| 0),
        }
    }

    fn is_running(&self) -> bool {
        self.running.get() != 0
    }

    fn len(&self) -> u64 {
        self.queued.get().saturating_sub(self.sent.get())
    }

    fn push(&self, sender: u64) -> bool {
        let room = self.len() < CAPACITY;
        if room {
            self.packets[(self.queued.get() % CAPACITY) as usize].set(sender);
            self.queued.add(1);
        }
        room
    }

    fn pop(&self) -> Option<u64> {
        (self.len() > 0).then(|| {
            let sender = self.packets[(self.sent.get() % CAPACITY) as usize].get();
            self.sent.add(1);
            sender
        })
    }

    /// A packet that goes past the empty queue.
    fn pass(&self) {
        self.queued.add(1);
        self.sent.add(1);
    }
}

/// One round. Operations are packets that the device or its queue took before the time was up.
///
/// # Errors
///
/// [`Error::NotExclusive`] if packets appeared or got lost, and those of [`World::run`].
pub fn round<W: World, L: BenchLock>(
    world: &W,
    workers: &Workers,
    steps: &Steps,
    pass: Pass,
) -> Result<Sample, Error> {
    let device: Device<L, W::Word> = Device {
        busy: Apart(L::create()?),
        root: Apart(L::create()?),
        queue: Queue::new(),
    };
    let outcome = world.run(workers, &|worker| {
        let mut sender: Sender<'_, W, L> = Sender {
            worker,
            device: &device,
            steps,
            probe: Either::new(pass),
            dropped: 0,
        };
        let (mut in_time, mut performed) = (InTime::default(), 0);
        let (mut dropped, mut dropped_before) = (0, 0);
        while in_time.goes_on(worker, performed) {
            dropped = sender.dropped;
            if !worker.counts() {
                dropped_before = dropped;
            }
            performed += u64::from(sender.send());
        }
        let tally = Tally::new(in_time.count(), sender.probe);
        (tally, [performed, dropped - dropped_before])
    })?;
    let (outcome, did) = outcome.split();
    let [expected, dropped] = sums(&did);
    let found = device.queue.queued.get();
    if L::EXCLUDES && (expected != found || device.queue.is_running()) {
        return Err(Error::NotExclusive { expected, found });
    }
    Ok(Sample::new(outcome, Extra::Dropped(dropped)))
}

struct Sender<'a, W: World, L> {
    worker: &'a W::Worker,
    device: &'a Device<L, W::Word>,
    steps: &'a Steps,
    probe: Either,
    dropped: u64,
}

impl<'a, W: World, L: BenchLock> Sender<'a, W, L> {
    /// Sends a packet, and those of others if there is no dequeuer. False if the packet was
    /// dropped.
    fn send(&mut self) -> bool {
        let (device, queue) = (self.device, &self.device.queue);
        self.worker.work(self.steps.prepare);

        // One wait: for the busy lock, where there is one to take, and then for the root lock.
        self.probe.begin(self.worker);
        let mut busy = queue.is_running().then(|| device.busy.0.lock());
        let mut root = device.root.0.lock();
        self.probe.acquired(self.worker);

        let taken = if queue.len() == 0 && !queue.is_running() {
            queue.running.set(1);
            queue.pass();
            root = self.transmit(root);
            drop(busy.take());
            root = self.drain(root);
            queue.running.set(0);
            true
        } else {
            self.worker.work(self.steps.enqueue);
            let taken = queue.push(self.worker.index() as u64);
            if !queue.is_running() {
                queue.running.set(1);
                drop(busy.take());
                root = self.drain(root);
                queue.running.set(0);
            }
            taken
        };
        drop(root);
        drop(busy);
        self.probe.released();
        if !taken {
            self.dropped += 1;
            // A sender whose socket buffer is full sleeps until the device has taken something.
            self.worker.rest();
        }
        taken
    }

    /// Sends queued packets, up to the quota.
    fn drain(&self, mut root: L::Guard<'a>) -> L::Guard<'a> {
        for _ in 0..QUOTA {
            if self.device.queue.pop().is_none() {
                break;
            }
            self.worker.work(self.steps.dequeue);
            root = self.transmit(root);
        }
        root
    }

    /// Hands a packet to the device, without the root lock.
    fn transmit(&self, root: L::Guard<'a>) -> L::Guard<'a> {
        drop(root);
        self.worker.work(self.steps.transmit);
        self.device.root.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn packets_leave_in_their_order() {
        let queue = Queue::<AtomicU64>::new();
        queue.pass();
        assert!(queue.push(3) && queue.push(4));
        assert_eq!(
            [queue.pop(), queue.pop(), queue.pop()],
            [Some(3), Some(4), None]
        );
    }

    #[test]
    fn a_full_queue_takes_no_more() {
        let queue = Queue::<AtomicU64>::new();
        assert_eq!(
            (0..CAPACITY + 5)
                .filter(|&sender| queue.push(sender))
                .count() as u64,
            CAPACITY
        );
        assert_eq!(queue.pop(), Some(0));
        assert!(queue.push(1));
    }
}

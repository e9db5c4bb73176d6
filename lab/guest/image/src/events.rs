//! overlock-core as the spinlock of a kernel: queues that timer interrupts fill and tasks drain.
//!
//! The lock is one of the family, by `lock_api`, with interrupts off around it. One queue does that
//! by [`InterruptLock`], on every back end. The other one does it by the crate `interrupt-mutex`,
//! as the kernel Hermit does, on the back end whose guest may turn the processor's interrupts off
//! itself. A kernel would do the same with its own platform in the place of [`Guest`].

use interrupt_mutex::RawInterruptMutex;
use lock_api::{Mutex, RawMutex};
use overlock_family::spin::Hybrid;
use overlock_guest::Guest;
use overlock_guest::backend::{self, Backend};
use overlock_guest::interrupts::InterruptLock;

/// The events that wait at most. More are dropped.
const ROOM: usize = 32;

struct Events {
    /// The vCPU of each event that waits.
    waiting: [usize; ROOM],
    length: usize,
    pushed: u64,
    dropped: u64,
    handled: u64,
}

/// A queue under this lock, for interrupt handlers and tasks.
struct Queue<R>(Mutex<R, Events>);

static EVERYWHERE: Queue<InterruptLock<Hybrid<Guest>>> = Queue::new();

static BARE: Queue<RawInterruptMutex<Hybrid<Guest>>> = Queue::new();

impl<R: RawMutex> Queue<R> {
    const fn new() -> Self {
        Queue(Mutex::new(Events {
            waiting: [0; ROOM],
            length: 0,
            pushed: 0,
            dropped: 0,
            handled: 0,
        }))
    }

    fn push(&self, vcpu: usize) {
        let mut events = self.0.lock();
        events.pushed += 1;
        let length = events.length;
        match events.waiting.get_mut(length) {
            Some(place) => {
                *place = vcpu;
                events.length += 1;
            }
            None => events.dropped += 1,
        }
    }

    fn drain(&self) {
        let mut events = self.0.lock();
        events.handled += events.length as u64;
        events.length = 0;
    }

    fn is_whole(&self) -> bool {
        let events = self.0.lock();
        events.pushed == events.handled + events.dropped + events.length as u64
    }

    fn handled(&self) -> u64 {
        self.0.lock().handled
    }
}

/// Whether this guest may turn the processor's interrupts off: on Xen they are not its own, and in
/// ring 3 there are none.
fn is_bare() -> bool {
    backend::chosen() == Backend::Kvm
}

/// Adds an event to each queue, in a timer interrupt of this vCPU.
pub fn push(vcpu: usize) {
    EVERYWHERE.push(vcpu);
    if is_bare() {
        BARE.push(vcpu);
    }
}

/// Handles all events that wait, in a task.
pub fn drain() {
    EVERYWHERE.drain();
    if is_bare() {
        BARE.drain();
    }
}

/// Whether each event was handled, was dropped, or waits.
pub fn are_whole() -> bool {
    EVERYWHERE.is_whole() && (!is_bare() || BARE.is_whole())
}

/// The events that were handled.
pub fn handled() -> u64 {
    EVERYWHERE.handled() + if is_bare() { BARE.handled() } else { 0 }
}

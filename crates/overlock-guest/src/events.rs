//! overlock-core as the spinlock of a kernel: a queue that timer interrupts fill and tasks drain.
//!
//! The lock is [`InterruptLock`] around one of the family, by `lock_api`. A kernel would do the
//! same with its own platform in the place of [`Guest`].

use lock_api::Mutex;
use overlock_core::spin::Hybrid;
use overlock_guest::Guest;
use overlock_guest::interrupts::InterruptLock;

/// A mutex of this kernel, for data that interrupt handlers use as well.
type KernelMutex<T> = Mutex<InterruptLock<Hybrid<Guest>>, T>;

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

static EVENTS: KernelMutex<Events> = Mutex::new(Events {
    waiting: [0; ROOM],
    length: 0,
    pushed: 0,
    dropped: 0,
    handled: 0,
});

/// Adds an event, in a timer interrupt of this vCPU.
pub fn push(vcpu: usize) {
    let mut events = EVENTS.lock();
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

/// Handles all events that wait, in a task.
pub fn drain() {
    let mut events = EVENTS.lock();
    events.handled += events.length as u64;
    events.length = 0;
}

/// Whether each event was handled, was dropped, or waits.
pub fn are_whole() -> bool {
    let events = EVENTS.lock();
    events.pushed == events.handled + events.dropped + events.length as u64
}

/// The events that tasks have handled since boot.
pub fn handled() -> u64 {
    EVENTS.lock().handled
}

//! The tester's short form: tasks and interrupt handlers take locks, for real.
//!
//! There are two locks. Tasks take the first with interrupts on: handlers interrupt them while they
//! wait, and while they hold it. Handlers take the second, as do tasks with interrupts off. A
//! handler that waits does so in the next context of its vCPU.

use core::sync::atomic::Ordering::Relaxed;

use overlock_core::Platform;
use overlock_core::platform::Pause;
use overlock_guest::interrupts::Off;
use overlock_guest::options::Options;
use overlock_guest::{Guest, backend, vcpu, x86};

use crate::bench::is_read;
use crate::console::say;
use crate::coordinator;
use crate::events;
use crate::registry::{self, Entry};
use crate::shared::{self, HANDLER, Phase, STOP, TASK, bump};
use crate::subject::Subject;

/// Between two interrupts of a vCPU's timer, at least. Up to twice that, at random.
const TIMER_NS: u64 = 100_000;

/// One operation in so many is followed by an interrupt of another vCPU.
const CALLS: u64 = 16;

/// Takes both locks until the round stops: a task.
///
/// # Safety
///
/// The registry's locks are of this type.
pub unsafe fn work<L: Subject>() {
    // SAFETY: the caller's promise.
    let [lock, _] = unsafe { registry::pair::<L>() };
    let own = shared::own();
    let mut random = Random(x86::rdtsc());
    own.handlers_lock.store(true, Relaxed);
    set_timer();
    while STOP.load(Relaxed) == 0 {
        own.set(Phase::Waiting);
        let reads = is_read(own.operations.load(Relaxed));
        let has_read = lock.visit(reads, &TASK, || {
            own.set(Phase::Holding);
            Guest::pause(Pause::Iterations((random.next() % 64) as u32));
        });
        own.set(Phase::Outside);
        own.count(has_read);
        events::drain();
        if random.next().is_multiple_of(CALLS) {
            send_call(&mut random);
        }
        let off = Off::begin();
        // SAFETY: as above.
        unsafe { handle::<L>() };
        drop(off);
    }
    own.handlers_lock.store(false, Relaxed);
}

/// Takes the handlers' lock, with interrupts off.
///
/// # Safety
///
/// As for [`work`].
pub unsafe fn handle<L: Subject>() {
    // SAFETY: the caller's promise.
    let [_, lock] = unsafe { registry::pair::<L>() };
    let own = shared::own();
    if lock.visit(is_read(own.handled.load(Relaxed)), &HANDLER, || {}) {
        bump(&own.handled_reads);
    }
    bump(&own.handled);
    if own.phase() != Phase::Outside {
        bump(&own.nested);
    }
}

/// Has the timer interrupt this vCPU, at a random time.
pub fn set_timer() {
    backend::set_timer(TIMER_NS + x86::rdtsc() % TIMER_NS);
}

fn send_call(random: &mut Random) {
    let other = 1 + random.next() as usize % coordinator::workers();
    if other != vcpu::index() {
        backend::call(other);
    }
}

/// A generator of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 |= 1;
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }
}

/// Tests a round of the lock, and prints what was done.
pub fn run(options: &Options<'_>, entry: &Entry, workers: usize) {
    let before = events::handled();
    let round = coordinator::round(options, entry, workers);
    let states = shared::workers(workers);
    let sum = |field: fn(&shared::Worker) -> u64| states.iter().map(field).sum::<u64>();
    say!(
        "{{\"hypervisor\":\"{}\",\"torture\":\"{}\",\"vcpus\":{workers},\"ns\":{},\"tasks\":{},\
         \"handlers\":{},\"nested\":{},\"events\":{},\"halts\":{},\"kicks\":{},\"unkicked\":{}}}",
        backend::hypervisor(),
        entry.name,
        round.nanos,
        sum(|state| state.operations.load(Relaxed)),
        sum(|state| state.handled.load(Relaxed)),
        sum(|state| state.nested.load(Relaxed)),
        events::handled() - before,
        round.counts.halts,
        round.counts.kicks,
        round.counts.unkicked
    );
}

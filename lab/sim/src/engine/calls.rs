//! Calls of vCPUs' fibres to the engine.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::buffer::Store;
use super::state::Engine;
use super::{ask, current, fibre, with};
use crate::account::State;
use crate::cache::{Access, Answer};
use crate::time::Time;
use crate::trace::What;

/// Runs `what` on the engine on behalf of the calling vCPU, and suspends the vCPU if it returns
/// true.
pub(super) fn call(vcpu: usize, what: impl FnOnce(&mut Engine) -> bool) {
    // A preemption in the middle of an instruction takes place after it.
    let mut waits = with(|engine| what(engine) || engine.preempt_deferred(vcpu));
    while waits {
        fibre::suspend(vcpu);
        waits = with(|engine| engine.preempt_deferred(vcpu));
    }
}

/// The same, in the middle of an instruction.
pub(super) fn stall(vcpu: usize, what: impl FnOnce(&mut Engine) -> bool) {
    if with(what) {
        fibre::suspend(vcpu);
    }
}

/// The calling vCPU is in this state for this long.
pub(super) fn spend(vcpu: usize, state: State, time: impl FnOnce(&mut Engine) -> Time) {
    call(vcpu, |engine| {
        let time = time(engine);
        engine.pass(vcpu, time, state)
    });
}

/// Returns the present time; 0 outside of simulations.
pub fn now() -> Time {
    ask(Time::ZERO, |engine, _| engine.now)
}

/// Computes for `time`, on an otherwise idle core.
pub fn work(time: Time) {
    if let Some(me) = current()
        && time > Time::ZERO
    {
        spend(me, State::Work, |engine| engine.work(me, time));
    }
}

/// Whether the simulation has to stop. Costs a cache hit.
pub fn stopped() -> bool {
    let Some(me) = current() else { return true };
    spend(me, State::Work, |engine| engine.machine.costs.hit);
    with(|engine| engine.now >= engine.stop_after)
}

/// Whether the measured time has begun. Takes no time.
pub fn counts() -> bool {
    ask(true, |engine, _| engine.before.is_some())
}

/// The caller has performed so many operations since its start. Takes no time.
pub fn has_performed(operations: u64) {
    ask((), |engine, me| engine.vcpus[me].performed = operations);
}

/// Yields the CPU to another vCPU, if any is queued for it.
pub fn rest() {
    if let Some(me) = current() {
        spend(me, State::Host, |engine| engine.host.yields);
        stall(me, |engine| engine.rests(me));
    }
}

/// Waits until the caller's store is visible, if one is buffered.
pub(super) fn drain() {
    if let Some(me) = current() {
        call(me, |engine| engine.drain(me));
    }
}

/// Stores. `effect` does it at once, outside of simulations or if the line is there.
#[inline]
pub(crate) fn store(store: Store, effect: impl FnOnce()) {
    let Some(me) = current() else { return effect() };
    drain();
    let address = store.word.addr();
    if fibre::is_on_stack(me, address) {
        // Rust may move it, or end it without a call: no store may be on its way to it.
        return access_own(me, address, Access::Write, effect);
    }
    if with(|engine| engine.owns(me, address)) {
        return access(address, Access::Write, effect);
    }
    spend(me, State::Memory, |engine| {
        engine.buffers(me, store);
        engine.machine.costs.hit
    });
}

/// Loads the word at `address`, which has the bits `whole`, from the caller's store buffer. Returns
/// `None` if the load needs memory.
#[inline]
pub(crate) fn forwarded(address: usize, whole: u64) -> Option<u64> {
    let me = current()?;
    let (bits, value) = with(|engine| engine.buffered(me, address));
    if bits & whole == whole {
        spend(me, State::Memory, |engine| {
            engine.loaded_own(me, address);
            engine.machine.costs.hit
        });
        return Some(value);
    }
    if bits & whole != 0 {
        // The processor cannot merge a store with a word of the cache.
        drain();
    }
    None
}

thread_local! {
    /// Whether loads on this thread take no time.
    static UNOBSERVED: Cell<bool> = const { Cell::new(false) };
}

/// Evaluates `condition`, whose loads take no time and leave no trace in the simulation.
pub(crate) fn unobserved(condition: impl FnOnce() -> bool) -> bool {
    let before = UNOBSERVED.replace(true);
    let verdict = catch_unwind(AssertUnwindSafe(condition));
    UNOBSERVED.set(before);
    verdict.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Returns which bits of the word at `address` the caller's buffered store sets, and to what:
/// within [`unobserved`], whose loads see them. `None` elsewhere.
#[inline]
pub(crate) fn stores_of_unobserved(address: usize) -> Option<(u64, u64)> {
    if !UNOBSERVED.get() {
        return None;
    }
    ask(None, |engine, me| Some(engine.buffered(me, address)))
}

/// The word at `address` ends: no buffered store may reach it.
pub(crate) fn forget_stores(address: usize) {
    ask((), |engine, _| engine.forget_stores(address));
}

/// Accesses the word at `address` without the store buffer: takes the time of the access, then runs
/// its `effect`.
#[inline]
pub(crate) fn access<R>(address: usize, access: Access, effect: impl FnOnce() -> R) -> R {
    let Some(me) = current() else { return effect() };
    let is_locked = access == Access::Locked;
    if is_locked {
        drain();
    }
    if fibre::is_on_stack(me, address) {
        return access_own(me, address, access, effect);
    }
    loop {
        let mut hits = true;
        stall(me, |engine| match engine.access(me, address, access) {
            Answer::Hit(time) => {
                let locks = engine.machine.costs.locks_line;
                let until = if is_locked { time.scale(locks) } else { time };
                engine.pass(me, until, State::Memory)
            }
            Answer::Wait => {
                hits = false;
                true
            }
        });
        if !hits || !is_locked {
            break;
        }
        if let Some(rest) = with(|engine| engine.locks_line(me)) {
            stall(me, |engine| engine.pass(me, rest, State::Memory));
            break;
        }
    }
    let result = effect();
    call(me, |engine| engine.accessed(me, access));
    result
}

/// Accesses a word on the own stack, whose lines are always there: which words lie in one line
/// depends on the compiler, so it must not matter.
fn access_own<R>(me: usize, address: usize, access: Access, effect: impl FnOnce() -> R) -> R {
    spend(me, State::Memory, |engine| engine.cache.hits(access));
    let result = effect();
    call(me, |engine| engine.accessed_own(me, address, access));
    result
}

/// The caller begins to wait for the lock at `address`: for the counts of preempted waiters and for
/// traces. Takes no time.
pub fn waits(address: usize) {
    ask((), |engine, me| {
        engine.vcpus[me].waits = true;
        engine.lock_mark(me, address, What::Waits);
    });
}

/// The caller has acquired the lock at `address`. Takes no time.
pub fn holds(address: usize) {
    ask((), |engine, me| {
        engine.vcpus[me].waits = false;
        engine.vcpus[me].holds += 1;
        engine.lock_mark(me, address, What::Holds);
    });
}

/// The caller has released the lock at `address`. Takes no time.
pub fn releases(address: usize) {
    ask((), |engine, me| {
        engine.vcpus[me].holds -= 1;
        engine.lock_mark(me, address, What::Releases);
    });
}

//! Calls of vCPUs' fibres to the engine.

use std::cell::Cell;

use overlock_core::stat::Event as LockEvent;

use super::buffer::{Forward, Store};
use super::state::Engine;
use super::{current, fibre, with};
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

/// Returns the present time; 0 outside of simulations.
pub fn now() -> Time {
    match current() {
        Some(_) => with(|engine| engine.now),
        None => Time::ZERO,
    }
}

/// Computes for `time`, on an otherwise idle core.
pub fn work(time: Time) {
    if let Some(me) = current()
        && time > Time::ZERO
    {
        call(me, |engine| {
            let time = engine.work(me, time);
            engine.pass(me, time, State::Work)
        });
    }
}

/// Whether the simulation has to stop. Costs a cache hit.
pub fn stopped() -> bool {
    let Some(me) = current() else { return true };
    call(me, |engine| {
        engine.pass(me, engine.machine.costs.hit, State::Work)
    });
    with(|engine| engine.now >= engine.stop_after)
}

/// Whether the measured time has begun. Takes no time.
pub fn counts() -> bool {
    current().is_none_or(|_| with(|engine| engine.measurement.before.is_some()))
}

/// The caller has performed so many operations since its start. Takes no time.
pub fn has_performed(operations: u64) {
    if let Some(me) = current() {
        with(|engine| engine.vcpus[me].performed = operations);
    }
}

/// Yields the CPU to another vCPU, if any is queued for it.
pub fn rest() {
    if let Some(me) = current() {
        call(me, |engine| {
            engine.pass(me, engine.host.yields, State::Host)
        });
        if with(|engine| engine.rests(me)) {
            fibre::suspend(me);
        }
    }
}

/// Waits until the caller's stores are visible.
pub(super) fn drain() {
    if let Some(me) = current() {
        call(me, |engine| engine.drain(me));
    }
}

/// Stores. `effect` does it at once, outside of simulations or if the line is there.
#[inline]
pub(crate) fn store(store: Store, effect: impl FnOnce()) {
    let Some(me) = current() else { return effect() };
    call(me, |engine| engine.make_room(me));
    let address = store.word.addr();
    if fibre::is_on_stack(me, address) {
        // Rust may move it, or end it without a call: no store may be on its way to it.
        drain();
        return access_own(me, address, Access::Write, effect);
    }
    match with(|engine| engine.stores_at_once(me, address)) {
        Some(time) => {
            if with(|engine| engine.pass(me, time, State::Memory)) {
                fibre::suspend(me);
            }
            effect();
            call(me, |engine| engine.accessed(me, Access::Write));
        }
        None => call(me, |engine| {
            engine.buffers(me, store);
            engine.pass(me, engine.machine.costs.hit, State::Memory)
        }),
    }
}

/// Loads the word at `address`, which has the bits `whole`, from the caller's store buffer. Returns
/// `None` if the load needs memory.
#[inline]
pub(crate) fn forwarded(address: usize, whole: u64) -> Option<u64> {
    let me = current()?;
    match with(|engine| engine.forwards(me, address, whole)) {
        Forward::Nothing => None,
        Forward::Part => {
            // The processor cannot merge a store with a word of the cache.
            call(me, |engine| engine.drain(me));
            None
        }
        Forward::Value(value) => {
            call(me, |engine| {
                engine.loaded_own(me, address);
                engine.pass(me, engine.machine.costs.hit, State::Memory)
            });
            Some(value)
        }
    }
}

thread_local! {
    /// Whether loads on this thread take no time.
    static UNOBSERVED: Cell<bool> = const { Cell::new(false) };
}

/// Puts back what loads did before; also on a panic.
struct Observed(bool);

impl Drop for Observed {
    fn drop(&mut self) {
        UNOBSERVED.set(self.0);
    }
}

/// Evaluates `condition`, whose loads take no time and leave no trace in the simulation.
pub(crate) fn unobserved(condition: impl FnOnce() -> bool) -> bool {
    let _observed = Observed(UNOBSERVED.replace(true));
    condition()
}

/// Returns which bits of the word at `address` the caller's buffered stores set, and to what:
/// within [`unobserved`], whose loads see them. `None` elsewhere.
#[inline]
pub(crate) fn stores_of_unobserved(address: usize) -> Option<(u64, u64)> {
    if !UNOBSERVED.get() {
        return None;
    }
    let me = current()?;
    Some(with(|engine| engine.buffered(me, address)))
}

/// The word at `address` ends: no buffered store may reach it.
pub(crate) fn forget_stores(address: usize) {
    if current().is_some() {
        with(|engine| engine.forget_stores(address));
    }
}

/// Accesses the word at `address` without the store buffer: takes the time of the access, then runs
/// its `effect`.
#[inline]
pub(crate) fn access<R>(address: usize, access: Access, effect: impl FnOnce() -> R) -> R {
    let Some(me) = current() else { return effect() };
    if access == Access::Locked {
        drain();
    }
    if fibre::is_on_stack(me, address) {
        return access_own(me, address, access, effect);
    }
    loop {
        let (waits, hits) = with(|engine| match engine.access(me, address, access) {
            Answer::Hit(time) if access == Access::Locked => {
                let until = time.scale(engine.machine.costs.locks_line);
                (engine.pass(me, until, State::Memory), true)
            }
            Answer::Hit(time) => (engine.pass(me, time, State::Memory), true),
            Answer::Wait => (true, false),
        });
        if waits {
            fibre::suspend(me);
        }
        if !hits || access != Access::Locked {
            break;
        }
        if let Some(rest) = with(|engine| engine.locks_line(me)) {
            if with(|engine| engine.pass(me, rest, State::Memory)) {
                fibre::suspend(me);
            }
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
    call(me, |engine| {
        let takes = engine.cache.hits(access);
        engine.pass(me, takes, State::Memory)
    });
    let result = effect();
    call(me, |engine| engine.accessed_own(me, address, access));
    result
}

/// Returns how often the line of the caller's last load had been changed when that took effect.
pub(crate) fn looked() -> u64 {
    current().map_or(0, |me| with(|engine| engine.changes_seen(me)))
}

/// A full barrier on all CPUs.
pub(crate) fn heavy_barrier() {
    let Some(me) = current() else { return };
    drain();
    let issued = with(|engine| engine.issued());
    loop {
        call(me, |engine| {
            engine.pass(me, engine.host.heavy_barrier, State::Host)
        });
        if with(|engine| engine.are_visible(&issued)) {
            return;
        }
    }
}

/// Returns the caller's CPU. In a guest that is its vCPU: a guest does not see the machine's CPUs.
/// Threads that are told which others are preempted have such numbers, too.
pub(crate) fn cpu() -> Option<usize> {
    let me = current()?;
    let cpu = with(|engine| {
        let numbered = engine.host.hypervisor || engine.host.tells_preempted;
        (!numbered).then(|| engine.schedule.cpu(me))
    });
    Some(cpu.unwrap_or(me))
}

/// Returns the socket that the caller runs on; 0 outside of simulations.
pub(crate) fn socket() -> u32 {
    current().map_or(0, |me| {
        with(|engine| engine.machine.place_of(engine.core(me)).socket as u32)
    })
}

/// Whether the vCPU of that CPU is preempted, as far as the caller can know: its host may tell. A
/// thread knows it of its own CPU, as it runs there itself.
pub(crate) fn preempted(cpu: usize) -> bool {
    let Some(me) = current() else { return false };
    with(|engine| match engine.host.tells_preempted {
        true => engine.preempted.contains(cpu),
        false => !engine.host.hypervisor && engine.schedule.cpu(me) == cpu,
    })
}

/// Returns the numbers of vCPUs, and of CPUs as the caller sees them: a guest sees its vCPUs.
pub(crate) fn sizes() -> Option<(usize, usize)> {
    current().map(|_| {
        with(|engine| match engine.host.hypervisor {
            true => (engine.fibres, engine.fibres),
            false => (engine.fibres, engine.machine.cpus()),
        })
    })
}

/// Returns the address as a number that does not depend on the placement of the program's memory.
/// Lines are numbered in the order of their first use; the low bits are the offset within the line.
pub(crate) fn stable(address: usize) -> usize {
    match current() {
        Some(_) => {
            with(|engine| engine.cache.line(address) * crate::cache::LINE)
                + address % crate::cache::LINE
        }
        None => address,
    }
}

/// A lock counts an event of its slow path.
pub(crate) fn lock_event(event: LockEvent, times: u64) {
    if current().is_some() {
        with(|engine| engine.lock_events.add(event, times));
    }
}

/// The caller begins to wait for the lock at `address`: for the counts of preempted waiters and for
/// traces. Takes no time.
pub fn waits(address: usize) {
    mark(address, What::Waits);
}

/// The caller has acquired the lock at `address`. Takes no time.
pub fn holds(address: usize) {
    mark(address, What::Holds);
}

/// The caller has released the lock at `address`. Takes no time.
pub fn releases(address: usize) {
    mark(address, What::Releases);
}

fn mark(address: usize, what: fn(usize) -> What) {
    if let Some(me) = current() {
        with(|engine| engine.lock_mark(me, address, what));
    }
}

//! What the fibres of vCPUs ask of the engine.

use overlock_core::diagram::Transition;

use super::access::TAKES_HOLD;
use super::state::Engine;
use super::{current, fibre, with};
use crate::account::State;
use crate::cache::{Access, Answer};
use crate::time::Time;
use crate::trace::What;

/// Does something to the engine on behalf of the calling vCPU, and suspends it where the answer is
/// true.
fn ask(vcpu: usize, what: impl FnOnce(&mut Engine) -> bool) {
    if with(what) {
        fibre::suspend(vcpu);
    }
    // Whoever was to lose its CPU in the middle of an instruction loses it after that.
    while with(|engine| engine.gives_way(vcpu)) {
        fibre::suspend(vcpu);
    }
}

/// The current moment; 0 outside of simulations.
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
        ask(me, |engine| {
            let time = engine.work(me, time);
            engine.pass(me, time, State::Work)
        });
    }
}

/// Whether it is time to end.
pub fn stopped() -> bool {
    let Some(me) = current() else { return true };
    ask(me, |engine| {
        engine.pass(me, engine.machine.costs.hit, State::Work)
    });
    with(|engine| engine.now >= engine.stop_after)
}

/// Gives the CPU to somebody else, if anybody wants it.
pub fn rest() {
    if let Some(me) = current() {
        ask(me, |engine| engine.pass(me, engine.host.brief, State::Host));
        if with(|engine| engine.rests(me)) {
            fibre::suspend(me);
        }
    }
}

/// An access to the word at `address`: takes the time that it takes, then has its `effect`.
#[inline]
pub(crate) fn access<R>(address: usize, access: Access, effect: impl FnOnce() -> R) -> R {
    let Some(me) = current() else { return effect() };
    if access != Access::Read {
        // The store buffer: stores leave in their order, and before any locked instruction.
        ask(me, |engine| engine.drain(me));
    }
    loop {
        let (waits, hits) = with(|engine| match engine.access(me, address, access) {
            Answer::Hit(time) if access == Access::Locked => {
                (engine.pass(me, time.scale(TAKES_HOLD), State::Memory), true)
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
        if let Some(rest) = with(|engine| engine.takes_hold(me)) {
            if with(|engine| engine.pass(me, rest, State::Memory)) {
                fibre::suspend(me);
            }
            break;
        }
    }
    let result = effect();
    ask(me, |engine| engine.accessed(me, access));
    result
}

/// How often the line of the caller's last load had been changed when that took effect.
pub(crate) fn looked() -> u64 {
    current().map_or(0, |me| with(|engine| engine.looked(me)))
}

/// Waits, spinning, until the word at `address` may have changed since its line had been so often,
/// or `until` has come.
pub(crate) fn watch(address: usize, changes: u64, until: Option<Time>) {
    let Some(me) = current() else {
        panic!("outside of a simulation nobody changes what this waits for")
    };
    ask(me, |engine| engine.watch(me, address, changes, until));
    while with(|engine| engine.sees_pause_exit(me)) {
        pause_exit(me);
    }
}

/// So many turns of a spin loop.
pub(crate) fn pause(turns: u32) {
    if current().is_some() {
        delay(with(|engine| {
            engine.machine.costs.turn.times(u64::from(turns))
        }));
    }
}

/// As many turns of a spin loop as take so long.
pub(crate) fn delay(mut left: Time) {
    let Some(me) = current() else { return };
    while left > Time::ZERO {
        let part = with(|engine| left.min(engine.pauses(me).saturating_sub(engine.now)));
        ask(me, |engine| engine.pass(me, part, State::Spin));
        with(|engine| engine.paused(me));
        left = left - part;
        if left > Time::ZERO {
            pause_exit(me);
        }
    }
}

fn pause_exit(me: usize) {
    ask(me, |engine| engine.exits(me));
    if with(|engine| engine.yields(me)) {
        fibre::suspend(me);
    }
    ask(me, |engine| {
        engine.enters_guest(me);
        false
    });
}

/// Sleeps until kicked, or until then, if `is_expected` still says so; whether it did.
pub(crate) fn halt(
    address: usize,
    until: Option<Time>,
    is_expected: impl FnOnce() -> bool,
) -> bool {
    let Some(me) = current() else { return true };
    ask(me, |engine| engine.drain(me));
    ask(me, |engine| engine.pass(me, engine.host.brief, State::Host));
    if !is_expected() {
        return false;
    }
    if with(|engine| engine.halts(me, address, until)) {
        fibre::suspend(me);
    }
    true
}

/// Wakes one that sleeps for the word at `address`.
pub(crate) fn kick(address: usize) {
    let Some(me) = current() else { return };
    ask(me, |engine| engine.drain(me));
    let half = with(|engine| engine.kick_costs(address).half());
    ask(me, |engine| engine.pass(me, half, State::Host));
    with(|engine| engine.kick(me, address));
    ask(me, |engine| engine.pass(me, half, State::Host));
}

/// Wakes all that sleep for the word at `address`, one after the other; each costs a kick.
pub(crate) fn kick_all(address: usize) {
    let sleepers = with(|engine| engine.sleepers_at(address));
    (0..sleepers.max(1)).for_each(|_| kick(address));
}

/// A full barrier everywhere.
pub(crate) fn heavy_barrier() {
    if let Some(me) = current() {
        ask(me, |engine| engine.drain(me));
        ask(me, |engine| {
            engine.pass(me, engine.host.heavy_barrier, State::Host)
        });
    }
}

/// The CPU that the caller runs on.
pub(crate) fn cpu() -> Option<usize> {
    current().map(|me| with(|engine| engine.schedule.cpu(me)))
}

/// Whether that CPU is another vCPU's, as far as the caller can know: where it runs on it itself.
pub(crate) fn preempted(cpu: usize) -> bool {
    self::cpu() == Some(cpu)
}

/// How many vCPUs there are, and how many CPUs.
pub(crate) fn sizes() -> Option<(usize, usize)> {
    current().map(|_| with(|engine| (engine.team, engine.machine.cpus())))
}

/// What a turn of a spin loop takes.
pub(crate) fn turn() -> Time {
    with(|engine| engine.machine.costs.turn)
}

/// The line of an address as a number that does not depend on where the program's memory happens to
/// lie: lines are numbered in the order of their first use. The offset within the line comes in the
/// low bits.
pub(crate) fn stable(address: usize) -> usize {
    match current() {
        Some(_) => {
            with(|engine| engine.cache.line(address) * crate::cache::LINE)
                + address % crate::cache::LINE
        }
        None => address,
    }
}

/// The caller took this transition of a diagram.
pub(crate) fn transition(transition: Transition) {
    if current().is_some() {
        with(|engine| engine.transition(transition));
    }
}

/// The caller begins to wait for the lock at `address`: for the counts of preempted waiters and for
/// traces. Costs nothing.
pub fn waits(address: usize) {
    mark(address, What::Waits);
}

/// The caller has acquired the lock at `address`.
pub fn holds(address: usize) {
    mark(address, What::Holds);
}

/// The caller has released the lock at `address`.
pub fn releases(address: usize) {
    mark(address, What::Releases);
}

fn mark(address: usize, what: fn(usize) -> What) {
    if let Some(me) = current() {
        with(|engine| engine.lock_mark(me, address, what));
    }
}

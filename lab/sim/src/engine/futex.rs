//! Halts and kicks. Those of threads are futex calls, which share the buckets of the kernel.

use super::calls::{access, call, drain};
use super::state::Engine;
use super::{current, fibre, with};
use crate::account::State;
use crate::cache::Access;
use crate::time::Time;

/// Sleeps until kicked, or until `until`, if `is_expected` returns true. Returns whether it did.
pub(crate) fn halt(
    address: usize,
    until: Option<Time>,
    is_expected: impl FnOnce() -> bool,
) -> bool {
    let Some(me) = current() else { return true };
    drain();
    // A guest compares the word itself, with interrupts disabled. A thread has it compared by the
    // futex call, in the middle of what that takes if the word has changed.
    let (before, after, rest) = with(|engine| match &engine.host {
        host if host.hypervisor => (engine.machine.costs.hit, Time::ZERO, host.brief),
        host => (host.brief.half(), host.brief.half(), host.brief.half()),
    });
    call(me, |engine| engine.pass(me, before, State::Host));
    let is_thread = with(|engine| !engine.host.hypervisor);
    if is_thread {
        enter_bucket(me, address);
    }
    // The kernel loads the word: its line comes to this core.
    let is_expected = match is_thread {
        true => access(address & !1, Access::Read, is_expected),
        false => is_expected(),
    };
    if !is_expected {
        call(me, |engine| engine.pass(me, after, State::Host));
        return false;
    }
    // A kick on the way to sleep ends the halt.
    with(|engine| engine.joins_sleepers(me, address));
    call(me, |engine| engine.pass(me, rest, State::Host));
    if with(|engine| engine.halts(me, until)) {
        fibre::suspend(me);
    }
    true
}

/// Waits for the bucket of the word at `address` in the kernel, and works on it.
fn enter_bucket(me: usize, address: usize) {
    let time = with(|engine| engine.enters_bucket(me, address));
    call(me, |engine| engine.pass(me, time, State::Host));
}

/// Wakes the first sleeper on the word at `address`.
pub(crate) fn kick(address: usize) {
    let Some(me) = current() else { return };
    drain();
    let half = with(|engine| engine.kick_costs(address).half());
    call(me, |engine| engine.pass(me, half, State::Host));
    // A call that finds neither sleepers nor others at the bucket does not lock it.
    if with(|engine| engine.has_bucket(address)) {
        enter_bucket(me, address);
    }
    with(|engine| engine.kick(me, address));
    call(me, |engine| engine.pass(me, half, State::Host));
}

/// Wakes all sleepers on the word at `address`, one after the other; each costs a kick.
pub(crate) fn kick_all(address: usize) {
    if current().is_none() {
        return;
    }
    let sleepers = with(|engine| engine.sleepers_at(address));
    (0..sleepers.max(1)).for_each(|_| kick(address));
}

/// Makes the first sleeper on the word at `from`, if there is one, a sleeper on that at `to`.
pub(crate) fn requeue(from: usize, to: usize) -> bool {
    let Some(me) = current() else { return false };
    drain();
    let half = with(|engine| engine.kick_costs(from).half());
    call(me, |engine| engine.pass(me, half, State::Host));
    with(|engine| engine.moves_sleeper(from, to));
    call(me, |engine| engine.pass(me, half, State::Host));
    true
}

impl Engine {
    /// `vcpu` enters the kernel for the futex at `address`. Returns how long it takes until it has
    /// had the bucket to itself: others come first, and lines of the bucket come from the core that
    /// had it last.
    fn enters_bucket(&mut self, vcpu: usize, address: usize) -> Time {
        let core = self.core(vcpu);
        let machine = &self.machine;
        let bucket = match fibre::is_on_stack(vcpu, address) {
            // The compiler chooses the addresses of words there: they must not matter.
            true => vcpu,
            false => address & !1,
        };
        let (free, last) = *self.buckets.entry(bucket).or_insert((Time::ZERO, core));
        let transfer = match last == core {
            true => Time::ZERO,
            false => machine.transfer(machine.place_of(last), machine.place_of(core)),
        };
        let takes = transfer.times(self.host.bucket_lines) + self.host.bucket_hold;
        let end = self.now.max(free) + takes;
        self.buckets.insert(bucket, (end, core));
        end - self.now
    }

    /// Whether a waker has to lock the bucket of the futex at `address`: a thread sleeps there, or
    /// is on its way.
    fn has_bucket(&self, address: usize) -> bool {
        let in_use = self.buckets.get(&(address & !1));
        let in_use = in_use.is_some_and(|&(free, _)| free > self.now);
        !self.host.hypervisor && (in_use || self.sleepers_at(address) > 0)
    }
}

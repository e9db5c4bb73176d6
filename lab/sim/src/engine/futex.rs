//! Halts and kicks. Those of threads are futex calls, which share the buckets of the kernel.

use super::calls::{access, drain, spend, stall};
use super::state::Engine;
use super::{ask, current, fibre, with};
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
    let (is_thread, before, after, rest) = with(|engine| {
        let (host, hit) = (&engine.host, engine.machine.costs.hit);
        let half = host.brief.half();
        match host.hypervisor {
            true => (false, hit, Time::ZERO, host.brief),
            false => (true, half, half, half),
        }
    });
    spend(me, State::Host, |_| before);
    let is_expected = if is_thread {
        enter_bucket(me, address);
        // The kernel loads the word: its line comes to this core.
        access(address, Access::Read, is_expected)
    } else {
        is_expected()
    };
    if !is_expected {
        spend(me, State::Host, |_| after);
        return false;
    }
    // A kick on the way to sleep ends the halt.
    with(|engine| engine.joins_sleepers(me, address));
    spend(me, State::Host, |_| rest);
    stall(me, |engine| engine.halts(me, until));
    true
}

/// Waits for the bucket of the word at `address` in the kernel, and works on it.
fn enter_bucket(me: usize, address: usize) {
    spend(me, State::Host, |engine| engine.enters_bucket(me, address));
}

/// Wakes the first sleeper on the word at `address`.
pub(crate) fn kick(address: usize) {
    let Some(me) = current() else { return };
    drain();
    let half = with(|engine| engine.kick_costs(address).half());
    spend(me, State::Host, |_| half);
    // A call that finds neither sleepers nor others at the bucket does not lock it.
    if with(|engine| engine.has_bucket(address)) {
        enter_bucket(me, address);
    }
    with(|engine| engine.kick(me, address));
    spend(me, State::Host, |_| half);
}

/// Wakes all sleepers on the word at `address`, one after the other; each costs a kick.
pub(crate) fn kick_all(address: usize) {
    let sleepers = ask(0, |engine, _| engine.sleepers_at(address));
    (0..sleepers.max(1)).for_each(|_| kick(address));
}

/// Makes the first sleeper on the word at `from`, if there is one, a sleeper on that at `to`.
pub(crate) fn requeue(from: usize, to: usize) -> bool {
    let Some(me) = current() else { return false };
    drain();
    let half = with(|engine| engine.kick_costs(from).half());
    spend(me, State::Host, |_| half);
    with(|engine| {
        if let Some(vcpu) = engine.first_sleeper(from) {
            engine.leaves_sleepers(vcpu);
            engine.joins_sleepers(vcpu, to);
        }
    });
    spend(me, State::Host, |_| half);
    true
}

/// Returns what stands for the bucket of the futex at `address`. The compiler chooses the addresses
/// of words on a stack, so they must not matter: a vCPU has one bucket for all of them.
fn bucket(address: usize) -> usize {
    fibre::stack_of(address).unwrap_or(address)
}

impl Engine {
    /// `vcpu` enters the kernel for the futex at `address`. Returns how long it takes until it has
    /// had the bucket to itself: others come first, and lines of the bucket come from the core that
    /// had it last.
    fn enters_bucket(&mut self, vcpu: usize, address: usize) -> Time {
        let (now, core, machine) = (self.now, self.core(vcpu), &self.machine);
        let bucket = self.buckets.entry(bucket(address));
        let (free, last) = bucket.or_insert((Time::ZERO, core));
        let transfer = match *last == core {
            true => Time::ZERO,
            false => machine.transfer(machine.place_of(*last), machine.place_of(core)),
        };
        let takes = transfer.times(self.host.bucket_lines) + self.host.bucket_hold;
        (*free, *last) = (now.max(*free) + takes, core);
        *free - now
    }

    /// Whether a waker has to lock the bucket of the futex at `address`: a thread sleeps there, or
    /// is on its way.
    fn has_bucket(&self, address: usize) -> bool {
        let bucket = self.buckets.get(&bucket(address));
        let is_in_use = bucket.is_some_and(|&(free, _)| free > self.now);
        !self.host.hypervisor && (is_in_use || self.sleepers_at(address) > 0)
    }

    /// `vcpu` is about to halt: from here on a kick for `address` wakes it.
    fn joins_sleepers(&mut self, vcpu: usize, address: usize) {
        self.vcpus[vcpu].sleeps_at = Some(address);
        self.sleepers.entry(address).or_default().push(vcpu);
    }

    /// `vcpu` does not sleep for any word any more.
    pub fn leaves_sleepers(&mut self, vcpu: usize) {
        let address = self.vcpus[vcpu].sleeps_at.take();
        if let Some(waiting) = address.and_then(|address| self.sleepers.get_mut(&address)) {
            waiting.retain(|&waiting| waiting != vcpu);
        }
    }

    /// Returns the cost of a kick for the word at `address`.
    fn kick_costs(&self, address: usize) -> Time {
        match self.sleepers_at(address) {
            0 => self.host.kick_nobody,
            _ => self.host.kick,
        }
    }

    /// Returns the number of vCPUs that have halted for the word at `address`, or are about to.
    fn sleepers_at(&self, address: usize) -> usize {
        self.sleepers.get(&address).map_or(0, Vec::len)
    }

    fn first_sleeper(&self, address: usize) -> Option<usize> {
        self.sleepers.get(&address)?.first().copied()
    }

    /// Wakes the first vCPU that has halted for the word at `address`.
    fn kick(&mut self, by: usize, address: usize) {
        self.counts.kicks += 1;
        if let Some(vcpu) = self.first_sleeper(address) {
            self.leaves_sleepers(vcpu);
            self.wakes(vcpu, Some(by));
        }
    }
}

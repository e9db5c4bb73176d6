//! The platform of a simulated machine.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use overlock_core::platform::{Atomic, FutexPlatform, Kick, Pause};
use overlock_core::stat::Event as LockEvent;
use overlock_core::tables::Tables;
use overlock_core::{Atomics, Cpu, Deadline, Instant, Platform, Spin};
use overlock_family::FamilyPlatform;

use super::spin::{self, Poll, Spun};
use super::{ask, calls, current, futex, now, waits, with};
use crate::account::State;
use crate::cache::LINE;
use crate::tables;
use crate::time::Time;
use crate::word::{U8, U16, U32, U64, Usize};

/// The simulated machine as a platform of overlock-core.
#[derive(Clone, Copy, Debug)]
pub struct Sim;

/// A wait of a spinner: all that a poll needs.
struct Wait<'a, T, A, D> {
    word: &'a A,
    done: D,
    seen: Cell<T>,
    engine_judges: Cell<bool>,
}

impl<T: Copy + Eq, A: Atomic<T>, D: Fn(T) -> bool> Poll for Wait<'_, T, A, D> {
    fn poll(&self) -> Option<bool> {
        // No other thread runs: the order does not matter.
        let seen = self.word.load(Ordering::Relaxed);
        self.seen.set(seen);
        if !self.engine_judges.get() {
            return None;
        }
        let verdict = spin::judge(|| (self.done)(seen));
        self.engine_judges.set(verdict.is_some());
        verdict
    }
}

fn time(end: Deadline) -> Time {
    Time::ns(end.instant::<Sim>().as_nanos())
}

impl Atomics for Sim {
    type U8 = U8;
    type U16 = U16;
    type U32 = U32;
    type U64 = U64;
    type Usize = Usize;
}

/// Returns how often the line of the caller's last load had been changed when that took effect.
fn looked() -> u64 {
    ask(0, |engine, me| engine.vcpus[me].changes_seen)
}

impl Platform for Sim {
    fn wait_until<T, A>(
        word: &A,
        order: Ordering,
        limit: Spin,
        done: impl Fn(T) -> bool,
    ) -> Result<T, T>
    where
        T: Copy + Eq,
        A: Atomic<T>,
    {
        let address = std::ptr::from_ref(word).addr();
        let seen = word.load(order);
        // `done` may take time, and load other words.
        let mut changes = looked();
        let (holds, asks) = spin::asks(|| done(seen));
        if holds {
            return Ok(seen);
        }
        let (until, mut polls) = match limit {
            Spin::Forever => (None, None),
            // The load above is one of them.
            Spin::Polls(most) => (None, Some(u64::from(most.saturating_sub(1)))),
            Spin::Until(end) => (Some(time(end.into())), None),
        };
        // Not on the stack: the same part of all stacks is in one set of this machine's cache.
        let wait = Box::new(Wait {
            word,
            done,
            seen: Cell::new(seen),
            // A condition that has not asked for anything else probably never does.
            engine_judges: Cell::new(!asks),
        });
        loop {
            match spin::spin(address, changes, until, &mut polls, &*wait) {
                Spun::Over => return Err(wait.seen.get()),
                Spun::Holds => return Ok(wait.seen.get()),
                Spun::Load => wait.seen.set(word.load(order)),
                Spun::Judge => {}
            }
            changes = looked();
            let seen = wait.seen.get();
            if (wait.done)(seen) {
                return Ok(seen);
            }
        }
    }

    fn pause(time: Pause) {
        match time {
            Pause::Iterations(iterations) => waits::pause(iterations),
            Pause::Nanos(nanos) => waits::spin_for(nanos),
            Pause::Delay(nanos) => waits::delay(Time::ns(nanos)),
        }
    }

    fn spin_first(object: usize, is_new: bool, word: &U32, expected: u32) -> bool {
        let spins = |until| {
            let limit = Spin::Until(Instant::from_nanos(until));
            Self::wait_until(word, Ordering::Relaxed, limit, |seen| seen != expected).is_ok()
        };
        // As on a platform without spins: the kernel's locks look once more, too.
        waits::spin_first(object, is_new, spins)
            .unwrap_or_else(|| word.load(Ordering::Relaxed) != expected)
    }

    fn halt(word: &U32, expected: u32, until: Option<Deadline>) -> bool {
        futex::halt(word.address(), until.map(time), || word.peek() == expected)
    }

    fn kick(word: *const U32, whom: Kick) {
        match whom {
            Kick::One => futex::kick(word.addr()),
            Kick::All => futex::kick_all(word.addr()),
        }
    }

    /// In a guest that is its vCPU: a guest does not see the machine's CPUs. Threads that are told
    /// which others are preempted have such numbers, too.
    fn cpu() -> Cpu {
        ask(Cpu::UNKNOWN, |engine, me| {
            let is_numbered = engine.host.hypervisor || engine.host.tells_preempted;
            let cpu = if is_numbered {
                me
            } else {
                engine.schedule.cpu(me)
            };
            Cpu(cpu as u32)
        })
    }

    /// As far as the caller can know: its host may tell. A thread knows it of its own CPU, as it
    /// runs there itself.
    fn preempted(cpu: Cpu) -> bool {
        // Of no CPU it is known without the engine, so a condition that asks needs no fibre.
        cpu != Cpu::UNKNOWN
            && ask(false, |engine, me| {
                let cpu = cpu.0 as usize;
                match engine.host.tells_preempted {
                    true => engine.preempted.get(cpu) == Some(&true),
                    false => !engine.host.hypervisor && engine.schedule.cpu(me) == cpu,
                }
            })
    }

    fn now() -> Instant {
        Instant::from_nanos(now().as_ns())
    }

    /// A guest sees its vCPUs.
    fn parallelism() -> u32 {
        ask(1, |engine, _| match engine.host.hypervisor {
            true => engine.fibres as u32,
            false => engine.machine.cpus() as u32,
        })
    }

    #[inline]
    fn tables() -> Tables<Self> {
        Tables::new(tables::storage())
    }

    fn slots_in_use() -> usize {
        ask(0, |engine, _| engine.fibres)
    }

    fn slot() -> Option<usize> {
        current()
    }

    /// Lines are numbered in the order of their first use, so the placement of the program's memory
    /// does not matter.
    fn spread(address: usize) -> u32 {
        overlock_core::platform::spread(ask(address, |engine, _| {
            engine.cache.line(address) * LINE + address % LINE
        }))
    }

    fn unobserved(condition: impl FnOnce() -> bool) -> bool {
        calls::unobserved(condition)
    }

    fn event(event: LockEvent, times: u64) {
        ask((), |engine, _| engine.lock_events[event as usize] += times);
    }
}

impl FutexPlatform for Sim {
    fn light_barrier() {}

    fn heavy_barrier() {
        let Some(me) = current() else { return };
        calls::drain();
        let begin = now();
        loop {
            calls::spend(me, State::Host, |engine| engine.host.heavy_barrier);
            if with(|engine| engine.are_visible(begin)) {
                return;
            }
        }
    }

    fn requeue(from: &U32, to: &U32) -> bool {
        futex::requeue(from.address(), to.address())
    }

    fn begin_slice() {
        waits::begin_slice();
    }

    fn yield_slice(now: u64) -> bool {
        waits::yield_slice(now)
    }

    fn spin_before_sleep(lock: &U32) -> u64 {
        waits::spin_before_sleep(lock.address())
    }

    fn learn_spin(lock: &U32, ticks: u64, acquired: bool) {
        waits::learn_spin(lock.address(), ticks, acquired);
    }

    fn socket() -> u32 {
        ask(0, |engine, me| {
            engine.machine.place_of(engine.core(me)).socket as u32
        })
    }

    fn yield_cpu() {
        calls::rest();
    }
}

impl FamilyPlatform for Sim {
    #[inline]
    fn family_tables() -> overlock_family::tables::Tables<Self> {
        overlock_family::tables::Tables::new(tables::family_storage())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    const LINUX: &str = include_str!("../../../../crates/overlock-linux/src/linux.rs");
    const SIM: &str = include_str!("platform.rs");

    /// Functions that threads on Linux have and the simulated ones lack, and why that is the same
    /// code.
    const LACKS: &str = "
        rank is_realtime: all threads have the same priority, as by default
        ticks: the default is the clock, which takes no time here
        wall_clock own_clock: only deadlines of programs use them
        another_slot begin_gate owns_gate end_gate without_handlers: there are no signal handlers
        halt_either: cancellations use it, which no workload has";
    /// Functions that only the simulator has.
    const HAS: &str = "
        wait_until: the engine polls for its spinners
        pause: a pause takes simulated time
        spread: results do not depend on addresses
        unobserved: checks take no time
        event: it counts the locks' events
        socket: Linux asks for it elsewhere, since it has no lock that uses it";

    /// The functions of the two implementations.
    fn functions(source: &str, platform: &str) -> BTreeSet<String> {
        let blocks = ["Platform", "FutexPlatform"].map(|name| {
            let begin = format!("impl {name} for {platform} {{");
            let (_, block) = source.split_once(&begin).expect("it implements that");
            block.split_once("\n}\n").expect("the block ends").0
        });
        let lines = blocks.iter().flat_map(|block| block.lines());
        let names = lines.filter_map(|line| line.strip_prefix("    fn "));
        names
            .map(|name| name.split(['(', '<']).next().expect("a name").to_owned())
            .collect()
    }

    /// Fails where Linux gets a function that the simulated locks do not run.
    #[test]
    fn the_simulator_runs_the_code_that_ships() {
        let (linux, sim) = (functions(LINUX, "Linux"), functions(SIM, "Sim"));
        let names = |list: &str| -> BTreeSet<String> {
            let lines = list.lines().filter_map(|line| line.split_once(':'));
            let names = lines.flat_map(|(names, _)| names.split_whitespace());
            names.map(str::to_owned).collect()
        };
        assert_eq!(&linux - &sim, names(LACKS));
        assert_eq!(&sim - &linux, names(HAS));
    }
}

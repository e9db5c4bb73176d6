//! When a thread spins before it sleeps: one policy for all waits.
//!
//! In a virtual machine a wake-up is dear, since an idle CPU has halted and the interrupt goes
//! through the hypervisor: `overlock wakeups` says how dear. A spin for as long as that is a good
//! bet while the CPU would otherwise be idle ([`spins`] says why). With all CPUs busy a wake-up is
//! cheap, and a spinner takes a CPU from a thread that works.
//!
//! # The rule
//!
//! A thread that is about to sleep on an object spins first, if all of these hold:
//!
//! | condition | bound | how it is known |
//! |---|---|---|
//! | the object is new, or spins were worth it | a score, and some waits to try again | [`Score`] |
//! | no other thread spins on the object | one spinner | [`Score::claim`] |
//! | no more tasks run than there are CPUs | a look each `LOOK_NS` | `machine` |
//! | the quota of the process's control group leaves room | the same | `machine` |
//! | the hypervisor takes no CPU away | the stolen time, each 0.1 s | `machine` |
//! | the thread has no real-time priority | each second | [`Budget`] |
//! | the thread's spins in vain take little time | a twentieth | [`Budget`] |
//!
//! For a new object it spins on a crowded machine too ([`spins::longest`]).
//!
//! It spins for as long as a wake-up costs, which is measured, within the bounds of [`spins`]. It
//! stops at once if it loses its CPU, since another thread wants that.
//!
//! Nothing here is needed for correctness: an object's score is found by a hash of its address, and
//! two objects may share one. All accesses are Relaxed.

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use overlock_core::platform::spins::{self, Budget, SLOWLY, Score};

use super::clock::ticks;
pub use super::clock::ticks as now;

pub(super) mod lock;
mod machine;
mod sequence;

pub use sequence::{Watch, until_changed};

/// The result of a spin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spun {
    /// The event is there.
    Ready,
    /// It was there before the spin: nothing is learned from that.
    AtOnce,
    /// It is not there, or the thread did not spin: it sleeps.
    Over,
    /// This wait cannot begin with a spin.
    Unfit,
    /// The thread would not sleep either: as bad as a spin in vain.
    Needless,
    /// The CPU was lost, or the thread's own code ran as a signal handler.
    Interrupted,
}

/// The first guess for a wake-up's cost. This and those below are in [`ticks`], which need not be
/// exact.
const GUESS_NS: u64 = 30_000;
/// The interval between two looks at the machine.
const LOOK_NS: u64 = 1_000_000;
/// How many objects have an entry of their own, unless their addresses collide.
const OBJECTS: usize = 1024;

static TABLE: [Object; OBJECTS] = [const { Object::new() }; OBJECTS];

/// The score of an object, and the start of its last wake-up.
#[derive(Debug)]
#[repr(align(32))]
struct Object {
    score: Score,
    /// When a sleeper was woken last.
    woken: AtomicU64,
}

impl Object {
    const fn new() -> Self {
        Object {
            score: Score::new(),
            woken: AtomicU64::new(0),
        }
    }

    fn at(address: usize) -> &'static Object {
        // Fibonacci hashing: the high bits depend on all of the address.
        let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &TABLE[(hash >> (64 - OBJECTS.ilog2())) as usize]
    }
}

thread_local! {
    static BUDGET: Cell<Budget> = const { Cell::new(Budget::NEW) };
    static ACCOUNT: Cell<Account> = const { Cell::new(Account::NONE) };
}

/// Costs and savings of a thread's waits, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// Spins.
    pub spins: u64,
    /// Those within which the event came.
    pub in_time: u64,
    /// The time of all spins.
    pub spun: u64,
    /// The wake-ups that those in time have saved.
    pub saved: u64,
    /// Sleeps of which the latency of the wake-up is known.
    pub wakes: u64,
    /// The sum of those.
    pub latency: u64,
    /// The time from the beginnings of these sleeps to the wake-ups.
    pub asleep: u64,
}

impl Account {
    const NONE: Account = Account {
        spins: 0,
        in_time: 0,
        spun: 0,
        saved: 0,
        wakes: 0,
        latency: 0,
        asleep: 0,
    };

    /// The calling thread's since the last call.
    pub fn take() -> Account {
        ACCOUNT.replace(Account::NONE)
    }

    /// Adds what was [taken](Self::take) to the calling thread's.
    pub fn put_back(&self) {
        Self::add(|account| {
            account.spins += self.spins;
            account.in_time += self.in_time;
            account.spun += self.spun;
            account.saved += self.saved;
            account.wakes += self.wakes;
            account.latency += self.latency;
            account.asleep += self.asleep;
        });
    }

    fn add(change: impl FnOnce(&mut Account)) {
        let mut account = ACCOUNT.get();
        change(&mut account);
        ACCOUNT.set(account);
    }

    fn add_spin(in_time: bool, ticks: u64) {
        Self::add(|account| {
            account.spins += 1;
            account.spun += machine::nanos_of(ticks);
            if in_time {
                account.in_time += 1;
                account.saved += machine::nanos_of(WAKE_UPS.latency());
            }
        });
    }

    fn add_wake(latency: u64, asleep: u64) {
        Self::add(|account| {
            account.wakes += 1;
            account.latency += machine::nanos_of(latency);
            account.asleep += machine::nanos_of(asleep);
        });
    }
}

/// The cost of a wake-up: the time from the waker's system call to the sleeper's return.
#[derive(Debug)]
struct WakeUps(AtomicU64);

static WAKE_UPS: WakeUps = WakeUps(AtomicU64::new(GUESS_NS));

impl WakeUps {
    fn learn(&self, nanos: u64) {
        let known = self.0.load(Relaxed);
        // A sleeper whose CPU was busy says nothing about wake-ups.
        let nanos = nanos.min(2 * spins::LONGEST_NS);
        self.0.store(known - known / 16 + nanos / 16, Relaxed);
    }

    fn latency(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// How waits spin: one of those below, or the longest spin in microseconds.
static MODE: AtomicU32 = AtomicU32::new(UNKNOWN);
const AUTO: u32 = 0;
/// From this on nobody spins but the waiters of locks.
const ALONE: u32 = OFF - 2;
const UNKNOWN: u32 = OFF - 1;
/// Nobody does.
const OFF: u32 = u32::MAX;

/// Runs when the program is loaded, with the value of `OVERLOCK_SPIN`: `auto`, `off`, or the
/// longest spin in microseconds. Other values count as `auto`.
pub(super) fn start(limit: Option<&CStr>) {
    machine::start();
    let limit = limit.and_then(|limit| limit.to_str().ok());
    if !cfg!(miri) {
        MODE.store(limit.map_or(AUTO, mode), Relaxed);
    }
}

fn mode(limit: &str) -> u32 {
    match (limit, limit.parse::<u32>()) {
        ("off", _) | (_, Ok(0)) => OFF,
        (_, Ok(micros)) => micros.min(ALONE - 1),
        _ => AUTO,
    }
}

/// Turns all spins off but those of locks: the process restricts its system calls, so nothing is
/// known about the machine from now on.
pub(super) fn give_up() {
    let auto = |mode| (mode != OFF).then_some(ALONE);
    let _ = MODE.fetch_update(Relaxed, Relaxed, auto);
}

/// Spins before the calling thread sleeps on the object at this address, if the [rule](self) says
/// so. Nobody has waited for a new object before. `poll` spins until the given time of [`ticks`].
/// It may return early.
#[inline]
pub fn spin(object: usize, is_new: bool, poll: impl FnOnce(u64) -> Spun) -> Spun {
    let mode = MODE.load(Relaxed);
    let score = &Object::at(object).score;
    if mode >= ALONE || !(is_new || score.promises()) {
        return Spun::Over;
    }
    let now = ticks();
    let limit = match mode {
        AUTO => spins::worth(WAKE_UPS.latency()),
        micros => machine::ticks_of(u64::from(micros) * 1000),
    };
    let has_room = machine::has_room(now);
    let Some(most) = spins::longest(has_room, is_new, machine::has_others) else {
        return Spun::Over;
    };
    let limit = limit.min(machine::ticks_of(most));
    let mut budget = BUDGET.get().at(now, machine::is_special);
    if !budget.pays(limit) || !score.claim(now, now + limit) {
        BUDGET.set(budget);
        return Spun::Over;
    }
    let spun = poll(now + limit);
    let end = ticks();
    score.unclaim();
    let took = end.saturating_sub(now);
    match spun {
        Spun::AtOnce => {}
        Spun::Unfit => score.put_off(),
        Spun::Ready => {
            score.learn(true, SLOWLY);
            Account::add_spin(true, took);
            machine::is_worth_it();
        }
        Spun::Over | Spun::Needless | Spun::Interrupted => {
            score.learn(false, SLOWLY);
            Account::add_spin(false, took);
            budget.spend(took);
            if spun == Spun::Interrupted {
                machine::is_crowded(end);
            }
        }
    }
    BUDGET.set(budget.after_spin(end));
    spun
}

/// Whether threads spin, or may do so once the program is loaded.
pub fn is_on() -> bool {
    !matches!(MODE.load(Relaxed), ALONE | OFF)
}

/// Whether wake-ups are noted though nobody spins.
static NOTES: AtomicBool = AtomicBool::new(false);

/// Has wake-ups noted also where nobody spins, for statistics.
pub fn note_wakes() {
    NOTES.store(true, Relaxed);
}

/// Whether wake-ups are noted.
pub fn are_wakes_noted() -> bool {
    is_on() || NOTES.load(Relaxed)
}

/// Says that the caller is about to wake sleepers of the object, for the measure of a wake-up's
/// cost.
#[inline]
pub fn wakes(object: usize) {
    if MODE.load(Relaxed) >= ALONE && !NOTES.load(Relaxed) {
        return;
    }
    Object::at(object).woken.store(ticks(), Relaxed);
}

/// Says that the caller was woken on the object, where it began to sleep at `since`.
#[inline]
pub fn woken(object: usize, since: u64) {
    let woken = Object::at(object).woken.load(Relaxed);
    if woken > since {
        learn_wake(woken, since);
    }
}

/// Out of line: the frame of a wait is small.
#[cold]
#[inline(never)]
fn learn_wake(woken: u64, since: u64) {
    let latency = ticks().saturating_sub(woken);
    if latency > 0 {
        Account::add_wake(latency, woken - since);
        if machine::had_room() {
            WAKE_UPS.learn(latency);
        }
    }
}

/// Whether the calling thread is known to have a real-time priority.
pub(super) fn is_realtime() -> bool {
    machine::is_realtime()
}

/// After fork() in the child: nothing is learned across it.
pub(super) fn forget() {
    for object in &TABLE {
        object.score.forget();
    }
    BUDGET.set(Budget::NEW);
}

#[cfg(test)]
mod tests;

//! When a thread spins before it sleeps: one policy for all waits.
//!
//! In a virtual machine a wake-up is dear, since an idle CPU has halted and the interrupt goes
//! through the hypervisor: `overlock wakeups` says how dear. A thread that spins for as long as a
//! wake-up costs pays at most twice what the best choice would have cost (Karlin, Manasse, McGeoch,
//! Owicki, "Competitive randomized algorithms for non-uniform problems", SODA 1990). That holds
//! while its CPU would otherwise be idle. With all CPUs busy a wake-up is cheap, and a spinner
//! takes a CPU from a thread that works.
//!
//! # The rule
//!
//! A thread that is about to sleep on an object spins first, if all of these hold:
//!
//! | condition | bound | how it is known |
//! |---|---|---|
//! | the object is new, or spins were worth it | a score, and some waits to try again | `Score` |
//! | no other thread spins on the object | one spinner | `Score::claim` |
//! | no more tasks run than there are CPUs | a look each `LOOK_NS` | `machine` |
//! | the quota of the process's control group leaves room | the same | `machine` |
//! | the hypervisor takes no CPU away | the stolen time, each 0.1 s | `machine` |
//! | the thread has no real-time priority | each second | `Budget` |
//! | the thread's spins in vain take little time | a `VAIN_SHARE`th | `Budget` |
//!
//! For a new object it spins on a crowded machine too, for `NEW_NS`.
//!
//! It spins for as long as a wake-up costs, which is measured, and for `LONGEST_NS` at
//! most. It stops at once if it loses its CPU, since another thread wants that.
//!
//! Nothing here is needed for correctness: an object's score is found by a hash of its address, and
//! two objects may share one. All accesses are Relaxed.

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use super::clock::ticks;
pub use super::clock::ticks as now;
use super::release;

mod machine;
mod sequence;
mod signals;

pub use sequence::{Watch, until_changed};
pub use signals::{Held, are_handled};

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
    /// The CPU was lost, or the thread's own code ran as a signal handler.
    Interrupted,
}

/// The longest spin.
const LONGEST_NS: u64 = 50_000;
/// The longest spin on a crowded machine, for a new object: a group commit, whose writers wait for
/// an object of their own each time, gains a fifth.
const NEW_NS: u64 = 20_000;
/// The shortest, and the first guess for a wake-up's cost. These and those below are in [`ticks`],
/// which need not be exact.
const SHORTEST_NS: u64 = 10_000;
const GUESS_NS: u64 = 30_000;
/// At least one wait in so many spins, to see whether it has become worth it; twice as many after
/// each such spin in vain, and so often.
const PROBE: u16 = 32;
const DOUBTS: u8 = 5;
/// The interval between two looks at the machine.
const LOOK_NS: u64 = 1_000_000;
/// Of its time a thread spends at most one part in so many in spins in vain.
const VAIN_SHARE: u64 = 20;
/// The most that a thread saves up for such spins.
const SAVINGS_NS: u64 = 20 * LONGEST_NS;

/// The interval between two looks at a thread's priority.
const PRIORITY_NS: u64 = 1_000_000_000;

/// How many objects have a score of their own, unless their addresses collide.
const SCORES: usize = 1024;

static TABLE: [Score; SCORES] = [const { Score::new() }; SCORES];

/// The experience with waits on an object.
#[derive(Debug)]
#[repr(align(32))]
struct Score {
    /// The time until which a thread spins here. It ends by itself, so that a thread that is killed
    /// or unwound in its spin holds up nobody.
    claimed: AtomicU64,
    /// When a sleeper was woken last.
    woken: AtomicU64,
    /// From 0 to [`Score::MOST`].
    worth: AtomicU8,
    /// Waits until the next try where it is not enough, and how often the tries have failed.
    skips: AtomicU16,
    doubts: AtomicU8,
}

impl Score {
    const MOST: u8 = 16;
    /// The least with which each wait spins.
    const ENOUGH: u8 = 4;

    const fn new() -> Self {
        Score {
            claimed: AtomicU64::new(0),
            woken: AtomicU64::new(0),
            worth: AtomicU8::new(0),
            skips: AtomicU16::new(0),
            doubts: AtomicU8::new(0),
        }
    }

    fn of(object: usize) -> &'static Score {
        // Fibonacci hashing: the high bits depend on all of the address.
        let hash = (object as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &TABLE[(hash >> (64 - SCORES.ilog2())) as usize]
    }

    fn promises(&self) -> bool {
        if self.worth.load(Relaxed) >= Self::ENOUGH {
            return true;
        }
        let skips = self.skips.load(Relaxed);
        self.skips.store(skips.saturating_sub(1), Relaxed);
        skips == 0
    }

    /// Quick to rise, slow to fall.
    fn learn(&self, ready: bool) {
        let worth = self.worth.load(Relaxed);
        let next = match ready {
            true => (worth + 4).clamp(Self::MOST / 2, Self::MOST),
            false => worth.saturating_sub(1),
        };
        let doubts = match next >= Self::ENOUGH {
            true => 0,
            false => self.doubts.load(Relaxed).min(DOUBTS),
        };
        self.worth.store(next, Relaxed);
        self.skips.store(PROBE << doubts, Relaxed);
        self.doubts.store(doubts + 1, Relaxed);
    }

    /// Makes the caller the object's only spinner until then.
    fn claim(&self, now: u64, until: u64) -> bool {
        let claimed = self.claimed.load(Relaxed);
        claimed <= now
            && self
                .claimed
                .compare_exchange(claimed, until, Relaxed, Relaxed)
                .is_ok()
    }
}

/// The time that a thread may spend on spins in vain: nothing if it has a real-time priority, since
/// it would keep others from its CPU.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// The time of the last account.
    at: u64,
    savings: u64,
    is_realtime: bool,
    /// When to look again whether it is.
    look: u64,
}

impl Budget {
    const NEW: Budget = Budget {
        at: 0,
        savings: SAVINGS_NS,
        is_realtime: false,
        look: 0,
    };

    /// Adds the share of the time since the last account.
    fn at(self, now: u64) -> Budget {
        let earned = now.saturating_sub(self.at) / VAIN_SHARE;
        let (is_realtime, look) = match now < self.look {
            true => (self.is_realtime, self.look),
            false => (machine::is_realtime(), now.saturating_add(PRIORITY_NS)),
        };
        Budget {
            at: now,
            savings: self.savings.saturating_add(earned).min(SAVINGS_NS),
            is_realtime,
            look,
        }
    }

    fn pays(self, nanos: u64) -> bool {
        self.savings >= nanos && !self.is_realtime
    }

    fn spend(&mut self, nanos: u64) {
        self.savings = self.savings.saturating_sub(nanos);
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
}

impl Account {
    const NONE: Account = Account {
        spins: 0,
        in_time: 0,
        spun: 0,
        saved: 0,
        wakes: 0,
        latency: 0,
    };

    /// The calling thread's since the last call.
    pub fn take() -> Account {
        ACCOUNT.replace(Account::NONE)
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

    fn add_wake(ticks: u64) {
        Self::add(|account| {
            account.wakes += 1;
            account.latency += machine::nanos_of(ticks);
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
        let nanos = nanos.min(2 * LONGEST_NS);
        self.0.store(known - known / 16 + nanos / 16, Relaxed);
    }

    fn latency(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// The waker's system call and the cold caches cost about as much again as the latency.
    fn spin(&self) -> u64 {
        (2 * self.latency()).max(SHORTEST_NS)
    }
}

/// How waits spin: one of the two below, or the longest spin in microseconds.
static MODE: AtomicU32 = AtomicU32::new(OFF);
const AUTO: u32 = 0;
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
        (_, Ok(micros)) => micros.min(u32::MAX - 1),
        _ => AUTO,
    }
}

/// Turns all spins off: the process restricts its system calls, so nothing is known about the
/// machine from now on.
pub(super) fn give_up() {
    MODE.store(OFF, Relaxed);
}

/// Spins before the calling thread sleeps on the object at this address, if the [rule](self) says
/// so. Nobody has waited for a new object before. `begin` runs first if the thread may look at the
/// machine and spin, and may refuse. `poll` spins until the given time of [`ticks`]. It may return
/// early.
#[inline]
pub fn spin(
    object: usize,
    is_new: bool,
    begin: impl FnOnce() -> bool,
    poll: impl FnOnce(u64) -> Spun,
) -> Spun {
    let mode = MODE.load(Relaxed);
    let score = Score::of(object);
    if mode == OFF || !(is_new || score.promises()) {
        return Spun::Over;
    }
    let now = ticks();
    if !(is_new || machine::may_have_room(now)) || !begin() {
        return Spun::Over;
    }
    let limit = match mode {
        AUTO => WAKE_UPS.spin(),
        micros => machine::ticks_of(u64::from(micros) * 1000),
    };
    let most = match machine::has_room(now) {
        true => LONGEST_NS,
        false if is_new && machine::has_others() => NEW_NS,
        false => return Spun::Over,
    };
    let limit = limit.min(machine::ticks_of(most));
    let mut budget = BUDGET.get().at(now);
    if !budget.pays(limit) || !score.claim(now, now + limit) {
        BUDGET.set(budget);
        return Spun::Over;
    }
    let restarts = release::restarts();
    let spun = poll(now + limit);
    let end = ticks();
    // A spinner that comes later may have claimed it by now; then there are two for a moment.
    score.claimed.store(0, Relaxed);
    let took = end.saturating_sub(now);
    match spun {
        Spun::AtOnce => {}
        Spun::Unfit => score.skips.store(PROBE, Relaxed),
        Spun::Ready => {
            score.learn(true);
            Account::add_spin(true, took);
            machine::is_worth_it();
        }
        Spun::Over | Spun::Interrupted => {
            score.learn(false);
            Account::add_spin(false, took);
            budget.spend(took);
            let is_lost = spun == Spun::Interrupted && restarts.is_some();
            if is_lost && release::restarts() == restarts {
                machine::is_crowded(end);
            }
        }
    }
    BUDGET.set(Budget { at: end, ..budget });
    spun
}

/// Says that the caller is about to wake sleepers of the object, for the measure of a wake-up's
/// cost.
#[inline]
pub fn wakes(object: usize) {
    if MODE.load(Relaxed) == OFF {
        return;
    }
    Score::of(object).woken.store(ticks(), Relaxed);
}

/// Says that the caller was woken on the object, where it began to sleep at `since`.
#[inline]
pub fn woken(object: usize, since: u64) {
    let woken = Score::of(object).woken.load(Relaxed);
    if woken > since {
        learn_wake(woken);
    }
}

/// Out of line: the frame of a wait is small.
#[cold]
#[inline(never)]
fn learn_wake(woken: u64) {
    let latency = ticks().saturating_sub(woken);
    if latency > 0 {
        Account::add_wake(latency);
        if machine::had_room() {
            WAKE_UPS.learn(latency);
        }
    }
}

/// After fork() in the child: nothing is learned across it.
pub(super) fn forget() {
    for score in &TABLE {
        score.claimed.store(0, Relaxed);
        score.worth.store(0, Relaxed);
        score.skips.store(0, Relaxed);
        score.doubts.store(0, Relaxed);
    }
    BUDGET.set(Budget::NEW);
}

#[cfg(test)]
mod tests;

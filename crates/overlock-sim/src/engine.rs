//! Time, events, and the fibres of the vCPUs.
//!
//! One event after the other is taken from a queue, the earliest first and of those at the same moment the one that was planned
//! first. An event may resume a fibre, which then runs real code at no cost until it asks the platform for something: that
//! takes time, so the fibre plans its own resumption and is suspended. Where nothing else happens before that moment the
//! clock is moved on and the fibre goes on at once, which is the same thing, and faster.
//!
//! The effect of an access takes place when the line is there, between two events: simulated memory is sequentially
//! consistent, but takes its time. Store buffers are there in their costs: a store to a line that nobody else
//! wants does not wait for it, the next locked instruction does. A store to a line that others
//! want takes its place among them; the time that the core would have computed meanwhile is given back to it.

mod fibre;
mod host;
mod state;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::fmt;

use overlock_core::diagram::Arrow;

use crate::account::{Account, Counts, State};
use crate::cache::{Access, Answer, Traffic};
use crate::host::Host;
use crate::machine::Machine;
use crate::time::Time;
use crate::trace::{Mark, What};
use fibre::Fibres;
use state::Engine;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// What runs the vCPUs.
    pub host: &'a Host,
    /// How many vCPUs.
    pub vcpus: usize,
    /// How many more there are on the machine, of other guests, that compute all the time.
    pub others: usize,
    /// Decides about whatever is left to chance.
    pub seed: u64,
    /// From when on [`stopped`] says so.
    pub stop_after: Time,
    /// How much later the simulation gives up.
    pub patience: Time,
    /// Whether to leave a trace.
    pub trace: bool,
}

/// What a simulation has brought.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// What the vCPUs' bodies returned.
    pub results: Vec<T>,
    /// From the start to the stop, or to the end of the last one.
    pub elapsed: Time,
    /// Whether any of them had to be stopped.
    pub stopped: bool,
    /// Where their time went, until the last had ended.
    pub accounts: Vec<Account>,
    /// What happened.
    pub counts: Counts,
    /// What happened to cache lines.
    pub traffic: Traffic,
    /// How often which arrow of the locks' diagrams was taken.
    pub arrows: Vec<(Arrow, u64)>,
    /// The trace, where one was asked for.
    pub trace: Vec<Mark>,
    /// How many events it took.
    pub events: u64,
}

impl<T> Outcome<T> {
    /// How often an arrow was taken, by the name of its diagram and its text.
    pub fn arrow(&self, diagram: &str, text: &str) -> u64 {
        self.arrows
            .iter()
            .filter(|(arrow, _)| arrow.diagram.name == diagram && arrow.text() == text)
            .map(|&(_, times)| times)
            .sum()
    }

    /// All vCPUs' accounts added up.
    pub fn account(&self) -> Account {
        let mut sum = Account::default();
        for account in &self.accounts {
            sum.add(account);
        }
        sum
    }
}

/// A simulation that does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Everybody who has not ended sleeps for ever: a wake-up was lost, or there is a deadlock.
    Asleep {
        /// How many.
        vcpus: usize,
    },
    /// They were asked to stop long ago.
    Running {
        /// How many.
        vcpus: usize,
    },
    /// The caller has asked to stop simulating.
    Interrupted,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asleep { vcpus } => {
                write!(f, "{vcpus} vCPUs sleep and nobody is left to wake them")
            }
            Self::Running { vcpus } => {
                write!(f, "{vcpus} vCPUs go on long after they were asked to stop")
            }
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Stuck {}

thread_local! {
    /// The vCPU whose fibre runs on this thread.
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
    static ENGINE: RefCell<Option<Box<Engine>>> = const { RefCell::new(None) };
}

/// As long as the fibre of a vCPU runs, also where it panics.
struct Caller;

impl Caller {
    fn new(vcpu: usize) -> Self {
        CURRENT.set(Some(vcpu));
        Caller
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// How many events pass between two looks at whether to go on.
const EVENTS_PER_LOOK: u64 = 1 << 16;

/// Simulates `body` on every vCPU, which gets its number; all of them start together.
///
/// `go_on` is asked now and then.
///
/// # Errors
///
/// [`Stuck`]. What the bodies have on their stacks is leaked then.
///
/// # Panics
///
/// If called from a simulated vCPU, or where a body panics.
pub fn run<T>(
    setup: &Setup<'_>,
    body: impl Fn(usize) -> T,
    go_on: impl Fn() -> bool,
) -> Result<Outcome<T>, Stuck> {
    assert!(current().is_none(), "a simulated vCPU cannot simulate");
    assert!(setup.vcpus > 0, "a simulation needs a vCPU");
    ENGINE.with_borrow_mut(|engine| *engine = Some(Box::new(Engine::new(setup))));
    let mut fibres = Fibres::new(setup.vcpus, &body);
    let end = setup.stop_after + setup.patience;
    with(Engine::begin);
    let stuck = loop {
        let resume = with(|engine| match engine.next() {
            None => Err(Stuck::Asleep { vcpus: engine.left }),
            Some(_) if engine.left == 0 => Ok(None),
            Some(_) if engine.now > end => Err(Stuck::Running { vcpus: engine.left }),
            Some(_) if engine.handled % EVENTS_PER_LOOK == 0 && !go_on() => Err(Stuck::Interrupted),
            Some(event) => Ok(engine.handle(event)),
        });
        match resume {
            Err(stuck) => break Some(stuck),
            Ok(Some(vcpu)) => {
                let caller = Caller::new(vcpu);
                let ended = fibres.resume(vcpu);
                drop(caller);
                if ended {
                    with(|engine| engine.ended(vcpu));
                }
            }
            Ok(None) => {}
        }
        if with(|engine| engine.left == 0) {
            break None;
        }
    };
    let engine = ENGINE.take().expect("it was put there above");
    if let Some(stuck) = stuck {
        return Err(stuck);
    }
    let results = fibres.results();
    Ok(engine.outcome(results))
}

/// The vCPU that calls; `None` outside of simulations.
pub fn current() -> Option<usize> {
    CURRENT.get()
}

fn with<R>(then: impl FnOnce(&mut Engine) -> R) -> R {
    ENGINE.with_borrow_mut(|engine| then(engine.as_mut().expect("a simulation runs")))
}

/// Does something to the engine on behalf of the calling vCPU, and suspends it where the answer is true.
fn ask(vcpu: usize, what: impl FnOnce(&mut Engine) -> bool) {
    if with(what) {
        fibre::suspend(vcpu);
    }
    // Whoever was to lose its CPU in the middle of an instruction loses it after that.
    while with(|engine| engine.gives_way(vcpu)) {
        fibre::suspend(vcpu);
    }
}

/// The current moment; that of the last simulation's end, or 0, outside.
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
            Answer::Hit(time) if access == Access::Locked => (
                engine.pass(me, time.scale(state::TAKES_HOLD), State::Memory),
                true,
            ),
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
            ask(me, |engine| engine.pass(me, rest, State::Memory));
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

/// Waits, spinning, until the word at `address` may have changed since its line had been so often, or `until` has come.
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
    let Some(me) = current() else { return };
    let mut left = with(|engine| engine.machine.costs.turn.times(u64::from(turns)));
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

/// Sleeps until kicked, or until then, if `is_expected` still says so.
pub(crate) fn halt(address: usize, until: Option<Time>, is_expected: impl FnOnce() -> bool) {
    let Some(me) = current() else { return };
    ask(me, |engine| engine.drain(me));
    ask(me, |engine| engine.pass(me, engine.host.brief, State::Host));
    if is_expected() && with(|engine| engine.halts(me, address, until)) {
        fibre::suspend(me);
    }
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

/// The line of an address as a number that does not depend on where the program's memory happens to lie: lines are numbered in the order
/// of their first use. The offset within the line comes in the low bits.
pub(crate) fn stable(address: usize) -> usize {
    match current() {
        Some(_) => {
            with(|engine| engine.cache.line(address) * crate::cache::LINE)
                + address % crate::cache::LINE
        }
        None => address,
    }
}

/// The caller took this arrow of a diagram.
pub(crate) fn arrow(arrow: Arrow) {
    if current().is_some() {
        with(|engine| engine.arrow(arrow));
    }
}

/// The caller begins to wait for the lock at `address`: for the counts of preempted waiters and for traces. Costs nothing.
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

impl Engine {
    fn sees_pause_exit(&mut self, vcpu: usize) -> bool {
        std::mem::take(&mut self.vcpus[vcpu].spun_long)
    }
}

//! The engine: time, events, and the fibres of the vCPUs.
//!
//! The engine takes one event after another from a queue: the earliest first, and at equal times in
//! the order of their scheduling. An event may resume a fibre. The fibre runs real code at no cost
//! until it calls the platform. That takes time, so the fibre schedules its own resumption and is
//! suspended. If nothing else happens before that time, the clock advances and the fibre goes on at
//! once, which is equivalent and faster.
//!
//! The effect of an access takes place when the line has arrived, between two events. A store whose
//! line is not there waits in the store buffer, while later instructions go on: simulated memory
//! has total store order, as x86 has (`engine/buffer.rs`).

mod access;
mod ahead;
mod buffer;
mod calls;
mod events;
mod fibre;
mod futex;
mod host;
mod measure;
mod platform;
mod queue;
mod spin;
mod state;
#[cfg(test)]
mod tests;
mod vcpu;
mod waits;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use overlock_core::stat::Event as LockEvent;

use crate::account::{Account, Counts};
use crate::cache::Traffic;
use crate::host::Host;
use crate::machine::Machine;
use crate::spec::Spec;
use crate::time::Time;
use crate::trace::Mark;
use fibre::Fibres;
use state::Engine;

pub(crate) use buffer::Store;
pub(crate) use calls::{access, forget_stores, forwarded, store, stores_of_unobserved};
pub use calls::{counts, has_performed, holds, now, releases, rest, stopped, waits, work};
pub use fibre::most_stacks;
pub use measure::{Measured, Windows};
pub use platform::Sim;
pub(crate) use spin::is_outside;

/// The parameters of a simulation.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The host that runs the vCPUs.
    pub host: &'a Host,
    /// Number of vCPUs that run the body, those of all guests together.
    pub vcpus: usize,
    /// Number of guests that have those vCPUs, one after the other, each as many. A host yields
    /// within a guest only. Numbers of vCPUs are unique among all guests.
    pub guests: usize,
    /// Number of further vCPUs on the machine, of other guests, which compute all the time.
    pub others: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// The time from which on [`stopped`] returns true; with `windows`, the least measured time.
    pub stop_after: Time,
    /// Whether there is a warm-up, and windows. Without, the measured time begins at the start.
    pub windows: Option<Windows>,
    /// How long after that the simulation gives up.
    pub patience: Time,
    /// Whether to record a trace.
    pub trace: bool,
}

/// The result of a simulation.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// The results of the vCPUs' bodies.
    pub results: Vec<T>,
    /// The measured time: it ends with the stop, or with the last vCPU.
    pub elapsed: Time,
    /// The figures of its windows, if it was to have any.
    pub measured: Option<Measured>,
    /// Whether any vCPU had to be stopped.
    pub stopped: bool,
    /// The vCPUs' times in each state, in the measured time.
    pub accounts: Vec<Account>,
    /// Counts of events in the same time.
    pub counts: Counts,
    /// Counts of cache line transfers in the same time.
    pub traffic: Traffic,
    /// The events that the locks' statistics count, in the same time.
    pub lock_events: LockEvents,
    /// The trace, if requested.
    pub trace: Vec<Mark>,
    /// The number of events.
    pub events: u64,
}

impl<T> Outcome<T> {
    /// Returns the sum of all vCPUs' accounts.
    pub fn account(&self) -> Account {
        let mut sum = Account::default();
        for account in &self.accounts {
            sum.add(account);
        }
        sum
    }
}

/// How often each event of the locks has happened, by its number.
pub type LockEvents = [u64; LockEvent::ALL.len()];

/// Why a simulation did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stuck {
    /// It has not begun: this machine has no address space, or no more mappings, for the stacks of
    /// its vCPUs.
    #[error("this machine has stacks for {got} of {wanted} vCPUs and no more")]
    Stacks {
        /// vCPUs wanted.
        wanted: usize,
        /// vCPUs that have a stack.
        got: usize,
    },
    /// All vCPUs that have not ended sleep for ever: a wake-up was lost, or there is a deadlock.
    #[error("{vcpus} vCPUs sleep and no vCPU is left to wake them")]
    Asleep {
        /// Their number.
        vcpus: usize,
    },
    /// vCPUs go on long after they had to stop.
    #[error("{vcpus} vCPUs go on long after they had to stop")]
    Running {
        /// Their number.
        vcpus: usize,
    },
    /// The caller has interrupted the simulation.
    #[error("interrupted")]
    Interrupted,
}

thread_local! {
    /// The vCPU whose fibre runs on this thread.
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
    static ENGINE: RefCell<Option<Box<Engine>>> = const { RefCell::new(None) };
}

/// Simulates `body` on every vCPU, with its number as the argument. All start together.
///
/// `go_on` is called at least once per simulated millisecond, and ends the simulation when it
/// returns false.
///
/// # Errors
///
/// [`Stuck`]. Then the values on the bodies' stacks are leaked.
///
/// # Panics
///
/// If called from a simulated vCPU, or if a body panics.
pub fn run<T>(
    setup: &Setup<'_>,
    body: impl Fn(usize) -> T,
    go_on: impl Fn() -> bool,
) -> Result<Outcome<T>, Stuck> {
    assert!(current().is_none(), "a simulated vCPU cannot simulate");
    assert!(setup.vcpus > 0, "a simulation needs a vCPU");
    debug_assert!(setup.machine.broken_rule().is_none());
    assert!(
        setup.guests > 0 && setup.vcpus.is_multiple_of(setup.guests),
        "each guest has as many vCPUs"
    );
    let body = |vcpu| {
        let result = body(vcpu);
        calls::drain();
        result
    };
    let mut fibres = Fibres::new(setup.vcpus, &body)?;
    ENGINE.set(Some(Box::new(Engine::new(setup))));
    with(|engine| engine.begin(setup.windows));
    let advanced = loop {
        let vcpu = match with(|engine| engine.advance(setup.patience, &go_on)) {
            Ok(Some(vcpu)) => vcpu,
            Ok(None) => break Ok(()),
            Err(stuck) => break Err(stuck),
        };
        CURRENT.set(Some(vcpu));
        let ended = catch_unwind(AssertUnwindSafe(|| fibres.resume(vcpu)));
        CURRENT.set(None);
        if ended.unwrap_or_else(|panic| resume_unwind(panic)) {
            with(|engine| engine.ended(vcpu));
        }
    };
    let engine = ENGINE.take().expect("it was put there above");
    advanced?;
    Ok(engine.outcome(fibres.results()))
}

/// Returns the calling vCPU; `None` outside of simulations.
pub fn current() -> Option<usize> {
    let current = CURRENT.get();
    spin::called(current.is_some());
    current
}

fn with<R>(then: impl FnOnce(&mut Engine) -> R) -> R {
    ENGINE.with_borrow_mut(|engine| then(engine.as_mut().expect("a simulation runs")))
}

/// Asks the engine on behalf of the calling vCPU; outside of simulations the answer is `outside`.
fn ask<R>(outside: R, what: impl FnOnce(&mut Engine, usize) -> R) -> R {
    match current() {
        Some(me) => with(|engine| what(engine, me)),
        None => outside,
    }
}

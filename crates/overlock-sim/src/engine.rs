//! Time, events, and the fibres of the vCPUs.
//!
//! One event after the other is taken from a queue, the earliest first and of those at the same
//! moment the one that was planned first. An event may resume a fibre, which then runs real code at
//! no cost until it asks the platform for something: that takes time, so the fibre plans its own
//! resumption and is suspended. Where nothing else happens before that moment the clock is moved on
//! and the fibre goes on at once, which is the same thing, and faster.
//!
//! The effect of an access takes place when the line is there, between two events: simulated memory
//! is sequentially consistent, but takes its time. Store buffers are there in their costs: a store
//! to a line that nobody else wants does not wait for it, the next locked instruction does. A store
//! to a line that others want takes its place among them; the time that the core would have
//! computed meanwhile is given back to it.

mod access;
mod balance;
mod calls;
mod events;
mod fibre;
mod host;
mod state;
#[cfg(test)]
mod tests;
mod vcpu;

use std::cell::{Cell, RefCell};
use std::fmt;

use overlock_core::diagram::Transition;

use crate::account::{Account, Counts};
use crate::cache::Traffic;
use crate::host::Host;
use crate::machine::Machine;
use crate::time::Time;
use crate::trace::Mark;
use fibre::Fibres;
use state::Engine;

#[cfg(test)]
pub(crate) use access::TAKES_HOLD;
pub(crate) use calls::{
    access, cpu, delay, halt, heavy_barrier, kick, kick_all, looked, pause, preempted, sizes,
    stable, transition, turn, watch,
};
pub use calls::{holds, now, releases, rest, stopped, waits, work};

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
    /// How often which transition of the locks' diagrams was taken.
    pub transitions: Vec<(Transition, u64)>,
    /// The trace, where one was asked for.
    pub trace: Vec<Mark>,
    /// How many events it took.
    pub events: u64,
}

impl<T> Outcome<T> {
    /// How often a transition was taken, by the name of its diagram and its text.
    pub fn transition(&self, diagram: &str, text: &str) -> u64 {
        self.transitions
            .iter()
            .filter(|(transition, _)| {
                transition.diagram.name == diagram && transition.text() == text
            })
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
    /// The caller has asked to stop simulating; then all were asked to stop, and have ended or have
    /// been given up.
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

/// Simulates `body` on every vCPU, which gets its number; all of them start together.
///
/// `go_on` is asked at least once for each millisecond that is simulated. When it says no it is
/// time to end, and [`stopped`] says so.
///
/// # Errors
///
/// [`Stuck`]. What the bodies have on their stacks is leaked then, unless all of them have ended
/// after an interruption.
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
    let mut interrupted = false;
    with(Engine::begin);
    let stuck = loop {
        let resume = with(|engine| {
            let vcpus = engine.left;
            let event = engine.next().ok_or(Stuck::Asleep { vcpus })?;
            if engine.looks() && !interrupted && !go_on() {
                interrupted = true;
                engine.stop_after = engine.stop_after.min(engine.now);
            }
            if engine.now > engine.stop_after + setup.patience {
                return Err(Stuck::Running { vcpus });
            }
            Ok(engine.handle(event))
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
    let results = match stuck {
        None => fibres.results(),
        Some(_) if interrupted => return Err(Stuck::Interrupted),
        Some(stuck) => return Err(stuck),
    };
    if interrupted {
        return Err(Stuck::Interrupted);
    }
    Ok(engine.outcome(results))
}

/// The vCPU that calls; `None` outside of simulations.
pub fn current() -> Option<usize> {
    CURRENT.get()
}

fn with<R>(then: impl FnOnce(&mut Engine) -> R) -> R {
    ENGINE.with_borrow_mut(|engine| then(engine.as_mut().expect("a simulation runs")))
}

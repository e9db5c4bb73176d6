//! The state of a simulation, and the passing of its time.

use overlock_core::platform::spins::Score;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus as Random;
use rustc_hash::FxHashMap;

use super::ahead::Ahead;
use super::events::{CHECK_INTERVAL, Event};
use super::queue::Queue;
use super::vcpu::{Doing, Vcpu};
use super::waits::Slice;
use super::{LockEvents, Measured, Outcome, Setup, Windows};
use crate::account::{Account, Counts, State};
use crate::cache::{Cache, Traffic};
use crate::host::Host;
use crate::machine::Machine;
use crate::schedule::Schedule;
use crate::time::Time;
use crate::trace::{Mark, What};

#[derive(Debug)]
pub(super) struct Engine {
    pub machine: Machine,
    pub host: Host,
    pub now: Time,
    pub stop_after: Time,
    pub schedule: Schedule,
    pub cache: Cache,
    pub vcpus: Vec<Vcpu>,
    /// The steps of each that were done ahead of their times.
    pub ahead: Vec<Ahead>,
    /// Which have lost their CPUs while they were runnable.
    pub preempted: Vec<bool>,
    /// The number of vCPUs with fibres; the others compute for ever.
    pub fibres: usize,
    /// The number of those that have not ended.
    pub left: usize,
    /// The number of events so far.
    pub handled: u64,
    /// The time of the next check whether to go on, at the latest.
    pub next_check: Time,
    pub counts: Counts,
    pub sleepers: FxHashMap<usize, Vec<usize>>,
    /// The futexes' buckets in the kernel, by the addresses of the words, and of words on a stack
    /// by its vCPU: until when each is in use, and by which core.
    pub buckets: FxHashMap<usize, (Time, usize)>,
    /// By the addresses of what vCPUs have waited for.
    pub scores: FxHashMap<usize, Score>,
    /// The time slices of spinning threads on each CPU.
    pub slices: Vec<Slice>,
    /// The vCPU of each guest that a yield went to last.
    pub boosted: Vec<usize>,
    pub random: Random,
    pub events: Queue<Event>,
    /// Whether the queue of a line is being served, and what is to be served next.
    pub serves: bool,
    pub next_serve: Option<(usize, Time)>,
    pub lock_events: LockEvents,
    pub trace: Option<Vec<Mark>>,
    pub locks: FxHashMap<usize, usize>,
    pub last_end: Time,
    /// When the measured time began, and the accounts then, if it has begun.
    pub before: Option<(Time, Vec<Account>)>,
    /// Its windows, if it has some, its greatest length, and the operations before this window.
    pub measured: Option<Measured>,
    pub longest: Time,
    pub performed: u64,
    /// The figures when the time was up.
    pub at_stop: Option<Figures>,
}

/// The figures of the measured time; accounts are of all time.
#[derive(Debug)]
pub(super) struct Figures {
    accounts: Vec<Account>,
    counts: Counts,
    traffic: Traffic,
    lock_events: LockEvents,
}

impl Engine {
    pub fn new(setup: &Setup<'_>) -> Self {
        let mut random = Random::seed_from_u64(setup.seed);
        let all = setup.vcpus + setup.others;
        let schedule = Schedule::new(setup.machine, setup.host.scheduler, all, &mut random);
        let exit = setup.host.pause_exit.used();
        let vcpu = |index| {
            let is_own = index < setup.vcpus;
            Vcpu::new(if is_own { Doing::READY } else { Doing::OTHER }, exit)
        };
        let vcpus = (0..all).map(Event::Go);
        let sources = vcpus.chain((0..schedule.cpus()).map(Event::Slice));
        Self {
            machine: setup.machine.clone(),
            host: setup.host.clone(),
            now: Time::ZERO,
            stop_after: setup.stop_after,
            random,
            events: Queue::new(sources.collect()),
            slices: vec![Slice::default(); schedule.cpus()],
            schedule,
            cache: Cache::new(setup.machine, setup.seed ^ 0x0063_6163_6865),
            vcpus: (0..all).map(vcpu).collect(),
            ahead: vec![Ahead::default(); all],
            preempted: vec![false; all],
            fibres: setup.vcpus,
            left: setup.vcpus,
            handled: 0,
            next_check: CHECK_INTERVAL,
            counts: Counts::default(),
            sleepers: FxHashMap::default(),
            buckets: FxHashMap::default(),
            scores: FxHashMap::default(),
            boosted: vec![0; setup.guests],
            serves: false,
            next_serve: None,
            lock_events: [0; _],
            trace: setup.trace.then(Vec::new),
            locks: FxHashMap::default(),
            last_end: Time::ZERO,
            before: None,
            measured: None,
            longest: Time::ZERO,
            performed: 0,
            at_stop: None,
        }
    }

    /// The figures up to now.
    pub fn figures(&self) -> Figures {
        Figures {
            accounts: self.accounts(),
            counts: self.counts,
            traffic: self.cache.traffic(),
            lock_events: self.lock_events,
        }
    }

    /// The vCPUs' accounts up to now.
    pub fn accounts(&self) -> Vec<Account> {
        let account = |vcpu: usize| match self.ahead[vcpu].is_on {
            true => self.ahead[vcpu].account(&self.vcpus[vcpu], self.now, self.watch_of(vcpu)),
            false => self.vcpus[vcpu].account_at(self.now),
        };
        (0..self.fibres).map(account).collect()
    }

    /// Returns the result of the simulation, once all vCPUs have ended.
    pub fn outcome<T>(mut self, results: Vec<T>) -> Outcome<T> {
        let figures = self.at_stop.take().unwrap_or_else(|| self.figures());
        let mut accounts = figures.accounts;
        // Without it all vCPUs have ended during the warm-up, and all of it counts.
        let (begun, before) = self.before.take().unwrap_or_default();
        for (account, before) in accounts.iter_mut().zip(&before) {
            account.subtract(before);
        }
        Outcome {
            results,
            elapsed: self.last_end.min(self.stop_after).saturating_sub(begun),
            measured: self.measured,
            stopped: self.last_end >= self.stop_after,
            accounts,
            counts: figures.counts,
            traffic: figures.traffic,
            lock_events: figures.lock_events,
            trace: self.trace.unwrap_or_default(),
            events: self.handled,
        }
    }

    /// Gives all CPUs their first vCPUs.
    pub fn begin(&mut self, windows: Option<Windows>) {
        // An idle CPU would take those that are placed on another one.
        let (placed, idle): (Vec<_>, Vec<_>) =
            (0..self.schedule.cpus()).partition(|&cpu| self.schedule.waiting(cpu) > 0);
        for cpu in placed.into_iter().chain(idle) {
            self.dispatch(cpu, Time::ZERO);
        }
        (0..self.schedule.cpus()).for_each(|cpu| self.plan_chore(cpu));
        let rules = self.host.scheduler;
        self.plan(rules.balance_idle, Event::Balance { all: false });
        self.plan(rules.balance_all, Event::Balance { all: true });
        self.plan_measurement(windows);
    }

    /// `vcpu` enters another state.
    pub fn enter(&mut self, vcpu: usize, next: State) {
        self.vcpus[vcpu].enter(self.now, next);
    }

    /// `vcpu`, which runs, is busy for `time`. Returns whether its fibre has to be suspended.
    pub fn pass(&mut self, vcpu: usize, time: Time, state: State) -> bool {
        self.enter(vcpu, state);
        let until = self.now + time;
        let next = self.events.peek();
        if until < self.next_check && next.is_none_or(|next| next > until) {
            self.now = until;
            return false;
        }
        self.busy(vcpu, until);
        true
    }

    /// `vcpu` is busy on its CPU until then.
    pub fn busy(&mut self, vcpu: usize, until: Time) {
        self.vcpus[vcpu].doing = Doing::Busy { until };
        self.goes(vcpu, until);
    }

    /// The fibre has returned.
    pub fn ended(&mut self, vcpu: usize) {
        self.enter(vcpu, State::Ended);
        self.vcpus[vcpu].doing = Doing::Ended;
        self.turns(vcpu);
        self.left -= 1;
        self.last_end = self.now;
        self.mark(vcpu, What::Ends);
        self.leaves_cpu(vcpu, Time::ZERO);
        if self.left == 0 {
            for vcpu in 0..self.vcpus.len() {
                self.enter(vcpu, State::Ended);
            }
        }
    }

    pub fn mark(&mut self, vcpu: usize, what: What) {
        let at = self.now;
        if let Some(trace) = &mut self.trace {
            trace.push(Mark { at, vcpu, what });
        }
    }

    /// The same of the lock at `address`, which gets a number.
    pub fn lock_mark(&mut self, vcpu: usize, address: usize, what: fn(usize) -> What) {
        let next = self.locks.len();
        let lock = *self.locks.entry(address).or_insert(next);
        self.mark(vcpu, what(lock));
    }
}

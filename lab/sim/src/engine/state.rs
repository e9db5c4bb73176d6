//! The state of a simulation, and the passing of its time.

use overlock_core::platform::spins::Score;
use overlock_core::stat::Event as LockEvent;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus as Random;
use rustc_hash::FxHashMap;

use super::ahead::{Ahead, Step};
use super::events::{CHECK_INTERVAL, Event};
use super::measure::Measurement;
use super::queue::Queue;
use super::set::Set;
use super::slices::Slice;
use super::vcpu::{Doing, Vcpu};
use super::{Outcome, Setup};
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
    /// Whether the caller has interrupted it.
    pub interrupted: bool,
    pub schedule: Schedule,
    pub cache: Cache,
    pub vcpus: Vec<Vcpu>,
    /// The steps of each that were done ahead of their times.
    pub ahead: Vec<Ahead>,
    /// Those that lost their CPUs while they were runnable.
    pub preempted: Set,
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
    pub stopped: bool,
    pub measurement: Measurement,
    /// The figures when the time was up.
    pub at_stop: Option<Figures>,
}

/// How often each event of the locks has happened.
#[derive(Clone, Copy, Debug)]
pub struct LockEvents([u64; LockEvent::ALL.len()]);

impl Default for LockEvents {
    fn default() -> Self {
        Self([0; LockEvent::ALL.len()])
    }
}

impl LockEvents {
    /// How often `event` has happened.
    pub fn count(&self, event: LockEvent) -> u64 {
        self.0[event as usize]
    }

    pub(super) fn add(&mut self, event: LockEvent, times: u64) {
        self.0[event as usize] += times;
    }

    /// Those since `before`.
    fn since(mut self, before: &Self) -> Self {
        for (count, before) in self.0.iter_mut().zip(before.0) {
            *count -= before;
        }
        self
    }
}

/// The figures of a simulation up to a time.
#[derive(Debug)]
pub(super) struct Figures {
    at: Time,
    accounts: Vec<Account>,
    counts: Counts,
    traffic: Traffic,
    lock_events: LockEvents,
}

impl Figures {
    /// Those of so many vCPUs at the start.
    fn none(vcpus: usize) -> Self {
        Self {
            at: Time::ZERO,
            accounts: vec![Account::default(); vcpus],
            counts: Counts::default(),
            traffic: Traffic::default(),
            lock_events: LockEvents::default(),
        }
    }
}

impl Engine {
    pub fn new(setup: &Setup<'_>) -> Self {
        let mut random = Random::seed_from_u64(setup.seed);
        let all = setup.vcpus + setup.others;
        let schedule = Schedule::new(setup.machine, setup.host.scheduler, all, &mut random);
        let exit = setup.host.pause_exit.used();
        let vcpu = |index| {
            let own = index < setup.vcpus;
            Vcpu::new(if own { Doing::READY } else { Doing::OTHER }, exit)
        };
        Self {
            machine: setup.machine.clone(),
            host: setup.host.clone(),
            now: Time::ZERO,
            stop_after: setup.stop_after,
            interrupted: false,
            random,
            events: Queue::new(all + schedule.cpus()),
            slices: vec![Slice::NEW; schedule.cpus()],
            schedule,
            cache: Cache::new(setup.machine, setup.seed ^ 0x0063_6163_6865),
            vcpus: (0..all).map(vcpu).collect(),
            ahead: vec![Ahead::NONE; all],
            preempted: Set::below(all),
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
            lock_events: LockEvents::default(),
            trace: setup.trace.then(Vec::new),
            locks: FxHashMap::default(),
            last_end: Time::ZERO,
            stopped: false,
            measurement: Measurement::new(setup.windows),
            at_stop: None,
        }
    }

    /// The figures up to now.
    pub fn figures(&self) -> Figures {
        Figures {
            at: self.now,
            accounts: (0..self.fibres).map(|vcpu| self.account(vcpu)).collect(),
            counts: self.counts,
            traffic: self.cache.traffic(),
            lock_events: self.lock_events,
        }
    }

    /// The account of `vcpu` up to now.
    fn account(&self, vcpu: usize) -> Account {
        let (state, ahead) = (&self.vcpus[vcpu], &self.ahead[vcpu]);
        if ahead.step == Step::None {
            return state.account_at(self.now);
        }
        let mut account = state.account;
        ahead.complete(&mut account, self.now);
        account
    }

    /// Returns the result of the simulation, once all vCPUs have ended.
    pub fn outcome<T>(mut self, results: Vec<T>) -> Outcome<T> {
        let figures = self.at_stop.take().unwrap_or_else(|| self.figures());
        let end = match self.stopped {
            true => self.stop_after,
            false => self.last_end,
        };
        let mut accounts = figures.accounts;
        // Without it all vCPUs have ended during the warm-up, and all of it counts.
        let before = self.measurement.before.take();
        let before = before.unwrap_or_else(|| Figures::none(accounts.len()));
        for (account, before) in accounts.iter_mut().zip(&before.accounts) {
            account.subtract(before);
        }
        Outcome {
            results,
            elapsed: end.saturating_sub(before.at),
            measured: self.measurement.measured(),
            stopped: self.stopped,
            accounts,
            counts: figures.counts - before.counts,
            traffic: figures.traffic.since(&before.traffic),
            lock_events: figures.lock_events.since(&before.lock_events),
            trace: self.trace.unwrap_or_default(),
            events: self.handled,
        }
    }

    /// Gives all CPUs their first vCPUs.
    pub fn begin(&mut self) {
        // An idle CPU would take those that are placed on another one.
        let (placed, idle): (Vec<_>, Vec<_>) =
            (0..self.schedule.cpus()).partition(|&cpu| self.schedule.waiting(cpu) > 0);
        for cpu in placed.into_iter().chain(idle) {
            self.dispatch(cpu);
        }
        for cpu in 0..self.schedule.cpus() {
            self.plan_chore(cpu);
        }
        let rules = self.host.scheduler;
        self.plan(rules.balance_idle, Event::Balance { all: false });
        self.plan(rules.balance_all, Event::Balance { all: true });
        self.plan_measurement();
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

    /// Returns how long `vcpu` computes for work that takes `time` on an idle core.
    pub fn work(&self, vcpu: usize, time: Time) -> Time {
        if self.machine.threads > 1 && self.sibling_works(vcpu) {
            return time.scale(1.0 / self.machine.costs.sibling);
        }
        time
    }

    /// Whether another thread of the core computes. A thread that spins or waits for memory leaves
    /// the core to this one.
    fn sibling_works(&self, vcpu: usize) -> bool {
        let cpu = self.schedule.cpu(vcpu);
        self.machine
            .cpus_of(self.machine.core_of(cpu))
            .filter(|&sibling| sibling != cpu)
            .filter_map(|sibling| self.schedule.current(sibling))
            .any(|other| self.vcpus[other].state == State::Work)
    }

    /// The fibre has returned.
    pub fn ended(&mut self, vcpu: usize) {
        self.enter(vcpu, State::Ended);
        let state = &mut self.vcpus[vcpu];
        state.doing = Doing::Ended;
        self.turns(vcpu);
        self.left -= 1;
        self.last_end = self.now;
        self.stopped |= self.now >= self.stop_after;
        self.mark(vcpu, What::Ends);
        let cpu = self.schedule.cpu(vcpu);
        self.schedule.leave(self.now, cpu);
        self.dispatch(cpu);
        if self.left == 0 {
            for vcpu in 0..self.vcpus.len() {
                self.enter(vcpu, State::Ended);
            }
        }
    }

    /// Gives a CPU to `vcpu`, which runs after `delay`.
    pub fn put_on(&mut self, vcpu: usize, cpu: usize, mut delay: Time) {
        let Doing::Off { left, with } = self.vcpus[vcpu].doing else {
            unreachable!("only vCPUs without a CPU get one")
        };
        if self.vcpus[vcpu]
            .ran_on
            .replace(cpu)
            .is_some_and(|before| before != cpu)
        {
            self.counts.migrations += u64::from(vcpu < self.fibres);
            delay += self.host.scheduler.migration;
        }
        self.mark(vcpu, What::On(cpu));
        self.enter(vcpu, with);
        let state = &mut self.vcpus[vcpu];
        state.overhead = delay;
        state.dispatches += 1;
        state.preempt_pending = false;
        self.preempted.remove(vcpu);
        if let Some(exit) = self.host.pause_exit.used() {
            self.vcpus[vcpu].window = exit.window;
        }
        self.forgets_pauses(vcpu);
        self.busy(vcpu, self.now + delay + left);
    }

    /// Takes the CPU from `vcpu`.
    pub fn take_off(&mut self, vcpu: usize) {
        debug_assert_eq!(self.ahead[vcpu].step, Step::None);
        debug_assert!(self.vcpus[vcpu].can_lose_cpu(self.now));
        let off = match self.vcpus[vcpu].doing {
            Doing::Busy { until } => Doing::Off {
                left: self.rest_of_turn(vcpu, until - self.now),
                with: self.vcpus[vcpu].state,
            },
            Doing::Watch { line, since } => {
                self.vcpus[vcpu].polled(since, self.now);
                self.cache.unwatch(vcpu, line);
                Doing::READY
            }
            Doing::Running => Doing::READY,
            doing => unreachable!("{doing:?} keeps its CPU"),
        };
        self.enter(vcpu, State::Ready);
        let state = &mut self.vcpus[vcpu];
        state.doing = off;
        state.preempt_pending = false;
        self.preempted.insert(vcpu);
        self.turns(vcpu);
    }

    pub fn mark(&mut self, vcpu: usize, what: What) {
        if let Some(trace) = &mut self.trace {
            trace.push(Mark {
                at: self.now,
                vcpu,
                what,
            });
        }
    }

    pub fn lock_mark(&mut self, vcpu: usize, address: usize, what: fn(usize) -> What) {
        let next = self.locks.len();
        let lock = *self.locks.entry(address).or_insert(next);
        let state = &mut self.vcpus[vcpu];
        let what = what(lock);
        match what {
            What::Waits(_) => state.waits = true,
            What::Holds(_) => {
                state.waits = false;
                state.holds += 1;
            }
            What::Releases(_) => state.holds -= 1,
            _ => {}
        }
        self.mark(vcpu, what);
    }
}

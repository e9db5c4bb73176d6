//! The state of a simulation, and the passing of its time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use overlock_core::diagram::{Arrow, Diagram};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus as Random;
use rustc_hash::FxHashMap;

use super::{Outcome, Setup};
use crate::account::{Account, Counts, State};
use crate::cache::{Access, Answer, Cache, Signal};
use crate::host::Host;
use crate::machine::Machine;
use crate::schedule::Schedule;
use crate::time::Time;
use crate::trace::{Mark, What};

/// What a vCPU is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Its fibre runs.
    Running,
    /// Has a CPU until then, if nobody takes it away.
    Busy { until: Time },
    /// Wants to be busy for so long, with this, but has no CPU.
    Off { left: Time, with: State },
    /// Waits for a cache line, in the middle of an instruction.
    Access,
    /// Spins on this line since then.
    Watch { line: usize, since: Time },
    /// Has halted on the word at this address; its host polls for a kick, on its CPU.
    Polled {
        address: usize,
        since: Time,
        until: Option<Time>,
    },
    /// Has halted on the word at this address.
    Asleep {
        address: usize,
        since: Time,
        until: Option<Time>,
    },
    /// Has ended.
    Ended,
}

impl Doing {
    /// Goes on as soon as it has a CPU.
    pub const READY: Self = Self::Off {
        left: Time::ZERO,
        with: State::Host,
    };
    /// Wants a CPU for ever.
    const OTHER: Self = Self::Off {
        left: FOR_EVER,
        with: State::Host,
    };
}

/// How far a locked instruction is when it takes hold of its line: before that it waits for what came before it.
pub(super) const TAKES_HOLD: f64 = 0.6;

/// How long those compute that have nothing else to do.
const FOR_EVER: Time = Time::ms(1 << 40);

#[derive(Debug)]
pub(super) struct Vcpu {
    pub doing: Doing,
    /// What it is busy with, and since when the account has not been told.
    pub state: State,
    since: Time,
    /// How much of that time is the host's.
    overhead: Time,
    account: Account,
    /// Counts resumptions: events that were planned for an earlier one mean nothing.
    pub stamp: u64,
    /// It is to lose its CPU after this instruction.
    pub evicted: bool,
    /// The loop of pauses that it is in, or was since it got its CPU: since when, and until when. And how long one may last before
    /// the processor notices it.
    spins: Option<(Time, Time)>,
    pub window: Time,
    /// It has noticed.
    pub spun_long: bool,
    /// When its store buffer is empty.
    drained: Time,
    /// Time that it has waited for stores which a core would not wait for.
    credit: Time,
    /// When the access began that it waits for, where the line was not there.
    asked: Option<Time>,
    /// The line of its last access, and how often that had been changed at its last load.
    line: usize,
    looked: u64,
    /// What its host adds the next time that it gets a CPU.
    pub delay: Time,
    /// How long its host polls for it.
    pub poll: Time,
    /// It has left the guest since it spun, and may be helped this time.
    pub spinning: bool,
    pub eligible: bool,
    /// It lost its CPU while it wanted to go on.
    pub robbed: bool,
    /// Locks that it holds, and whether it waits for one.
    pub holds: u32,
    pub waits: bool,
    ran_on: Option<usize>,
    /// How often it has got a CPU.
    pub turns: u64,
}

impl Vcpu {
    /// When its host has brought it to its CPU.
    pub fn comes(&self) -> Time {
        self.since + self.overhead
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The vCPU's fibre is resumed.
    Go {
        vcpu: usize,
        stamp: u64,
    },
    /// A line's queue is served.
    Serve {
        line: usize,
    },
    /// A slice may be over.
    Slice {
        cpu: usize,
        stamp: u64,
    },
    /// Somebody wanted the CPU while the vCPU was being switched to.
    Again {
        vcpu: usize,
        turn: u64,
    },
    /// A sleeper's time is up, or its host no longer polls.
    Timeout {
        vcpu: usize,
        stamp: u64,
    },
    PollEnd {
        vcpu: usize,
        stamp: u64,
    },
    /// The host takes a CPU for itself, for so long; or gives it back.
    Chore {
        cpu: usize,
        length: Option<Time>,
    },
    /// CPUs compare their queues.
    Balance {
        all: bool,
    },
}

#[derive(Debug)]
pub(super) struct Engine {
    pub machine: Machine,
    pub host: Host,
    pub now: Time,
    pub stop_after: Time,
    pub schedule: Schedule,
    pub cache: Cache,
    pub vcpus: Vec<Vcpu>,
    /// How many of them have fibres; the others compute for ever.
    pub team: usize,
    /// How many of those have not ended.
    pub left: usize,
    /// Events so far.
    pub handled: u64,
    pub counts: Counts,
    pub sleepers: FxHashMap<usize, Vec<usize>>,
    pub boosted: usize,
    pub random: Random,
    /// When the slice event of each CPU was planned for, and the stamp of the valid one.
    pub slices: Vec<(Option<Time>, u64)>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    planned: u64,
    signals: Vec<Signal>,
    arrows: Vec<(&'static Diagram, Vec<u64>)>,
    trace: Option<Vec<Mark>>,
    locks: FxHashMap<usize, usize>,
    last_end: Time,
    stopped: bool,
}

impl Engine {
    pub fn new(setup: &Setup<'_>) -> Self {
        let mut random = Random::seed_from_u64(setup.seed);
        let all = setup.vcpus + setup.others;
        let schedule = Schedule::new(setup.machine, setup.host.scheduler, all, &mut random);
        let vcpu = |index| Vcpu {
            doing: if index < setup.vcpus {
                Doing::READY
            } else {
                Doing::OTHER
            },
            state: State::Ready,
            since: Time::ZERO,
            overhead: Time::ZERO,
            account: Account::default(),
            stamp: 0,
            evicted: false,
            spins: None,
            window: setup.host.pause_exit.map_or(Time::MAX, |exit| exit.window),
            spun_long: false,
            drained: Time::ZERO,
            credit: Time::ZERO,
            asked: None,
            line: 0,
            looked: 0,
            delay: Time::ZERO,
            poll: Time::ZERO,
            spinning: false,
            eligible: false,
            robbed: false,
            holds: 0,
            waits: false,
            ran_on: None,
            turns: 0,
        };
        Self {
            machine: setup.machine.clone(),
            host: *setup.host,
            now: Time::ZERO,
            stop_after: setup.stop_after,
            random,
            slices: vec![(None, 0); schedule.cpus()],
            schedule,
            cache: Cache::new(setup.machine, setup.seed ^ 0x0063_6163_6865),
            vcpus: (0..all).map(vcpu).collect(),
            team: setup.vcpus,
            left: setup.vcpus,
            handled: 0,
            counts: Counts::default(),
            sleepers: FxHashMap::default(),
            boosted: 0,
            events: BinaryHeap::new(),
            planned: 0,
            signals: Vec::new(),
            arrows: Vec::new(),
            trace: setup.trace.then(Vec::new),
            locks: FxHashMap::default(),
            last_end: Time::ZERO,
            stopped: false,
        }
    }

    /// What the simulation has brought, once all have ended.
    pub fn outcome<T>(self, results: Vec<T>) -> Outcome<T> {
        let counted = |(diagram, times): (&'static Diagram, Vec<u64>)| {
            let arrow = move |(index, times)| (Arrow { diagram, index }, times);
            times.into_iter().enumerate().map(arrow)
        };
        let team = &self.vcpus[..self.team];
        Outcome {
            results,
            elapsed: if self.stopped {
                self.stop_after
            } else {
                self.last_end
            },
            stopped: self.stopped,
            accounts: team.iter().map(|vcpu| vcpu.account).collect(),
            counts: self.counts,
            traffic: self.cache.traffic(),
            arrows: self.arrows.into_iter().flat_map(counted).collect(),
            trace: self.trace.unwrap_or_default(),
            events: self.handled,
        }
    }

    /// All CPUs get their first vCPUs.
    pub fn begin(&mut self) {
        for cpu in 0..self.schedule.cpus() {
            self.dispatch(cpu);
        }
        for cpu in 0..self.schedule.cpus() {
            self.plan_chore(cpu);
        }
        let (often, seldom) = self.host.scheduler.balance;
        self.plan(often, Event::Balance { all: false });
        self.plan(seldom, Event::Balance { all: true });
    }

    pub fn plan(&mut self, at: Time, event: Event) {
        self.planned += 1;
        self.events
            .push(Reverse((at.max(self.now), self.planned, event)));
    }

    /// Moves the clock to the next event. `None` where nothing is left that could wake anybody.
    pub fn next(&mut self) -> Option<Event> {
        let Reverse((at, _, event)) = self.events.pop()?;
        self.now = at;
        self.handled += 1;
        if matches!(event, Event::Balance { .. } | Event::Chore { .. }) && self.sleeps() {
            // These come for ever, and wake nobody.
            return None;
        }
        if let Event::Balance { all } = event {
            let (often, seldom) = self.host.scheduler.balance;
            self.plan(at + if all { seldom } else { often }, event);
        }
        Some(event)
    }

    /// Whether all sleep, and for ever.
    fn sleeps(&self) -> bool {
        let asleep = |vcpu: &Vcpu| match vcpu.doing {
            Doing::Asleep { until, .. } => until.is_none(),
            Doing::Ended => true,
            _ => false,
        };
        self.left > 0 && self.vcpus[..self.team].iter().all(asleep)
    }

    /// What an event does; whose fibre is to be resumed.
    pub fn handle(&mut self, event: Event) -> Option<usize> {
        match event {
            Event::Go { vcpu, stamp } if self.vcpus[vcpu].stamp == stamp => {
                self.resumes(vcpu);
                return Some(vcpu);
            }
            Event::Serve { line } => {
                self.cache.serve(self.now, line);
                self.answer();
            }
            Event::Slice { cpu, stamp } if self.slices[cpu].1 == stamp => self.slice(cpu),
            Event::Again { vcpu, turn } => self.again(vcpu, turn),
            Event::Timeout { vcpu, stamp } if self.vcpus[vcpu].stamp == stamp => {
                self.wakes(vcpu, None);
            }
            Event::PollEnd { vcpu, stamp } if self.vcpus[vcpu].stamp == stamp => {
                self.stops_polling(vcpu);
            }
            Event::Chore { cpu, length } => self.chore(cpu, length),
            Event::Balance { all } => self.balance(all),
            _ => {}
        }
        None
    }

    fn resumes(&mut self, vcpu: usize) {
        let state = &mut self.vcpus[vcpu];
        if let Doing::Watch { line, .. } = state.doing {
            // Its limit has come, or the processor has had enough, or it has lost the line.
            self.cache.unwatch(vcpu, line);
            if let Some((since, until)) = &mut state.spins {
                *until = self.now;
                state.spun_long = self.now - *since >= state.window;
            }
        }
        state.doing = Doing::Running;
        state.stamp += 1;
    }

    /// From now on `vcpu` is in another state.
    pub fn enter(&mut self, vcpu: usize, next: State) {
        let state = &mut self.vcpus[vcpu];
        let time = self.now - state.since;
        let overhead = time.min(state.overhead);
        state.overhead = Time::ZERO;
        state.account[State::Host] += overhead;
        state.account[state.state] += time - overhead;
        state.since = self.now;
        state.state = next;
    }

    /// `vcpu`, which runs, is busy for `time`; true where its fibre has to be suspended.
    pub fn pass(&mut self, vcpu: usize, time: Time, state: State) -> bool {
        self.enter(vcpu, state);
        let until = self.now + time;
        let free = self
            .events
            .peek()
            .is_none_or(|Reverse((at, ..))| *at > until);
        if free {
            self.now = until;
            return false;
        }
        self.busy(vcpu, until);
        true
    }

    /// `vcpu` has its CPU until then.
    pub fn busy(&mut self, vcpu: usize, until: Time) {
        self.vcpus[vcpu].doing = Doing::Busy { until };
        self.goes(vcpu, until);
    }

    /// The fibre of `vcpu` is resumed then, unless something else comes first.
    pub fn goes(&mut self, vcpu: usize, at: Time) {
        let stamp = self.vcpus[vcpu].stamp;
        self.plan(at, Event::Go { vcpu, stamp });
    }

    /// Waits until the store buffer of `vcpu` is empty.
    pub fn drain(&mut self, vcpu: usize) -> bool {
        let left = self.vcpus[vcpu].drained.saturating_sub(self.now);
        left > Time::ZERO && self.pass(vcpu, left, State::Memory)
    }

    fn core(&self, vcpu: usize) -> usize {
        self.machine.core_of(self.schedule.cpu(vcpu))
    }

    /// Begins an access. On [`Answer::Wait`] the fibre has to be suspended.
    pub fn access(&mut self, vcpu: usize, address: usize, access: Access) -> Answer {
        let line = self.cache.line(address);
        let core = self.core(vcpu);
        self.vcpus[vcpu].line = line;
        if access == Access::Locked {
            self.vcpus[vcpu].credit = Time::ZERO;
        }
        if access == Access::Write
            && let Some(arrives) = self.cache.store_behind(self.now, vcpu, core, line)
        {
            self.vcpus[vcpu].drained = arrives;
            self.answer();
            return Answer::Hit(self.machine.costs.hit);
        }
        let answer = self.cache.access(self.now, vcpu, core, line, access);
        if answer == Answer::Wait {
            self.enter(vcpu, State::Memory);
            self.vcpus[vcpu].doing = Doing::Access;
            self.vcpus[vcpu].asked = Some(self.now);
        }
        self.answer();
        answer
    }

    /// A locked instruction of `vcpu` has come to where it takes hold of its line: how long it keeps it from others, if it still
    /// has it.
    pub fn takes_hold(&mut self, vcpu: usize) -> Option<Time> {
        let line = self.vcpus[vcpu].line;
        let rest = self.machine.costs.locked.scale(1.0 - TAKES_HOLD);
        let has = self.cache.has(line, self.core(vcpu), Access::Locked);
        has.then(|| {
            self.cache.keep(line, self.now + rest);
            rest
        })
    }

    /// An access has had its effect. The answer is always false: nobody has to be suspended.
    pub fn accessed(&mut self, vcpu: usize, access: Access) -> bool {
        let state = &mut self.vcpus[vcpu];
        let asked = state.asked.take();
        let line = state.line;
        if access == Access::Read {
            state.looked = self.cache.changes(line);
            return false;
        }
        if access == Access::Write
            && let Some(asked) = asked
        {
            state.credit = self.now - asked;
        }
        self.cache.changed(line, vcpu);
        self.answer();
        false
    }

    /// How often the line of the last load of `vcpu` had been changed by then.
    pub fn looked(&self, vcpu: usize) -> u64 {
        self.vcpus[vcpu].looked
    }

    /// How long `vcpu` computes what takes `time` on an idle core.
    pub fn work(&mut self, vcpu: usize, time: Time) -> Time {
        let credit = std::mem::take(&mut self.vcpus[vcpu].credit);
        let time = time.saturating_sub(credit);
        if self.machine.threads > 1 && self.sibling_works(vcpu) {
            return time.scale(1.0 / self.machine.costs.sibling);
        }
        time
    }

    /// Whether another thread of the core computes. One that spins or waits for memory leaves the core to us.
    fn sibling_works(&self, vcpu: usize) -> bool {
        let cpu = self.schedule.cpu(vcpu);
        let cores = self.machine.all_cores();
        (cpu % cores..self.machine.cpus())
            .step_by(cores)
            .filter(|&sibling| sibling != cpu)
            .filter_map(|sibling| self.schedule.current(sibling))
            .any(|other| self.vcpus[other].state == State::Work)
    }

    /// Does what the cache asks for.
    fn answer(&mut self) {
        let mut signals = std::mem::take(&mut self.signals);
        self.cache.signals(&mut signals);
        for signal in signals.drain(..) {
            match signal {
                Signal::Done { vcpu, at } => self.goes(vcpu, at),
                Signal::Serve { line, at } => self.plan(at, Event::Serve { line }),
                Signal::Lost { vcpu } => self.loses(vcpu),
            }
        }
        self.signals = signals;
    }

    /// `vcpu`, which watched a line, has lost it, and sees that at its next turn.
    fn loses(&mut self, vcpu: usize) {
        let Doing::Watch { since, .. } = self.vcpus[vcpu].doing else {
            return;
        };
        let turn = self.machine.costs.turn.as_ps().max(1);
        let turns = (self.now - since).as_ps().div_ceil(turn).max(1);
        self.goes(vcpu, since + Time::ps(turns * turn));
    }

    /// Spins on the line of `address`, unless it has been changed since `changes` were counted, or is not even there: then the next
    /// look is due after a turn.
    pub fn watch(
        &mut self,
        vcpu: usize,
        address: usize,
        changes: u64,
        until: Option<Time>,
    ) -> bool {
        let line = self.cache.line(address);
        let core = self.core(vcpu);
        let turn = self.machine.costs.turn;
        if self.cache.changes(line) != changes || !self.cache.watch(vcpu, core, line) {
            return self.pass(vcpu, turn, State::Spin);
        }
        self.enter(vcpu, State::Spin);
        self.vcpus[vcpu].doing = Doing::Watch {
            line,
            since: self.now,
        };
        let noticed = self.pauses(vcpu);
        let at = until.map_or(noticed, |until| until.min(noticed));
        if at < Time::MAX {
            self.goes(vcpu, at.max(self.now + turn));
        }
        true
    }

    /// `vcpu` begins to pause, or goes on. When the processor will notice.
    pub fn pauses(&mut self, vcpu: usize) -> Time {
        let Some(exit) = self.host.pause_exit else {
            return Time::MAX;
        };
        let state = &mut self.vcpus[vcpu];
        let now = self.now;
        let known = state.spins.filter(|&(_, until)| now - until <= exit.gap);
        let (since, _) = *state.spins.insert(known.unwrap_or((now, now)));
        since + state.window
    }

    /// `vcpu` has paused until now.
    pub fn paused(&mut self, vcpu: usize) {
        if let Some((_, until)) = &mut self.vcpus[vcpu].spins {
            *until = self.now;
        }
    }

    /// The loop of pauses that `vcpu` was in has ended, since it has left the guest.
    pub fn forgets_pauses(&mut self, vcpu: usize) {
        self.vcpus[vcpu].spins = None;
    }

    /// The fibre has returned.
    pub fn ended(&mut self, vcpu: usize) {
        self.enter(vcpu, State::Ended);
        let state = &mut self.vcpus[vcpu];
        state.doing = Doing::Ended;
        state.stamp += 1;
        self.left -= 1;
        self.last_end = self.now;
        self.stopped |= self.now > self.stop_after;
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

    /// `vcpu` gets a CPU; its host needs `delay` to bring it there.
    pub fn put_on(&mut self, vcpu: usize, cpu: usize, mut delay: Time) {
        let Doing::Off { left, with } = self.vcpus[vcpu].doing else {
            unreachable!("only those without a CPU get one")
        };
        if self.vcpus[vcpu]
            .ran_on
            .replace(cpu)
            .is_some_and(|before| before != cpu)
        {
            self.counts.migrations += 1;
            delay += self.host.scheduler.migration;
        }
        self.mark(vcpu, What::On(cpu));
        self.enter(vcpu, with);
        let state = &mut self.vcpus[vcpu];
        state.overhead = delay;
        state.turns += 1;
        state.robbed = false;
        state.evicted = false;
        if let Some(exit) = self.host.pause_exit {
            state.window = exit.window;
        }
        self.forgets_pauses(vcpu);
        self.busy(vcpu, self.now + delay + left);
    }

    /// `vcpu` has lost its CPU.
    pub fn take_off(&mut self, vcpu: usize) {
        let off = match self.vcpus[vcpu].doing {
            Doing::Busy { until } => {
                let state = &self.vcpus[vcpu];
                debug_assert!(
                    state.state != State::Memory,
                    "in the middle of an instruction"
                );
                debug_assert!(state.comes() <= self.now, "while it is being switched to");
                Doing::Off {
                    left: until - self.now,
                    with: state.state,
                }
            }
            Doing::Watch { line, .. } => {
                self.cache.unwatch(vcpu, line);
                Doing::READY
            }
            Doing::Running => Doing::READY,
            doing => unreachable!("{doing:?} keeps its CPU"),
        };
        self.enter(vcpu, State::Ready);
        let state = &mut self.vcpus[vcpu];
        state.doing = off;
        state.stamp += 1;
        state.evicted = false;
        state.robbed = true;
    }

    pub fn arrow(&mut self, arrow: Arrow) {
        let known = self
            .arrows
            .iter()
            .position(|(diagram, _)| std::ptr::eq(*diagram, arrow.diagram));
        let index = known.unwrap_or_else(|| {
            self.arrows
                .push((arrow.diagram, vec![0; arrow.diagram.arrows.len()]));
            self.arrows.len() - 1
        });
        self.arrows[index].1[arrow.index] += 1;
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

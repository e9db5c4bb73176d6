//! One execution: its threads as fibres on one operating-system thread, and who runs when.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::Location as Place;
use std::ptr;
use std::sync::atomic::Ordering;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::memory::{At, Memory, Plain, THREADS};
use super::strategy::{Question, Strategy};
use crate::failure::{Failure, Kind, quiet};
use crate::scenario::Setting;

type Fibre = Coroutine<(), (), (), DefaultStack>;

/// What an execution may do besides changing threads.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Loads may read old messages.
    pub weak: bool,
    /// Halts may end, and weak exchanges fail, for no reason; `preempted` may answer yes.
    pub chance: bool,
    /// Nanoseconds that pass at each look at the clock.
    pub tick: u64,
    /// What [`Platform::parallelism`](overlock_core::Platform::parallelism) says.
    pub parallelism: u32,
    /// Threads above this number have no queue nodes.
    pub slots: usize,
    /// Halts may end for no reason at any moment.
    pub restless: bool,
    /// Steps after which an execution counts as one that makes no progress.
    pub steps: usize,
}

impl Rules {
    /// Everything may happen, in this setting.
    pub fn of(setting: Setting) -> Self {
        Rules {
            weak: true,
            chance: true,
            tick: setting.tick,
            parallelism: setting.parallelism,
            slots: setting.slots,
            restless: setting.restless,
            steps: 20_000,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// Waits for one of the atomics in `watch` to be stored to; until a time, where there is one.
    Watching(Option<u64>),
    /// Sleeps on the atomic with this key; until a time, where there is one.
    Halted(u32, Option<u64>),
    /// Lets others come first: until one of them has stored something, or none of them can go on.
    Paused,
    /// Waits for another thread to end.
    Joining(usize),
    Ended,
}

struct Thread {
    fibre: Option<Fibre>,
    yielder: *const Yielder<(), ()>,
    state: State,
    /// The atomics that it has read since its wait began, and how many messages each had then, old ones aside.
    watch: Vec<(At, u32)>,
    /// Whether it went on because its time was over.
    expired: bool,
    /// The source line of its last step.
    place: Option<&'static Place<'static>>,
    handler: Option<Box<dyn FnOnce()>>,
}

/// At which accesses changes of thread may happen.
#[derive(Clone, Debug, Default)]
pub struct Sharing {
    shared: Vec<bool>,
    all: bool,
}

/// The state of the execution that runs on this operating-system thread.
pub struct Execution {
    threads: Vec<Thread>,
    current: usize,
    /// The way out of the fibre that called [`schedule`](Self::schedule) last.
    leaving: *const Yielder<(), ()>,
    memory: Memory,
    strategy: Strategy,
    rules: Rules,
    now: u64,
    steps: usize,
    path: Vec<u8>,
    /// Atomics that more than one thread has ever accessed, by key: changes of thread happen at accesses to them alone.
    shared: Vec<bool>,
    /// At accesses to all of them.
    share_all: bool,
    /// Some became shared in this execution.
    discovered: bool,
    failure: Option<Failure>,
    trace: Option<Vec<String>>,
    stacks: Vec<DefaultStack>,
    options: Vec<usize>,
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution")
            .field("strategy", &self.strategy)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

thread_local! {
    static CURRENT: Cell<*mut Execution> = const { Cell::new(ptr::null_mut()) };
}

/// Runs `look` on the execution at hand; `None` where there is none.
fn with<R>(look: impl FnOnce(&mut Execution) -> R) -> Option<R> {
    let current = CURRENT.get();
    // SAFETY: `current` is null or points to the execution that `Execution::run` has on its stack. The reference lives
    // only in `look`, which neither resumes nor suspends a fibre nor calls `with`: there is no other one.
    unsafe { current.as_mut() }.map(look)
}

fn in_execution<R>(look: impl FnOnce(&mut Execution) -> R) -> R {
    with(look).expect("a thread of an execution")
}

/// Lets the chosen thread run. Returns when the caller is chosen again.
fn switch(to_other: bool) {
    if to_other {
        let yielder = in_execution(|this| this.leaving);
        // SAFETY: it is the caller's own: `schedule` has just been called by it. It lives in the frame of the fibre's first
        // function, and so while the fibre runs.
        unsafe { &*yielder }.suspend(());
    }
}

/// A moment at which another thread may come, before an access to `at`.
#[track_caller]
pub fn point(at: At) {
    let place = Place::caller();
    switch(in_execution(|this| {
        this.here(place);
        let visited = this.memory.visit(this.current, at);
        let key = at.key as usize;
        if this.shared.len() <= key {
            this.shared.resize(key + 1, false);
        }
        if !this.shared[key] && !this.share_all {
            if this.threads.len() > 1 && visited.count_ones() > 1 {
                this.shared[key] = true;
                this.discovered = true;
            }
            return false;
        }
        this.schedule(true)
    }));
    deliver();
}

/// A moment at which another thread may come, for no access.
#[track_caller]
pub fn breathe() {
    let place = Place::caller();
    switch(in_execution(|this| {
        this.here(place);
        this.schedule(true)
    }));
    deliver();
}

/// Lets others come first. Without this a thread that waits by looking again and again would do so for ever.
#[track_caller]
pub fn pause() {
    let place = Place::caller();
    switch(in_execution(|this| {
        let current = this.current;
        this.here(place);
        this.strategy.yields(current);
        this.threads[current].state = State::Paused;
        this.schedule(false)
    }));
    deliver();
}

/// Runs the thread's signal handler, if it has one and this is the moment.
fn deliver() {
    let handler = in_execution(|this| {
        let current = this.current;
        this.threads[current].handler.as_ref()?;
        if this.choose(Question::Chance, 2) == 0 {
            return None;
        }
        this.threads[current].handler.take()
    });
    if let Some(handler) = handler {
        // What the interrupted code was waiting for goes on after the handler.
        let watch = in_execution(|this| std::mem::take(&mut this.threads[this.current].watch));
        handler();
        in_execution(|this| this.threads[this.current].watch = watch);
    }
}

/// Loads; `any` where an old message will do.
#[track_caller]
pub fn load(at: At, order: Ordering) -> u64 {
    point(at);
    let place = Place::caller();
    in_execution(|this| {
        let readable = this.memory.readable(this.current, at, order);
        let back = this.choose(Question::Message, readable);
        let value = this.memory.load(this.current, at, order, back);
        let version = this.memory.version(at) - back as u32;
        this.threads[this.current].watch.push((at, version));
        this.note(place, || {
            let old = if back > 0 { " (old)" } else { "" };
            format!("load {order:?} {:#x}{old}", value)
        });
        value
    })
}

/// Stores.
#[track_caller]
pub fn store(at: At, value: u64, order: Ordering) {
    point(at);
    let place = Place::caller();
    in_execution(|this| {
        this.memory.store(this.current, at, value, order);
        this.wake_watchers(at.key);
        this.note(place, || format!("store {order:?} {value:#x}"));
    });
}

/// A read-modify-write: `change` gets the newest value and may leave it; returns what was there.
#[track_caller]
pub fn update(
    at: At,
    success: Ordering,
    failure: Ordering,
    change: impl FnOnce(u64) -> Option<u64>,
) -> Result<u64, u64> {
    point(at);
    let place = Place::caller();
    in_execution(|this| {
        let old = this.memory.newest(at);
        match change(old) {
            Some(new) => {
                this.memory.load(this.current, at, success, 0);
                this.memory.replace(this.current, at, new, success);
                if new != old {
                    this.wake_watchers(at.key);
                }
                this.note(place, || format!("change {success:?} {old:#x} -> {new:#x}"));
                Ok(old)
            }
            None => {
                // A failed exchange is a load, and may read an old message; the newest is one of those that it may fail by.
                this.memory.load(this.current, at, failure, 0);
                this.note(place, || format!("exchange refused by {old:#x}"));
                Err(old)
            }
        }
    })
}

/// Whether something happens that may happen at any time.
pub fn chance() -> bool {
    in_execution(|this| this.rules.chance && this.choose(Question::Chance, 2) != 0)
}

/// Forgets what the thread has read: a wait begins.
pub fn begin_look() {
    in_execution(|this| this.threads[this.current].watch.clear());
}

/// Blocks until what was read since [`begin_look`] has been stored to: not at all if it has been already. `until`: the longest;
/// whether that time came first.
#[track_caller]
pub fn watch(until: Option<u64>) -> bool {
    let place = Place::caller();
    switch(in_execution(|this| {
        let current = this.current;
        this.here(place);
        for index in 0..this.threads[current].watch.len() {
            let (at, version) = this.threads[current].watch[index];
            if this.memory.version(at) != version {
                return false;
            }
        }
        this.strategy.yields(current);
        this.threads[current].state = State::Watching(until);
        this.note(place, || "waits".to_owned());
        this.schedule(false)
    }));
    deliver();
    in_execution(|this| this.threads[this.current].take_expired())
}

/// Sleeps on `at` while it holds `expected`.
#[track_caller]
pub fn halt(at: At, expected: u64, until: Option<u64>) {
    point(at);
    let place = Place::caller();
    switch(in_execution(|this| {
        let current = this.current;
        // The kernel looks at the word under the lock that kicks take: it sees the newest value.
        if this.memory.newest(at) != expected || until.is_some_and(|until| until <= this.now) {
            this.note(place, || "halt: no".to_owned());
            return false;
        }
        if this.rules.chance && this.choose(Question::Chance, 2) != 0 {
            this.note(place, || "halt ends for no reason".to_owned());
            return false;
        }
        this.strategy.yields(current);
        this.threads[current].state = State::Halted(at.key, until);
        this.note(place, || "halts".to_owned());
        this.schedule(false)
    }));
    deliver();
    in_execution(|this| this.threads[this.current].take_expired());
}

/// Ends one thread's sleep on `at`.
#[track_caller]
pub fn kick(at: At) {
    point(at);
    let place = Place::caller();
    in_execution(|this| {
        this.options.clear();
        let sleepers =
            this.threads.iter().enumerate().filter(
                |(_, thread)| matches!(thread.state, State::Halted(key, _) if key == at.key),
            );
        this.options.extend(sleepers.map(|(index, _)| index));
        let sleepers = this.options.len();
        if sleepers > 0 {
            let which = this.choose(Question::Chance, sleepers);
            let sleeper = this.options[which];
            this.threads[sleeper].state = State::Ready;
            this.note(place, || format!("kicks {sleeper}"));
        } else {
            this.note(place, || "kicks nobody".to_owned());
        }
    });
}

/// `Platform::heavy_barrier`.
pub fn heavy_barrier() {
    in_execution(|this| this.memory.heavy_barrier(this.current));
}

/// `Platform::light_barrier`.
pub fn light_barrier() {
    in_execution(|this| this.memory.light_barrier(this.current));
}

/// Looks at the clock.
pub fn now() -> u64 {
    in_execution(|this| {
        this.now += this.rules.tick;
        this.now
    })
}

/// Time passes; the caller goes on.
pub fn pass(nanos: u64) {
    in_execution(|this| this.now += nanos);
}

/// What the clock showed last.
pub fn time() -> u64 {
    in_execution(|this| this.now)
}

/// The calling thread's number.
pub fn me() -> usize {
    in_execution(|this| this.current)
}

/// The rules at hand.
pub fn rules() -> Rules {
    in_execution(|this| this.rules)
}

/// Has `handler` run on the calling thread at some moment of its steps, or never.
pub fn signal(handler: Box<dyn FnOnce()>) {
    in_execution(|this| this.threads[this.current].handler = Some(handler));
}

/// The moment for a [`signal`] has passed.
pub fn unsignal() {
    in_execution(|this| this.threads[this.current].handler = None);
}

/// An access to plain data by the calling thread.
///
/// # Panics
///
/// Where another access does not lie before it, and one of the two writes.
#[track_caller]
pub fn access(data: &RefCell<Plain>, write: bool) {
    let place = Place::caller();
    let race = in_execution(|this| {
        this.note(place, || {
            (if write { "writes" } else { "reads" }).to_owned()
        });
        this.memory
            .access(this.current, &mut data.borrow_mut(), write)
    });
    if let Err(other) = race {
        panic!("data race with thread {other}: no release and acquire order the two accesses");
    }
}

/// Starts a thread; returns its number.
pub fn spawn(body: Box<dyn FnOnce()>) -> usize {
    in_execution(|this| {
        this.memory.spawn(this.current);
        this.start(body)
    })
}

/// Waits until `thread` has ended.
#[track_caller]
pub fn join(thread: usize) {
    let place = Place::caller();
    switch(in_execution(|this| {
        if this.threads[thread].state == State::Ended {
            return false;
        }
        this.here(place);
        this.threads[this.current].state = State::Joining(thread);
        this.schedule(false)
    }));
    in_execution(|this| this.memory.join(this.current, thread));
}

impl Thread {
    fn take_expired(&mut self) -> bool {
        std::mem::take(&mut self.expired)
    }

    fn deadline(&self) -> Option<u64> {
        match self.state {
            State::Watching(until) | State::Halted(_, until) => until,
            _ => None,
        }
    }
}

impl Execution {
    /// No execution yet.
    pub fn new(strategy: Strategy, rules: Rules) -> Self {
        Execution {
            threads: Vec::new(),
            current: 0,
            leaving: ptr::null(),
            memory: Memory::default(),
            strategy,
            rules,
            now: 0,
            steps: 0,
            path: Vec::new(),
            shared: Vec::new(),
            share_all: false,
            discovered: false,
            failure: None,
            trace: None,
            stacks: Vec::new(),
            options: Vec::new(),
        }
    }

    /// The same, and each step is written down; changes of thread happen at the same accesses as in a run with this `sharing`.
    #[must_use]
    pub fn traced(mut self, sharing: Sharing) -> Self {
        self.trace = Some(Vec::new());
        self.shared = sharing.shared;
        self.share_all = sharing.all;
        self
    }

    /// What happened, step by step.
    pub fn trace(&self) -> &[String] {
        self.trace.as_deref().unwrap_or_default()
    }

    /// Changes of thread may happen at every access.
    #[must_use]
    pub fn share_all(mut self) -> Self {
        self.share_all = true;
        self
    }

    /// At which accesses changes of thread may happen.
    pub fn sharing(&self) -> Sharing {
        Sharing {
            shared: self.shared.clone(),
            all: self.share_all,
        }
    }

    /// Whether an atomic turned out to be shared since the last call. A search that goes by choices must begin again then.
    pub fn take_discovered(&mut self) -> bool {
        std::mem::take(&mut self.discovered)
    }

    /// Starts the search anew with another strategy.
    pub fn restart(&mut self, strategy: Strategy) {
        self.strategy = strategy;
    }

    /// Whether there is another execution.
    pub fn more(&mut self) -> bool {
        self.strategy.more()
    }

    /// Steps of the last execution.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Runs `body` and all threads that it starts to their end.
    ///
    /// # Errors
    ///
    /// A panic in one of them, a state from which no thread can go on, or no end within the rules' steps.
    pub fn run(&mut self, body: impl FnOnce() + 'static) -> Result<(), Failure> {
        self.memory.reset(self.rules.weak);
        self.strategy.begin();
        self.threads.clear();
        (self.now, self.steps, self.current) = (1_000_000, 0, 0);
        self.path.clear();
        self.start(Box::new(body));
        let this = ptr::from_mut(self);
        CURRENT.set(this);
        // SAFETY: `this` comes from `self`, which is not used before `drive` returns; `with` makes references from it while
        // fibres run, and `drive` holds none meanwhile.
        let result = unsafe { drive(this) };
        CURRENT.set(ptr::null_mut());
        for thread in &mut self.threads {
            if let Some(mut fibre) = thread.fibre.take() {
                if fibre.done() {
                    self.stacks.push(fibre.into_stack());
                } else {
                    // SAFETY: what is on its stack is forgotten: locks and guards of a run that has failed. Nothing
                    // borrows from it, since threads get what they own or what lives as long as the program.
                    unsafe { fibre.force_reset() };
                }
            }
        }
        result.map_err(|mut failure| {
            failure.path = Some(self.path.clone());
            failure
        })
    }

    fn start(&mut self, body: Box<dyn FnOnce()>) -> usize {
        let index = self.threads.len();
        assert!(
            index < THREADS,
            "an execution has at most {THREADS} threads"
        );
        let stack = self
            .stacks
            .pop()
            .unwrap_or_else(|| DefaultStack::new(1 << 17).expect("memory for a stack"));
        let fibre = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            in_execution(|this| this.threads[index].yielder = yielder);
            body();
        });
        self.threads.push(Thread {
            fibre: Some(fibre),
            yielder: ptr::null(),
            state: State::Ready,
            watch: Vec::new(),
            expired: false,
            place: None,
            handler: None,
        });
        index
    }

    fn here(&mut self, place: &'static Place<'static>) {
        self.threads[self.current].place = Some(place);
    }

    fn note(&mut self, place: &'static Place<'static>, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!(
                "{:>3}  thread {}  {}:{}  {}",
                trace.len(),
                self.current,
                crate::failure::short(place.file()),
                place.line(),
                text()
            ));
        }
    }

    fn choose(&mut self, question: Question, options: usize) -> usize {
        if options == 1 {
            return 0;
        }
        let answer = self
            .strategy
            .choose(question, options, self.path.len(), &self.options);
        self.path.push(answer as u8);
        answer
    }

    fn wake_paused(&mut self) {
        for thread in &mut self.threads {
            if thread.state == State::Paused {
                thread.state = State::Ready;
            }
        }
    }

    fn wake_watchers(&mut self, key: u32) {
        self.wake_paused();
        for thread in &mut self.threads {
            if matches!(thread.state, State::Watching(_))
                && thread.watch.iter().any(|(at, _)| at.key == key)
            {
                thread.state = State::Ready;
            }
        }
    }

    /// Chooses who runs next, and makes it the current thread; whether that is another one than before. `stay`: the current
    /// thread could go on.
    fn schedule(&mut self, stay: bool) -> bool {
        let before = self.current;
        self.leaving = self.threads[before].yielder;
        self.steps += 1;
        if self.steps > self.rules.steps {
            self.fail(Kind::NoProgress);
            return true;
        }
        if self.expire_by_chance() {
            return self.current != before;
        }
        self.options.clear();
        if !self
            .threads
            .iter()
            .any(|thread| thread.state == State::Ready)
        {
            self.wake_paused();
        }
        if stay {
            self.options.push(before);
        }
        for (index, thread) in self.threads.iter().enumerate() {
            if thread.state == State::Ready && (index != before || !stay) {
                self.options.push(index);
            }
        }
        if self.options.is_empty() {
            // Nobody can go on: time passes until the next one gives up waiting.
            let next = (0..self.threads.len())
                .filter_map(|index| Some((self.threads[index].deadline()?, index)))
                .min();
            match next {
                Some((_, index)) => self.expire(index),
                None => {
                    self.fail(Kind::Deadlock);
                    return true;
                }
            }
        } else {
            let answer = self.choose(Question::Thread { stay }, self.options.len());
            self.current = self.options[answer];
        }
        self.current != before
    }

    /// A thread's time may run out although others could go on, or it may wake for no reason.
    fn expire_by_chance(&mut self) -> bool {
        self.options.clear();
        for (index, thread) in self.threads.iter().enumerate() {
            let restless = self.rules.restless && matches!(thread.state, State::Halted(..));
            if thread.deadline().is_some() || restless {
                self.options.push(index);
            }
        }
        if self.options.is_empty()
            || !self
                .threads
                .iter()
                .any(|thread| thread.state == State::Ready)
        {
            return false;
        }
        match self.choose(Question::Chance, self.options.len() + 1) {
            0 => false,
            answer => {
                let index = self.options[answer - 1];
                self.expire(index);
                true
            }
        }
    }

    fn expire(&mut self, index: usize) {
        let thread = &mut self.threads[index];
        self.now = self.now.max(thread.deadline().unwrap_or(0));
        thread.state = State::Ready;
        thread.expired = true;
        self.current = index;
    }

    fn fail(&mut self, kind: Kind) {
        let threads = self.threads.iter().enumerate().map(|(index, thread)| {
            let place = thread.place.map_or_else(
                || "its start".to_owned(),
                |place| format!("{}:{}", crate::failure::short(place.file()), place.line()),
            );
            let what = match thread.state {
                State::Ready => "could go on".to_owned(),
                State::Paused => "lets others come first".to_owned(),
                State::Watching(_) => "waits for a word to change".to_owned(),
                State::Halted(..) => "sleeps, and nobody kicks it".to_owned(),
                State::Joining(other) => format!("waits for thread {other} to end"),
                State::Ended => "has ended".to_owned(),
            };
            format!("thread {index} at {place}: {what}")
        });
        self.failure = Some(Failure::new(kind, threads.collect::<Vec<_>>().join("\n")));
    }

    /// A thread has ended: those that wait for it go on. Whether all have ended.
    fn ended(&mut self) -> bool {
        let gone = self.current;
        self.threads[gone].state = State::Ended;
        for thread in &mut self.threads {
            if thread.state == State::Joining(gone) {
                thread.state = State::Ready;
            }
        }
        self.threads
            .iter()
            .all(|thread| thread.state == State::Ended)
    }
}

/// Resumes one thread after the other until all have ended, or the execution has failed.
///
/// # Safety
///
/// `this` is valid, and nobody else holds a reference to it meanwhile, but for those that `with` makes for the fibres.
unsafe fn drive(this: *mut Execution) -> Result<(), Failure> {
    loop {
        // SAFETY: the caller's promise; the fibre is taken out, so that resuming it borrows nothing of the execution.
        let (current, mut fibre) = unsafe {
            let this = &mut *this;
            let fibre = this.threads[this.current].fibre.take();
            (this.current, fibre.expect("a thread that is not running"))
        };
        let result = quiet(|| fibre.resume(()));
        // SAFETY: the caller's promise; the fibre does not run any more.
        let this = unsafe { &mut *this };
        this.threads[current].fibre = Some(fibre);
        match result {
            Err(text) => {
                return Err(Failure::new(
                    Kind::Panic,
                    format!("thread {current}: {text}"),
                ));
            }
            Ok(CoroutineResult::Yield(())) => {}
            Ok(CoroutineResult::Return(())) => {
                this.current = current;
                if this.ended() {
                    return Ok(());
                }
                this.schedule(false);
            }
        }
        if let Some(failure) = this.failure.take() {
            return Err(failure);
        }
    }
}

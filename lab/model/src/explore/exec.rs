//! One execution: its threads as fibres on one operating-system thread, and who runs when.

use std::cell::Cell;
use std::fmt;
use std::panic::Location as Place;
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::memory::{At, Memory, THREADS};
use super::strategy::{Question, Strategy};
use crate::coverage::{self, Outcome};
use crate::failure::{Failure, Kind, quiet};
use crate::scenario::Setting;

mod schedule;
pub mod step;

type Fibre = Coroutine<(), (), (), DefaultStack>;

/// The departures of an execution besides changes of thread, and its surroundings.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Loads may read old messages.
    pub weak: bool,
    /// Halts may end, and weak exchanges fail, for no reason; `preempted` may answer yes.
    pub chance: bool,
    /// Nanoseconds that pass at each reading of the clock.
    pub tick: u64,
    /// The answer of [`Platform::parallelism`](overlock_core::Platform::parallelism).
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
    /// The atomics that it has read since its wait began, and how many messages each had then, old
    /// ones aside.
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
    /// Atomics that more than one thread has ever accessed, by key: changes of thread happen at
    /// accesses to them alone.
    shared: Vec<bool>,
    /// At accesses to all of them.
    share_all: bool,
    /// Some became shared in this execution.
    discovered: bool,
    /// Those that were dropped in this execution, by key.
    gone: Vec<bool>,
    /// On which of them threads have slept in this execution, with their addresses.
    slept: Vec<(usize, At)>,
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

/// Runs `work` on the execution at hand; `None` where there is none.
fn with<R>(work: impl FnOnce(&mut Execution) -> R) -> Option<R> {
    let current = CURRENT.get();
    // SAFETY: `current` is null or points to the execution that `Execution::run` has on its stack.
    // The reference lives only in `work`, which neither resumes nor suspends a fibre nor calls
    // `with`: there is no other one.
    unsafe { current.as_mut() }.map(work)
}

fn in_execution<R>(work: impl FnOnce(&mut Execution) -> R) -> R {
    with(work).expect("a thread of an execution")
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
            gone: Vec::new(),
            slept: Vec::new(),
            failure: None,
            trace: None,
            stacks: Vec::new(),
            options: Vec::new(),
        }
    }

    /// The same, and each step is written down; changes of thread happen at the same accesses as in
    /// a run with this `sharing`.
    #[must_use]
    pub fn traced(mut self, sharing: Sharing) -> Self {
        self.trace = Some(Vec::new());
        self.shared = sharing.shared;
        self.share_all = sharing.all;
        self
    }

    /// The trace, step by step.
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

    /// Whether an atomic turned out to be shared since the last call. A search that goes by choices
    /// must begin again then.
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

    /// Runs `body` and all threads that it starts to their end.
    ///
    /// # Errors
    ///
    /// A panic in one of them, a state from which no thread can go on, or no end within the rules'
    /// steps.
    pub fn run(&mut self, body: impl FnOnce() + 'static) -> Result<(), Failure> {
        self.memory.reset(self.rules.weak);
        self.strategy.begin();
        self.threads.clear();
        (self.now, self.steps, self.current) = (1_000_000, 0, 0);
        self.path.clear();
        self.gone.clear();
        self.slept.clear();
        self.start(Box::new(body));
        let this = ptr::from_mut(self);
        CURRENT.set(this);
        // SAFETY: `this` comes from `self`, which is not used before `drive` returns; `with` makes
        // references from it while fibres run, and `drive` holds none meanwhile.
        let result = unsafe { drive(this) };
        CURRENT.set(ptr::null_mut());
        for thread in &mut self.threads {
            if let Some(mut fibre) = thread.fibre.take() {
                if fibre.done() {
                    self.stacks.push(fibre.into_stack());
                } else {
                    // SAFETY: what is on its stack is forgotten: locks and guards of a run that has
                    // failed. Nothing borrows from it, since threads get what
                    // they own or what lives as long as the program.
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
        coverage::count(place, Outcome::Reached);
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
}

/// Resumes one thread after the other until all have ended, or the execution has failed.
///
/// # Safety
///
/// `this` is valid, and nobody else holds a reference to it meanwhile, but for those that `with`
/// makes for the fibres.
unsafe fn drive(this: *mut Execution) -> Result<(), Failure> {
    loop {
        // SAFETY: the caller's promise; the fibre is taken out, so that resuming it borrows nothing
        // of the execution.
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

//! Several real threads under the control of a test, of which one runs at a time.
//!
//! A test starts an [`actor`] for each thread. Each of the test's calls lets one actor run up to a
//! point of its choice, or until it sleeps, or to the end. The test can run a signal handler on a
//! paused actor ([`Actor::interrupt`]). Actors use the test's queue nodes and shared. An actor that
//! sleeps runs on only if its word was kicked since; else the test fails with "lost wake-up".

use std::boxed::Box;
use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::vec::Vec;
use std::{iter, ptr, thread, thread_local};

use super::{Point, SLOTS, TABLES, Toy, as_thread};
use crate::platform::Kick;
use crate::tables::Tables;

/// The state that the actors share with their test.
#[derive(Clone, Debug)]
struct Shared {
    tables: Tables<Toy>,
    /// The words that were kicked, by address, once for each sleeper that a kick is for.
    kicked: Arc<Mutex<Vec<usize>>>,
    /// The words that actors sleep on: the word that each halted on, and the one that it was
    /// requeued to.
    asleep: Arc<Mutex<Vec<(usize, usize)>>>,
}

impl Shared {
    /// The word on which the actor sleeps now that halted on `word`.
    fn requeued_to(&self, word: usize) -> usize {
        let asleep = self.asleep.lock().unwrap();
        let now = asleep.iter().find(|&&(began, _)| began == word);
        now.map_or(word, |&(_, now)| now)
    }
}

enum Command {
    /// Run on, and pause at this point; without one until asleep or at the end.
    Go(Option<Point>),
    /// Run a signal handler, pausing at this point, then pause again.
    Handle(Box<dyn FnOnce() + Send>, Option<Point>),
}

#[derive(Debug, PartialEq, Eq)]
enum Report {
    At(Point),
    Asleep(usize),
    HandlerDone,
    End,
}

/// The actor's end of its channels to the test. It is dropped with the actor's thread, which shows
/// the test that the actor has ended.
struct Controlled {
    commands: Receiver<Command>,
    reports: Sender<Report>,
}

thread_local! {
    static SHARED: RefCell<Option<Shared>> = const { RefCell::new(None) };
    static CONTROLLED: RefCell<Option<Rc<Controlled>>> = const { RefCell::new(None) };
    static TARGET: Cell<Option<Point>> = const { Cell::new(None) };
    /// Points that the actor has reached since its last command.
    static REACHED: Cell<u32> = const { Cell::new(0) };
}

/// The test's handle to a thread that it controls.
#[derive(Debug)]
pub struct Actor {
    commands: Sender<Command>,
    reports: Receiver<Report>,
    thread: Option<JoinHandle<()>>,
    shared: Shared,
    /// The word that the actor sleeps on.
    asleep_on: Cell<Option<usize>>,
    /// The same for the code that running handlers have interrupted, the outermost first.
    interrupted: RefCell<Vec<Option<usize>>>,
}

/// Starts `play` as thread number `number`, paused before its first line.
pub fn actor(number: usize, play: impl FnOnce() + Send + 'static) -> Actor {
    let shared = shared().unwrap_or_else(|| Shared {
        tables: TABLES.with(|tables| *tables),
        kicked: Arc::default(),
        asleep: Arc::default(),
    });
    SHARED.set(Some(shared.clone()));
    let shares = shared.clone();
    let (commands, command_queue) = channel();
    let (report_queue, reports) = channel();
    let thread = thread::spawn(move || {
        SHARED.set(Some(shares));
        CONTROLLED.set(Some(Rc::new(Controlled {
            commands: command_queue,
            reports: report_queue,
        })));
        as_thread(number, || {
            controlled().unwrap().pause();
            play();
        });
    });
    Actor {
        commands,
        reports,
        thread: Some(thread),
        shared,
        asleep_on: Cell::new(None),
        interrupted: RefCell::default(),
    }
}

impl Actor {
    /// Lets the actor run until it reaches `point`.
    pub fn to(&self, point: Point) {
        assert_eq!(self.go(Some(point)), Report::At(point));
    }

    /// Lets the actor run until it sleeps.
    pub fn sleep(&self) {
        let report = self.go(None);
        assert!(matches!(report, Report::Asleep(_)), "{report:?}");
    }

    /// Lets the actor run to its end.
    pub fn end(mut self) {
        let report = self.go(None);
        assert_eq!(report, Report::End);
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            resume_unwind(panic);
        }
    }

    /// Lets the actor run until it sleeps, which it does before it ever reaches `point`.
    pub fn sleep_before(&self, point: Point) {
        let report = self.go(Some(point));
        assert!(matches!(report, Report::Asleep(_)), "{report:?}");
    }

    /// Whether the actor, which sleeps, was kicked.
    pub fn is_kicked(&self) -> bool {
        let word = self.asleep_on.get().expect("it is awake");
        let word = self.shared.requeued_to(word);
        self.shared.kicked.lock().unwrap().contains(&word)
    }

    /// The actor's next run begins with a spurious wake-up.
    pub fn startle(&self) {
        assert!(self.asleep_on.take().is_some(), "it is awake");
    }

    /// Runs a signal handler on the actor, from its first line to its last.
    pub fn interrupt(&self, handler: impl FnOnce() + Send + 'static) {
        assert_eq!(self.handle(Box::new(handler), None), Report::HandlerDone);
    }

    /// Runs a signal handler on the actor until it reaches `point`.
    pub fn interrupt_to(&self, point: Point, handler: impl FnOnce() + Send + 'static) {
        let report = self.handle(Box::new(handler), Some(point));
        assert_eq!(report, Report::At(point));
    }

    /// Lets the innermost running handler run to its end.
    pub fn end_handler(&self) {
        assert_eq!(self.go(None), Report::HandlerDone);
    }

    fn go(&self, target: Option<Point>) -> Report {
        if let Some(word) = self.asleep_on.take() {
            let word = self.shared.requeued_to(word);
            let mut kicked = self.shared.kicked.lock().unwrap();
            let mine = kicked.iter().position(|&kicked| kicked == word);
            kicked.swap_remove(mine.expect("lost wake-up: the actor was not kicked"));
        }
        self.command(Command::Go(target));
        self.report()
    }

    fn handle(&self, handler: Box<dyn FnOnce() + Send>, target: Option<Point>) -> Report {
        self.interrupted.borrow_mut().push(self.asleep_on.take());
        self.command(Command::Handle(handler, target));
        self.report()
    }

    fn command(&self, command: Command) {
        // Fails if the actor has panicked, which `report` notices.
        let _ = self.commands.send(command);
    }

    fn report(&self) -> Report {
        let report = self.reports.recv().unwrap_or(Report::End);
        match report {
            Report::Asleep(word) => {
                self.asleep_on.set(Some(word));
                let mut kicked = self.shared.kicked.lock().unwrap();
                kicked.retain(|&kicked| kicked != word);
            }
            Report::HandlerDone => {
                let outer = self.interrupted.borrow_mut().pop();
                self.asleep_on.set(outer.flatten());
            }
            _ => {}
        }
        report
    }
}

impl Controlled {
    /// Waits for a command to run on.
    fn pause(&self) {
        loop {
            let command = self.commands.recv();
            REACHED.set(0);
            match command {
                Ok(Command::Go(target)) => return TARGET.set(target),
                Ok(Command::Handle(play, target)) => {
                    TARGET.set(target);
                    play();
                    self.report(Report::HandlerDone);
                }
                // The test has failed: end without a message.
                Err(_) => resume_unwind(Box::new("the test has ended")),
            }
        }
    }

    fn report(&self, report: Report) {
        let _ = self.reports.send(report);
    }
}

fn controlled() -> Option<Rc<Controlled>> {
    CONTROLLED.with_borrow(Option::clone)
}

/// The test's tables, if it has actors.
pub(super) fn tables() -> Option<Tables<Toy>> {
    shared().map(|shared| shared.tables)
}

/// The state that actors share, if there are any.
fn shared() -> Option<Shared> {
    SHARED.with_borrow(Option::clone)
}

/// Pauses the caller if it is an actor that was to run up to `point`. Returns whether it was.
pub(super) fn paused(point: Point) -> bool {
    match controlled() {
        Some(actor) if TARGET.get() == Some(point) => {
            actor.report(Report::At(point));
            actor.pause();
            true
        }
        Some(_) => {
            REACHED.set(REACHED.get() + 1);
            assert!(
                REACHED.get() < 100_000,
                "livelock: no thread will change what the actor waits for"
            );
            false
        }
        None => false,
    }
}

/// Sleeps on `word` if the caller is an actor. Returns whether it is.
pub(super) fn slept(word: &AtomicU32) -> bool {
    let Some(actor) = controlled() else {
        return false;
    };
    let word = ptr::from_ref(word).addr();
    let asleep = shared().map(|shared| shared.asleep);
    let asleep = asleep
        .as_deref()
        .map(|asleep| move || asleep.lock().unwrap());
    if let Some(asleep) = &asleep {
        asleep().push((word, word));
    }
    actor.report(Report::Asleep(word));
    actor.pause();
    if let Some(asleep) = &asleep {
        let mut asleep = asleep();
        let mine = asleep.iter().position(|&(began, _)| began == word);
        asleep.swap_remove(mine.expect("an actor that slept"));
    }
    true
}

/// Records a kick of one or all sleepers of the word at an address.
pub(super) fn kicked(word: *const AtomicU32, whom: Kick) {
    if let Some(shared) = shared() {
        let times = match whom {
            Kick::One => 1,
            Kick::All => SLOTS,
        };
        let mut kicked = shared.kicked.lock().unwrap();
        kicked.extend(iter::repeat_n(word.addr(), times));
    }
}

/// Moves an actor that sleeps on `from` to `to`. Returns whether the test has actors.
pub(super) fn requeued(from: &AtomicU32, to: &AtomicU32) -> bool {
    let Some(shared) = shared() else { return false };
    let mut asleep = shared.asleep.lock().unwrap();
    let from = ptr::from_ref(from).addr();
    if let Some((_, now)) = asleep.iter_mut().find(|(_, now)| *now == from) {
        *now = ptr::from_ref(to).addr();
    }
    true
}

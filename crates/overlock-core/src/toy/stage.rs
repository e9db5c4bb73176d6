//! Several threads that take turns, each on a real thread of its own, one running at a time.
//!
//! A test is the director: it puts parts on the stage with [`actor`], and each of its calls lets
//! one of them run up to a point of its choice, or until it sleeps, or to the end. While a part
//! stands, the director can play a signal handler on it ([`Actor::interrupt`]).
//! Parts use the director's queue nodes and tables. A part that sleeps runs on only if
//! somebody has kicked its word since: else the test fails with "lost wake-up".

use std::boxed::Box;
use std::cell::{Cell, RefCell};
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::vec::Vec;
use std::{iter, thread, thread_local};

use super::{Point, SLOTS, STORAGE, Storage, as_thread};
use crate::platform::{Kick, Sleeper};

/// What the parts share with their director.
#[derive(Clone)]
struct Shared {
    storage: &'static Storage,
    /// The words that were kicked, by address, once for each sleeper that a kick is for.
    kicked: Arc<Mutex<Vec<usize>>>,
    /// The words that parts sleep on: where each went to sleep, and where it was requeued to.
    asleep: Arc<Mutex<Vec<(usize, usize)>>>,
}

impl Shared {
    /// Where the part sleeps that went to sleep on `word`.
    fn requeued_to(&self, word: usize) -> usize {
        let asleep = self.asleep.lock().unwrap();
        let now = asleep.iter().find(|&&(began, _)| began == word);
        now.map_or(word, |&(_, now)| now)
    }
}

enum Cue {
    /// Run on, and stop at this point; without one until asleep or at the end.
    Go(Option<Point>),
    /// Play a signal handler, stopping at this point, then stand where you stood.
    Handle(Box<dyn FnOnce() + Send>, Option<Point>),
}

#[derive(Debug, PartialEq, Eq)]
enum Report {
    At(Point),
    Asleep(usize),
    HandlerDone,
    End,
}

/// The part's side of its talk with the director. Dropped with the part's thread, which tells the
/// director that it has ended.
struct Part {
    cues: Receiver<Cue>,
    reports: Sender<Report>,
}

thread_local! {
    static SHARED: RefCell<Option<Shared>> = const { RefCell::new(None) };
    static PART: RefCell<Option<Rc<Part>>> = const { RefCell::new(None) };
    static TARGET: Cell<Option<Point>> = const { Cell::new(None) };
    /// Points that the part has passed since its last cue.
    static PASSED: Cell<u32> = const { Cell::new(0) };
}

/// A part on the stage.
pub(crate) struct Actor {
    cues: Sender<Cue>,
    reports: Receiver<Report>,
    thread: Option<JoinHandle<()>>,
    shared: Shared,
    /// The word that the part sleeps on.
    asleep_on: Cell<Option<usize>>,
    /// The same for what the handlers under way have interrupted, the outermost first.
    interrupted: RefCell<Vec<Option<usize>>>,
}

/// Puts `play` on the stage as thread number `number`. It stands before its first line.
pub(crate) fn actor(number: usize, play: impl FnOnce() + Send + 'static) -> Actor {
    let shared = shared().unwrap_or_else(|| Shared {
        storage: STORAGE.with(|storage| *storage),
        kicked: Arc::default(),
        asleep: Arc::default(),
    });
    SHARED.set(Some(shared.clone()));
    let shares = shared.clone();
    let (cues, cue_queue) = channel();
    let (report_queue, reports) = channel();
    let thread = thread::spawn(move || {
        SHARED.set(Some(shares));
        PART.set(Some(Rc::new(Part {
            cues: cue_queue,
            reports: report_queue,
        })));
        as_thread(number, || {
            part().unwrap().stand();
            play();
        });
    });
    Actor {
        cues,
        reports,
        thread: Some(thread),
        shared,
        asleep_on: Cell::new(None),
        interrupted: RefCell::default(),
    }
}

impl Actor {
    /// Lets the part run until it reaches `point`.
    pub(crate) fn to(&self, point: Point) {
        assert_eq!(self.go(Some(point)), Report::At(point));
    }

    /// Lets the part run until it sleeps.
    pub(crate) fn sleep(&self) {
        let report = self.go(None);
        assert!(matches!(report, Report::Asleep(_)), "{report:?}");
    }

    /// Lets the part run to its end.
    pub(crate) fn end(mut self) {
        let report = self.go(None);
        if report == Report::End
            && let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
        {
            resume_unwind(panic);
        }
        assert_eq!(report, Report::End);
    }

    /// Lets the part run until it sleeps, which it does before it ever reaches `point`.
    pub(crate) fn sleep_before(&self, point: Point) {
        let report = self.go(Some(point));
        assert!(matches!(report, Report::Asleep(_)), "{report:?}");
    }

    /// Whether somebody has kicked the part, which sleeps.
    pub(crate) fn is_kicked(&self) -> bool {
        let word = self.asleep_on.get().expect("it is awake");
        let word = self.shared.requeued_to(word);
        self.shared.kicked.lock().unwrap().contains(&word)
    }

    /// The part's next run begins with a spurious wake-up.
    pub(crate) fn startle(&self) {
        assert!(self.asleep_on.take().is_some(), "it is awake");
    }

    /// Plays a signal handler on the part, from its first line to its last.
    pub(crate) fn interrupt(&self, handler: impl FnOnce() + Send + 'static) {
        assert_eq!(self.handle(Box::new(handler), None), Report::HandlerDone);
    }

    /// Plays a signal handler on the part until it reaches `point`.
    pub(crate) fn interrupt_to(&self, point: Point, handler: impl FnOnce() + Send + 'static) {
        let report = self.handle(Box::new(handler), Some(point));
        assert_eq!(report, Report::At(point));
    }

    /// Lets the innermost handler that is under way run to its end.
    pub(crate) fn end_handler(&self) {
        assert_eq!(self.go(None), Report::HandlerDone);
    }

    fn go(&self, target: Option<Point>) -> Report {
        if let Some(word) = self.asleep_on.take() {
            let word = self.shared.requeued_to(word);
            let mut kicked = self.shared.kicked.lock().unwrap();
            let mine = kicked.iter().position(|&kicked| kicked == word);
            kicked.swap_remove(mine.expect("lost wake-up: nobody has kicked the part"));
        }
        self.cue(Cue::Go(target));
        self.report()
    }

    fn handle(&self, handler: Box<dyn FnOnce() + Send>, target: Option<Point>) -> Report {
        self.interrupted.borrow_mut().push(self.asleep_on.take());
        self.cue(Cue::Handle(handler, target));
        self.report()
    }

    fn cue(&self, cue: Cue) {
        // Fails where the part has panicked, which `report` notices.
        let _ = self.cues.send(cue);
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

impl Part {
    /// Waits for the director.
    fn stand(&self) {
        loop {
            let cue = self.cues.recv();
            PASSED.set(0);
            match cue {
                Ok(Cue::Go(target)) => return TARGET.set(target),
                Ok(Cue::Handle(play, target)) => {
                    TARGET.set(target);
                    play();
                    self.report(Report::HandlerDone);
                }
                // The director has failed: leave quietly.
                Err(_) => resume_unwind(Box::new("the stage is closed")),
            }
        }
    }

    fn report(&self, report: Report) {
        let _ = self.reports.send(report);
    }
}

fn part() -> Option<Rc<Part>> {
    PART.with_borrow(Option::clone)
}

/// The director's tables, where there is a stage.
pub(super) fn storage() -> Option<&'static Storage> {
    shared().map(|shared| shared.storage)
}

/// What the parts share, where there is a stage.
fn shared() -> Option<Shared> {
    SHARED.with_borrow(Option::clone)
}

/// Whether the caller is a part that was to stop at `point`, and has.
pub(super) fn paused(point: Point) -> bool {
    match part() {
        Some(part) if TARGET.get() == Some(point) => {
            part.report(Report::At(point));
            part.stand();
            true
        }
        Some(_) => {
            PASSED.set(PASSED.get() + 1);
            assert!(
                PASSED.get() < 100_000,
                "the part runs in circles: nobody will change what it waits for"
            );
            false
        }
        None => false,
    }
}

/// Whether the caller is a part, and has slept on `word`.
pub(super) fn slept(word: &AtomicU32, sleeper: Sleeper) -> bool {
    let Some(part) = part() else { return false };
    let word = queue(word, sleeper);
    let asleep = shared().map(|shared| shared.asleep);
    let asleep = asleep
        .as_deref()
        .map(|asleep| move || asleep.lock().unwrap());
    if let Some(asleep) = &asleep {
        asleep().push((word, word));
    }
    part.report(Report::Asleep(word));
    part.stand();
    if let Some(asleep) = &asleep {
        let mut asleep = asleep();
        let mine = asleep.iter().position(|&(began, _)| began == word);
        asleep.swap_remove(mine.expect("a part that slept"));
    }
    true
}

/// Notes a kick.
pub(super) fn kicked(word: &AtomicU32) {
    kicked_at(word, Kick::One);
}

/// Notes a kick of one or all that sleep on the word at an address.
pub(super) fn kicked_at(word: *const AtomicU32, whom: Kick) {
    if let Some(shared) = shared() {
        let times = match whom {
            Kick::One => 1,
            Kick::All | Kick::Apart => SLOTS,
        };
        let sleeper = match whom {
            Kick::One | Kick::All => Sleeper::Waiter,
            Kick::Apart => Sleeper::Apart,
        };
        let mut kicked = shared.kicked.lock().unwrap();
        kicked.extend(iter::repeat_n(queue(word, sleeper), times));
    }
}

/// Moves a part that sleeps on `from` to `to`. Whether there is a stage.
pub(super) fn requeued(from: &AtomicU32, to: &AtomicU32) -> bool {
    let Some(shared) = shared() else { return false };
    let mut asleep = shared.asleep.lock().unwrap();
    let from = queue(from, Sleeper::Waiter);
    if let Some((_, now)) = asleep.iter_mut().find(|(_, now)| *now == from) {
        *now = queue(to, Sleeper::Waiter);
    }
    true
}

/// Where those sleep that halted so on a word: at its address, or at the next, which is nobody's.
fn queue(word: *const AtomicU32, sleeper: Sleeper) -> usize {
    word.addr() + usize::from(sleeper == Sleeper::Apart)
}

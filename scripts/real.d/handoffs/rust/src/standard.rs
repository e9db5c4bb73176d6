//! A thread hands work to another by Rust's standard library: `standard mpsc|park|condvar SECONDS`.
//!
//! No target of Cargo: scripts/real compiles it with rustc alone.

mod trips;

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use trips::Trips;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let seconds = words[2].parse().expect("a number of seconds");
    match words[1].as_str() {
        "mpsc" => mpsc(seconds),
        "park" => park(seconds),
        "condvar" => condvar(seconds),
        other => panic!("there is no way called {other}"),
    }
}

/// A channel each way.
fn mpsc(seconds: u64) {
    let (ask, questions) = channel::<u64>();
    let (answer, answers) = channel();
    let thread = thread::spawn(move || {
        let mut count = 0;
        for number in questions {
            answer.send(number).expect("the asker is there");
            count += 1;
        }
        count
    });
    let mut trips = Trips::new(seconds);
    for number in &mut trips {
        ask.send(number).expect("the thread is there");
        assert_eq!(answers.recv(), Ok(number));
    }
    drop(ask);
    trips.end(thread.join().expect("the thread ends well"));
}

/// Whose turn it is.
const ASKER: u8 = 0;
const ANSWERER: u8 = 1;
const NOBODY: u8 = 2;

/// Threads that park until it is their turn.
fn park(seconds: u64) {
    let turn = Arc::new(AtomicU8::new(ASKER));
    let asker = thread::current();
    let thread = thread::spawn({
        let turn = Arc::clone(&turn);
        move || {
            let mut count = 0;
            loop {
                match turn.load(Acquire) {
                    ASKER => thread::park(),
                    ANSWERER => {
                        count += 1;
                        turn.store(ASKER, Release);
                        asker.unpark();
                    }
                    _ => return count,
                }
            }
        }
    });
    let mut trips = Trips::new(seconds);
    for _ in &mut trips {
        turn.store(ANSWERER, Release);
        thread.thread().unpark();
        while turn.load(Acquire) != ASKER {
            thread::park();
        }
    }
    turn.store(NOBODY, Release);
    thread.thread().unpark();
    trips.end(thread.join().expect("the thread ends well"));
}

/// The turn under a mutex, and a condition for each side.
struct Shared {
    turn: Mutex<u8>,
    asked: Condvar,
    answered: Condvar,
}

impl Shared {
    /// Answers until it is nobody's turn, and counts the answers.
    fn answer(&self) -> u64 {
        let mut count = 0;
        let mut turn = self.turn.lock().expect("no thread panics");
        loop {
            turn = self
                .asked
                .wait_while(turn, |turn| *turn == ASKER)
                .expect("no thread panics");
            if *turn == NOBODY {
                return count;
            }
            count += 1;
            *turn = ASKER;
            self.answered.notify_one();
        }
    }
}

/// A mutex and two conditions.
fn condvar(seconds: u64) {
    let shared = Arc::new(Shared {
        turn: Mutex::new(ASKER),
        asked: Condvar::new(),
        answered: Condvar::new(),
    });
    let thread = thread::spawn({
        let shared = Arc::clone(&shared);
        move || shared.answer()
    });
    let mut trips = Trips::new(seconds);
    let mut turn = shared.turn.lock().expect("no thread panics");
    for _ in &mut trips {
        *turn = ANSWERER;
        shared.asked.notify_one();
        turn = shared
            .answered
            .wait_while(turn, |turn| *turn == ANSWERER)
            .expect("no thread panics");
    }
    *turn = NOBODY;
    drop(turn);
    shared.asked.notify_one();
    trips.end(thread.join().expect("the thread ends well"));
}

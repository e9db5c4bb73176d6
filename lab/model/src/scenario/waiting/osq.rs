//! Scenarios for the queue of optimistic spinners.

use std::sync::atomic::Ordering::Relaxed;

use overlock_core::platform::{Atomic, Spin};
use overlock_family::sleep::Osq;

use super::{ONE_NODE, PLAIN};
use crate::scenario::Scenario;
use crate::scenario::workers::{change, workers};
use crate::world::{Data, World};

/// The queue of optimistic spinners, and data for its head.
struct Line<W: World> {
    queue: Osq<W>,
    guarded: W::Data,
    stop: W::U32,
    /// Another queue, in which the same nodes are used.
    other: Osq<W>,
    guarded_there: W::Data,
}

impl<W: World> Line<W> {
    fn new() -> Self {
        Line {
            queue: Osq::new(),
            guarded: W::Data::new(),
            stop: W::U32::ZERO,
            other: Osq::new(),
            guarded_there: W::Data::new(),
        }
    }

    fn stay(&'static self, limit: Spin, stop: impl Fn() -> bool) {
        if let Some(head) = self.queue.lock(limit, stop) {
            change::<W>(&self.guarded);
            drop(head);
        }
    }

    fn wait(&'static self) {
        self.stay(Spin::Forever, || false);
    }

    fn again(&'static self) {
        self.wait();
        self.wait();
    }

    fn there(&'static self) {
        if let Some(head) = self.other.lock(Spin::Forever, || false) {
            change::<W>(&self.guarded_there);
            drop(head);
        }
    }

    fn here_and_there(&'static self) {
        self.wait();
        self.there();
    }

    fn briefly(&'static self) {
        self.stay(Spin::Polls(10), || false);
    }

    fn until_stopped(&'static self) {
        self.stay(Spin::Forever, || self.stop.load(Relaxed) != 0);
    }

    fn stop(&'static self) {
        self.wait();
        self.stop.store(1, Relaxed);
    }

    fn check(&self) {
        assert!(
            !self.queue.is_locked() && !self.other.is_locked(),
            "somebody is in the queue when all threads have ended"
        );
    }
}

/// The scenarios for the queue of optimistic spinners.
pub fn osq<W: World>() -> Vec<Scenario> {
    let make: fn() -> Line<W> = Line::new;
    let check: fn(&Line<W>) = Line::check;
    vec![
        workers::<W, _, _>("two", PLAIN, make, [Line::wait, Line::wait], check),
        workers::<W, _, _>(
            "three",
            PLAIN,
            make,
            [Line::wait, Line::again, Line::wait],
            check,
        ),
        workers::<W, _, _>(
            "one-leaves",
            PLAIN,
            make,
            [Line::wait, Line::briefly, Line::again],
            check,
        ),
        workers::<W, _, _>(
            "two-leave",
            PLAIN,
            make,
            [Line::wait, Line::briefly, Line::briefly],
            check,
        ),
        workers::<W, _, _>(
            "three-leave",
            PLAIN,
            make,
            [Line::again, Line::briefly, Line::briefly, Line::briefly],
            check,
        ),
        workers::<W, _, _>(
            "elsewhere",
            PLAIN,
            make,
            [Line::here_and_there, Line::briefly, Line::there],
            check,
        ),
        workers::<W, _, _>(
            "stop",
            PLAIN,
            make,
            [Line::stop, Line::until_stopped, Line::until_stopped],
            check,
        ),
        workers::<W, _, _>(
            "one-node",
            ONE_NODE,
            make,
            [Line::wait, Line::briefly],
            check,
        ),
    ]
}

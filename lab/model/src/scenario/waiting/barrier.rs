//! Scenarios for the barrier.

use std::sync::atomic::Ordering::{AcqRel, Relaxed};

use overlock_core::platform::Atomic;
use overlock_core::sleep::Barrier;

use super::{ONE_NODE, PLAIN};
use crate::scenario::Scenario;
use crate::scenario::workers::workers;
use crate::world::{Data, World};

/// A barrier, with data that the threads write before it, in turn, and read after it.
struct Meeting<W: World> {
    barrier: Barrier<W>,
    data: [W::Data; 3],
    leaders: W::U32,
    /// How many have come, and have gone.
    came: W::U32,
    went: W::U32,
}

impl<W: World> Meeting<W> {
    fn new(threads: u32) -> Self {
        Meeting {
            barrier: Barrier::new(threads),
            data: std::array::from_fn(|_| W::Data::new()),
            leaders: W::U32::ZERO,
            came: W::U32::ZERO,
            went: W::U32::ZERO,
        }
    }

    /// One of more threads than there are in a round of two.
    fn pass(&'static self) {
        self.came.fetch_add(1, Relaxed);
        self.barrier.wait();
        let went = self.went.fetch_add(1, AcqRel) + 1;
        let came = self.came.load(Relaxed);
        assert!(came >= went.next_multiple_of(2), "who was alone has gone");
    }

    fn meet(&'static self, own: usize, threads: usize) {
        for round in 0..2 {
            self.data[(own + round) % threads].write();
            if self.barrier.wait() {
                self.leaders.fetch_add(1, Relaxed);
            }
            self.data.iter().take(threads).for_each(Data::read);
            if self.barrier.wait() {
                self.leaders.fetch_add(1, Relaxed);
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.leaders.load(Relaxed), 4, "each round has one leader");
    }
}

/// The scenarios for the barrier.
pub fn barrier<W: World>() -> Vec<Scenario> {
    let check: fn(&Meeting<W>) = Meeting::check;
    vec![
        workers::<W, _, _>(
            "two",
            PLAIN,
            || Meeting::<W>::new(2),
            [
                |shared: &'static Meeting<W>| shared.meet(0, 2),
                |shared| shared.meet(1, 2),
            ],
            check,
        ),
        workers::<W, _, _>(
            "three",
            PLAIN,
            || Meeting::<W>::new(3),
            [
                |shared: &'static Meeting<W>| shared.meet(0, 3),
                |shared| shared.meet(1, 3),
                |shared| shared.meet(2, 3),
            ],
            check,
        ),
        workers::<W, _, _>(
            "two-rounds",
            PLAIN,
            || Meeting::<W>::new(2),
            [Meeting::pass; 4],
            |_| {},
        ),
        workers::<W, _, _>(
            "one-node",
            ONE_NODE,
            || Meeting::<W>::new(2),
            [
                |shared: &'static Meeting<W>| shared.meet(0, 2),
                |shared| shared.meet(1, 2),
            ],
            check,
        ),
    ]
}

//! Scenarios for locks that are taken several at a time, by contexts.

use overlock_core::sleep::WwMutex;
use overlock_core::sleep::ww_mutex::{Class, Rule, acquire};

use super::workers::{change, workers};
use super::{Scenario, Setting};
use crate::arena::Placed;
use crate::world::{Data, World};

/// Three locks of a class, each with its data.
struct Locks<W: World> {
    class: Placed<Class<W>>,
    locks: [WwMutex<W>; 3],
    guarded: [W::Data; 3],
}

impl<W: World> Locks<W> {
    fn new(class: Class<W>) -> Self {
        let class = Placed::new(class);
        let of_class = class.share();
        Locks {
            class,
            locks: std::array::from_fn(|_| WwMutex::new(of_class)),
            guarded: std::array::from_fn(|_| W::Data::new()),
        }
    }

    fn take(&'static self, order: &[usize]) {
        let done = acquire(self.class.share(), |context| {
            let mut held = Vec::new();
            for &index in order {
                held.push(context.lock(&self.locks[index])?);
            }
            order
                .iter()
                .for_each(|&index| change::<W>(&self.guarded[index]));
            Ok(())
        });
        assert_eq!(done, Ok(()));
    }

    fn try_second(&'static self, first: usize, second: usize) {
        let done = acquire(self.class.share(), |context| {
            let _first = context.lock(&self.locks[first])?;
            change::<W>(&self.guarded[first]);
            if let Some(_second) = context.try_lock(&self.locks[second])? {
                change::<W>(&self.guarded[second]);
            }
            Ok(())
        });
        assert_eq!(done, Ok(()));
    }

    /// The second lock is one that may be gone when the next attempt begins.
    fn find_second(&'static self, first: usize, second: usize) {
        let done = acquire(self.class.share(), |context| {
            let _first = context.lock(&self.locks[first])?;
            change::<W>(&self.guarded[first]);
            let _second = context.lock_found(&self.locks[second])?;
            change::<W>(&self.guarded[second]);
            Ok(())
        });
        assert_eq!(done, Ok(()));
    }

    fn without_context(&self, index: usize) {
        let _held = self.locks[index].hold();
        change::<W>(&self.guarded[index]);
    }

    fn check(&self) {
        for lock in &self.locks {
            assert!(
                lock.try_hold().is_some(),
                "a lock is held when all threads have ended"
            );
        }
    }
}

/// The scenarios for contexts, with both rules, and of a class that is optimistic.
pub fn ww_mutex<W: World>() -> Vec<Scenario> {
    let plain = Setting::PLAIN;
    let one_node = Setting { slots: 1, ..plain };
    let check: fn(&Locks<W>) = Locks::check;
    let wound: fn() -> Locks<W> = || Locks::new(Class::new());
    let die: fn() -> Locks<W> = || Locks::new(Class::with_rule(Rule::WaitDie));
    let optimistic: fn() -> Locks<W> = || Locks::new(Class::optimistic());
    let mut all = Vec::new();
    for (make, [opposite, circle, mixed, found, stranger, bare]) in [
        (
            wound,
            [
                "wound-opposite",
                "wound-circle",
                "wound-try",
                "wound-found",
                "wound-stranger",
                "wound-one-node",
            ],
        ),
        (
            die,
            [
                "die-opposite",
                "die-circle",
                "die-try",
                "die-found",
                "die-stranger",
                "die-one-node",
            ],
        ),
    ] {
        all.push(workers::<W, _, _>(
            opposite,
            plain,
            make,
            [|locks| locks.take(&[0, 1]), |locks| locks.take(&[1, 0])],
            check,
        ));
        all.push(workers::<W, _, _>(
            circle,
            plain,
            make,
            [
                |locks| locks.take(&[0, 1]),
                |locks| locks.take(&[1, 2]),
                |locks| locks.take(&[2, 0]),
            ],
            check,
        ));
        all.push(workers::<W, _, _>(
            mixed,
            plain,
            make,
            [
                |locks| locks.take(&[0, 1]),
                |locks| locks.try_second(1, 0),
                |locks| locks.take(&[1, 0]),
            ],
            check,
        ));
        all.push(workers::<W, _, _>(
            found,
            plain,
            make,
            [
                |locks| locks.find_second(0, 1),
                |locks| locks.find_second(1, 0),
            ],
            check,
        ));
        all.push(workers::<W, _, _>(
            stranger,
            plain,
            make,
            [
                |locks| locks.take(&[0, 1]),
                |locks| locks.take(&[1, 0]),
                |locks| locks.without_context(0),
            ],
            check,
        ));
        all.push(workers::<W, _, _>(
            bare,
            one_node,
            make,
            [|locks| locks.take(&[0, 1]), |locks| locks.take(&[1, 0])],
            check,
        ));
    }
    all.extend([
        workers::<W, _, _>(
            "optimistic-opposite",
            plain,
            optimistic,
            [|locks| locks.take(&[0, 1]), |locks| locks.take(&[1, 0])],
            check,
        ),
        workers::<W, _, _>(
            "optimistic-try",
            plain,
            optimistic,
            [|locks| locks.take(&[0, 1]), |locks| locks.try_second(1, 0)],
            check,
        ),
    ]);
    all
}

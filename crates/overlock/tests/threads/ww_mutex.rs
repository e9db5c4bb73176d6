//! Several locks at once: the shapes of the kernel's selftest (mutual exclusion, the same lock
//! twice, two and more that cross, stress in order, reordered, with single locks), under both
//! rules. A stuck thread fails the test.

use std::cell::RefCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::watch::{self, ThreadState};
use overlock::ww_mutex::{Class, Context, Error, Rule, WwMutex, WwMutexGuard, acquire};

static WOUND_WAIT: Class = Class::new();
static WAIT_DIE: Class = Class::with_rule(Rule::WaitDie);
const CLASSES: [&Class; 2] = [&WOUND_WAIT, &WAIT_DIE];
static OPTIMISTIC: Class = Class::optimistic();

/// Two numbers that are equal whenever nobody is inside.
type Pair = WwMutex<[u64; 2]>;

fn pairs<const N: usize>(class: &'static Class) -> &'static [Pair; N] {
    Box::leak(Box::new(std::array::from_fn(|_| {
        WwMutex::new(class, [0; 2])
    })))
}

/// One section with all of these held.
fn section(held: &mut [WwMutexGuard<'_, [u64; 2]>], inside: impl FnOnce()) {
    held.iter_mut().for_each(|numbers| numbers[0] += 1);
    inside();
    for numbers in held {
        numbers[1] += 1;
        assert_eq!(numbers[0], numbers[1], "two threads were inside");
    }
}

/// Xorshift: the same from run to run, as far as threads are.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 16) % limit as u64) as usize
    }

    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Stress {
    /// The same order in each attempt.
    InOrder,
    /// The contended lock is requested first.
    Reorder,
    /// One lock at a time, with a context or without.
    Single,
    /// As in order, without a queue node: inside four other contexts.
    WithoutNode,
    /// As in order, by `lock_found`: the contended lock is not waited for.
    Found,
}

const LOCKS: usize = if cfg!(miri) { 5 } else { 16 };
const THREADS: usize = if cfg!(miri) { 3 } else { 32 };
const SETS: usize = if cfg!(miri) { 3 } else { 300 };
/// Time for each stress: on a busy machine each change of thread takes a while.
const ENOUGH: Duration = Duration::from_millis(if cfg!(miri) { 10 } else { 400 });

struct Trial {
    class: &'static Class,
    pairs: &'static [Pair; LOCKS],
    states: [ThreadState; THREADS],
    /// Locks taken, over all sections.
    taken: AtomicU64,
    aborts: AtomicU64,
}

impl Trial {
    fn work(&self, number: usize, stress: Stress) {
        let mut random = Random((number as u64 + 1) * 0x9e37_79b9);
        let begin = Instant::now();
        for _ in 0..SETS {
            // On a machine that stops, not before some have met.
            let have_met = stress == Stress::Single || self.aborts.load(Relaxed) > 0;
            if begin.elapsed() > ENOUGH && (have_met || cfg!(miri)) {
                break;
            }
            let mut order: Vec<usize> = (0..LOCKS).collect();
            for i in 0..LOCKS {
                order.swap(i, i + random.below(LOCKS - i));
            }
            order.truncate(match stress {
                Stress::Single => 1,
                _ => 2 + random.below(4),
            });
            self.states[number].waits(false);
            if stress == Stress::Single && random.once_in(2) {
                let held = self.pairs[order[0]].lock();
                section(&mut [held], || {});
            } else {
                self.take(number, order.clone(), stress, &mut random);
            }
            self.taken.fetch_add(order.len() as u64, Relaxed);
            self.states[number].is_outside();
        }
    }

    fn take(&self, number: usize, order: Vec<usize>, stress: Stress, random: &mut Random) {
        let order = RefCell::new(order);
        let attempt = |ctx: Context<'_, 'static>| {
            let mut held = Vec::new();
            let mut order = order.borrow_mut();
            for at in 0..order.len() {
                let lock = &self.pairs[order[at]];
                let result = match stress {
                    Stress::Found => ctx.lock_found(lock),
                    _ if random.once_in(8) => match ctx.try_lock(lock)? {
                        Some(held) => Ok(held),
                        None => ctx.lock(lock),
                    },
                    _ => ctx.lock(lock),
                };
                match result {
                    Ok(guard) => held.push(guard),
                    Err(error) => {
                        assert_eq!(error, Error::Aborted);
                        assert!(ctx.holds() > 0, "it held nothing");
                        self.aborts.fetch_add(1, Relaxed);
                        if stress == Stress::Reorder {
                            order[..=at].rotate_right(1);
                        }
                        return Err(error);
                    }
                }
                if random.once_in(8) {
                    thread::yield_now();
                }
            }
            self.states[number].is_inside();
            let pauses = random.once_in(8);
            section(&mut held, || {
                if pauses {
                    thread::yield_now();
                }
            });
            // In any order.
            while !held.is_empty() {
                drop(held.swap_remove(random.below(held.len())));
            }
            Ok(())
        };
        match stress {
            Stress::WithoutNode => inside_of(4, self.class, attempt),
            _ => acquire(self.class, attempt).unwrap(),
        }
    }
}

/// Runs `attempt` in a context inside of so many others, which use up the thread's nodes.
fn inside_of(
    others: u32,
    class: &'static Class,
    mut attempt: impl FnMut(Context<'_, 'static>) -> Result<(), Error>,
) {
    fn nest(
        others: u32,
        class: &'static Class,
        attempt: &mut dyn FnMut(Context<'_, 'static>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        acquire(class, |ctx| match others {
            0 => attempt(ctx),
            _ => nest(others - 1, class, attempt),
        })
    }
    nest(others, class, &mut attempt).unwrap();
}

fn survives(stress: Stress) {
    for class in CLASSES.into_iter().chain([&OPTIMISTIC]) {
        let trial: &'static Trial = Box::leak(Box::new(Trial {
            class,
            pairs: pairs(class),
            states: Default::default(),
            taken: AtomicU64::new(0),
            aborts: AtomicU64::new(0),
        }));
        let threads = (0..THREADS)
            .map(|number| thread::spawn(move || trial.work(number, stress)))
            .collect();
        watch::join("ww_mutex", &trial.states, threads);
        let counts = trial.pairs.iter().map(|pair| pair.lock()[1]);
        assert_eq!(counts.sum::<u64>(), trial.taken.load(Relaxed));
        assert!(trial.pairs.iter().all(|pair| !pair.is_contended()));
        let aborts = trial.aborts.load(Relaxed);
        // Too few meet under Miri.
        assert!(
            cfg!(miri) || (aborts > 0) == (stress != Stress::Single),
            "{aborts} aborts"
        );
    }
}

#[test]
fn stress_in_order() {
    survives(Stress::InOrder);
}

#[test]
fn stress_reordered() {
    survives(Stress::Reorder);
}

#[test]
fn stress_with_single_locks() {
    survives(Stress::Single);
}

#[test]
fn stress_without_nodes() {
    survives(Stress::WithoutNode);
}

#[test]
fn stress_with_locks_that_are_not_waited_for() {
    survives(Stress::Found);
}

fn inside(mut held: WwMutexGuard<'_, [u64; 2]>) {
    section(std::slice::from_mut(&mut held), thread::yield_now);
}

/// With and without contexts, by waiting and by trying.
#[test]
fn each_excludes_each() {
    for class in CLASSES.into_iter().chain([&OPTIMISTIC]) {
        let [pair] = pairs::<1>(class);
        let ways: [&(dyn Fn() -> bool + Sync); 4] = [
            &|| {
                inside(pair.lock());
                true
            },
            &|| pair.try_lock().map(inside).is_some(),
            &|| acquire(class, |ctx| ctx.lock(pair).map(inside)).is_ok(),
            &|| acquire(class, |ctx| Ok(ctx.try_lock(pair)?.map(inside))) == Ok(Some(())),
        ];
        let done: u64 = thread::scope(|scope| {
            ways.map(|way| {
                scope.spawn(move || {
                    let begin = Instant::now();
                    let mut done = 0;
                    while begin.elapsed() < ENOUGH / 2 {
                        match way() {
                            true => done += 1,
                            false => thread::yield_now(),
                        }
                    }
                    done
                })
            })
            .map(|thread| thread.join().unwrap())
            .into_iter()
            .sum()
        });
        assert_eq!(pair.lock()[1], done);
    }
}

/// One thread for each lock. Each takes its own; when all have, each requests its neighbour's.
/// Returns how often each was aborted, the oldest first.
fn circle<const N: usize>(class: &'static Class) -> [u64; N] {
    let pairs = pairs::<N>(class);
    let begun = AtomicU64::new(0);
    let all_hold = Barrier::new(N);
    let aborted: [AtomicU64; N] = std::array::from_fn(|_| AtomicU64::new(0));
    thread::scope(|scope| {
        for (number, aborted) in aborted.iter().enumerate() {
            let (begun, all_hold) = (&begun, &all_hold);
            scope.spawn(move || {
                while begun.load(Relaxed) < number as u64 {
                    thread::sleep(Duration::from_micros(50));
                }
                let mut first = true;
                acquire(class, |ctx| {
                    begun.fetch_max(number as u64 + 1, Relaxed);
                    let own = ctx.lock(&pairs[number])?;
                    if std::mem::take(&mut first) {
                        all_hold.wait();
                    }
                    let next = ctx.lock(&pairs[(number + 1) % N]).inspect_err(|_| {
                        aborted.fetch_add(1, Relaxed);
                    })?;
                    section(&mut [own, next], || {});
                    Ok(())
                })
                .unwrap();
            });
        }
    });
    assert!(pairs.iter().all(|pair| pair.lock()[1] == 2));
    aborted.map(AtomicU64::into_inner)
}

#[test]
fn two_that_cross_and_many() {
    for class in CLASSES {
        for _ in 0..if cfg!(miri) { 2 } else { 30 } {
            assert_eq!(circle::<2>(class), [0, 1]);
            let aborted = circle::<3>(class);
            assert!(
                aborted[0] == 0 && aborted.iter().sum::<u64>() >= 1,
                "{aborted:?}"
            );
        }
        for _ in 0..if cfg!(miri) { 0 } else { 5 } {
            let aborted = circle::<16>(class);
            assert!(
                aborted[0] == 0 && aborted.iter().sum::<u64>() >= 1,
                "{aborted:?}"
            );
        }
    }
}

/// A thread that can do without the lock continues, and lets the other one through by its end.
#[test]
fn two_that_cross_and_one_does_without() {
    for class in CLASSES {
        let [a, b] = pairs::<2>(class);
        let [first, both] = &[const { Barrier::new(2) }; 2];
        // The context that begins later is the younger one.
        let cross = |begins_first: bool, own: &'static Pair, other: &'static Pair| {
            let begin = || {
                first.wait();
            };
            if !begins_first {
                begin();
            }
            acquire(class, |ctx| {
                let _own = ctx.lock(own)?;
                if begins_first {
                    begin();
                }
                both.wait();
                Ok(ctx.lock(other).is_ok())
            })
        };
        let [old, young] = thread::scope(|scope| {
            [(true, a, b), (false, b, a)]
                .map(|(first, own, other)| scope.spawn(move || cross(first, own, other)))
                .map(|thread| thread.join().unwrap())
        });
        assert_eq!([old, young], [Ok(true), Ok(false)]);
    }
}

/// A child of fork locks and unlocks what nobody else used, and what its own thread held: names in
/// locks are those of nodes, which the copy of a thread has too.
#[test]
#[cfg_attr(miri, ignore)]
fn a_forked_child_goes_on_with_its_contexts() {
    let [a, b] = pairs::<2>(&WOUND_WAIT);
    let status = acquire(&WOUND_WAIT, |ctx| {
        let held = ctx.lock(a)?;
        // SAFETY: the child locks, unlocks and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let twice = ctx.lock(a).map(drop) == Err(Error::AlreadyHeld);
            let other = ctx.lock(b).is_ok();
            drop(held);
            let clean = !a.is_locked() && !b.is_locked();
            // SAFETY: ends the child at once, as a child of a multi-threaded process must.
            unsafe { libc::_exit(i32::from(!(twice && other && clean))) };
        }
        assert!(child > 0);
        let mut status = -1;
        // SAFETY: `status` is valid for the write.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        Ok(status)
    });
    assert_eq!(status, Ok(0));
}

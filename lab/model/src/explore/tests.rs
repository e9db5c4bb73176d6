//! Litmus tests: what the explorer's memory allows, and what it does not.

mod publication;

use overlock_core::FutexPlatform;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, Mutex};

use overlock_core::platform::{Atomic, Instant, Kick, Platform, Spin};

use super::exec::{Rules, step};
use super::search::{Done, Mode, search};
use super::{Explorer, Word};
use crate::arena::Placed;
use crate::failure::Kind;
use crate::world::{Data, World};

const RULES: Rules = Rules {
    weak: true,
    chance: true,
    tick: 20,
    parallelism: 2,
    slots: 4,
    restless: false,
    steps: 10_000,
};

/// All results that two threads and two words can have.
fn outcomes(
    left: impl Fn(&[Word<u32>; 2]) -> u32 + Copy + Send + Sync + 'static,
    right: impl Fn(&[Word<u32>; 2]) -> u32 + Copy + Send + Sync + 'static,
) -> BTreeSet<(u32, u32)> {
    observed(left, right, |_, mine, other| (mine, other))
}

/// All values that the words can have in the end.
fn ends(
    left: impl Fn(&[Word<u32>; 2]) + Copy + Send + Sync + 'static,
    right: impl Fn(&[Word<u32>; 2]) + Copy + Send + Sync + 'static,
) -> BTreeSet<(u32, u32)> {
    observed(
        move |words| {
            left(words);
            0
        },
        move |words| {
            right(words);
            0
        },
        |[x, y], _, _| (x.load(Relaxed), y.load(Relaxed)),
    )
}

fn observed(
    left: impl Fn(&[Word<u32>; 2]) -> u32 + Copy + Send + Sync + 'static,
    right: impl Fn(&[Word<u32>; 2]) -> u32 + Copy + Send + Sync + 'static,
    observe: impl Fn(&[Word<u32>; 2], u32, u32) -> (u32, u32) + 'static,
) -> BTreeSet<(u32, u32)> {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let results = Arc::clone(&seen);
    let done = search(
        Mode::Exhaustive { departures: 3 },
        RULES,
        100_000,
        move || {
            let words = Placed::new([Word::ZERO, Word::ZERO]).share();
            let result = Arc::new(Mutex::new(0));
            let other = {
                let result = Arc::clone(&result);
                Explorer::spawn(move || *result.lock().unwrap() = right(words))
            };
            let mine = left(words);
            Explorer::join(other);
            let observed = observe(words, mine, *result.lock().unwrap());
            results.lock().unwrap().insert(observed);
        },
    );
    assert!(done.unwrap().complete);
    let seen = seen.lock().unwrap();
    seen.clone()
}

#[test]
fn stores_can_be_buffered_past_loads() {
    let seen = outcomes(
        |[x, y]| {
            x.store(1, Release);
            y.load(Acquire)
        },
        |[x, y]| {
            y.store(1, Release);
            x.load(Acquire)
        },
    );
    assert!(seen.contains(&(0, 0)), "{seen:?}");
}

#[test]
fn sequentially_consistent_accesses_are_not_buffered() {
    let seen = outcomes(
        |[x, y]| {
            x.store(1, SeqCst);
            y.load(SeqCst)
        },
        |[x, y]| {
            y.store(1, SeqCst);
            x.load(SeqCst)
        },
    );
    assert_eq!(seen, BTreeSet::from([(0, 1), (1, 0), (1, 1)]));
}

/// membarrier: one side pays for both. Without the heavy barrier, with two light ones, or without
/// the light one, both can miss the other's store.
#[test]
fn a_heavy_barrier_makes_up_for_a_light_one() {
    let seen = |light: fn(), heavy: fn()| {
        outcomes(
            move |[x, y]: &[Word<u32>; 2]| {
                x.store(1, Relaxed);
                light();
                y.load(Relaxed)
            },
            move |[x, y]| {
                y.store(1, Relaxed);
                heavy();
                x.load(Relaxed)
            },
        )
    };
    let both_miss = |light, heavy| seen(light, heavy).contains(&(0, 0));
    assert!(!both_miss(Explorer::light_barrier, Explorer::heavy_barrier));
    assert!(!both_miss(Explorer::heavy_barrier, Explorer::heavy_barrier));
    assert!(both_miss(Explorer::light_barrier, Explorer::light_barrier));
    assert!(both_miss(Explorer::light_barrier, || {}));
    assert!(both_miss(|| {}, Explorer::heavy_barrier));
}

/// A light barrier is no instruction. Fails where it makes an acquire of the load before it, as a
/// fence would.
#[test]
fn a_light_barrier_does_not_acquire() {
    let seen = |barrier: fn()| {
        outcomes(
            |[x, flag]: &[Word<u32>; 2]| {
                x.store(1, Relaxed);
                flag.store(1, Release);
                0
            },
            move |[x, flag]| {
                let flag = flag.load(Relaxed);
                barrier();
                10 * flag + x.load(Relaxed)
            },
        )
    };
    assert!(seen(Explorer::light_barrier).contains(&(0, 10)));
    assert!(!seen(Explorer::heavy_barrier).contains(&(0, 10)));
}

#[test]
fn messages_pass_by_release_and_acquire_only() {
    let passed = |seen: BTreeSet<(u32, u32)>| !seen.contains(&(0, 10));
    // 10 + x where the flag is seen.
    assert!(passed(outcomes(
        |[x, flag]| {
            x.store(1, Relaxed);
            flag.store(1, Release);
            0
        },
        |[x, flag]| 10 * flag.load(Acquire) + x.load(Relaxed),
    )));
    assert!(!passed(outcomes(
        |[x, flag]| {
            x.store(1, Relaxed);
            flag.store(1, Relaxed);
            0
        },
        |[x, flag]| 10 * flag.load(Acquire) + x.load(Relaxed),
    )));
    assert!(!passed(outcomes(
        |[x, flag]| {
            x.store(1, Relaxed);
            flag.store(1, Release);
            0
        },
        |[x, flag]| 10 * flag.load(Relaxed) + x.load(Relaxed),
    )));
}

#[test]
fn a_read_modify_write_continues_a_release_sequence() {
    let seen = outcomes(
        |[x, flag]| {
            x.store(1, Relaxed);
            flag.store(1, Release);
            flag.fetch_add(1, Relaxed);
            0
        },
        |[x, flag]| {
            if flag.load(Acquire) == 2 {
                10 + x.load(Relaxed)
            } else {
                0
            }
        },
    );
    assert!(!seen.contains(&(0, 10)), "{seen:?}");
}

/// Of two stores that nothing orders the one that is executed first may take effect last: 2+2W.
#[test]
fn stores_can_come_late() {
    let both = |order| {
        ends(
            move |[x, y]| {
                x.store(1, order);
                y.store(2, order);
            },
            move |[x, y]| {
                y.store(1, order);
                x.store(2, order);
            },
        )
    };
    let all = BTreeSet::from([(1, 1), (1, 2), (2, 1), (2, 2)]);
    assert_eq!(both(Release), all);
    assert_eq!(both(SeqCst), &all - &BTreeSet::from([(1, 1)]));
}

/// A store by a thread that has acquired what lies behind another store comes after it: what a
/// queue's link is for.
#[test]
fn stores_do_not_come_before_what_was_seen() {
    let overtaken = |link: Ordering, load: Ordering| {
        let seen = observed(
            move |[wait, next]| {
                wait.store(1, Relaxed);
                next.store(1, link);
                0
            },
            move |[wait, next]| {
                let linked = next.load(load);
                if linked == 1 {
                    wait.store(2, Relaxed);
                }
                linked
            },
            |[wait, _], _, linked| (linked, wait.load(Relaxed)),
        );
        seen.contains(&(1, 1))
    };
    assert!(!overtaken(Release, Acquire));
    assert!(overtaken(Relaxed, Acquire));
    assert!(overtaken(Release, Relaxed));
}

/// Nothing comes between a read-modify-write and the message that it replaced.
#[test]
fn stores_do_not_split_an_exchange() {
    let seen = ends(
        |[x, _]| {
            x.store(1, Relaxed);
            x.fetch_add(1, Relaxed);
        },
        |[x, _]| x.store(10, Relaxed),
    );
    let want = [2, 10, 11].map(|end| (end, 0));
    assert_eq!(seen, BTreeSet::from(want));
}

#[test]
fn one_location_never_goes_back() {
    let seen = outcomes(
        |[x, _]| {
            x.store(1, Relaxed);
            x.store(2, Relaxed);
            0
        },
        |[x, _]| 10 * x.load(Relaxed) + x.load(Relaxed),
    );
    let want = [0, 1, 2, 11, 12, 22].map(|result| (0, result));
    assert_eq!(seen, BTreeSet::from(want));
}

#[test]
fn exchanges_are_atomic() {
    let seen = outcomes(
        |[x, _]| x.fetch_add(1, Relaxed),
        |[x, _]| x.fetch_add(1, Relaxed),
    );
    assert_eq!(seen, BTreeSet::from([(0, 1), (1, 0)]));
}

fn check(body: impl Fn() + 'static) -> Result<Done, Kind> {
    search(Mode::Exhaustive { departures: 3 }, RULES, 1_000_000, body)
        .map_err(|failure| failure.kind)
}

fn pair(run: fn(&[Word<u32>; 2], bool)) -> Result<Done, Kind> {
    check(move || {
        let words = Placed::new([Word::ZERO, Word::ZERO]).share();
        let other = Explorer::spawn(move || run(words, false));
        run(words, true);
        Explorer::join(other);
    })
}

#[test]
fn a_wait_that_nobody_ends_is_a_deadlock() {
    let wait = |words: &[Word<u32>; 2], first: bool| {
        if first {
            let _ = Explorer::wait_until(&words[0], Relaxed, Spin::Forever, |x: u32| x == 2);
        } else {
            words[0].store(1, Relaxed);
        }
    };
    assert_eq!(pair(wait).unwrap_err(), Kind::Deadlock);
    let wait = |words: &[Word<u32>; 2], first: bool| {
        if first {
            let _ = Explorer::wait_until(&words[0], Relaxed, Spin::Forever, |x: u32| x == 1);
        } else {
            words[0].store(1, Relaxed);
        }
    };
    assert!(pair(wait).unwrap().complete);
}

/// Sleeps on `word` while it holds 0.
#[track_caller]
fn halt(word: &Word<u32>, until: Option<Instant>) {
    Explorer::halt(word, 0, until.map(Into::into));
}

#[test]
fn a_halt_without_a_kick_is_a_deadlock_and_a_timer_or_a_kick_ends_it() {
    assert_eq!(
        pair(|[x, _], first| if first {
            halt(x, None)
        } else {
            x.store(1, Relaxed)
        })
        .unwrap_err(),
        Kind::Deadlock
    );
    assert!(
        pair(|[x, _], first| if first {
            halt(x, None)
        } else {
            x.store(1, Relaxed);
            Explorer::kick(x, Kick::One)
        })
        .unwrap()
        .complete
    );
    assert!(
        pair(|[x, _], first| if first {
            halt(x, Some(Instant::from_nanos(1 << 40)))
        } else {
            x.store(1, Relaxed)
        })
        .unwrap()
        .complete
    );
}

#[test]
fn a_bounded_wait_may_give_up() {
    let done = check(|| {
        let x = Word::<u32>::ZERO;
        assert_eq!(
            Explorer::wait_until(&x, Relaxed, Spin::Polls(10), |x: u32| x == 1),
            Err(0)
        );
    });
    assert!(done.unwrap().complete);
}

#[test]
fn unordered_accesses_to_data_are_a_race() {
    let run = |release: bool| {
        check(move || {
            let (data, flag) = Placed::new((super::Checked::new(), Word::<u32>::ZERO)).share();
            let other = Explorer::spawn(move || {
                data.write();
                flag.store(1, if release { Release } else { Relaxed });
            });
            let _ = Explorer::wait_until(flag, Acquire, Spin::Forever, |x: u32| x == 1);
            data.read();
            Explorer::join(other);
        })
    };
    assert!(run(true).unwrap().complete);
    assert_eq!(run(false).unwrap_err(), Kind::Panic);
}

/// A lock that checks and then sets lets two in; the exhaustive search, the walks and PCT all find
/// it.
#[test]
fn every_mode_finds_two_owners() {
    for mode in [
        Mode::Exhaustive { departures: 2 },
        Mode::Random { seed: 1 },
        Mode::Pct { seed: 1, depth: 3 },
    ] {
        let result = search(mode, RULES, 10_000, || {
            let (word, data) = Placed::new((Word::<u32>::ZERO, super::Checked::new())).share();
            let enter = || {
                let _ = Explorer::wait_until(word, Acquire, Spin::Forever, |x: u32| x == 0);
                word.store(1, Relaxed);
                data.write();
                word.store(0, Release);
            };
            let other = Explorer::spawn(enter);
            enter();
            Explorer::join(other);
        });
        let failure = result.unwrap_err();
        assert_eq!(failure.kind, Kind::Panic, "{mode:?}");
        assert!(
            !failure.trace.is_empty() && !failure.text.contains("not deterministic"),
            "{mode:?} {failure}"
        );
    }
}

/// An update in two steps is lost where one thread runs between another's: by a change of
/// priorities on the way, since memory and chance do nothing here. Fails where each execution
/// forgets how long the last ones were.
#[test]
fn pct_changes_priorities_at_every_depth_of_an_execution() {
    let rules = Rules {
        weak: false,
        chance: false,
        ..RULES
    };
    let result = search(Mode::Pct { seed: 1, depth: 2 }, rules, 1000, || {
        let counter = Placed::new(Word::<u32>::ZERO).share();
        let count = || {
            let seen = counter.load(Relaxed);
            counter.store(seen + 1, Relaxed);
        };
        let other = Explorer::spawn(move || (0..8).for_each(|_| count()));
        (0..8).for_each(|_| count());
        Explorer::join(other);
        assert_eq!(counter.load(Relaxed), 16);
    });
    assert_eq!(result.unwrap_err().kind, Kind::Panic);
}

#[test]
fn a_signal_comes_at_any_step_or_never() {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let results = Arc::clone(&seen);
    let done = check(move || {
        let x = Placed::new(Word::<u32>::ZERO).share();
        step::signal(Box::new(|| x.store(1, Relaxed)));
        let before = x.load(Relaxed);
        let after = x.load(Relaxed);
        step::unsignal();
        results.lock().unwrap().insert((before, after));
    });
    assert!(done.unwrap().complete);
    assert_eq!(
        *seen.lock().unwrap(),
        BTreeSet::from([(0, 0), (0, 1), (1, 1)])
    );
}

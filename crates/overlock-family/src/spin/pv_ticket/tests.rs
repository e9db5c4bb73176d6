use super::width::{FLAG, Width, after, head, join, tail};
use super::*;
use overlock_core::toy::watch::{self, Access, Watch, freed, touches, watch};
use overlock_core::toy::{Point, SLOTS, Toy, as_thread, at, halts, kicks, left};
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::string::String;
use std::vec::Vec;

type Lock<P, W, F> = PvTicket<P, W, F, 4>;

/// Runs `$test::<width, flag>()` for every form of the lock.
macro_rules! for_every_form {
    ($test:ident) => {
        $test::<Small, HeadFlag>();
        $test::<Small, TailFlag>();
        $test::<Large, HeadFlag>();
        $test::<Large, TailFlag>();
    };
}

#[cfg(feature = "stat")]
mod counters;

/// A lock whose word is (`head`, `tail`).
fn with<P: FamilyPlatform, W: Width, F: SlowFlag>(head: u32, tail: u32) -> &'static Lock<P, W, F> {
    let lock: &_ = Box::leak(Box::new(Lock::<P, W, F>::new()));
    set(lock, head, tail);
    lock
}

fn set<P: FamilyPlatform, W: Width, F: SlowFlag>(lock: &Lock<P, W, F>, head: u32, tail: u32) {
    let word = word(lock);
    assert!(W::exchange::<P>(
        &lock.word,
        word,
        join::<W>(head, tail),
        Relaxed
    ));
}

fn word<P: FamilyPlatform, W: Width, F: SlowFlag>(lock: &Lock<P, W, F>) -> u32 {
    W::load::<P>(&lock.word, Relaxed)
}

fn flagged<P: FamilyPlatform, W: Width, F: SlowFlag>(lock: &Lock<P, W, F>) -> bool {
    word(lock) & F::bits::<W>() != 0
}

fn unlock_as<P: FamilyPlatform, W: Width, F: SlowFlag>(thread: usize, lock: &Lock<P, W, F>) {
    // SAFETY: the tests let `thread` hold it.
    as_thread(thread, || unsafe { lock.unlock(()) });
}

/// A lock that thread 0 holds with number 0.
fn held<P: FamilyPlatform, W: Width, F: SlowFlag>() -> &'static Lock<P, W, F> {
    let lock = with(0, 0);
    lock.lock();
    lock
}

/// A waiter of `thread` that has drawn, entered and raised the flag. It stays entered to the test's
/// end.
fn enter_as<P: FamilyPlatform, W: Width, F: SlowFlag>(thread: usize, lock: &Lock<P, W, F>) {
    let number = next::<W>(W::draw::<P>(&lock.word).unwrap());
    let guard = Box::leak(Box::new(as_thread(thread, || {
        NodeGuard::<P>::new().unwrap()
    })));
    let key = ptr::from_ref(&lock.word).addr();
    std::mem::forget(waiters::enter(key, number / STEP, guard));
    W::raise::<P>(&lock.word, F::bits::<W>());
}

fn message_of(play: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(play)).unwrap_err();
    *panic.downcast().unwrap()
}

fn numbers_wrap<W: Width, F: SlowFlag>() {
    let lock = with::<Toy, W, F>(0, 0);
    let (start, flag) = ((1 << W::BITS) - 6, F::bits::<W>());
    for flag in [0, flag] {
        set(lock, start | head::<W>(flag), start | tail::<W>(flag));
        for _ in 0..6 {
            lock.lock();
            assert!(lock.is_locked() && !lock.is_contended());
            assert!(lock.try_lock().is_none());
            unlock_as(0, lock);
            assert!(!lock.is_locked());
            assert!(lock.try_lock().is_some());
            unlock_as(0, lock);
        }
        // A carry out of the head would show in the tail's bit 0.
        assert_eq!(word(lock) & !F::bits::<W>(), join::<W>(18, 18));
    }
}

#[test]
fn numbers_wrap_without_a_carry_whether_or_not_the_flag_is_up() {
    for_every_form!(numbers_wrap);
}

/// A plain wait: one halt that sleeps, one kick.
fn sleeper_is_kicked<W: Width, F: SlowFlag>() {
    let lock = held::<Toy, W, F>();
    let before = (halts(), kicks());
    at(Point::Halt, move || {
        assert!(flagged(lock) && lock.is_contended());
        at(Point::Wait, move || unlock_as(0, lock)); // asleep by then
    });
    as_thread(1, || lock.lock());
    assert_eq!((halts(), kicks()), (before.0 + 1, before.1 + 1));
    assert!(lock.is_locked() && !lock.is_contended());
    // HeadFlag: the last waiter has cleared it. TailFlag: its release does.
    assert_eq!(flagged(lock), F::IN_TAIL);
    unlock_as(1, lock);
    assert_eq!(word(lock), join::<W>(4, 4));
    assert_eq!(kicks(), before.1 + 1);
    assert!(Toy::tables().is_idle(1));
    assert_eq!(left(), 0);
}

#[test]
fn a_sleeper_is_kicked_by_the_release_that_serves_it() {
    for_every_form!(sleeper_is_kicked);
}

/// V2: without the recheck of the word that raising the flag returned (`served::<W>(seen) ==
/// number`) the waiter sleeps, and no release will kick it.
fn release_before_flag<W: Width, F: SlowFlag>() {
    let lock = held::<Watch, W, F>();
    let before = (halts(), kicks());
    watch(lock);
    watch::before(Access::Or, move || unlock_as(0, lock));
    as_thread(1, || lock.lock());
    assert_eq!((halts(), kicks()), before);
    unlock_as(1, lock);
    assert_eq!(word(lock), join::<W>(4, 4));
    assert_eq!(watch::left(), 0);
}

#[test]
fn a_release_just_before_the_flag_is_picked_up() {
    for_every_form!(release_before_flag);
}

/// V2: with `enter` after the raise, the release that sees the flag finds no waiter to kick, and
/// the waiter that enters then sleeps for good.
fn release_after_flag<W: Width, F: SlowFlag>() {
    let lock = held::<Watch, W, F>();
    let before = (halts(), kicks());
    watch(lock);
    watch::after(Access::Or, move || unlock_as(0, lock));
    as_thread(1, || lock.lock());
    // Raised, then released and kicked; the raise had returned before that, so the waiter
    // went to sleep, and the kick was there before it.
    assert_eq!((halts(), kicks()), (before.0, before.1 + 1));
    unlock_as(1, lock);
    assert_eq!(watch::left(), 0);
}

#[test]
fn a_release_just_after_the_flag_finds_the_waiter() {
    for_every_form!(release_after_flag);
}

/// V3: with an exchange in `acquired` that clears the flag while other numbers are out, or a
/// `release_slow` that does not compare, waiter 2 would never be kicked.
fn flag_stays_for_others<W: Width, F: SlowFlag>() {
    let lock = held::<Toy, W, F>();
    at(Point::Halt, move || {
        // A second waiter, asleep with number 4 while thread 1 becomes the owner.
        enter_as(2, lock);
        unlock_as(0, lock);
    });
    as_thread(1, || lock.lock());
    assert!(flagged(lock) && lock.is_contended());
    let before = kicks();
    unlock_as(1, lock);
    assert_eq!(kicks(), before + 1);
    assert_eq!(served::<W>(word(lock)), 4);
    assert_eq!(left(), 0);
}

#[test]
fn the_flag_stays_up_while_others_wait() {
    for_every_form!(flag_stays_for_others);
}

/// V3: with a store in `release_slow` where the exchange is, the newcomer's flag is lost, and it is
/// not kicked.
#[test]
fn a_waiter_that_comes_while_a_release_clears_the_tail_flag_is_kicked() {
    let lock = held::<Watch, Large, TailFlag>();
    Large::raise::<Watch>(&lock.word, TailFlag::bits::<Large>());
    watch(lock);
    watch::before(Access::Exchange, move || {
        // Thread 1 finds number 2 served already; thread 2 queues behind it.
        as_thread(1, || lock.lock());
        enter_as(2, lock);
    });
    unlock_as(0, lock);
    assert_eq!(watch::left(), 0);
    assert!(flagged(lock));
    let before = kicks();
    unlock_as(1, lock);
    assert_eq!(kicks(), before + 1);
}

fn spurious_once<W: Width, F: SlowFlag>() {
    let lock = held::<Toy, W, F>();
    let before = halts();
    let key = ptr::from_ref(&lock.word).addr();
    at(Point::Halt, move || {
        at(Point::Wait, move || assert!(waiters::kick::<Toy>(key, 1)));
    });
    at(Point::Halt, move || {
        at(Point::Wait, move || unlock_as(0, lock));
    });
    as_thread(1, || lock.lock());
    assert_eq!(halts(), before + 2);
    unlock_as(1, lock);
    assert_eq!(left(), 0);
}

#[test]
fn a_spurious_kick_sends_the_waiter_back_to_sleep() {
    for_every_form!(spurious_once);
}

/// With one (lock, ticket) pair a thread, as published, the handler's wait would overwrite the
/// thread's, and the release of the outer lock would find no waiter.
fn handler_waits_too<W: Width, F: SlowFlag>() {
    let [outer, inner] = [held::<Toy, W, F>(), held::<Toy, W, F>()];
    at(Point::Halt, move || {
        // A signal handler interrupts thread 1 just before it sleeps.
        at(Point::Halt, move || {
            let before = kicks();
            unlock_as(0, outer);
            assert_eq!(kicks(), before + 1);
            unlock_as(0, inner);
            assert_eq!(kicks(), before + 2);
        });
        inner.lock();
        unlock_as(1, inner);
    });
    as_thread(1, || outer.lock());
    unlock_as(1, outer);
    assert!(Toy::tables().is_idle(1));
    assert_eq!(left(), 0);
}

#[test]
fn a_handler_that_waits_slowly_leaves_the_waiter_that_it_interrupts_alone() {
    for_every_form!(handler_waits_too);
}

/// A thread without a node, and one whose line of the table is full, spin on.
fn cannot_sleep<W: Width, F: SlowFlag>() {
    let spin_through_one_threshold = || (0..3).for_each(|_| at(Point::Wait, || {}));
    let before = halts();

    let lock = held::<Toy, W, F>();
    spin_through_one_threshold();
    at(Point::Wait, move || unlock_as(0, lock));
    as_thread(SLOTS, || lock.lock());
    assert_eq!(left(), 0);

    let lock = held::<Toy, W, F>();
    let key = ptr::from_ref(&lock.word).addr();
    let guard = as_thread(2, || NodeGuard::<Toy>::new().unwrap());
    let entries: Vec<_> = core::iter::from_fn(|| waiters::enter(key, 1, &guard)).collect();
    spin_through_one_threshold();
    at(Point::Wait, move || unlock_as(0, lock));
    as_thread(1, || lock.lock());
    drop(entries);
    assert_eq!(halts(), before);
    assert_eq!(left(), 0);
}

#[test]
fn a_waiter_that_cannot_sleep_spins_on() {
    for_every_form!(cannot_sleep);
}

/// V5: without the comparison with `LIMIT` (in `Small::draw`, in `wait`) all numbers are out and a
/// held lock looks free.
fn refused<W: Width, F: SlowFlag>() {
    let lock = held::<Toy, W, F>();
    let flag = F::bits::<W>();
    for flag in [0, flag] {
        let full = ((W::LIMIT + 40) * STEP) & ((1 << W::BITS) - 1);
        set(lock, 80 | head::<W>(flag), full | tail::<W>(flag));
        let before = word(lock);
        let message = message_of(|| lock.lock());
        assert!(message.contains(&std::format!("more than {} threads", W::LIMIT)));
        assert_eq!(word(lock), before);
        assert!(lock.is_locked() && lock.is_contended());
    }
}

#[test]
fn a_waiter_too_many_is_refused_and_leaves_no_trace() {
    for_every_form!(refused);
}

/// All small tickets but one, drawn one by one.
#[test]
fn small_tickets_serve_127_threads_and_refuse_the_128th() {
    let lock = held::<Toy, Small, HeadFlag>();
    for waiters in 1..127 {
        assert_eq!(
            next::<Small>(Small::draw::<Toy>(&lock.word).unwrap()),
            waiters * 2
        );
    }
    assert!(Small::draw::<Toy>(&lock.word).is_none());
    for _ in 0..2 {
        assert!(message_of(|| lock.lock()).contains("8-bit"));
        assert!(lock.is_locked() && lock.try_lock().is_none());
    }
    (0..127).for_each(|_| unlock_as(0, lock));
    assert!(!lock.is_locked());
    assert!(lock.try_lock().is_some());
}

/// Taking a number back under a later one (`last` always true in `refuse`) would give the next to
/// arrive the number that it holds.
#[test]
fn a_refused_waiter_with_others_behind_it_passes_its_turn_on() {
    let lock = with::<Toy, Large, HeadFlag>(0, Large::LIMIT * STEP);
    at(Point::Wait, || {
        // All those before it are served while it waits.
        let tail = tail::<Large>(word(lock));
        set(lock, Large::LIMIT * STEP, tail);
    });
    let refused = Large::draw::<Toy>(&lock.word).unwrap();
    let behind = next::<Large>(Large::draw::<Toy>(&lock.word).unwrap());
    assert!(message_of(|| lock.wait(refused)).contains("16-bit"));
    assert_eq!(served::<Large>(word(lock)), behind);
    assert_eq!(out::<Large>(word(lock)), 1);
    assert_eq!(left(), 0);
}

/// `try_lock` compares the whole word. With head alone, a lock that a newcomer holds would pass for
/// the free lock that was loaded; with tail alone, one whose numbers have wrapped.
#[test]
fn try_lock_compares_both_halves_of_the_word() {
    fn by<W: Width, F: SlowFlag>() {
        for (head, tail) in [(8, 10), (6, 8)] {
            let lock = with::<Watch, W, F>(8, 8);
            watch(lock);
            watch::before(Access::Exchange, move || set(lock, head, tail));
            assert!(lock.try_lock().is_none());
            assert_eq!((word(lock), watch::left()), (join::<W>(head, tail), 0));
        }
    }
    for_every_form!(by);
}

/// Thread 0 releases a lock that thread 1 then locks, unlocks and frees before thread 0 goes on.
/// Returns thread 0's accesses to the lock after that, the data that then lies there, and the word.
fn unlock_then_free<F: SlowFlag>(slow: bool) -> (Vec<Access>, u32, u32) {
    // Another object's data, equal to the word that thread 0 left behind.
    let data = join::<Large>(2 | FLAG, 2 | FLAG) & (join::<Large>(2, 2) | F::bits::<Large>());
    let lock = held::<Watch, Large, F>();
    if slow {
        Large::raise::<Watch>(&lock.word, F::bits::<Large>());
    }
    watch(lock);
    watch::after(Access::Add, move || {
        as_thread(1, || lock.lock());
        unlock_as(1, lock);
        set(lock, head::<Large>(data), tail::<Large>(data));
        freed();
    });
    unlock_as(0, lock);
    let touched = touches();
    assert_eq!(watch::left(), 0);
    (touched, data, word(lock))
}

/// V4, and the fault for which the tail-flag form was given up in 2015. The lock's memory belongs
/// to another thread after the release; the tail-flag form reads it and, with the flag up, writes
/// to it.
#[test]
fn head_flag_does_not_touch_a_lock_that_its_next_owner_has_freed() {
    let (touched, data, now) = unlock_then_free::<HeadFlag>(true);
    assert_eq!(touched, []);
    assert_eq!(now, data);
}

/// Shows the fault that [`head_flag_does_not_touch_a_lock_that_its_next_owner_has_freed`] rules
/// out.
#[test]
fn tail_flag_touches_a_lock_that_its_next_owner_has_freed() {
    let (touched, data, now) = unlock_then_free::<TailFlag>(true);
    assert_eq!(touched, [Access::Load, Access::Exchange]);
    assert_eq!(
        (data, now),
        (join::<Large>(2, 3), join::<Large>(2, 2)),
        "data overwritten"
    );
}

#[test]
fn tail_flag_reads_a_freed_lock_even_without_waiters() {
    let (touched, data, now) = unlock_then_free::<TailFlag>(false);
    // The new owner's data looks as if the flag were up. Only its other bits keep it from being
    // overwritten.
    assert_eq!(touched, [Access::Load, Access::Exchange]);
    assert_eq!(now, data);
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "unlock of a paravirtual ticket lock that is free")]
fn a_second_unlock_is_reported() {
    unlock_as(0, with::<Toy, Large, HeadFlag>(4, 4));
}

#[test]
fn names_tell_the_forms_apart() {
    assert_eq!(PvTicket::<Toy>::NAME, "pv_ticket");
    assert_eq!(PvTicketSmall::<Toy>::NAME, "pv_ticket_small");
    assert_eq!(PvTicketTailFlag::<Toy>::NAME, "pv_ticket_tail_flag");
    assert_eq!(size_of::<PvTicket<Toy>>(), 4);
    assert_eq!(size_of::<PvTicketSmall<Toy>>(), 2);
    assert_eq!(after::<Small>(254), 0);
}

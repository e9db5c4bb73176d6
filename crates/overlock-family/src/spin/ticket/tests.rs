use super::*;
use overlock_core::toy::watch::{self, Access, Watch, freed, touches, watch};
use overlock_core::toy::{Point, Toy, as_thread, at, left};
use std::boxed::Box;
use std::rc::Rc;
use std::vec::Vec;
use std::{cell::RefCell, vec};

fn leak() -> &'static Ticket<Toy> {
    Box::leak(Box::new(Ticket::new()))
}

#[test]
fn served_in_the_order_of_drawing() {
    let lock = leak();
    let order = Rc::new(RefCell::new(Vec::new()));
    lock.lock();
    // Threads 1 and 2 draw their numbers in this order while thread 0 holds the lock; the
    // last to draw waits on top of the stack, so the owner's unlock happens inside.
    let (one, two) = (order.clone(), order.clone());
    at(Point::Wait, move || {
        as_thread(2, || {
            at(Point::Wait, || {
                // SAFETY: thread 0 holds it.
                unsafe { lock.unlock(()) }
            });
            let number = tail(lock.tickets.fetch_add(DRAW, Acquire));
            two.borrow_mut().push(number);
        });
    });
    as_thread(1, || {
        lock.lock();
        one.borrow_mut().push(head(lock.tickets.load(Relaxed)));
        // SAFETY: just locked.
        unsafe { lock.unlock(()) };
    });
    assert_eq!(*order.borrow(), vec![2, 1]);
    assert_eq!(head(lock.tickets.load(Relaxed)), 2);
    assert_eq!(left(), 0);
}

#[test]
fn numbers_wrap_without_a_carry() {
    let lock = leak();
    for start in [0xffff_ffff, 0xfffe_fffe, 0x0000_0000_u32] {
        lock.tickets.store(start, Relaxed);
        for _ in 0..4 {
            lock.lock();
            assert!(lock.is_locked() && !lock.is_contended());
            assert!(lock.try_lock().is_none());
            // SAFETY: locked above.
            unsafe { lock.unlock(()) };
            assert!(!lock.is_locked());
        }
        assert!(lock.try_lock().is_some());
        // SAFETY: locked above.
        unsafe { lock.unlock(()) };
    }
}

/// The word with these numbers.
fn join(head: u32, tail: u32) -> u32 {
    tail << 16 | head
}

fn message_of(play: impl FnOnce()) -> std::string::String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(play)).unwrap_err();
    *panic.downcast().unwrap()
}

/// I3: without the comparison in `admit` threads would draw until the held lock looks free.
#[test]
fn a_waiter_too_many_is_refused_and_leaves_no_trace() {
    let lock = leak();
    let full = u32::from(LIMIT.wrapping_add(0xfff0)) << 16 | 0xfff0;
    lock.tickets.store(full, Relaxed);
    assert!(message_of(|| lock.lock()).contains("more than 57344 threads"));
    assert_eq!(lock.tickets.load(Relaxed), full);

    // One fewer: it waits, until all those before it have been served.
    lock.tickets.store(full - DRAW, Relaxed);
    at(Point::Wait, || {
        let number = tail(lock.tickets.load(Relaxed)).wrapping_sub(1);
        lock.tickets.low_store(number, Release);
    });
    lock.lock();
    assert!(lock.is_locked() && !lock.is_contended());
    assert_eq!(left(), 0);
}

/// A later number must stay valid: taking ours back under it (dropping `tail(seen) != next`) would
/// give the next arrival a number that is already out.
#[test]
fn a_refused_waiter_with_others_behind_it_passes_its_turn_on() {
    let lock = leak();
    lock.tickets.store(u32::from(LIMIT) << 16, Relaxed);
    // All those before it are served while it waits.
    at(Point::Wait, || lock.tickets.low_store(LIMIT, Release));
    let refused = lock.tickets.fetch_add(DRAW, Acquire);
    assert_eq!(lock.draw(), Err(u32::from(LIMIT + 1) << 16));
    assert!(message_of(|| _ = lock.admit(refused)).contains("threads wait"));
    assert_eq!(left(), 0);
    // The waiter behind it is served.
    assert_eq!(lock.ahead(LIMIT + 1), 0);
    assert_eq!(tail(lock.tickets.load(Relaxed)), LIMIT + 2);
}

#[test]
#[cfg(any(debug_assertions, feature = "checked"))]
#[should_panic(expected = "unlock of a ticket lock that is free")]
fn a_second_unlock_is_reported() {
    // SAFETY: it is not held: the misuse under test; it protects no data.
    unsafe { leak().unlock(()) }
}

#[test]
fn contended_means_that_a_thread_waits() {
    let lock = leak();
    lock.lock();
    at(Point::Wait, || {
        assert!(lock.is_contended());
        // SAFETY: thread 0 holds it.
        as_thread(0, || unsafe { lock.unlock(()) });
    });
    as_thread(1, || lock.lock());
    assert!(lock.is_locked() && !lock.is_contended());
    assert_eq!(left(), 0);
}

/// The whole word is compared. With head alone, a lock that a newcomer holds would pass for the
/// free lock that was loaded; with tail alone, one whose numbers have wrapped.
#[test]
fn try_lock_compares_both_halves_of_the_word() {
    let seen = join(7, 7);
    for changed in [join(7, 8), join(6, 7)] {
        let lock: &'static Ticket<Watch> = Box::leak(Box::new(Ticket::at_number(7)));
        assert_eq!(lock.tickets.load(Relaxed), seen);
        watch(lock);
        watch::before(Access::Exchange, move || {
            lock.tickets.store(changed, Relaxed)
        });
        assert!(lock.try_lock().is_none());
        assert_eq!((lock.tickets.load(Relaxed), watch::left()), (changed, 0));
    }
}

/// A release is the store of head alone: the next owner may free the lock after it.
#[test]
fn nothing_of_the_lock_is_touched_after_its_release() {
    let lock = Ticket::<Watch>::new();
    lock.lock();
    watch(&lock);
    watch::after(Access::Store, freed);
    // SAFETY: just locked.
    unsafe { lock.unlock(()) };
    assert_eq!((watch::left(), touches()), (0, vec![]));
}

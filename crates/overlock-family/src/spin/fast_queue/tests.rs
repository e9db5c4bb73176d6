//! Thread 0 directs; the actors are threads 1 to 7.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::sync::{Arc, Mutex};
use std::vec::Vec;

use super::*;
use overlock_core::node::CONTEXTS;
use overlock_core::toy::stage::{Actor, actor};
use overlock_core::toy::watch::{self, Access, Watch, freed, touches, watch};
use overlock_core::toy::{Point, SLOTS, Toy, as_thread};

use crate::toy::LOCK_TICKETS;

type Lock = &'static FastQueue<Toy>;

fn leak() -> Lock {
    Box::leak(Box::new(FastQueue::create().unwrap()))
}

fn unlock(lock: &FastQueue<Toy>, token: FastQueueToken) {
    // SAFETY: each test passes what it got from this lock.
    unsafe { lock.unlock(token) }
}

fn pass(lock: &FastQueue<Toy>) {
    let token = lock.lock();
    unlock(lock, token);
}

/// Q1, counted: every ticket has one holder, with `locks` alive and no thread in the middle of
/// locking.
fn census(locks: &[&FastQueue<Toy>]) {
    let mut holders = BTreeMap::<u32, String>::new();
    let mut note = |id: TicketId, holder: String| {
        if let Some(other) = holders.insert(id.bits(), holder.clone()) {
            panic!("{id:?} is held by {other} and by {holder}");
        }
    };
    for id in Toy::family_tables().tickets.free() {
        note(id, "the pool".to_string());
    }
    for (index, thread) in Toy::family_tables().threads.iter().enumerate() {
        assert_eq!(thread.contexts.depth.load(Relaxed), 0);
        for context in 0..CONTEXTS {
            let spare = TicketId::from_bits(thread.contexts.spare[context].load(Relaxed));
            let spare = spare.unwrap_or_else(|| TicketId::first_of(index, context));
            note(spare, std::format!("slot {index}, context {context}"));
        }
    }
    for (number, lock) in locks.iter().enumerate() {
        let reserve = TicketId::from_bits(lock.reserve.load(Relaxed)).unwrap();
        note(reserve, std::format!("lock {number}'s reserve"));
        let latest = named(lock.latest.load(Relaxed)).unwrap();
        note(latest, std::format!("lock {number}"));
    }
    assert_eq!(holders.len(), Toy::family_tables().tickets.len());
}

/// An actor that locks, appends its thread to `order`, and unlocks.
fn passer(thread: usize, lock: Lock, order: &Arc<Mutex<Vec<usize>>>) -> Actor {
    let order = order.clone();
    actor(thread, move || {
        let token = lock.lock();
        order.lock().unwrap().push(thread);
        unlock(lock, token);
    })
}

#[test]
fn the_latest_ticket_tells_who_holds_and_who_waits() {
    let lock = leak();
    assert!(!lock.is_locked() && !lock.is_contended());
    let token = lock.lock();
    assert!(lock.is_locked() && !lock.is_contended());
    assert!(lock.try_lock().is_none());
    unlock(lock, token);
    assert!(!lock.is_locked());
    let token = lock.try_lock().unwrap();
    let waiter = passer(1, lock, &Arc::default());
    waiter.to(Point::Wait);
    assert!(lock.is_locked() && lock.is_contended());
    unlock(lock, token);
    // Free for the waiter alone: it has joined.
    assert!(lock.try_lock().is_none());
    waiter.end();
    assert!(!lock.is_locked());
    census(&[lock]);
}

#[test]
fn served_in_the_order_of_arrival() {
    let lock = leak();
    let order = Arc::default();
    let token = lock.lock();
    let waiters: Vec<_> = [3, 1, 2]
        .into_iter()
        .map(|thread| {
            let waiter = passer(thread, lock, &order);
            waiter.to(Point::Wait);
            waiter
        })
        .collect();
    unlock(lock, token);
    waiters.into_iter().for_each(Actor::end);
    assert_eq!(*order.lock().unwrap(), [3, 1, 2]);
    census(&[lock]);
}

/// After this, most contexts' spares are not the ones that they began with.
#[test]
fn no_ticket_is_lost_or_held_twice_after_many_operations() {
    let locks = [leak(), leak(), leak()];
    let mut random = 1_u32;
    let mut held: [Option<FastQueueToken>; 3] = [const { None }; 3];
    for _ in 0..if cfg!(miri) { 300 } else { 20_000 } {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (which, thread) = (
            (random >> 16) as usize % 3,
            (random >> 20) as usize % (SLOTS + 1),
        );
        as_thread(thread, || match held[which].take() {
            Some(token) => unlock(locks[which], token),
            None if random >> 31 == 0 => held[which] = locks[which].try_lock(),
            None => held[which] = Some(locks[which].lock()),
        });
    }
    census(&locks);
}

/// Q1 at the pool: without giving `latest` or `reserve` back in `drop`, creation fails after a few
/// rounds.
#[test]
fn locks_come_and_go() {
    for round in 0..if cfg!(miri) { 10 } else { 100 } {
        let locks = [(); LOCK_TICKETS / 2].map(|()| FastQueue::<Toy>::create().unwrap());
        // Used by different threads, so that the locks end with other tickets than they began with.
        for (index, lock) in locks.iter().enumerate() {
            as_thread((round + index) % SLOTS, || pass(lock));
        }
        census(&locks.each_ref());
        locks.into_iter().for_each(FastQueue::destroy);
        census(&[]);
    }
}

#[test]
fn creation_fails_where_the_tickets_are_used_up_and_leaves_nothing_behind() {
    let locks: Vec<_> = (0..LOCK_TICKETS / 2)
        .map(|_| FastQueue::<Toy>::create().unwrap())
        .collect();
    assert_eq!(FastQueue::<Toy>::create().unwrap_err(), CreateError);
    let one_left = Toy::family_tables().tickets;
    drop(locks);
    let odd = one_left.take().unwrap();
    let locks: Vec<_> = core::iter::from_fn(|| FastQueue::<Toy>::create().ok()).collect();
    // One ticket was left for the last lock, and is still there.
    assert_eq!(
        (locks.len(), one_left.free().len()),
        (LOCK_TICKETS / 2 - 1, 1)
    );
    drop(locks);
    one_left.give(odd);
    // Threads need none: they lock while the pool is empty.
    let locks: Vec<_> = core::iter::from_fn(|| FastQueue::<Toy>::create().ok()).collect();
    (0..=SLOTS).for_each(|thread| as_thread(thread, || pass(&locks[0])));
    census(&locks.iter().collect::<Vec<_>>());
}

#[test]
fn destroying_a_held_lock_is_reported_and_its_ticket_not_used_again() {
    let lock = FastQueue::<Toy>::create().unwrap();
    let forgotten = lock.lock();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lock.destroy()));
    let checked = cfg!(any(debug_assertions, feature = "checked"));
    assert_eq!(result.is_err(), checked);
    let free = Toy::family_tables().tickets.free();
    assert_eq!(free.len(), LOCK_TICKETS - 1);
    assert!(!free.contains(&forgotten.0));
}

/// Q3, two levels deep: handlers on a waiter between the exchange and the adoption, where its
/// context has no spare. With `leave` before the wait (or one context for all) a handler would
/// queue with the ticket that the waiter's successor polls.
#[test]
fn handlers_lock_while_their_thread_is_between_exchange_and_adoption() {
    let [outer, middle, inner] = [leak(), leak(), leak()];
    let [outer_token, middle_token] = [outer.lock(), middle.lock()];
    let order = Arc::default();
    let waiter = passer(1, outer, &order);
    waiter.to(Point::Wait);
    let behind = passer(2, outer, &order);
    behind.to(Point::Wait);
    let first = order.clone();
    waiter.interrupt_to(Point::Wait, move || {
        let token = middle.lock();
        first.lock().unwrap().push(11);
        unlock(middle, token);
    });
    assert_eq!(
        Toy::family_tables().threads[1].contexts.depth.load(Relaxed),
        2
    );
    let second = order.clone();
    waiter.interrupt(move || {
        // Several times: the spare changes each time.
        (0..3).for_each(|_| pass(inner));
        let token = inner.try_lock().unwrap();
        second.lock().unwrap().push(12);
        unlock(inner, token);
    });
    unlock(outer, outer_token);
    unlock(middle, middle_token);
    waiter.end_handler();
    waiter.end();
    behind.end();
    assert_eq!(*order.lock().unwrap(), [12, 11, 1, 2]);
    census(&[outer, middle, inner]);
}

/// A fifth nested context has no spare, and a thread without a slot has none either: both use the
/// lock's reserve, one at a time.
#[test]
fn without_a_context_the_locks_reserve_is_used() {
    let lock = leak();
    Toy::family_tables().threads[1]
        .contexts
        .depth
        .store(CONTEXTS as u32, Relaxed);
    for thread in [1, SLOTS] {
        as_thread(thread, || {
            pass(lock);
            let token = lock.try_lock().unwrap();
            assert!(lock.try_lock().is_none());
            unlock(lock, token);
        });
    }
    Toy::family_tables().threads[1]
        .contexts
        .depth
        .store(0, Relaxed);

    let token = lock.lock();
    let order = Arc::default();
    let slotless = [SLOTS, SLOTS + 1].map(|thread| {
        let waiter = passer(thread, lock, &order);
        waiter.to(Point::Wait);
        waiter
    });
    assert_eq!(lock.reserve.load(Relaxed), TAKEN);
    assert!(as_thread(SLOTS, || lock.try_lock()).is_none());
    let with_slot = passer(2, lock, &order);
    with_slot.to(Point::Wait);
    unlock(lock, token);
    let [first, second] = slotless;
    first.end();
    with_slot.end();
    second.end();
    assert_eq!(*order.lock().unwrap(), [SLOTS, 2, SLOTS + 1]);
    census(&[lock]);
}

/// Q4: with a word of names alone (`next_use` without the count) the exchange below would succeed.
/// Thread 0 would then take its place behind the owner for ownership.
#[test]
fn try_lock_is_not_fooled_by_a_ticket_that_comes_back() {
    let lock: &'static FastQueue<Watch> = Box::leak(Box::new(FastQueue {
        latest: Atomic::new(first_word::<Watch>(TicketId::first_of(1, 0))),
        reserve: Atomic::new(TAKEN),
    }));
    // The ticket of (1, 0) is the lock's, so that context has another.
    Watch::family_tables().threads[1].contexts.spare[0]
        .store(TicketId::first_of(1, 1).bits(), Relaxed);
    let seen = lock.latest.load(Relaxed);
    watch(lock);
    watch::before(Access::Exchange, move || {
        // Thread 1 locks and unlocks, which leaves the ticket as its spare, and locks once more
        // with it.
        as_thread(1, || {
            let token = lock.lock();
            // SAFETY: just locked.
            unsafe { lock.unlock(token) };
            let _held = lock.lock();
        });
        let now = lock.latest.load(Relaxed);
        assert_eq!((now as u32, now == seen), (seen as u32, false));
    });
    assert!(lock.try_lock().is_none());
    assert_eq!(watch::left(), 0);
}

#[test]
fn a_snapshot_of_a_lock_that_is_handed_off_says_locked() {
    let lock: &'static FastQueue<Watch> = Box::leak(Box::new(FastQueue {
        latest: Atomic::new(first_word::<Watch>(TicketId::first_of(1, 0))),
        reserve: Atomic::new(TAKEN),
    }));
    watch(lock);
    assert!(!lock.is_locked());
    // After the first load: the ticket that it names is RELEASED, and no longer the lock's.
    watch::after(Access::Load, move || {
        let _held = lock.lock();
    });
    assert!(lock.is_locked());
}

/// The next owner may destroy the lock: the release is one store, to the ticket, and does not touch
/// the lock.
#[test]
fn a_release_does_not_touch_the_lock() {
    let lock = FastQueue::<Watch>::create().unwrap();
    let token = lock.lock();
    watch(&lock);
    freed();
    // SAFETY: just locked.
    unsafe { lock.unlock(token) };
    assert_eq!(touches(), []);
}

/// Q2: from then on the ticket belongs to the thread that polled it, which may queue with it for
/// another lock.
#[test]
fn nothing_of_the_ticket_is_touched_after_its_release() {
    let lock = FastQueue::<Watch>::create().unwrap();
    let token = lock.lock();
    watch(Watch::family_tables().tickets.get(token.0));
    watch::after(Access::Store, freed);
    // SAFETY: just locked.
    unsafe { lock.unlock(token) };
    assert_eq!((watch::left(), touches()), (0, [].into()));
}

#[test]
fn a_lazy_lock_takes_its_tickets_at_its_first_use() {
    let pool = Toy::family_tables().tickets;
    let total = pool.free().len();
    let lock = LazyFastQueue::<Toy>::new();
    assert!(!lock.is_locked() && !lock.is_contended());
    drop(LazyFastQueue::<Toy>::new());
    assert_eq!(pool.free().len(), total);
    for thread in [0, SLOTS, 1] {
        let token = as_thread(thread, || lock.lock());
        assert!(lock.is_locked() && lock.try_lock().is_none());
        // SAFETY: just locked.
        unsafe { lock.unlock(token) };
        assert_eq!(pool.free().len(), total - 2);
    }
    drop(lock);
    census(&[]);
}

/// Two threads at once: unless the later one gives its tickets back (`reserve`, `latest`) they are
/// lost.
#[test]
fn a_lazy_lock_takes_its_tickets_once() {
    for access in [Access::Exchange, Access::Load] {
        let total = Watch::family_tables().tickets.free().len();
        let lock: &'static LazyFastQueue<Watch> = Box::leak(Box::new(LazyFastQueue::new()));
        watch(lock);
        // Just before its exchanges, or after its first load.
        let play = move || {
            let token = as_thread(1, || lock.lock());
            // SAFETY: just locked.
            unsafe { lock.unlock(token) };
        };
        match access {
            Access::Load => watch::after(access, play),
            _ => watch::before(access, play),
        }
        let token = lock.lock();
        // SAFETY: just locked.
        unsafe { lock.unlock(token) };
        assert_eq!(Watch::family_tables().tickets.free().len(), total - 2);
        assert_eq!(watch::left(), 0);
    }
}

#[test]
fn a_lazy_lock_that_finds_no_tickets_fails_before_it_changes_anything() {
    let locks: Vec<_> = core::iter::from_fn(|| FastQueue::<Toy>::create().ok()).collect();
    let lock = LazyFastQueue::<Toy>::new();
    assert!(lock.try_lock().is_none());
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lock.lock()));
    let message = *result.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(message, CreateError.to_string());
    drop(locks);
    census(&[]);
    let token = lock.try_lock().unwrap();
    // SAFETY: just locked.
    unsafe { lock.unlock(token) };
}

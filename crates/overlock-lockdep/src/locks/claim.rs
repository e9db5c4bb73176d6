//! Marks of new locks: two threads that meet one at once give it one number.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use super::super::class::{self, ClassId};
use super::super::gate::{Inside, Quiet};
use super::super::{GATE, notice};
use super::{GONE, known, known_as, said, set_inside};

/// A thread is about to mark a lock: another that meets it now takes the same number. Written
/// inside the gate, and emptied by the thread that has marked it.
struct Claim {
    /// 0 for none.
    lock: AtomicUsize,
    /// The mark that it has yet.
    seen: AtomicU32,
    number: AtomicU64,
}

/// Beyond so many at a time, two threads that meet a lock may take it for two.
static CLAIMS: [Claim; 16] = [const {
    Claim {
        lock: AtomicUsize::new(0),
        seen: AtomicU32::new(0),
        number: AtomicU64::new(0),
    }
}; 16];

#[cold]
#[inline(never)]
pub(super) fn mark_new(lock: usize, mark: &AtomicU32) -> ClassId {
    for _ in 0..8 {
        let seen = mark.load(Relaxed);
        if let Some(class) = known_as(lock, seen) {
            return class;
        }
        let Some(class) = claim(lock, mark, seen) else {
            continue; // another thread has marked it
        };
        if class == ClassId::NONE {
            return class;
        }
        // Not inside the gate: the write may be a fault, whose handler is the program's.
        let number = class.number() as u32;
        match mark.compare_exchange(seen, number, Relaxed, Relaxed) {
            Ok(_) => {
                end_claim(class);
                return class;
            }
            Err(now) if now == number => return class,
            Err(_) => {}
        }
    }
    ClassId::NONE
}

/// Returns the class of a lock that is not marked yet. `None` if it is now.
fn claim(lock: usize, mark: &AtomicU32, seen: u32) -> Option<ClassId> {
    let quiet = Quiet::begin();
    let Some(inside) = GATE.enter(&quiet) else {
        return Some(ClassId::NONE);
    };
    // Acquire: pairs with `end_claim`: without the claim, the mark is there.
    let claims = || (CLAIMS.iter()).map(|claim| (claim, claim.lock.load(Acquire)));
    for (claim, of) in claims() {
        if of == lock && claim.seen.load(Relaxed) == seen {
            let number = claim.number.load(Relaxed);
            match known(lock).filter(|class| class.number() == number) {
                Some(class) => return Some(class),
                // Its thread has left by a jump, and the lock is gone.
                None => claim.lock.store(0, Relaxed),
            }
        }
    }
    if mark.load(Relaxed) != seen {
        return None;
    }
    let number = class::new_number();
    let own = |inside: &Inside<'_>| class::own_class(lock, number, inside);
    let (class, is_set) = set_inside(lock, number, own, &inside);
    let is_set_by_us = class.number() == number;
    let free = is_set_by_us.then(|| claims().find(|(_, of)| *of == 0));
    if let Some((claim, _)) = free.flatten() {
        claim.seen.store(seen, Relaxed);
        claim.number.store(number, Relaxed);
        claim.lock.store(lock, Relaxed);
    }
    drop(inside);
    drop(quiet);
    said(is_set);
    if class == ClassId::NONE && lock > GONE {
        notice::once(notice::MEMBERS);
    }
    Some(class)
}

/// The lock has its mark.
fn end_claim(class: ClassId) {
    let is_it = |claim: &&Claim| {
        claim.lock.load(Relaxed) != 0 && claim.number.load(Relaxed) == class.number()
    };
    if let Some(claim) = CLAIMS.iter().find(is_it) {
        // Release: pairs with the acquire in `claim`.
        claim.lock.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::super::class_of_marked;
    use super::*;

    /// Fails where the first has another number than the table then.
    #[test]
    fn two_threads_that_meet_a_new_lock_at_once_take_it_for_one() {
        let (lock, mark) = (0x5020, AtomicU32::new(0));
        let one = claim(lock, &mark, 0).unwrap();
        let two = claim(lock, &mark, 0).unwrap();
        assert_eq!(one.number(), two.number());
        assert!(class::is_alive(one.node()));
        mark.store(one.number() as u32, Relaxed);
        end_claim(one);
        assert!(claim(lock, &mark, 0).is_none());
        assert_eq!(class_of_marked(lock, &mark), one);
        // Another lock, in zeroed memory.
        mark.store(0, Relaxed);
        assert_ne!(claim(lock, &mark, 0).unwrap().number(), one.number());
    }
}

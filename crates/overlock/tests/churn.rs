//! 100,000 threads lock once and exit: their slots become free again.

mod common;

use std::thread;

use common::Pair;
use overlock::sleep::Overlock;
use overlock::spin::{Hybrid, Mcs, PvTicket, Queued, RawLock};

const AT_A_TIME: u64 = 8;

fn survives<L: RawLock>(threads: u64) {
    let pair = &Pair::<L>::new();
    for _ in 0..threads / AT_A_TIME {
        thread::scope(|scope| {
            for _ in 0..AT_A_TIME {
                scope.spawn(|| {
                    let token = pair.lock.lock();
                    pair.section(token, || {});
                });
            }
        });
    }
    assert_eq!(pair.count(), threads);
    assert!(!pair.lock.is_locked() && !pair.lock.is_contended());
}

#[test]
fn overlock() {
    survives::<Overlock>(60_000);
}

#[test]
fn hybrid() {
    survives::<Hybrid>(20_000);
}

#[test]
fn queued() {
    survives::<Queued>(8_000);
}

#[test]
fn mcs() {
    survives::<Mcs>(8_000);
}

#[test]
fn pv_ticket() {
    survives::<PvTicket>(4_000);
}

//! Every lock excludes, on real threads, with holders that lose their CPU inside.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Pair;
use overlock::spin::RawLock;

const THREADS: u64 = 4;
const SECTIONS: u64 = 2_000;
/// Strictly fair locks lose a time slice whenever the next in line is not running.
const ENOUGH: Duration = Duration::from_secs(2);

fn excludes<L: RawLock>() {
    let pair = &Pair::<L>::new();
    let start = &Barrier::new(THREADS as usize);
    let done: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    start.wait();
                    let begin = Instant::now();
                    let mut done = 0;
                    while done < SECTIONS && begin.elapsed() < ENOUGH {
                        let token = if (done + thread) % 3 == 0 {
                            pair.lock.try_lock()
                        } else {
                            None
                        };
                        let token = token.unwrap_or_else(|| pair.lock.lock());
                        pair.section(token, || {
                            if done % 100 == thread {
                                thread::yield_now();
                            }
                        });
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert!(done > 0);
    assert_eq!(pair.count(), done);
    assert!(!pair.lock.is_locked() && !pair.lock.is_contended());
}

macro_rules! tests {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => {$(
        #[test]
        fn $name() {
            excludes::<overlock::spin::$lock>();
        }
    )*};
}

overlock_family::spin_locks!(tests);

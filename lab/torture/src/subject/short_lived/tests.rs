//! On real threads.

use std::thread;

use overlock::rw::OverlockRw;
use overlock::sleep::KernelMutex as Mutex;

use super::*;
use crate::job::Job;
use crate::plan::Plan;
use crate::registry::select;
use crate::settings::Settings;

/// Each is freed once, by one of those that came to it where there were some.
fn the_last_frees_it<L: FreedLock>(name: &str) {
    const THREADS: usize = 4;
    let entry = select([name]).unwrap()[0];
    let settings = Settings::default();
    let job = Job::new(entry, &settings, THREADS).unwrap();
    let short_lived = &ShortLived::<L>::default();
    let acquired = |job: &Job| -> u64 {
        let workers = job.workers.iter();
        workers
            .map(|state| state.tallies.writes.get() + state.tallies.reads.get())
            .sum()
    };
    let made = || short_lived.made.load(Relaxed);
    let start = Instant::now();
    // Some must have had users.
    while acquired(job) < made() + 20 {
        assert!(start.elapsed() < Duration::from_secs(60));
        thread::scope(|scope| {
            for index in 0..THREADS {
                let mut plan = Plan::new(&settings, entry, THREADS, index, 0);
                scope.spawn(move || {
                    let worker = Worker::new(job, index);
                    for _ in 0..20 * MAKES {
                        short_lived.step(&worker, &plan.step(), None);
                    }
                });
            }
        });
        assert_eq!(short_lived.at_rest(), Ok(()));
    }
    assert!(made() > 0 && short_lived.shown().is_none());
}

#[test]
fn the_last_to_acquire_one_frees_it() {
    the_last_frees_it::<Mutex>("kernel_mutex");
    the_last_frees_it::<ManyReaders<OverlockRw>>("overlock_rw");
}

#[test]
fn one_that_is_not_freed_is_noticed() {
    let short_lived = ShortLived::<Mutex>::default();
    short_lived.made.fetch_add(1, Relaxed);
    assert_eq!(
        short_lived.at_rest().unwrap_err().kind,
        ViolationKind::Count
    );
}

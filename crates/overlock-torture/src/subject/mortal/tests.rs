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
fn the_last_frees_it<L: Visited>(name: &str) {
    const THREADS: usize = 4;
    let entry = select([name]).unwrap()[0];
    let settings = Settings::default();
    let job = Job::new(entry, &settings, THREADS).unwrap();
    let mortals = &Mortals::<L>::default();
    let acquired = |job: &Job| -> u64 {
        let places = job.places.iter();
        places
            .map(|place| place.tallies.writes.get() + place.tallies.reads.get())
            .sum()
    };
    let made = || mortals.made.load(Relaxed);
    let start = Instant::now();
    // Some must have had guests.
    while acquired(job) < made() + 20 {
        assert!(start.elapsed() < Duration::from_secs(60));
        thread::scope(|scope| {
            for index in 0..THREADS {
                let mut plan = Plan::new(&settings, entry, THREADS, index, 0);
                scope.spawn(move || {
                    let worker = Worker::new(job, index);
                    for _ in 0..20 * MAKES {
                        mortals.step(&worker, &plan.step(), None);
                    }
                });
            }
        });
        assert_eq!(mortals.at_rest(), Ok(()));
    }
    assert!(made() > 0 && mortals.shown().is_none());
}

#[test]
fn the_last_to_acquire_one_frees_it() {
    the_last_frees_it::<Mutex>("mutex");
    the_last_frees_it::<ManyReaders<OverlockRw>>("overlock_rw");
}

#[test]
fn one_that_is_not_freed_is_noticed() {
    let mortals = Mortals::<Mutex>::default();
    mortals.made.fetch_add(1, Relaxed);
    assert_eq!(mortals.at_rest().unwrap_err().kind, Kind::Count);
}

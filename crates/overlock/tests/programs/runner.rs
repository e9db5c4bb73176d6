//! Runs a property on random programs.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::env;
use std::fmt::Debug;
use std::hash::BuildHasher;
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

/// How long a test goes on where nobody says how many programs it shall run: strictly fair locks lose a time slice whenever the
/// next in line is not running.
const ENOUGH: Duration = Duration::from_millis(100);
/// And how many programs it runs then at most.
const CASES: u32 = 64;
/// How long a program that fails is made smaller: one that fails now and then would be for ever.
const SHRINKING_MS: u32 = 20_000;

/// Calls `property` with programs, which panics where one of them goes wrong. Each runs on a thread of its own: what it forgets when
/// it panics takes that thread's queue nodes along.
pub fn check<S: Strategy>(programs: S, property: impl Fn(&S::Value) + Sync)
where
    S::Value: Debug + Sync,
{
    let mut config = Config {
        // A seed says more: programs of threads fail now and then, and others are printed in full.
        failure_persistence: None,
        max_shrink_time: SHRINKING_MS,
        max_shrink_iters: 1 << 20,
        ..Config::default()
    };
    let limited = env::var_os("PROPTEST_CASES").is_none();
    if limited {
        config.cases = CASES;
    }
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(()),
    };
    config.rng_seed = RngSeed::Fixed(seed);
    let cases = config.cases;
    let begin = Instant::now();
    let failed = Cell::new(false);
    let result = TestRunner::new(config).run(&programs, |program| {
        if failed.get() || !limited || begin.elapsed() < ENOUGH {
            // Stays set where the property panics.
            let before = failed.replace(true);
            let result = thread::scope(|scope| scope.spawn(|| property(&program)).join());
            result.unwrap_or_else(|panic| resume_unwind(panic));
            failed.set(before);
        }
        Ok(())
    });
    if let Err(TestError::Fail(reason, program)) = result {
        let test = thread::current().name().unwrap_or_default().to_owned();
        panic!(
            "{reason}\n{program:#?}\n\
             PROPTEST_CASES={cases} PROPTEST_RNG_SEED={seed} cargo test -p overlock --test programs -- {test}"
        );
    }
    result.unwrap();
}

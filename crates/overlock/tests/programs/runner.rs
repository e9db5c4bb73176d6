//! Runs a property on random programs.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::env;
use std::fmt::Debug;
use std::hash::BuildHasher;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use proptest::arbitrary::any;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

/// The default duration of a test: strictly fair locks lose a time slice whenever the next in line
/// is not running.
const ENOUGH: Duration = Duration::from_millis(100);
/// The default limit of programs.
const CASES: u32 = 64;
/// Seconds for each test, unless `PROPTEST_CASES` gives the number of programs.
const SECONDS: &str = "OVERLOCK_PROGRAMS_SECONDS";
/// Time to shrink a program that fails: one that fails now and then would be shrunk for ever.
const SHRINKING_MS: u32 = 20_000;

/// Calls `property` with programs; it panics if one of them goes wrong. Each runs on a thread of
/// its own: a panic's forgotten guards keep that thread's queue nodes.
pub fn check<S: Strategy>(programs: S, property: impl Fn(&S::Value) + Sync)
where
    S::Value: Debug + Sync,
{
    let seconds = env::var(SECONDS).ok().filter(|_| !says_cases());
    let time = seconds.map(|text| {
        let time = text.parse().ok().map(Duration::try_from_secs_f64);
        let Some(Ok(time)) = time else {
            panic!("{SECONDS}={text}: not a number of seconds");
        };
        time
    });
    let ran = check_for(time, programs, property);
    if time.is_some() {
        println!("{}: {ran} programs", name());
    }
}

/// Whether the number of programs of a test is given.
fn says_cases() -> bool {
    env::var_os("PROPTEST_CASES").is_some()
}

/// As above, for the given time. Returns the number of programs that it has run.
fn check_for<S: Strategy>(
    time: Option<Duration>,
    programs: S,
    property: impl Fn(&S::Value) + Sync,
) -> u64
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
    let limited = time.is_some() || !says_cases();
    if limited {
        config.cases = CASES;
    }
    let mut seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => RandomState::new().hash_one(()),
    };
    let begin = Instant::now();
    let in_time = || !limited || begin.elapsed() < time.unwrap_or(ENOUGH);
    let ran = Cell::new(0);
    loop {
        config.rng_seed = RngSeed::Fixed(seed);
        round(config.clone(), seed, &programs, &property, in_time, &ran);
        if time.is_none() || !in_time() {
            return ran.get();
        }
        seed = seed.wrapping_add(1);
    }
}

/// Runs as many programs as `config` says, or until the time is over.
fn round<S: Strategy>(
    config: Config,
    seed: u64,
    programs: &S,
    property: &(impl Fn(&S::Value) + Sync),
    in_time: impl Fn() -> bool,
    ran: &Cell<u64>,
) where
    S::Value: Debug + Sync,
{
    let cases = config.cases;
    let failed = Cell::new(false);
    let result = TestRunner::new(config).run(programs, |program| {
        if failed.get() || in_time() {
            ran.set(ran.get() + 1);
            // Stays set if the property panics.
            let before = failed.replace(true);
            let result = thread::scope(|scope| scope.spawn(|| property(&program)).join());
            result.unwrap_or_else(|panic| resume_unwind(panic));
            failed.set(before);
        }
        Ok(())
    });
    if let Err(TestError::Fail(reason, program)) = result {
        panic!(
            "{reason}\n{program:#?}\n\
             PROPTEST_CASES={cases} PROPTEST_RNG_SEED={seed} cargo test -p overlock --test programs -- {}",
            name()
        );
    }
    result.unwrap();
}

/// The test's name.
fn name() -> String {
    thread::current().name().unwrap_or_default().to_owned()
}

#[test]
fn given_time_a_test_uses_it_for_other_programs() {
    let time = Duration::from_millis(200);
    let (begin, seen) = (Instant::now(), Mutex::new(BTreeSet::new()));
    let ran = check_for(Some(time), any::<u64>(), |&program| {
        seen.lock().unwrap().insert(program);
    });
    assert!(begin.elapsed() >= time);
    assert_eq!(seen.lock().unwrap().len() as u64, ran);
}

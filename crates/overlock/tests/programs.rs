//! Random programs of lock operations. Alone, each result is compared with that of a simple
//! reference; together, on up to four threads, their total effect is checked. A program that fails
//! is shrunk, and printed with the command that runs it again.
//!
//! `PROPTEST_CASES` sets the number of programs of each test, or `OVERLOCK_PROGRAMS_SECONDS` its
//! duration; without them a test ends after a tenth of a second, or 64 programs.
#![cfg(not(miri))] // proptest takes minutes there

#[path = "programs/exclusive.rs"]
mod exclusive;
#[path = "programs/extras.rs"]
mod extras;
#[path = "programs/hands.rs"]
mod hands;
#[path = "programs/how.rs"]
mod how;
#[path = "programs/numbers.rs"]
mod numbers;
#[path = "programs/runner.rs"]
mod runner;
#[path = "programs/semaphore.rs"]
mod semaphore;
#[path = "programs/shared.rs"]
mod shared;
#[path = "programs/types.rs"]
mod types;
#[path = "common/watch.rs"]
mod watch;
#[path = "common/workers.rs"]
mod workers;

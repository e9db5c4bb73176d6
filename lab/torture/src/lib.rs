//! The tester behind `overlock-lab torture`, after the kernel's locktorture: every lock under load,
//! checked while it runs.
//!
//! | module | what is there |
//! |---|---|
//! | [`registry`] | what can be tortured |
//! | [`settings`], [`plan`] | what a run is asked to do, and what each thread is going to do |
//! | `subject` | what is done with each kind of lock |
//! | `canary` | the torn-write detector |
//! | `watch`, [`proc`] | the watchdog, and what the kernel knows of a thread |
//! | `job`, `worker`, `worker_state` | the threads, and what each of them does |
//! | `interference`, `signal`, `boost` | signals, other CPUs and other priorities |
//! | [`run`] | one lock after the other |
//! | [`violation`], [`report`], [`error`] | the results |

mod boost;
mod canary;
pub mod error;
mod interference;
mod job;
pub mod plan;
pub mod proc;
pub mod registry;
pub mod report;
pub mod run;
pub mod settings;
mod signal;
mod subject;
pub mod violation;
mod watch;
mod worker;
mod worker_state;

/// The names that [`entry`] expands to.
#[doc(hidden)]
pub mod __private {
    pub use crate::subject::exclusive::{Exclusive, ExclusiveExtras};
    pub use overlock::Linux;
    pub use overlock_core::facts::{Facts, HasFacts};
    pub use overlock_core::raw::RawLock;
}

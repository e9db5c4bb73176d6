//! The tester behind `overlock torture`, after the kernel's locktorture: every lock under load,
//! checked while it runs.
//!
//! | module | what is there |
//! |---|---|
//! | [`registry`], [`bound`] | what can be tortured, and what it promises |
//! | [`settings`], [`plan`], `random` | what a run is asked to do, and what each thread is going to do |
//! | `subject` | what is done with each kind of lock |
//! | `ledger` | the torn-write detector |
//! | `watch`, [`proc`] | the watchdog, and what the kernel knows of a thread |
//! | `job`, `worker`, `place` | the threads, and what each of them does |
//! | `torment`, `signal`, `boost` | what happens to them from outside |
//! | [`run`] | one lock after the other |
//! | [`violation`], [`report`], [`error`] | what came out |

mod boost;
pub mod bound;
pub mod error;
mod job;
mod ledger;
mod place;
pub mod plan;
pub mod proc;
mod random;
pub mod registry;
pub mod report;
pub mod run;
pub mod settings;
mod signal;
mod subject;
mod torment;
pub mod violation;
mod watch;
mod worker;

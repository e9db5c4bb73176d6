//! Simulates a many-core machine with its caches and its hypervisor, which runs the unmodified lock
//! code of overlock-core.
//!
//! Every simulated vCPU is a fibre that runs real code against the platform [`Sim`]. Each operation
//! of the platform costs simulated time, atomic accesses first of all. An engine takes one event
//! after another from a queue, transfers cache lines, schedules vCPUs on CPUs, and resumes fibres.
//! All of it happens on one thread of the operating system. The same seed gives the same result,
//! bit for bit.
//!
//! | module | contents |
//! |---|---|
//! | [`machine`] | sockets, cores, hardware threads, what cache lines cost; presets |
//! | [`host`] | a hypervisor, or an operating system: what halting and kicking cost, slices, pause-loop exits |
//! | [`spec`] | machines and hosts as files and as text: the keys, their ranges, TOML |
//! | [`cache`] | cache lines: which cores have them and which request them |
//! | [`schedule`] | which vCPU has which CPU |
//! | [`engine`] | time, events, fibres |
//! | [`word`] | the atomics of the platform |
//! | [`account`] | time in each state, and counts of events |
//! | [`trace`] | a trace of running, waiting and holding, for a timeline |
//!
//! Not simulated: instructions other than accesses to atomics, which cost nothing unless a workload
//! charges for them; and memory other than atomics.

pub mod account;
pub mod cache;
pub mod engine;
pub mod host;
pub mod machine;
pub mod schedule;
pub mod spec;
mod tables;
pub mod time;
pub mod trace;
pub mod word;

pub use engine::{Outcome, Setup, Sim, Stuck, run};
pub use tables::{MOST_VCPUS, forget};
pub use time::Time;

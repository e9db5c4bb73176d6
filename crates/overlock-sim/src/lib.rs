//! A many-core machine, its caches and its hypervisor, on which the very lock code of overlock-core
//! runs.
//!
//! Every simulated vCPU is a fibre that runs real code against the platform [`Sim`]. Whatever that
//! code asks of the platform, atomic accesses first of all, costs simulated time: an engine takes
//! one event after the other from a queue, moves cache lines, gives CPUs to vCPUs and takes them
//! away, and resumes the fibre whose turn it is. All of it happens on one thread of the operating
//! system; the same seed gives the same result, bit for bit.
//!
//! | module | what is there |
//! |---|---|
//! | [`machine`] | sockets, cores, hardware threads, what cache lines cost; presets |
//! | [`host`] | a hypervisor, or an operating system: what halting and kicking cost, slices, pause-loop exits |
//! | [`cache`] | cache lines: who has them, who waits for them |
//! | [`schedule`] | which vCPU has which CPU |
//! | [`engine`] | time, events, fibres |
//! | [`word`] | the atomics of the platform |
//! | [`account`] | where the time went, and what happened |
//! | [`trace`] | who ran, waited and held, for a timeline |
//!
//! What is not simulated: instructions other than accesses to atomics, which cost nothing unless a
//! workload charges for them; and memory that is no atomic.

pub mod account;
pub mod cache;
pub mod engine;
pub mod host;
pub mod machine;
mod platform;
pub mod schedule;
mod tables;
pub mod time;
pub mod trace;
pub mod word;

pub use engine::{Outcome, Setup, Stuck, run};
pub use platform::Sim;
pub use tables::{MOST_VCPUS, forget};
pub use time::Time;

//! Workloads, peers, statistics and reports behind `overlock-lab bench`, `overlock-lab sim` and
//! `overlock-lab vm`.
//!
//! | module | what is there |
//! |---|---|
//! | [`registry`] | the lists of locks |
//! | [`lock`], [`ours`], [`peers`] | what a lock offers to be measured, our locks, and those that people use today |
//! | [`world`] | the platform that a workload runs on |
//! | [`workload`], [`probe`] | the measured loops, and the timing of waits |
//! | [`plan`], [`measure`], [`stats`] | rounds, their interleaving, their medians |
//! | [`simulated`] | one round on a simulated machine, with all that it tells |
//! | [`grid`] | every shape of use against each of the peers, the worst first |
//! | [`idle`] | what threads cost that are blocked for long |
//! | [`counters`] | what our locks counted |
//! | [`machine`], [`guest`], [`cgroup`], [`quota`] | what the run ran on |
//! | [`report`] | table, JSON, CSV, SVG, and the timeline of a simulation |

/// The example in the project's README compiles. The crate overlock has a README of its own.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub mod cgroup;
pub mod counters;
pub mod error;
pub mod grid;
pub mod guest;
pub mod idle;
pub mod interrupt;
pub mod lock;
pub mod machine;
pub mod measure;
pub mod ours;
pub mod peers;
pub mod plan;
pub mod probe;
pub mod quota;
pub mod registry;
pub mod report;
pub mod settings;
pub mod simulated;
pub mod stats;
pub mod workload;
pub mod world;
mod wrap;

/// Runs the examples of the book's page for Rust developers.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/use/coming-from.md")]
struct ComingFrom;

//! A timeline.

use std::io::{self, Write};

use overlock_sim::trace::Mark;

use crate::settings::Simulation;

/// What a timeline is of.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The workload.
    pub workload: &'static str,
    /// The lock.
    pub lock: &'static str,
    /// Where it ran.
    pub simulation: Simulation,
    /// How many vCPUs.
    pub vcpus: usize,
    /// How many CPUs.
    pub cpus: usize,
}

/// Writes it.
///
/// # Errors
///
/// Those of `out`.
pub fn write(mut out: impl Write, about: &About, marks: &[Mark]) -> io::Result<()> {
    let _ = (about, marks);
    writeln!(out)
}

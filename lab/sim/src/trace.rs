//! The trace of a run, for a timeline.

use crate::time::Time;

/// An event of a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub at: Time,
    pub vcpu: usize,
    pub what: What,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It gets this CPU, or goes on with it after a sleep in which no other vCPU wanted it.
    On(usize),
    /// It loses its CPU while it is runnable: by a preemption, or because another vCPU took the CPU
    /// that it had offered.
    Preempted,
    /// It gives up its CPU and sleeps.
    Sleeps,
    /// It has been kicked, by this vCPU.
    Kicked(usize),
    /// It begins to wait for the lock of this number.
    Waits(usize),
    /// It has acquired the lock.
    Holds(usize),
    /// It has released the lock.
    Releases(usize),
    /// It has ended.
    Ends,
}

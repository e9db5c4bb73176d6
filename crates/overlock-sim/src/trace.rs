//! What a run leaves for a timeline.

use crate::time::Time;

/// Something that happened to a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: Time,
    /// To whom.
    pub vcpu: usize,
    /// What.
    pub what: What,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It gets this CPU, or goes on with it after a sleep in which nobody else wanted it.
    On(usize),
    /// It loses its CPU, or has offered it to others and one takes it, while it would like to go
    /// on.
    Preempted,
    /// It gives its CPU up and sleeps.
    Sleeps,
    /// It has been kicked, by this vCPU.
    Kicked(usize),
    /// It asks for the lock of this number.
    Waits(usize),
    /// It has it.
    Holds(usize),
    /// It has released it.
    Releases(usize),
    /// It has ended.
    Ends,
}

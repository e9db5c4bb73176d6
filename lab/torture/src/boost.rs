//! Another priority for a moment: a holder or a waiter that the scheduler prefers.
//!
//! Real-time where the process may have it and the lock's waiters sleep soon: one that spins for a
//! holder of low priority would keep it from the CPU for as long as the kernel lets it. Else a
//! better nice value, else nothing; the summary tells how often it was which. Restored by dropping
//! it.

use rustix::process::{Pid, getpriority_process, setpriority_process};

use crate::worker::Worker;
use overlock_core::facts::Waiting;

/// Any real-time priority beats all threads that have none.
const PRIORITY: i32 = 1;

/// So much nicer to this thread.
const NICER: i32 = 5;

/// The calling thread has another priority while this lives.
#[derive(Debug)]
pub enum Boost {
    RealTime,
    /// A nice value of its own; this was the old one.
    Nice(i32),
    /// None: the process may not.
    None,
}

impl Boost {
    /// Boosts the calling thread.
    pub fn new(worker: &Worker, waiting: Waiting) -> Self {
        let tallies = &worker.state().tallies;
        if waiting == Waiting::Sleeps && schedule(libc::SCHED_FIFO, PRIORITY) {
            tallies.real_time.add();
            return Boost::RealTime;
        }
        // None is the calling thread, here and below.
        let nice = getpriority_process(None::<Pid>);
        let nice = nice.and_then(|nice| setpriority_process(None, nice - NICER).map(|()| nice));
        match nice {
            Ok(nice) => {
                tallies.nicer.add();
                Boost::Nice(nice)
            }
            Err(_) => {
                tallies.unboosted.add();
                Boost::None
            }
        }
    }
}

impl Drop for Boost {
    fn drop(&mut self) {
        match self {
            // Going back needs no right, and cannot fail.
            Boost::RealTime => drop(schedule(libc::SCHED_OTHER, 0)),
            Boost::Nice(nice) => drop(setpriority_process(None, *nice)),
            Boost::None => {}
        }
    }
}

fn schedule(policy: libc::c_int, priority: i32) -> bool {
    // SAFETY: all zero bytes are a valid parameter.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    // SAFETY: the parameter is valid; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &parameter) == 0 }
}

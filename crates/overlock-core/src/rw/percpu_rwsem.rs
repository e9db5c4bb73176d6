//! The per-CPU reader-writer semaphore: readers touch only their own slot, writers pay.
//!
//! The kernel's (`percpu_rw_semaphore`) gives each lock a counter on every CPU: a reader increments the one of its CPU,
//! and a writer makes all readers take a slow path, waits for a grace period of RCU, and adds the counters up. Threads have no
//! CPU of their own, and a counter on each of many CPUs in each lock is a lot. So here a reader writes the lock's
//! id into an entry of its thread's slot, one table for all locks, and the grace period is a heavy barrier:
//! microseconds instead of milliseconds.
//!
//! That is the bias of [`overlock_rw`](super::overlock_rw), which has the states, the invariants and the orderings; here it is always on.
//! Take this one for what is read all the time and hardly ever written (configuration, routing tables); a write
//! costs a heavy barrier and a look at the slot of every thread.
//!
//! Where it differs from the published form: a thread that reads more than eight such locks at once, or has no slot, counts itself in the lock,
//! on a shared line; a reader that finds a writer passes the gate with it, in the gate's order and bounds.

use super::overlock_rw::{OverlockRw, PerCpu};

/// The per-CPU reader-writer semaphore: see the [module's page](self). 40 bytes.
pub type PerCpuRwSem<P> = OverlockRw<P, PerCpu>;

//! Ways for a run to end before it is done.

use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use overlock_bench::interrupt::Interrupt;
use overlock_bench::quota::Quota;
use overlock_bench::world::Team;

use crate::exit::Exit;

/// The cgroup that the process is in, where every way out can find it.
static QUOTA: Mutex<Option<Quota>> = Mutex::new(None);

/// The process runs in a cgroup of its own until this is dropped.
#[derive(Debug)]
pub struct InQuota(());

impl InQuota {
    pub fn new(quota: Quota) -> Self {
        *QUOTA.lock().unwrap_or_else(PoisonError::into_inner) = Some(quota);
        Self(())
    }
}

impl Drop for InQuota {
    fn drop(&mut self) {
        leave_quota();
    }
}

fn leave_quota() {
    drop(QUOTA.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Ctrl-C, and the signals that ask a program to end, let the round end and then the run. A second one
/// does not wait for the round: locks may hang.
pub fn on_interrupt(interrupt: Arc<Interrupt>) -> Result<(), Exit> {
    ctrlc::set_handler(move || {
        if interrupt.is_raised() {
            leave_quota();
            process::exit(i32::from(Exit::INTERRUPTED));
        }
        interrupt.raise();
    })
    .map_err(|error| Exit::Failed(format!("cannot handle Ctrl-C: {error}")))
}

/// Threads that hang cannot be ended, except with the program.
pub fn stuck(team: &Team, left: usize) -> ! {
    eprintln!(
        "overlock: {} with {} threads hangs: {left} of them do not end",
        team.lock, team.threads
    );
    leave_quota();
    process::exit(i32::from(Exit::FAILED))
}

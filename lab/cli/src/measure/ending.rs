//! Ways for a run to end before it is done.

use std::process;
use std::sync::Arc;

use overlock_bench::interrupt::Interrupt;
use overlock_bench::quota;
use overlock_bench::world::Workers;

use crate::exit::Exit;

/// Ctrl-C, SIGTERM and SIGHUP let the round end and then the run. A second one does not wait for
/// the round: locks may hang.
pub fn on_interrupt(interrupt: Arc<Interrupt>) -> Result<(), Exit> {
    ctrlc::set_handler(move || {
        if interrupt.is_raised() {
            quota::leave();
            process::exit(i32::from(Exit::INTERRUPTED));
        }
        interrupt.raise();
    })
    .map_err(|error| Exit::Failed(format!("cannot handle Ctrl-C: {error}")))
}

/// Threads that hang cannot be ended, except with the program.
pub fn stuck(workers: &Workers, left: usize) -> ! {
    crate::tell!(
        "overlock-lab: {} with {} threads hangs: {left} of them do not end",
        workers.lock,
        workers.threads
    );
    quota::leave();
    process::exit(i32::from(Exit::FAILED))
}

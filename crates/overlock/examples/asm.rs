//! The fast paths as machine code: one function a lock and operation, each a symbol of its own, for
//! `scripts/asm` to disassemble. They have the Rust calling convention, as what inlines them does.

use overlock::Linux;
use overlock::core::raw::RawLock;
use overlock::core::spin::Ticket;

/// `lock`, `try_lock` and `unlock` of a lock whose token is `()`, by the names given.
macro_rules! probes {
    ($lock:ty: $acquire:ident, $try:ident, $release:ident) => {
        #[unsafe(no_mangle)]
        fn $acquire(lock: &$lock) {
            lock.lock();
        }

        #[unsafe(no_mangle)]
        fn $try(lock: &$lock) -> bool {
            lock.try_lock().is_some()
        }

        /// The caller holds the lock.
        #[unsafe(no_mangle)]
        unsafe fn $release(lock: &$lock) {
            // SAFETY: the caller holds the lock.
            unsafe { lock.unlock(()) }
        }
    };
}

probes!(Ticket<Linux>: ticket_lock, ticket_try_lock, ticket_unlock);

fn main() {
    println!("scripts/asm shows what these are made of:");
    for probe in [
        ticket_lock as *const (),
        ticket_try_lock as *const (),
        ticket_unlock as *const (),
    ] {
        println!("{probe:?}");
    }
}

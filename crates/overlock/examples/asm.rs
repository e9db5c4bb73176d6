//! The fast paths as machine code: one function a lock and operation, each a symbol of its own, for
//! `scripts/asm` to disassemble. They have the Rust calling convention, as what inlines them does.

use overlock::core::spin::fast_queue::FastQueueToken;
use overlock::spin::{FastQueue, Hybrid, PvTicket, Queued, RawLock, Ticket};

/// `lock` and `unlock` of a lock whose token is the given one, by the names given.
macro_rules! probes {
    ($($lock:ty, $token:ty: $acquire:ident, $release:ident;)*) => {
        $(
            #[unsafe(no_mangle)]
            fn $acquire(lock: &$lock) -> $token {
                RawLock::lock(lock)
            }

            /// The caller holds the lock with `token`.
            #[unsafe(no_mangle)]
            unsafe fn $release(lock: &$lock, token: $token) {
                // SAFETY: the caller holds the lock with `token`.
                unsafe { RawLock::unlock(lock, token) }
            }
        )*

        /// Keeps them from being dropped.
        const PROBES: &[(&str, *const ())] = &[$(
            (stringify!($acquire), $acquire as *const ()),
            (stringify!($release), $release as *const ()),
        )*];
    };
}

probes! {
    Ticket, (): ticket_lock, ticket_unlock;
    PvTicket, (): pv_ticket_lock, pv_ticket_unlock;
    FastQueue, FastQueueToken: fast_queue_lock, fast_queue_unlock;
    Queued, (): queued_lock, queued_unlock;
    Hybrid, (): hybrid_lock, hybrid_unlock;
}

fn main() {
    for (name, code) in PROBES {
        println!("{name} lies at {code:?}; scripts/asm shows it");
    }
}

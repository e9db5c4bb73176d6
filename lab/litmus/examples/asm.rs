//! The fast paths as machine code, for `scripts/asm` to disassemble: each lock and operation is a
//! function and a symbol. They have the Rust calling convention, as the code has that inlines them.

use overlock::rw::{OverlockRw, PerCpuRwSem};
use overlock::sleep::{KernelMutex as Mutex, Overlock};
use overlock::spin::{FastQueue, Hybrid, PvTicket, Queued, Ticket};
use overlock_core::raw::{RawLock, RawRwLock};
use overlock_family::spin::fast_queue::FastQueueToken;

/// An operation of a trait that acquires a lock, the one that releases it, and the token between
/// them, by the names given.
macro_rules! probes {
    ($($lock:ty, $token:ty: $trait:ident $lock_it:ident as $acquire:ident, $unlock_it:ident as $release:ident;)*) => {
        $(
            #[unsafe(no_mangle)]
            fn $acquire(lock: &$lock) -> $token {
                $trait::$lock_it(lock)
            }

            /// The caller holds the lock with `token`.
            #[unsafe(no_mangle)]
            unsafe fn $release(lock: &$lock, token: $token) {
                // SAFETY: the caller holds the lock with `token`.
                unsafe { $trait::$unlock_it(lock, token) }
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
    Ticket, (): RawLock lock as ticket_lock, unlock as ticket_unlock;
    PvTicket, (): RawLock lock as pv_ticket_lock, unlock as pv_ticket_unlock;
    FastQueue, FastQueueToken: RawLock lock as fast_queue_lock, unlock as fast_queue_unlock;
    Queued, (): RawLock lock as queued_lock, unlock as queued_unlock;
    Hybrid, (): RawLock lock as hybrid_lock, unlock as hybrid_unlock;
    Overlock, (): RawLock lock as overlock_lock, unlock as overlock_unlock;
    Mutex, (): RawLock lock as mutex_lock, unlock as mutex_unlock;
    OverlockRw, (): RawRwLock read as overlock_rw_read, unlock_read as overlock_rw_unlock_read;
    OverlockRw, (): RawRwLock write as overlock_rw_write, unlock_write as overlock_rw_unlock_write;
    PerCpuRwSem, ReadToken: RawRwLock read as percpu_rwsem_read, unlock_read as percpu_rwsem_unlock_read;
}

type ReadToken = <PerCpuRwSem as RawRwLock>::Read;

fn main() {
    for (name, code) in PROBES {
        println!("{name} lies at {code:?}; scripts/asm shows it");
    }
}

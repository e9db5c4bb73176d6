//! The spinlocks. Waiters poll; those of the paravirtual locks sleep after a while.

pub mod backoff_ticket;
#[cfg(target_has_atomic = "64")]
pub mod fast_queue;
#[cfg(feature = "faulty")]
pub mod faulty;
pub mod hemlock;
pub mod hybrid;
pub mod mcs;
pub mod pv;
pub mod pv_queued;
pub mod pv_ticket;
pub mod queued;
pub mod ticket;
pub mod unfair;

pub use backoff_ticket::BackoffTicket;
#[cfg(target_has_atomic = "64")]
pub use fast_queue::{FastQueue, LazyFastQueue};
pub use hemlock::Hemlock;
pub use hybrid::{Hybrid, HybridShort};
pub use mcs::Mcs;
pub use pv_queued::PvQueued;
pub use pv_ticket::{PvTicket, PvTicketSmall, PvTicketTailFlag};
pub use queued::Queued;
pub use ticket::Ticket;
pub use unfair::Unfair;

//! The locks whose waiters sleep.

pub mod cancel;
pub(crate) mod wait_list;

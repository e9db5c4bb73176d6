//! The limits that users give, as moments of the platform's clock.

use std::time::Duration;

use overlock_core::{Instant, Platform};

use crate::System;

/// The moment `timeout` from now; the end of time (584 years) where it would overflow.
#[inline]
pub(crate) fn after(timeout: Duration) -> Instant {
    System::now().plus(timeout)
}

/// Not before `deadline`: the standard library's clock is read first.
#[inline]
pub(crate) fn at(deadline: std::time::Instant) -> Instant {
    after(deadline.saturating_duration_since(std::time::Instant::now()))
}

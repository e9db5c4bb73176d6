//! `lock_until` of the locks that have it, found by the compiler: the registry does not say which have.

use std::marker::PhantomData;

use overlock::Instant;
use overlock::spin::{RawLock, RawTimedLock};

pub type Until<L> = fn(&L, Instant) -> Option<<L as RawLock>::Token>;

pub struct Probe<L>(pub PhantomData<L>);

/// Method lookup tries this one first, since it needs no further reference.
pub trait Timed<L: RawLock> {
    fn until(&self) -> Option<Until<L>>;
}

impl<L: RawTimedLock> Timed<L> for Probe<L> {
    fn until(&self) -> Option<Until<L>> {
        Some(L::lock_until)
    }
}

pub trait Untimed<L: RawLock> {
    fn until(&self) -> Option<Until<L>>;
}

impl<L: RawLock> Untimed<L> for &Probe<L> {
    fn until(&self) -> Option<Until<L>> {
        None
    }
}

/// The `Option<Until>` of a lock type that is named, not a parameter.
macro_rules! until_of {
    ($lock:ty) => {{
        #[allow(unused_imports)] // each lock needs one of the two
        use crate::until::{Timed as _, Untimed as _};
        #[allow(clippy::needless_borrow)] // the second reference is what makes it look twice
        (&crate::until::Probe::<$lock>(std::marker::PhantomData)).until()
    }};
}
pub(crate) use until_of;

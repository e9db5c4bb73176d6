//! Calls of the locks with data to the validator of lock order. Without the feature `lockdep` all
//! functions are empty, and inlined.

#[cfg(not(feature = "lockdep"))]
mod off;
#[cfg(feature = "lockdep")]
mod on;

#[cfg(not(feature = "lockdep"))]
pub(crate) use off::*;
#[cfg(feature = "lockdep")]
pub(crate) use on::*;

//! What the locks with data tell the validator of lock order. Without the feature `lockdep` that is
//! nothing: all of this is then empty, and inlined.

#[cfg(not(feature = "lockdep"))]
mod off;
#[cfg(feature = "lockdep")]
mod on;

#[cfg(not(feature = "lockdep"))]
pub(crate) use off::*;
#[cfg(feature = "lockdep")]
pub(crate) use on::*;

//! Calls, and the frames on the way to them.

use crate::Site;

/// The most frames between this one and the program's call, that call's among them.
pub const OWN_FRAMES: usize = 24;

/// A frame of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// The return address.
    pub address: Site,
    /// Its place on the stack; 0 if it is in a register.
    pub at: usize,
    /// Whether it is this library's, or the call that the walk begins with.
    pub is_own: bool,
}

/// The call whose callers a walk is for.
#[derive(Clone, Copy, Debug)]
pub enum From {
    /// The call that returns there.
    Site(Site),
    /// The first call that is not of this library's.
    Outside,
    /// The call from the frame with a variable at this address.
    Frame(usize),
}

impl From {
    /// The call site; 0 where it is found by the walk.
    pub fn site(self) -> Site {
        match self {
            From::Site(site) => site,
            _ => 0,
        }
    }

    /// A word that tells it from others, at one depth of the stack.
    pub fn word(self) -> usize {
        match self {
            From::Site(word) | From::Frame(word) => word,
            From::Outside => 0,
        }
    }
}

//! Without deadlock detection: the locks as they are.

use crate::locks::Limit;

#[derive(Clone, Copy)]
pub enum Kind {
    Read,
    Recursive,
    Upgradable,
    Upgrade,
    Write,
}

#[inline(always)]
pub fn wait(
    _key: usize,
    _kind: Kind,
    _limit: Limit,
    _quick: impl FnOnce() -> bool,
    wait: impl FnOnce() -> bool,
) -> bool {
    wait()
}

pub use self::wait as acquire;

#[inline(always)]
pub fn acquired(_key: usize, _kind: Kind, success: bool) -> bool {
    success
}

#[inline(always)]
pub fn released(_key: usize, _kind: Kind) {}

#[inline(always)]
pub fn changed(_key: usize, _from: Kind, _to: Kind) {}

/// Runs the function of a [`Once`](crate::Once).
#[inline(always)]
pub fn run(_key: usize, f: impl FnOnce()) {
    f();
}

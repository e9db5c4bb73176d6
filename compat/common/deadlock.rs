//! Detection of deadlocks, by overlock's validator of lock order: it knows who holds and who waits.
//! A wait with a limit is none, as it ends. The locks have no classes, so their order is not
//! validated.

use overlock::deadlock::{begin_wait, end_wait};
use overlock::lockdep::{self, ClassId, How, Site};

use crate::locks::Limit;

pub use overlock::deadlock::{DeadlockedThread, check_deadlock};

/// The part of a lock that a thread holds, or waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    /// A reader that passes waiting writers. It holds what any reader does.
    Recursive,
    Upgradable,
    /// The upgradable reader waits for the other readers.
    Upgrade,
    Write,
}

impl Kind {
    fn how(self) -> How {
        match self {
            Kind::Read => How::SHARED,
            Kind::Recursive => How::SHARED_RECURSIVE,
            Kind::Upgradable => How::UPGRADABLE,
            // It is no wait for itself.
            Kind::Upgrade => How::EXCLUSIVE.reentrant(),
            Kind::Write => How::EXCLUSIVE,
        }
    }
}

/// Acquires by `quick`, or else by `slow`, a wait that the validator sees.
pub(crate) fn acquire(
    key: usize,
    kind: Kind,
    limit: Limit,
    quick: impl FnOnce() -> bool,
    slow: impl FnOnce() -> bool,
) -> bool {
    let success = wait(key, kind, limit, quick, slow);
    acquired(key, kind, success)
}

/// Waits as [`acquire`] does.
pub(crate) fn wait(
    key: usize,
    kind: Kind,
    limit: Limit,
    quick: impl FnOnce() -> bool,
    slow: impl FnOnce() -> bool,
) -> bool {
    struct Ends(usize);

    impl Drop for Ends {
        fn drop(&mut self) {
            end_wait(self.0);
        }
    }

    if quick() {
        return true;
    }
    if limit.is_some() {
        return slow();
    }
    begin_wait(key, ClassId::NONE, kind.how(), Site::NONE);
    let _ends = Ends(key);
    slow()
}

/// Notes an acquisition, if it succeeded.
pub(crate) fn acquired(key: usize, kind: Kind, success: bool) -> bool {
    if success {
        lockdep::acquired(key, ClassId::NONE, kind.how(), Site::NONE);
    }
    success
}

/// Notes a release.
pub(crate) fn released(key: usize, _: Kind) {
    lockdep::release(key);
}

pub(crate) fn changed(key: usize, _: Kind, to: Kind) {
    lockdep::downgrade(key, to.how());
}

/// Runs the function of a [`Once`](crate::Once), which its thread holds meanwhile.
pub(crate) fn run(key: usize, f: impl FnOnce()) {
    struct Released(usize);

    impl Drop for Released {
        fn drop(&mut self) {
            released(self.0, Kind::Write);
        }
    }

    end_wait(key);
    acquired(key, Kind::Write, true);
    let _released = Released(key);
    f();
}

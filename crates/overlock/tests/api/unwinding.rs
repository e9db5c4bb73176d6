//! A raw lock that panics where a guard would be left without a token ends the process. Guards: `or_abort` of the module `guard`,
//! in `released_by`, `with_token`, `with_upgraded` and `while_writer`.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use overlock::core::raw::{ConstLock, CreateError, RawFairLock, RawLock};
use overlock::guard::Guard;
use overlock::lock::Lock;

/// Can be locked once; then it panics.
struct Once(AtomicU32);

impl ConstLock for Once {
    #[allow(clippy::declare_interior_mutable_const)] // each use is a new one, as intended
    const INIT: Self = Once(AtomicU32::new(0));
}

// SAFETY: it has one acquisition in all.
unsafe impl RawLock for Once {
    type Token = Box<u32>;

    const NAME: &'static str = "once";

    fn create() -> Result<Self, CreateError> {
        Ok(Self::INIT)
    }

    fn lock(&self) -> Box<u32> {
        assert_eq!(self.0.fetch_add(1, Relaxed), 0, "as a test");
        Box::new(7)
    }

    fn try_lock(&self) -> Option<Box<u32>> {
        None
    }

    unsafe fn unlock(&self, _: Box<u32>) {}

    fn is_locked(&self) -> bool {
        false
    }

    fn is_contended(&self) -> bool {
        true
    }
}

// SAFETY: as above.
unsafe impl RawFairLock for Once {
    unsafe fn unlock_fair(&self, _: Box<u32>) {}
}

/// Runs `f` in a process of its own, which must abort. `test` is the name of the calling test.
fn aborts(test: &str, f: impl FnOnce()) {
    const CHILD: &str = "OVERLOCK_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        f();
        std::process::exit(0);
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("unwinding::{test}")])
        .env(CHILD, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(libc::SIGABRT));
}

/// Without `or_abort` in `Again`: the guard's drop would free its token a second time.
#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_lock_that_cannot_be_acquired_again_after_unlocked() {
    aborts(
        "a_lock_that_cannot_be_acquired_again_after_unlocked",
        || {
            let lock = Lock::<Once, _>::new(1);
            let mut guard = lock.lock();
            Guard::unlocked(&mut guard, || ());
        },
    );
}

/// The same in `with_token`.
#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_lock_that_cannot_be_acquired_again_after_bump() {
    aborts("a_lock_that_cannot_be_acquired_again_after_bump", || {
        let lock = Lock::<Once, _>::new(1);
        let mut guard = lock.lock();
        Guard::bump(&mut guard);
    });
}

//! If a raw lock panics and would leave a guard without a token, the process aborts. Guards:
//! `or_abort` of the module `guard`, in `released_by`, `with_token`, `with_upgraded` and
//! `while_writer`.

use std::convert::Infallible;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use overlock::guard::Guard;
use overlock::lock::Lock;
use overlock::rwlock::SharedLock;
use overlock_core::Deadline;
use overlock_core::raw::{
    ConstLock, RawDowngradeRwLock, RawFairLock, RawLock, RawRwLock, RawTimedRwLock,
    RawUpgradeRwLock,
};

/// There is one; a second drop is the use of a token that was gone.
struct Token;

impl Drop for Token {
    fn drop(&mut self) {
        static DROPS: AtomicU32 = AtomicU32::new(0);
        if DROPS.fetch_add(1, Relaxed) > 0 {
            std::process::exit(1);
        }
    }
}

/// Can be locked once; then it panics.
struct Once(AtomicU32);

impl ConstLock for Once {
    const INIT: Self = Once(AtomicU32::new(0));
}

// SAFETY: it has one acquisition in all.
unsafe impl RawLock for Once {
    type Token = Token;

    const NAME: &'static str = "once";

    fn lock(&self) -> Token {
        assert_eq!(self.0.fetch_add(1, Relaxed), 0, "as a test");
        Token
    }

    fn try_lock(&self) -> Option<Token> {
        None
    }

    unsafe fn unlock(&self, _: Token) {}

    fn is_locked(&self) -> bool {
        false
    }

    fn is_contended(&self) -> bool {
        true
    }
}

// SAFETY: as above.
unsafe impl RawFairLock for Once {
    unsafe fn unlock_fair(&self, _: Token) {}
}

/// Can be acquired by an upgradable reader. `UP` says whether that one can become the writer, and
/// no writer can go back.
struct Upgrades<const UP: bool>;

impl<const UP: bool> ConstLock for Upgrades<UP> {
    const INIT: Self = Upgrades;
}

// SAFETY: nobody reads, and there is one upgradable reader.
unsafe impl<const UP: bool> RawRwLock for Upgrades<UP> {
    type Read = Infallible;
    type Write = Token;

    const NAME: &'static str = "upgrades";

    fn read(&self) -> Infallible {
        unreachable!()
    }

    fn try_read(&self) -> Option<Infallible> {
        None
    }

    unsafe fn unlock_read(&self, token: Infallible) {
        match token {}
    }

    fn write(&self) -> Token {
        unreachable!()
    }

    fn try_write(&self) -> Option<Token> {
        None
    }

    unsafe fn unlock_write(&self, _: Token) {}

    fn is_locked(&self) -> bool {
        true
    }

    fn is_write_locked(&self) -> bool {
        false
    }

    fn is_contended(&self) -> bool {
        false
    }
}

// SAFETY: as above.
unsafe impl<const UP: bool> RawTimedRwLock for Upgrades<UP> {
    fn read_until(&self, _: impl Into<Deadline>) -> Option<Infallible> {
        None
    }

    fn write_until(&self, _: impl Into<Deadline>) -> Option<Token> {
        None
    }
}

// SAFETY: as above.
unsafe impl<const UP: bool> RawDowngradeRwLock for Upgrades<UP> {
    unsafe fn downgrade(&self, _: Token) -> Infallible {
        panic!("as a test")
    }
}

// SAFETY: as above.
unsafe impl<const UP: bool> RawUpgradeRwLock for Upgrades<UP> {
    type Upgradable = Token;

    fn upgradable(&self) -> Token {
        Token
    }

    fn try_upgradable(&self) -> Option<Token> {
        None
    }

    fn upgradable_until(&self, _: impl Into<Deadline>) -> Option<Token> {
        None
    }

    unsafe fn unlock_upgradable(&self, _: Token) {}

    unsafe fn upgrade(&self, token: Token) -> Token {
        assert!(UP, "as a test");
        token
    }

    unsafe fn try_upgrade(&self, token: Token) -> Result<Token, Token> {
        assert!(UP, "as a test");
        Ok(token)
    }

    unsafe fn upgrade_until(&self, token: Token, _: impl Into<Deadline>) -> Result<Token, Token> {
        Err(token)
    }

    unsafe fn downgrade_upgradable(&self, _: Token) -> Infallible {
        panic!("as a test")
    }

    unsafe fn downgrade_to_upgradable(&self, _: Token) -> Token {
        panic!("as a test")
    }
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

/// Without `or_abort` in `Again`: the guard's drop uses its token a second time.
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

/// The same in `with_upgraded`.
#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_lock_that_cannot_upgrade() {
    aborts("a_lock_that_cannot_upgrade", || {
        let lock = SharedLock::<Upgrades<false>, _>::new(1);
        lock.upgradable_read().with_upgraded(|_| ());
    });
}

/// The same in `with_upgraded_by`.
#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_lock_that_cannot_try_to_upgrade() {
    aborts("a_lock_that_cannot_try_to_upgrade", || {
        let lock = SharedLock::<Upgrades<false>, _>::new(1);
        lock.upgradable_read().try_with_upgraded(|_| ());
    });
}

/// The same in `while_writer`.
#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn a_lock_that_cannot_downgrade() {
    aborts("a_lock_that_cannot_downgrade", || {
        let lock = SharedLock::<Upgrades<true>, _>::new(1);
        lock.upgradable_read().with_upgraded(|_| ());
    });
}

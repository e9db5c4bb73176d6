//! A raw lock that records its acquisitions: each has a token of its own, which must come back
//! once, to the operation that fits its mode. One thread uses it; nothing waits.

use std::collections::BTreeMap;
use std::sync::Mutex;

use overlock_core::Deadline;
use overlock_core::raw::{
    ConstLock, RawDowngradeRwLock, RawFairLock, RawFairRwLock, RawLock, RawRwLock, RawTimedLock,
    RawTimedRwLock, RawUpgradeRwLock,
};

/// How an acquisition is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Locked,
    Read,
    Write,
    Upgradable,
}

#[derive(Debug)]
pub struct Token(u64);

#[derive(Debug)]
struct Book {
    last: u64,
    held: BTreeMap<u64, How>,
    log: Vec<&'static str>,
    refuses: bool,
}

#[derive(Debug)]
pub struct Ledger(Mutex<Book>);

impl ConstLock for Ledger {
    const INIT: Self = Ledger(Mutex::new(Book {
        last: 0,
        held: BTreeMap::new(),
        log: Vec::new(),
        refuses: false,
    }));
}

impl Ledger {
    fn book<V>(&self, f: impl FnOnce(&mut Book) -> V) -> V {
        f(&mut self.0.lock().unwrap_or_else(|poison| poison.into_inner()))
    }

    fn take(&self, what: &'static str, how: How) -> Token {
        self.book(|book| {
            book.log.push(what);
            book.last += 1;
            book.held.insert(book.last, how);
            Token(book.last)
        })
    }

    fn try_take(&self, what: &'static str, how: How) -> Option<Token> {
        (!self.book(|book| book.refuses)).then(|| self.take(what, how))
    }

    fn give(&self, what: &'static str, token: Token, how: How) {
        self.book(|book| {
            book.log.push(what);
            assert_eq!(book.held.remove(&token.0), Some(how), "{what} of {token:?}");
        });
    }

    fn change(&self, what: &'static str, token: Token, from: How, to: How) -> Token {
        self.give(what, token, from);
        let token = self.take(what, to);
        self.book(|book| book.log.pop());
        token
    }

    /// Makes all attempts fail from now on.
    pub fn refuse(&self, refuses: bool) {
        self.book(|book| book.refuses = refuses);
    }

    /// Returns how the lock is held now.
    pub fn held(&self) -> Vec<How> {
        self.book(|book| book.held.values().copied().collect())
    }

    /// Returns the operations since the last call.
    pub fn done(&self) -> Vec<&'static str> {
        self.book(|book| std::mem::take(&mut book.log))
    }
}

// SAFETY: not exclusive at all, but only one thread ever uses it, and reads the records, not the
// data.
unsafe impl RawLock for Ledger {
    type Token = Token;

    const NAME: &'static str = "ledger";

    fn lock(&self) -> Token {
        self.take("lock", How::Locked)
    }

    fn try_lock(&self) -> Option<Token> {
        self.try_take("try_lock", How::Locked)
    }

    unsafe fn unlock(&self, token: Token) {
        self.give("unlock", token, How::Locked);
    }

    fn is_locked(&self) -> bool {
        !self.held().is_empty()
    }

    fn is_contended(&self) -> bool {
        true
    }
}

// SAFETY: as above.
unsafe impl RawFairLock for Ledger {
    unsafe fn unlock_fair(&self, token: Token) {
        self.give("unlock_fair", token, How::Locked);
    }
}

// SAFETY: as above.
unsafe impl RawTimedLock for Ledger {
    fn lock_until(&self, _: impl Into<Deadline>) -> Option<Token> {
        self.try_take("lock_until", How::Locked)
    }
}

// SAFETY: as above.
unsafe impl RawRwLock for Ledger {
    type Read = Token;
    type Write = Token;

    const NAME: &'static str = "ledger";

    fn read(&self) -> Token {
        self.take("read", How::Read)
    }

    fn try_read(&self) -> Option<Token> {
        self.try_take("try_read", How::Read)
    }

    unsafe fn unlock_read(&self, token: Token) {
        self.give("unlock_read", token, How::Read);
    }

    fn write(&self) -> Token {
        self.take("write", How::Write)
    }

    fn try_write(&self) -> Option<Token> {
        self.try_take("try_write", How::Write)
    }

    unsafe fn unlock_write(&self, token: Token) {
        self.give("unlock_write", token, How::Write);
    }

    fn is_locked(&self) -> bool {
        !self.held().is_empty()
    }

    fn is_write_locked(&self) -> bool {
        self.held().contains(&How::Write)
    }

    fn is_contended(&self) -> bool {
        true
    }
}

// SAFETY: as above.
unsafe impl RawTimedRwLock for Ledger {
    fn read_until(&self, _: impl Into<Deadline>) -> Option<Token> {
        self.try_take("read_until", How::Read)
    }

    fn write_until(&self, _: impl Into<Deadline>) -> Option<Token> {
        self.try_take("write_until", How::Write)
    }
}

// SAFETY: as above.
unsafe impl RawDowngradeRwLock for Ledger {
    unsafe fn downgrade(&self, token: Token) -> Token {
        self.change("downgrade", token, How::Write, How::Read)
    }
}

// SAFETY: as above.
unsafe impl RawUpgradeRwLock for Ledger {
    type Upgradable = Token;

    fn upgradable(&self) -> Token {
        self.take("upgradable", How::Upgradable)
    }

    fn try_upgradable(&self) -> Option<Token> {
        self.try_take("try_upgradable", How::Upgradable)
    }

    fn upgradable_until(&self, _: impl Into<Deadline>) -> Option<Token> {
        self.try_take("upgradable_until", How::Upgradable)
    }

    unsafe fn unlock_upgradable(&self, token: Token) {
        self.give("unlock_upgradable", token, How::Upgradable);
    }

    unsafe fn upgrade(&self, token: Token) -> Token {
        self.change("upgrade", token, How::Upgradable, How::Write)
    }

    unsafe fn try_upgrade(&self, token: Token) -> Result<Token, Token> {
        if self.book(|book| book.refuses) {
            Err(self.change("try_upgrade", token, How::Upgradable, How::Upgradable))
        } else {
            Ok(self.change("try_upgrade", token, How::Upgradable, How::Write))
        }
    }

    unsafe fn upgrade_until(&self, token: Token, _: impl Into<Deadline>) -> Result<Token, Token> {
        if self.book(|book| book.refuses) {
            Err(self.change("upgrade_until", token, How::Upgradable, How::Upgradable))
        } else {
            Ok(self.change("upgrade_until", token, How::Upgradable, How::Write))
        }
    }

    unsafe fn downgrade_upgradable(&self, token: Token) -> Token {
        self.change("downgrade_upgradable", token, How::Upgradable, How::Read)
    }

    unsafe fn downgrade_to_upgradable(&self, token: Token) -> Token {
        self.change(
            "downgrade_to_upgradable",
            token,
            How::Write,
            How::Upgradable,
        )
    }
}

// SAFETY: as above.
unsafe impl RawFairRwLock for Ledger {
    unsafe fn unlock_read_fair(&self, token: Token) {
        self.give("unlock_read_fair", token, How::Read);
    }

    unsafe fn unlock_write_fair(&self, token: Token) {
        self.give("unlock_write_fair", token, How::Write);
    }

    unsafe fn unlock_upgradable_fair(&self, token: Token) {
        self.give("unlock_upgradable_fair", token, How::Upgradable);
    }
}

//! A thread's acquisitions of a reader-writer lock, and their conversions.

use overlock_core::raw::RawRwLock;

use crate::extras::RwExtras;
use crate::how::How;

/// An acquisition.
pub enum Token<L: RawRwLock> {
    Read(L::Read),
    Write(L::Write),
    Upgradable,
}

/// A lock, its abilities, and acquisitions of it by this thread.
pub struct Hands<'a, L: RawRwLock> {
    pub lock: &'a L,
    pub extras: &'a RwExtras<L>,
}

// SAFETY, of all calls here: callers pass the token of an acquisition of this lock by this thread.
impl<L: RawRwLock> Hands<'_, L> {
    pub fn upgradable(&self, how: How, may_wait: bool) -> Option<Token<L>> {
        let full = self.extras.full.as_ref()?;
        (full.upgradable)(self.lock, how, may_wait).then_some(Token::Upgradable)
    }

    pub fn unlock(&self, token: Token<L>, fair: bool) {
        let Hands { lock, extras } = self;
        match (token, &extras.full) {
            // SAFETY: as said above, and so below.
            (Token::Read(token), Some(full)) if fair => unsafe {
                (full.unlock_read_fair)(lock, token);
            },
            // SAFETY: as above.
            (Token::Read(token), _) => unsafe { lock.unlock_read(token) },
            // SAFETY: as above.
            (Token::Write(token), Some(full)) if fair => unsafe {
                (full.unlock_write_fair)(lock, token);
            },
            // SAFETY: as above.
            (Token::Write(token), _) => unsafe { lock.unlock_write(token) },
            // SAFETY: as above.
            (Token::Upgradable, Some(full)) if fair => unsafe {
                (full.unlock_upgradable_fair)(lock);
            },
            // SAFETY: as above.
            (Token::Upgradable, Some(full)) => unsafe { (full.unlock_upgradable)(lock) },
            (Token::Upgradable, None) => unreachable!("nothing gave that token"),
        }
    }

    pub fn bump(&self, token: Token<L>) -> Token<L> {
        let Hands { lock, extras } = self;
        let Some(full) = &extras.full else {
            return token;
        };
        match token {
            // SAFETY: as above.
            Token::Read(token) => Token::Read(unsafe { (full.bump_read)(lock, token) }),
            // SAFETY: as above.
            Token::Write(token) => Token::Write(unsafe { (full.bump_write)(lock, token) }),
            Token::Upgradable => {
                // SAFETY: as above.
                unsafe { (full.bump_upgradable)(lock) };
                Token::Upgradable
            }
        }
    }

    /// A reader, of a writer or an upgradable reader.
    pub fn downgrade(&self, token: Token<L>) -> Token<L> {
        let Hands { lock, extras } = self;
        match (token, extras.downgrade, &extras.full) {
            (Token::Write(token), Some(downgrade), _) => {
                // SAFETY: as above.
                let token = unsafe { downgrade(lock, token) };
                Token::Read(token)
            }
            (Token::Upgradable, _, Some(full)) => {
                // SAFETY: as above.
                let token = unsafe { (full.downgrade_upgradable)(lock) };
                Token::Read(token)
            }
            (token, ..) => token,
        }
    }

    pub fn downgrade_to_upgradable(&self, token: Token<L>) -> Token<L> {
        match (token, &self.extras.full) {
            (Token::Write(token), Some(full)) => {
                // SAFETY: as above.
                unsafe { (full.downgrade_to_upgradable)(self.lock, token) };
                Token::Upgradable
            }
            (token, _) => token,
        }
    }

    pub fn upgrade(&self, token: Token<L>, how: How, may_wait: bool) -> Token<L> {
        match (token, &self.extras.full) {
            (Token::Upgradable, Some(full)) => {
                // SAFETY: as above.
                let token = unsafe { (full.upgrade)(self.lock, how, may_wait) };
                token.map_or(Token::Upgradable, Token::Write)
            }
            (token, _) => token,
        }
    }
}

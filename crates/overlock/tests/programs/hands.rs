//! A thread's acquisitions of a reader-writer lock, and their conversions.

use overlock_core::raw::RawRwLock;

use crate::extras::{RwExtras, Upgradable};
use crate::how::How;

/// An acquisition.
pub enum Token<L: RawRwLock> {
    Read(L::Read),
    Write(L::Write),
    Upgradable(Upgradable),
}

/// A lock, its abilities, and acquisitions of it by this thread.
pub struct Hands<'a, L: RawRwLock> {
    pub lock: &'a L,
    pub extras: &'a RwExtras<L>,
}

// SAFETY, of all calls here: callers pass the token of an acquisition of this lock by this thread.
impl<L: RawRwLock> Hands<'_, L> {
    pub fn upgradable(&self, how: How, may_wait: bool) -> Option<Token<L>> {
        let upgrades = self.extras.upgrades.as_ref()?;
        (upgrades.acquire)(self.lock, how, may_wait).map(Token::Upgradable)
    }

    pub fn unlock(&self, token: Token<L>, fair: bool) {
        let Hands { lock, extras } = self;
        let fair = extras.fair.as_ref().filter(|_| fair);
        match (token, fair, &extras.upgrades) {
            // SAFETY: as said above, and so below.
            (Token::Read(token), None, _) => unsafe { lock.unlock_read(token) },
            // SAFETY: as above.
            (Token::Read(token), Some(fair), _) => unsafe { (fair.unlock_read)(lock, token) },
            // SAFETY: as above.
            (Token::Write(token), None, _) => unsafe { lock.unlock_write(token) },
            // SAFETY: as above.
            (Token::Write(token), Some(fair), _) => unsafe { (fair.unlock_write)(lock, token) },
            // SAFETY: as above.
            (Token::Upgradable(token), Some(fair), _) => unsafe {
                (fair.unlock_upgradable)(lock, token);
            },
            // SAFETY: as above.
            (Token::Upgradable(token), None, Some(upgrades)) => unsafe {
                (upgrades.unlock)(lock, token);
            },
            (Token::Upgradable(_), None, None) => unreachable!("nothing gave that token"),
        }
    }

    pub fn bump(&self, token: Token<L>) -> Token<L> {
        let Hands { lock, extras } = self;
        match (token, &extras.fair) {
            (token, None) => token,
            (Token::Read(token), Some(fair)) => {
                // SAFETY: as above.
                let token = unsafe { (fair.bump_read)(lock, token) };
                Token::Read(token)
            }
            (Token::Write(token), Some(fair)) => {
                // SAFETY: as above.
                let token = unsafe { (fair.bump_write)(lock, token) };
                Token::Write(token)
            }
            (Token::Upgradable(token), Some(fair)) => {
                // SAFETY: as above.
                let token = unsafe { (fair.bump_upgradable)(lock, token) };
                Token::Upgradable(token)
            }
        }
    }

    /// A reader, of a writer or an upgradable reader.
    pub fn downgrade(&self, token: Token<L>) -> Token<L> {
        let Hands { lock, extras } = self;
        match (token, extras.downgrade, &extras.upgrades) {
            (Token::Write(token), Some(downgrade), _) => {
                // SAFETY: as above.
                let token = unsafe { downgrade(lock, token) };
                Token::Read(token)
            }
            (Token::Upgradable(token), _, Some(upgrades)) => {
                // SAFETY: as above.
                let token = unsafe { (upgrades.downgrade)(lock, token) };
                Token::Read(token)
            }
            (token, ..) => token,
        }
    }

    pub fn downgrade_to_upgradable(&self, token: Token<L>) -> Token<L> {
        match (token, &self.extras.upgrades) {
            (Token::Write(token), Some(upgrades)) => {
                // SAFETY: as above.
                let token = unsafe { (upgrades.downgrade_write)(self.lock, token) };
                Token::Upgradable(token)
            }
            (token, _) => token,
        }
    }

    pub fn upgrade(&self, token: Token<L>, how: How, may_wait: bool) -> Token<L> {
        match (token, &self.extras.upgrades) {
            (Token::Upgradable(token), Some(upgrades)) => {
                // SAFETY: as above.
                match unsafe { (upgrades.upgrade)(self.lock, token, how, may_wait) } {
                    Ok(token) => Token::Write(token),
                    Err(token) => Token::Upgradable(token),
                }
            }
            (token, _) => token,
        }
    }
}

//! Reading a document that was kept.

use std::fmt;
use std::io::Read;

use crate::{Profile, VERSION};

/// Why a file is no profile.
#[derive(Debug)]
pub enum Unreadable {
    /// It cannot be read, or is no JSON of this form.
    Json(serde_json::Error),
    /// It has the form of another version.
    Version(u32),
    /// Something in it refers to what it does not have: this.
    Index(&'static str),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "no profile: {error}"),
            Self::Version(version) => {
                write!(f, "a profile of version {version}, and not {VERSION}")
            }
            Self::Index(what) => write!(f, "a damaged profile: it refers to {what} it has not"),
        }
    }
}

impl std::error::Error for Unreadable {}

impl Profile {
    /// Reads a document, and checks that all its references lead somewhere.
    ///
    /// # Errors
    ///
    /// If it is none, or another version's, or damaged.
    pub fn read(mut from: impl Read) -> Result<Self, Unreadable> {
        // From a slice it takes a quarter of the time.
        let mut text = Vec::new();
        from.read_to_end(&mut text)
            .map_err(|error| Unreadable::Json(serde_json::Error::io(error)))?;
        Self::of(&text)
    }

    /// Not generic, so that this crate's settings optimise it, whatever the caller's are.
    fn of(text: &[u8]) -> Result<Self, Unreadable> {
        let profile: Self = serde_json::from_slice(text).map_err(Unreadable::Json)?;
        if profile.version != VERSION {
            return Err(Unreadable::Version(profile.version));
        }
        profile.check()?;
        Ok(profile)
    }

    /// Checks that all references lead somewhere, as the reports rely on.
    ///
    /// # Errors
    ///
    /// If one does not.
    pub fn check(&self) -> Result<(), Unreadable> {
        let among = |index: u32, length: usize, what| {
            if (index as usize) < length {
                Ok(())
            } else {
                Err(Unreadable::Index(what))
            }
        };
        let process = |index| among(index, self.processes.len(), "a process");
        let thread = |index| among(index, self.threads.len(), "a thread");
        let stack = |index| among(index, self.stacks.len(), "a stack");
        let lock = |index| among(index, self.locks.len(), "a lock");
        self.threads
            .iter()
            .try_for_each(|each| process(each.process))?;
        let mut frames = self.stacks.iter().flat_map(|stack| &stack.0);
        frames.try_for_each(|&frame| among(frame, self.frames.len(), "a frame"))?;
        for each in &self.locks {
            process(each.process)?;
            each.init.map_or(Ok(()), stack)?;
        }
        for sum in &self.sums {
            lock(sum.lock)?;
            stack(sum.stack)?;
            sum.holder_stack.map_or(Ok(()), stack)?;
        }
        for wait in &self.waits {
            thread(wait.thread)?;
            lock(wait.lock)?;
            stack(wait.stack)?;
            wait.holder.map_or(Ok(()), thread)?;
            wait.holder_stack.map_or(Ok(()), stack)?;
            wait.behind
                .map_or(Ok(()), |behind| among(behind, self.waits.len(), "a wait"))?;
        }
        Ok(())
    }
}

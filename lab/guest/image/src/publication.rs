//! The publication of a halted vCPU: the name of the word that it halts on.
//!
//! HK: the halting side publishes, passes a SeqCst fence, then rechecks the word. The kicking side
//! changes the word, passes a SeqCst fence, then loads the publications. In the SC order one fence
//! comes first. If that is the halting side's, the kicker sees the publication, or that it has been
//! withdrawn. Otherwise the recheck sees the change, and the vCPU does not sleep.
//!
//! The explorer of lab/model runs this file with weak memory (`src/explore/tests/publication.rs`).

use super::sync::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence};

/// The name of the word that a vCPU halts on. 0 if it does not halt.
///
/// All its operations are relaxed: the fences order them, and it carries no data.
#[derive(Debug)]
pub struct Publication(pub(crate) AtomicUsize);

impl Publication {
    /// Publishes a name. Returns that of the halt which this one has interrupted, or 0. The caller
    /// rechecks the word before it sleeps.
    pub fn begin(&self, name: usize) -> usize {
        let outer = self.0.swap(name, Relaxed);
        // HK: partner of `word_has_changed`.
        fence(SeqCst);
        outer
    }

    /// Withdraws the name, and restores that of the interrupted halt. Returns whether a kick has
    /// consumed the name.
    pub fn end(&self, name: usize, outer: usize) -> bool {
        self.0.swap(outer, Relaxed) != name
    }

    /// Consumes the name if it is published. Returns whether it was: then the caller, and nobody
    /// else, kicks the vCPU.
    pub fn consume(&self, name: usize) -> bool {
        self.0.load(Relaxed) == name && self.0.compare_exchange(name, 0, Relaxed, Relaxed).is_ok()
    }

    /// The present name. A snapshot.
    pub fn name(&self) -> usize {
        self.0.load(Relaxed)
    }
}

/// Passed by a kicker between its change of the word and its search for publications.
pub fn word_has_changed() {
    // HK: partner of `Publication::begin`.
    fence(SeqCst);
}

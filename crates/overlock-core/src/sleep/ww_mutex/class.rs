//! Where stamps come from, and which rule holds between the contexts that have them.

use core::sync::atomic::Ordering::Relaxed;

use crate::platform::{Atomic, ConstPlatform, Platform, Zero};

/// Which of two contexts notices that they could come to wait for each other, and when; see the
/// [module's page](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The older one wounds the younger. Fewer are aborted: a wounded context that does not wait
    /// any more gets through.
    WoundWait,
    /// The younger one aborts itself. Nobody is aborted by something that another context does
    /// later.
    WaitDie,
}

/// A family of locks that are taken together: those that contexts of this class may hold at a time.
/// Usually a static.
#[derive(Debug)]
pub struct Class<P: Platform> {
    /// The latest stamp.
    stamps: P::Usize,
    rule: Rule,
}

impl<P: ConstPlatform> Class<P> {
    /// A new class, with the rule wound-wait.
    pub const fn new() -> Self {
        Self::with_rule(Rule::WoundWait)
    }

    /// A new class with this rule.
    pub const fn with_rule(rule: Rule) -> Self {
        Class {
            stamps: Zero::ZERO,
            rule,
        }
    }
}

impl<P: ConstPlatform> Default for Class<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> Class<P> {
    /// As [`with_rule`](Self::with_rule), for platforms whose atomics cannot be built in a `const`.
    pub fn create(rule: Rule) -> Self {
        Class {
            stamps: P::Usize::new(0),
            rule,
        }
    }

    /// The class's rule.
    pub const fn rule(&self) -> Rule {
        self.rule
    }

    /// A stamp for a new context, younger than all before, and never 0.
    pub(super) fn stamp(&self) -> usize {
        loop {
            // Relaxed: the numbers are all there is.
            match self.stamps.fetch_add(1, Relaxed).wrapping_add(1) {
                0 => {}
                stamp => return stamp,
            }
        }
    }

    #[cfg(test)]
    pub(super) fn set_latest(&self, stamp: usize) {
        self.stamps.store(stamp, Relaxed);
    }
}

/// Whether the context with the stamp `one` is older than that with `other`: by their distance, so
/// that the counter may wrap. Right as long as no context lives on while half of all numbers are
/// handed out.
pub(super) fn is_older(one: usize, other: usize) -> bool {
    (one.wrapping_sub(other) as isize) < 0
}

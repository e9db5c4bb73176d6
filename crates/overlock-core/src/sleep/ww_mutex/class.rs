//! Classes: the source of stamps, and the rule between contexts.

use core::sync::atomic::Ordering::Relaxed;

use crate::platform::{Atomic, Platform};

/// The rule by which a class resolves conflicts; see the [module's page](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The older one wounds the younger. Fewer are aborted: a wounded context that does not wait
    /// any more succeeds.
    WoundWait,
    /// The younger one aborts itself. Nothing that another context does later aborts a context.
    WaitDie,
}

/// A family of locks that are taken together, by contexts of this class. Usually a static.
#[derive(Debug)]
pub struct Class<P: Platform> {
    /// The latest stamp.
    stamps: P::Usize,
    rule: Rule,
    optimistic: bool,
}

impl<P: Platform> Default for Class<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Platform> Class<P> {
    /// Returns a new class, with the rule wound-wait.
    pub const fn new() -> Self {
        Self::with_rule(Rule::WoundWait)
    }

    /// Returns a new class with this rule.
    pub const fn with_rule(rule: Rule) -> Self {
        Class {
            stamps: Atomic::ZERO,
            rule,
            optimistic: false,
        }
    }

    /// Returns a new class for locks that are seldom contended. Its contexts take free locks
    /// without a stamp and a node: a context gets both when it first has to wait. If it holds locks
    /// then, it is aborted for that, once, as it is where it holds locks and tries one that another
    /// such context has. From then on the rule is wound-wait.
    pub const fn optimistic() -> Self {
        Class {
            stamps: Atomic::ZERO,
            rule: Rule::WoundWait,
            optimistic: true,
        }
    }

    /// The class's rule.
    pub const fn rule(&self) -> Rule {
        self.rule
    }

    pub(super) const fn is_optimistic(&self) -> bool {
        self.optimistic
    }

    /// Returns a stamp for a new context, younger than all before, and never 0.
    pub(super) fn stamp(&self) -> usize {
        loop {
            // Relaxed: it publishes nothing but the number.
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
/// that the counter may wrap. Correct as long as no context lives while half of all numbers are
/// used.
pub(super) fn is_older(one: usize, other: usize) -> bool {
    (one.wrapping_sub(other) as isize) < 0
}

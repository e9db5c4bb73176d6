//! Which transitions of the locks' state diagrams have been executed.

use std::cell::RefCell;
use std::collections::BTreeMap;

use overlock_core::diagram::{Diagram, Transition};

thread_local! {
    static TAKEN: RefCell<Vec<(&'static Diagram, Vec<u64>)>> = const { RefCell::new(Vec::new()) };
}

/// Counts a transition on this operating-system thread.
pub fn took(transition: Transition) {
    TAKEN.with_borrow_mut(|taken| {
        let known = taken
            .iter()
            .position(|(diagram, _)| diagram.name == transition.diagram.name);
        let at = known.unwrap_or_else(|| {
            taken.push((
                transition.diagram,
                vec![0; transition.diagram.transitions.len()],
            ));
            taken.len() - 1
        });
        taken[at].1[transition.index] += 1;
    });
}

/// How often each transition was taken, by diagram and index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<(&'static str, usize), u64>);

impl Coverage {
    /// Takes what was counted on this operating-system thread since the last call.
    pub fn take() -> Self {
        let taken = TAKEN.take();
        let counts = taken.into_iter().flat_map(|(diagram, counts)| {
            (counts.into_iter().enumerate()).map(|(index, count)| ((diagram.name, index), count))
        });
        Coverage(counts.filter(|(_, count)| *count > 0).collect())
    }

    /// Adds another one's counts.
    pub fn add(&mut self, other: &Self) {
        for (transition, count) in &other.0 {
            *self.0.entry(*transition).or_default() += count;
        }
    }

    /// How often a transition was taken.
    pub fn count(&self, diagram: &str, index: usize) -> u64 {
        let found = self
            .0
            .iter()
            .find(|((name, at), _)| *name == diagram && *at == index);
        found.map_or(0, |(_, count)| *count)
    }

    /// The diagrams that were entered.
    pub fn diagrams(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().map(|(name, _)| *name)
    }
}

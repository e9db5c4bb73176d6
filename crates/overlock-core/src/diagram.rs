//! The state diagrams of the locks, as data, so that a checker can tell which of their transitions
//! it has seen.
//!
//! A check that never entered a lock's queue says nothing about the queue. So each lock's file
//! lists the transitions of its diagram. The code reports each, next to the access that takes it,
//! and [`Platform::transition`] carries the report to the checker. On a platform that runs programs
//! that function is empty, and nothing of it is left in the machine code.

use crate::platform::Platform;

/// The transitions of one state diagram. A lock has a diagram for each of its parts.
#[derive(Debug)]
pub struct Diagram {
    /// The module that draws it: `queued`.
    pub name: &'static str,
    /// Its transitions, as the comments in the module write them: `(0, 0, 0) -> (0, 0, 1) pending`.
    pub transitions: &'static [&'static str],
}

/// One transition of a diagram.
#[derive(Clone, Copy, Debug)]
pub struct Transition {
    /// Its diagram.
    pub diagram: &'static Diagram,
    /// Its index among [`Diagram::transitions`].
    pub index: usize,
}

impl Transition {
    /// Its text in the diagram.
    pub fn text(self) -> &'static str {
        self.diagram.transitions[self.index]
    }
}

/// A lock, or a part of one, with state diagrams.
pub trait HasDiagram {
    /// The diagrams: its own, and those of its parts.
    const DIAGRAMS: &'static [&'static Diagram];
    /// The texts of the transitions that this form of the lock never takes, by its policy. A
    /// checker that sees one of them has found an error too.
    const UNREACHABLE: &'static [&'static str] = &[];
}

/// Lists the transitions of a module's diagram: an enum `Step` with a variant for each, and the
/// constant `DIAGRAM`.
///
/// `Step::SetPending.taken::<P>()` reports that the calling thread has just taken that transition.
/// It follows the access that takes it.
#[doc(hidden)]
#[macro_export]
macro_rules! diagram {
    ($name:literal { $($(#[$doc:meta])* $step:ident = $text:literal,)+ }) => {
        /// The transitions of the diagram above.
        #[derive(Clone, Copy, Debug)]
        #[doc(hidden)]
        pub enum Step { $($(#[$doc])* $step,)+ }

        #[doc(hidden)]
        pub static DIAGRAM: $crate::diagram::Diagram = $crate::diagram::Diagram {
            name: $name,
            transitions: &[$($text),+],
        };

        impl Step {
            /// Its text in the diagram.
            #[allow(dead_code)] // only for a lock with policies, for its `UNREACHABLE`
            pub const fn text(self) -> &'static str {
                DIAGRAM.transitions[self as usize]
            }

            /// Reports that the calling thread has just taken this transition.
            #[inline(always)]
            pub fn taken<P: $crate::platform::Platform>(self) {
                $crate::diagram::report::<P>(&DIAGRAM, self as usize);
            }

            /// Whether this test has taken this transition.
            #[cfg(test)]
            #[allow(dead_code)] // most diagrams' transitions are taken by model checkers
            pub fn was_taken(self) -> bool {
                $crate::toy::took(&DIAGRAM, self as usize)
            }
        }
    };
}

pub use crate::diagram;

/// Reports a transition: see `Step::taken`.
#[inline(always)]
pub fn report<P: Platform>(diagram: &'static Diagram, index: usize) {
    P::transition(Transition { diagram, index });
}

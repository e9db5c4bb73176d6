//! The state diagrams of the locks, as data: so that a checker can tell which of their arrows it has seen.
//!
//! A check that never entered a lock's queue says nothing about the queue. So each lock's file lists the arrows of
//! its diagram, the code says which one it takes, next to the access that takes it, and
//! [`Platform::arrow`] carries that to whoever counts. On a platform that runs programs it is empty, and
//! nothing of it is left in the machine code.

use crate::platform::Platform;

/// The arrows of one state diagram. A lock has one for each part that it is made of.
#[derive(Debug)]
pub struct Diagram {
    /// The module that draws it: `queued`.
    pub name: &'static str,
    /// Its arrows, as the comments in the module write them: `(0, 0, 0) -> (0, 0, 1) pending`.
    pub arrows: &'static [&'static str],
}

/// One arrow of a diagram.
#[derive(Clone, Copy, Debug)]
pub struct Arrow {
    /// Where it is drawn.
    pub diagram: &'static Diagram,
    /// Its index among [`Diagram::arrows`].
    pub index: usize,
}

impl Arrow {
    /// How the diagram writes it.
    pub fn text(self) -> &'static str {
        self.diagram.arrows[self.index]
    }
}

/// A lock, or a part of one, with state diagrams.
pub trait Drawn {
    /// The diagrams: its own, and those of the parts that it is made of.
    const DIAGRAMS: &'static [&'static Diagram];
    /// Those arrows, by their texts, that this form of the lock never takes, since its policy leaves them out. A checker that sees
    /// one of them has found an error too.
    const LACKS: &'static [&'static str] = &[];
}

/// Lists the arrows of a module's diagram: an enum `Step` with a variant for each, and the constant `DIAGRAM`.
///
/// `Step::Pend.taken::<P>()` says that the calling thread has just gone along that arrow. It stands right behind
/// the access that does it.
macro_rules! diagram {
    ($name:literal { $($(#[$doc:meta])* $step:ident = $text:literal,)+ }) => {
        /// The arrows of the diagram above.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Step { $($(#[$doc])* $step,)+ }

        pub(crate) static DIAGRAM: $crate::diagram::Diagram = $crate::diagram::Diagram {
            name: $name,
            arrows: &[$($text),+],
        };

        impl Step {
            /// How the diagram writes it.
            #[allow(dead_code)] // only for a lock with policies, which names those that it lacks
            pub(crate) const fn text(self) -> &'static str {
                DIAGRAM.arrows[self as usize]
            }

            /// Says that the calling thread has just gone along this arrow.
            #[inline(always)]
            pub(crate) fn taken<P: $crate::platform::Platform>(self) {
                $crate::diagram::tell::<P>(&DIAGRAM, self as usize);
            }
        }
    };
}

pub(crate) use diagram;

/// What `Step::taken` does.
#[inline(always)]
pub(crate) fn tell<P: Platform>(diagram: &'static Diagram, index: usize) {
    P::arrow(Arrow { diagram, index });
}

//! Transitions that no model takes: they need more threads, or another world, than a checker has.
//! Each is taken by a unit test of the lock, which asserts that it was.

/// A transition of a state diagram, and the unit test that takes it.
#[derive(Clone, Copy, Debug)]
pub struct UnitTested {
    /// The locks for which this holds; empty for all that have the diagram.
    pub locks: &'static [&'static str],
    /// Its diagram.
    pub diagram: &'static str,
    /// How the diagram writes it.
    pub transition: &'static str,
    /// The test's file, below the folder of the crates.
    pub file: &'static str,
    /// The test.
    pub test: &'static str,
    /// Why no checker can take it.
    pub why: &'static str,
}

/// All of them.
#[rustfmt::skip]
pub const UNIT_TESTED: &[UnitTested] = &[
    UnitTested {
        locks: &[],
        diagram: "ticket",
        transition: "(h, t+1) -> (h, t): refused, number t was never drawn",
        file: "overlock-family/src/spin/ticket/tests.rs",
        test: "a_waiter_too_many_is_refused_and_leaves_no_trace",
        why: "it takes 57,344 waiters",
    },
    UnitTested {
        locks: &[],
        diagram: "ticket",
        transition: "(t, *) -> (t+1, *): refused, t's turn is passed on",
        file: "overlock-family/src/spin/ticket/tests.rs",
        test: "a_refused_waiter_with_others_behind_it_passes_its_turn_on",
        why: "it takes 57,344 waiters",
    },
    UnitTested {
        locks: &[],
        diagram: "pv_ticket",
        transition: "(h, n+2) -> (h, n): refused, number n was never drawn",
        file: "overlock-family/src/spin/pv_ticket/tests.rs",
        test: "a_waiter_too_many_is_refused_and_leaves_no_trace",
        why: "it takes 28,672 waiters",
    },
    UnitTested {
        locks: &[],
        diagram: "pv_ticket",
        transition: "(n, *) -> (n+2, *): refused, n's turn is passed on",
        file: "overlock-family/src/spin/pv_ticket/tests.rs",
        test: "a_refused_waiter_with_others_behind_it_passes_its_turn_on",
        why: "it takes 28,672 waiters",
    },
    UnitTested {
        locks: &[],
        diagram: "pv_ticket",
        transition: "(h, t): refused, no number was drawn",
        file: "overlock-family/src/spin/pv_ticket/tests.rs",
        test: "small_tickets_serve_127_threads_and_refuse_the_128th",
        why: "it takes 127 waiters",
    },
    UnitTested {
        locks: &[],
        diagram: "rt_mutex",
        transition: "a waiter | WAITERS | OWNER_DIED: it does not get the lock",
        file: "overlock-core/src/sleep/rt_mutex/tests.rs",
        test: "a_waiter_that_gets_the_lock_of_a_dead_owner_does_not_enter",
        why: "a thread would have to end while it holds the lock",
    },
    UnitTested {
        locks: &[],
        diagram: "rt_mutex",
        transition: "a thread of the parent -> 0: its copy in the child unlocks",
        file: "overlock-core/src/sleep/rt_mutex/tests.rs",
        test: "a_lock_held_before_a_fork_is_unlocked_under_the_new_id",
        why: "the process would have to fork",
    },
];

/// The test that takes this transition, if no checker can.
pub fn find(lock: &str, diagram: &str, transition: &str) -> Option<&'static UnitTested> {
    UNIT_TESTED.iter().find(|one| {
        (one.diagram, one.transition) == (diagram, transition)
            && (one.locks.is_empty() || one.locks.contains(&lock))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{fs, iter};

    use super::*;
    use crate::run::Engine;

    /// The text of a test, from its attribute to the brace that ends it.
    fn body_of(text: &str, test: &str) -> Option<String> {
        let lines: Vec<_> = text.lines().collect();
        let head = format!("fn {test}() {{");
        let at = lines.iter().position(|line| line.trim() == head)?;
        let is_test = (lines[..at].iter().rev())
            .take_while(|line| line.trim().starts_with("#["))
            .any(|line| line.trim() == "#[test]");
        let indent = lines[at].len() - lines[at].trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        let body = lines[at..].iter().take_while(|line| **line != end);
        is_test.then(|| body.chain(iter::once(&"")).copied().collect())
    }

    #[test]
    fn each_test_is_there_and_asserts_that_the_arrow_was_taken() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
        for one in UNIT_TESTED {
            let text = fs::read_to_string(sources.join(one.file)).expect(one.file);
            let body = body_of(&text, one.test);
            let body = body.unwrap_or_else(|| panic!("{}: no test {}", one.file, one.test));
            assert!(
                body.contains(".was_taken()"),
                "{} asserts nothing",
                one.test
            );
        }
    }

    #[test]
    fn each_arrow_is_drawn() {
        // A build for single locks leaves diagrams out.
        let partial = option_env!("OVERLOCK_MODEL_ONLY").is_some();
        let locks = Engine::Explore.locks();
        for one in UNIT_TESTED {
            let drawn = (locks.iter().flat_map(|lock| lock.diagrams)).any(|drawn| {
                drawn.name == one.diagram && drawn.transitions.contains(&one.transition)
            });
            assert!(drawn || partial, "{}: {}", one.diagram, one.transition);
        }
    }
}

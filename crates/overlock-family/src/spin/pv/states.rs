//! The transitions of the paravirtual queued locks' diagram: those of the word, (tail, pending,
//! locked), and those of a waiter's `state`.

use super::{Form, PvLock};
use crate::spin::{hybrid, pv_queued};
use overlock_core::diagram::{Diagram, HasDiagram, diagram};
use overlock_core::platform::{Platform, Spin};

diagram! {
    "pv" {
        Take = "(0, 0, 0) -> (0, 0, 1)",
        Steal = "(*, 0, 0) -> (*, 0, 1): past the queue",
        LoseSteal = "(*, 0, 0): lost, the head or another thief was faster",
        NoNode = "no node: steals, or waits",
        JoinEmpty = "(0, *, *) -> (n, *, *): the head",
        JoinBehind = "(p, *, *) -> (n, *, *): RUNNING",
        WaitEarly = "RUNNING: p sleeps, so it does not spin",
        Halt = "RUNNING -> HALTED: sleeps in the queue",
        HaltTooLate = "RUNNING -> HALTED fails: it is the head",
        WakeInQueue = "HALTED -> RUNNING: a spurious wake-up",
        WakeAsHead = "HALTED -> RUNNING fails: it is the head, and HASHED",
        MakeHead = "RUNNING -> HEAD: by its predecessor",
        EnterHalted = "HALTED -> HASHED, (m, 0, 1) -> (m, 0, SLOW): by its predecessor",
        EnterWoken = "RUNNING -> HASHED: it woke after its predecessor had seen it HALTED",
        SetPending = "(n, 0, *) -> (n, 1, *): the head spins",
        HeadTakes = "(n, 1, 0) -> (n, 0, 1)",
        LosePending = "(n, 1, 0) -> (n, 1, 1): to a thief that loaded it before pending was set",
        ClearPending = "(n, 1, *) -> (n, 0, *): the head's spin budget is used up",
        SpinOn = "(n, 0, 1), its entry is gone: the head spins on",
        Enter = "(n, 0, 1) -> (n, 0, SLOW): the head, for the first time",
        EnterAgain = "(n, 0, 1) -> (n, 0, SLOW): the head, its entry was gone",
        EnterTakes = "(n, 0, 0) -> (n, 0, SLOW) -> (n, 0, 1): the head",
        KeepEntry = "(n, 0, SLOW): the head has an entry",
        Sleep = "HEAD -> HASHED: sleeps at the head",
        Wake = "HASHED -> HEAD: kicked, or a spurious wake-up",
        LastLeaves = "(n, 0, 1) -> (0, 0, 1)",
        Release = "(*, *, 1) -> (*, *, 0)",
        ReleaseSlow = "(*, *, SLOW) -> (*, *, 0): and kicks the head",
    }
}

/// The transition that a head never takes after it was kicked and found the lock stolen.
const fn unreachable_when_bypassed<F: Form>() -> &'static str {
    if F::ENTER_AGAIN {
        Step::SpinOn.text()
    } else {
        Step::EnterAgain.text()
    }
}

impl<P: Platform, F: Form> HasDiagram for PvLock<P, F> {
    const DIAGRAMS: &'static [&'static Diagram] = match F::UNFAIR {
        Some(_) => &[&DIAGRAM, &hybrid::DIAGRAM],
        None => &[&DIAGRAM, &pv_queued::DIAGRAM],
    };
    const UNREACHABLE: &'static [&'static str] = match F::UNFAIR {
        Some(Spin::Forever) => &[
            unreachable_when_bypassed::<F>(),
            hybrid::Step::GiveUp.text(),
        ],
        _ => &[unreachable_when_bypassed::<F>()],
    };
}

//! The arrows of the recommended lock's diagram, one by one: those of `locked`, then those of a waiter, then what is said under the guard.
//!
//! A waiter *spins* before it is in the list, is *asleep* in it, and *awake* after it was called, or its time was over. It then is
//! the owner, asks, claims, or is asleep again.

use super::{Overlock, Policy, Unlock};
use crate::diagram::{Diagram, Drawn, diagram};
use crate::platform::Platform;

diagram! {
    "overlock" {
        Take = "free -> held",
        Release = "held -> free",
        HandOver = "free -> handed: kick == 2, by the unlocker",
        HandOverLate = "held: kick == 2, but another one was faster than the unlocker",
        GiveToAsker = "held -> handed: a fair unlock, or one that looks first, to the one that has asked",
        GiveToFirst = "held -> handed: a fair unlock, to the first sleeper",
        GiveToNobody = "held: a fair unlock, but nobody sleeps any more",
        GiveBlocked = "held: a fair unlock, or one that looks first, but the guard's holder does not move",
        TakeHanded = "handed -> held: by the chosen one",

        GiveUpSpinning = "spins -> gives up",
        OwnerGone = "spins: the owner has lost its CPU, no more",
        NoNode = "spins: no node, spins and naps",
        Join = "spins -> in the list: kick is 0 -> 1",
        JoinQuietly = "spins -> in the list: kick is set, or a sleeper on its way",
        LookAndLeave = "in the list -> owner: by a look before its sleep",
        LookAndCalled = "in the list -> called -> owner: by that look",
        Sleep = "in the list -> asleep",
        SleepOn = "asleep: its time is over, but the owner's unlock will call",
        Wake = "asleep -> awake: called, or given the lock",
        WakeByTimer = "asleep -> awake: its time is over, out of the list",
        CalledInTime = "asleep: its time is over, but it was called before it had the guard",
        GiveUpAsleep = "asleep -> gives up: out of the list",
        Given = "awake -> owner: it was given the lock",
        Ask = "awake -> asks: kick = 2",
        AskInVain = "awake: another one has asked, or was handed the lock",
        Claim = "awake -> claims: kick = 2",
        Displace = "claims: in the place of one that is awake and has asked",
        ClaimTakes = "claims -> owner: by a last look",
        ClaimSleeps = "claims -> asleep",
        CallClaim = "claims, asleep -> called: the lock is handed over",
        HandedAfterAll = "awake, in vain -> owner: the unlocker was faster",
        GiveUpAwake = "awake, in vain -> gives up",
        PassOn = "gives up: the lock is free, so does an unlocker's work for the others",
        Again = "awake, in vain -> first in the list: kick = 1",
        AgainQuietly = "awake, in vain -> first in the list: kick was 1, or another one has asked",
        AgainLater = "awake, in vain -> first in the list: passed again and again, the owner has lost its CPU, kick = 0",
        BookTurn = "spins -> surplus: books a turn, asleep",
        MakeRoom = "spins -> surplus: CPUs are short, asleep",
        TurnBegins = "surplus -> awake: its turn begins",
        TurnEnds = "has the turn -> spins: it meets another thread",

        KickOthers = "owner: kick = 1, others sleep",
        KickNobody = "owner: kick = 0, nobody sleeps, or a sleeper is on its way",
        KickLater = "owner: kick = 0, it came late, the others have timers",
        KickAsked = "owner: kick stays 2, another one has asked",
        CallFirst = "unlocker: kick == 1, calls the first sleeper",
        CallBusy = "unlocker: kick == 1 -> 0, calls the first sleeper to a busy lock",
        Mark = "unlocker: the guard is held, marks it",
        ServeMark = "guard's holder: marked, and free: does the unlocker's work",
        LeaveMark = "guard's holder: marked, and held: the owner's unlock will",
        ServeAgain = "unlocker: marked by another one, looks again",
        Defer = "owner: keeps a kick until it unlocks",
        KickDeferred = "unlocker, or a thread that exits: the kick that it has kept",
    }
}

/// What a policy may leave out: without [`Policy::OWNER_CPU`] the first two, without [`Policy::LEARN`] all but the first. (Where acquisitions
/// are not counted, no lock is busy.)
const OPTIONAL: &[&str] = &[
    Step::OwnerGone.text(),
    Step::AgainLater.text(),
    Step::BookTurn.text(),
    Step::MakeRoom.text(),
    Step::TurnBegins.text(),
    Step::TurnEnds.text(),
    Step::KickLater.text(),
    Step::CallBusy.text(),
];

/// What an unlock that [looks first](Unlock::LookThenStore) leaves out beside the first two of those: it hands over what it still owns, and nobody
/// leaves it work, since it would have to look whether somebody did.
const LOOKS_FIRST: &[&str] = &[
    Step::OwnerGone.text(),
    Step::AgainLater.text(),
    Step::HandOver.text(),
    Step::HandOverLate.text(),
    Step::Mark.text(),
    Step::ServeMark.text(),
    Step::LeaveMark.text(),
    Step::ServeAgain.text(),
];

impl<P: Platform, Y: Policy> Drawn for Overlock<P, Y> {
    const DIAGRAMS: &'static [&'static Diagram] = &[&DIAGRAM];

    const LACKS: &'static [&'static str] = match (Y::UNLOCK, Y::OWNER_CPU, Y::LEARN) {
        (Unlock::LookThenStore, true, _) => LOOKS_FIRST.split_at(2).1,
        (Unlock::LookThenStore, false, _) => LOOKS_FIRST,
        (_, true, true) => &[],
        (_, false, true) => OPTIONAL.split_at(2).0,
        (_, true, false) => OPTIONAL.split_at(1).1,
        (_, false, false) => OPTIONAL,
    };
}

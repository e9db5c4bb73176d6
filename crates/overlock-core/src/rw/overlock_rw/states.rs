//! The diagram of the [module's page](super) as data.

use super::{Bias, OverlockRw, Policy};
use crate::diagram::{Diagram, Drawn, diagram};
use crate::platform::Platform;
use crate::sleep::wait_list;
use crate::spin::overlock;

diagram! {
    "overlock_rw" {
        Count = "gate open: readers + 1",
        CountInVain = "gate closed: readers + 1, in vain",
        PassGate = "gate passed: readers + 1",
        Uncount = "readers - 1",
        KickDrainer = "kicks the drainer",
        Enter = "entry = id",
        EnterInVain = "entry = id, bias ended: in vain",
        Leave = "entry = 0",
        LeaveEnded = "entry = 0, bias ended: clears it again",
        BiasOn = "the bias: off -> on",
        BiasOff = "the bias: on -> off",
        Write = "gate closed -> written: no reader",
        TryInVain = "gate closed -> opened: an attempt finds a reader",
        DrainCount = "a drainer: the counted readers are gone",
        DrainEntry = "a drainer: waits for an entry",
        DrainerSleeps = "a drainer: asleep",
        Drained = "draining -> written",
        DrainAtLimit = "draining -> gate opened: at its limit",
        Unlock = "written -> free",
        Downgrade = "written -> read",
        EnterUpgradable = "upgradable = 1, readers + 1",
        ReleaseUpgradable = "upgradable = 0",
        Upgrade = "an upgradable reader -> written",
        UpgradeInVain = "an upgradable reader -> reads on",
        Join = "in the list",
        FirstFindsIt = "in the list, the first: upgradable = 1",
        FirstGoes = "in the list, the first: upgradable = 0",
        LeaveAtLimit = "in the list: at its limit",
        Nap = "without a node: naps",
    }
}

impl Step {
    /// How a reader counts itself in.
    pub(super) fn of_counting(open: bool) -> Self {
        if open { Step::Count } else { Step::CountInVain }
    }
}

/// What is left out where readers always count themselves, and, first, what always is: the gate does not know its owner's CPU, and no
/// condition variable uses it.
const LACKS: &[&str] = &[
    wait_list::Step::Cancelled.text(),
    overlock::Step::OwnerGone.text(),
    overlock::Step::AgainLater.text(),
    overlock::Step::Defer.text(),
    overlock::Step::KickDeferred.text(),
    Step::Enter.text(),
    Step::EnterInVain.text(),
    Step::Leave.text(),
    Step::LeaveEnded.text(),
    Step::BiasOn.text(),
    Step::BiasOff.text(),
    Step::DrainEntry.text(),
];

impl<P: Platform, Y: Policy> Drawn for OverlockRw<P, Y> {
    const DIAGRAMS: &'static [&'static Diagram] = &[
        &DIAGRAM,
        &overlock::GATE_DIAGRAM,
        &overlock::DIAGRAM,
        &wait_list::DIAGRAM,
    ];
    const LACKS: &'static [&'static str] = match Y::BIAS {
        Bias::Never => LACKS,
        Bias::Learned | Bias::Always => LACKS.split_at(5).0,
    };
}

//! A lock whose readers may pass those that wait, and that its last owner may free.

use overlock_core::Deadline;
use overlock_core::rw::OverlockRw;
use overlock_core::rw::overlock_rw::Passing;

use super::scripts::Act::{self, *};
use super::scripts::{FREED, PASSING};
use super::{Abilities, Shared, freed, of_scripts, played};
use crate::scenario::Scenario;
use crate::world::{World, ranked};

/// The scenarios for the lock whose readers may pass, and that its last owner may free.
pub fn barging<W: World>() -> Vec<Scenario> {
    let abilities = Abilities {
        passing: Some(Shared::read_past),
        ..Abilities::<W, OverlockRw<W>>::full()
    };
    let mut scenarios = of_scripts(abilities, PASSING);
    scenarios.extend(played(abilities, FREED, freed::play));
    scenarios
}

impl<W: World> Shared<W, OverlockRw<W>> {
    fn write_ranked(&self, until: Option<Deadline>) {
        let written = ranked::<W, _>(|| self.lock.write_within(until));
        self.write_and_unlock(written.then_some(()));
    }

    fn read_past(&self, act: Act) {
        let read = |barging, until| self.lock.read_passing(barging, until).ok();
        let token = match act {
            ReadLater => read(Passing::Later, None),
            TryReadPast => self.lock.try_read_passing(Passing::Later).ok(),
            ReadPastWithin(nanos) => {
                let deadline = W::now().plus_nanos(nanos);
                read(Passing::AtOnce, Some(deadline.into()))
            }
            ReadAgain => {
                let outer = read(Passing::Never, None);
                self.inspect();
                self.read_and_unlock(read(Passing::AtOnce, None));
                outer
            }
            ReadRanked => ranked::<W, _>(|| read(Passing::Never, None)),
            WriteRanked => return self.write_ranked(None),
            WriteRankedWithin(nanos) => {
                return self.write_ranked(Some(W::now().plus_nanos(nanos).into()));
            }
            _ => read(Passing::AtOnce, None),
        };
        self.read_and_unlock(token);
    }
}

//! The sleepers' side of the lock: joining the list, halting, and getting the lock after that.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use super::queue::{CALLED, CLAIMING, GIVEN, LONGEST_NS, QUEUED, Queue};
use super::states::Step;
use super::wait::FIXED_SPIN_NS;
use super::{BUSY_NS, FREE, KICK, NOTHING, Overlock, Policy, TURN_NS, Unlock};
use crate::node::{Node, NodeId};
use crate::platform::{Atomic, Instant, Platform, Spin};
use crate::sleep::wait_list::{End, Limit};
use crate::stat::{self, Event, Latency};

/// A sleeper that comes later than this after its call, or its time, has waited for a CPU.
const LATE_NS: u64 = 500_000;
/// And later than this for a CPU that several others want.
const VERY_LATE_NS: u64 = 5_000_000;
/// For how long a thread watches the lock between its announcement and its sleep. Some ten times what a store takes to leave its CPU's
/// store buffer for a line that others want too.
const LOOK_NS: u64 = 1_000;
/// A sleeper that others have passed so often since it first failed, and that finds the owner off its CPU, is not called. Twice as many saves less;
/// counting from its arrival left the lock idle after a broadcast.
const PASSED: u32 = 4;
/// A sleeper that has failed for so long claims the lock even asleep.
const CLAIM_NS: u64 = 10_000_000;
/// A claim that an unlock may have missed looks at the lock as often as this.
const CLAIM_LOOK_NS: u64 = 1_000_000;

/// A thread in the slow path, and how it came out of its latest sleep.
pub(super) struct Sleeper {
    /// When it came to the slow path, and how many acquisitions there had been by then.
    entered: Instant,
    done: u32,
    /// When it first failed to get the lock, awake, and how many acquisitions there had been by then.
    failed: Option<(Instant, u32)>,
    /// How many there had been when it failed last.
    seen: u32,
    /// When it was called, or its time was over.
    called: Instant,
    /// An unlocker called it.
    kicked: bool,
    /// It has asked for the hand-over.
    pub(super) asked: bool,
    /// It got the lock long after it was called, or its time was over.
    pub(super) very_late: bool,
    /// For how long it spins once it has.
    patience_ns: u64,
}

impl Sleeper {
    pub(super) fn new(now: Instant, done: u32, patience_ns: u64) -> Self {
        Sleeper {
            entered: now,
            done,
            patience_ns,
            failed: None,
            seen: done,
            called: now,
            kicked: false,
            asked: false,
            very_late: false,
        }
    }

    pub(super) fn wakes(&mut self, called: Instant, kicked: bool) {
        self.called = called;
        self.kicked = kicked;
    }
}

/// What comes after an attempt in vain.
pub(super) enum Next {
    /// It was not in vain after all.
    Owner,
    GiveUp,
    /// Asleep again; and whether the next attempt is a claim.
    Again(Place, bool),
}

/// A place in the list.
pub(super) struct Place {
    /// When its sleeper wakes by itself.
    due: Instant,
    /// `kick` has been set for it, or taken back: OL is to follow.
    announced: bool,
}

impl<P: Platform, Y: Policy> Overlock<P, Y> {
    /// Returns as the owner, or without the lock once `deadline` has passed. Joins the sleepers, at once or,
    /// with `awake`, after a first attempt.
    pub(super) fn sleep(
        &self,
        id: NodeId,
        sleeper: &mut Sleeper,
        awake: bool,
        limit: &Limit<'_, P>,
    ) -> bool {
        let _watched = limit.cancel.map(|token| token.watch(id.node()));
        let mut place = (!awake).then(|| self.join(id));
        let mut firm = false;
        loop {
            if let Some(place) = place {
                if self.looks(id, &place, limit) {
                    return true;
                }
                if !self.halt(id, sleeper, place.due, limit) {
                    return false;
                }
                if self.was_given(id, sleeper) {
                    return true;
                }
            }
            if self.compete(id, sleeper, firm, limit) {
                return true;
            }
            match self.fall_back(id, sleeper, limit) {
                Next::Owner => return true,
                Next::GiveUp => return false,
                Next::Again(next, claims) => {
                    place = Some(next);
                    firm = claims;
                }
            }
        }
    }

    /// After an attempt in vain: back to the front of the list, unless the unlocker was quicker than the
    /// request's end, or `deadline` has passed.
    pub(super) fn fall_back(
        &self,
        id: NodeId,
        sleeper: &mut Sleeper,
        limit: &Limit<'_, P>,
    ) -> Next {
        let now = P::now();
        let queue = self.queue();
        if sleeper.asked && self.take_handed(id) {
            Step::HandedAfterAll.taken::<P>();
            self.settle(&queue, id, sleeper);
            return Next::Owner;
        }
        if sleeper.kicked {
            queue.set_awake(false);
        }
        if limit.reached().is_some() {
            let others = queue.first().is_some();
            // OK, for whoever is first now.
            let announced = queue.ask_for(if others { KICK } else { NOTHING }, id);
            Step::GiveUpAwake.taken::<P>();
            drop(queue);
            if others && announced {
                self.pass_on();
            }
            return Next::GiveUp;
        }
        stat::count::<P>(Event::PvWaitAgain);
        let done = self.done.load(Relaxed);
        let (failed, done_then) = *sleeper.failed.get_or_insert((now, done));
        let claims = now.nanos_since(failed) > CLAIM_NS;
        // Others go on to take the lock past this thread, and it finds their CPU to be its own. Each of their unlocks would call it, in vain. A sleeper with
        // a limit is called all the same: its limit may come before its timer.
        let goes_on = core::mem::replace(&mut sleeper.seen, done) != done;
        let later = goes_on
            && done.wrapping_sub(done_then) >= PASSED
            && !claims
            && limit.is_for_ever()
            && Self::owner_lost_its_cpu(self.locked.load(Relaxed));
        // OK, for ourselves; where `kick` is 1 already, somebody has seen to that.
        let known = self.request() == KICK;
        let due = queue.push_front(id, now);
        let announced = if later {
            // The look finds a release that came while we had the guard. What others have asked for, but a hand-over, is taken back too: their timers
            // are as near.
            queue.ask_for(NOTHING, id);
            Step::AgainLater.taken::<P>();
            true
        } else {
            let announced = queue.ask_for(KICK, id) && !known;
            let again = if announced {
                Step::Again
            } else {
                Step::AgainQuietly
            };
            again.taken::<P>();
            announced
        };
        Next::Again(Place { due, announced }, claims)
    }

    /// Joins the list as its last.
    fn join(&self, id: NodeId) -> Place {
        let queue = self.queue();
        let due = queue.push_back(id, P::now());
        let announced = self.request() == NOTHING && !queue.someone_is_awake();
        if announced {
            // OK
            queue.set_kick(KICK);
        }
        let joined = if announced {
            Step::Join
        } else {
            Step::JoinQuietly
        };
        joined.taken::<P>();
        Place { due, announced }
    }

    /// Before a sleep: whether it has got the lock after all.
    pub(super) fn looks(&self, id: NodeId, place: &Place, limit: &Limit<'_, P>) -> bool {
        let acquired = place.announced && self.brief_look(limit);
        if acquired {
            self.leave(id);
        }
        acquired
    }

    /// After setting or taking back `kick`, before a sleep that a timer ends: takes the lock if its owner unlocks, or has just unlocked without seeing
    /// that. Its store is seen at the latest when its CPU's store buffer is empty.
    fn brief_look(&self, limit: &Limit<'_, P>) -> bool {
        // The compiler keeps OL behind OK.
        P::light_barrier();
        // OL: SeqCst for the exchange form of unlock, which needs no more.
        let free = self.locked.load(SeqCst) == FREE && self.take();
        free || Y::UNLOCK != Unlock::ExchangeThenLook
            && self.spin(
                Spin::Until(limit.earlier(P::now().plus_nanos(LOOK_NS))),
                None,
            )
    }

    /// After setting `kick`, before the sleep of a claim: takes the lock if its owner may have unlocked without seeing that.
    fn last_look(&self) -> bool {
        if Y::UNLOCK == Unlock::StoreThenLook {
            P::heavy_barrier();
        }
        // OL: SeqCst for the exchange form of unlock. The heavy barrier orders it otherwise, or nothing does, and a timer is due.
        self.locked.load(SeqCst) == FREE && self.take()
    }

    /// After setting `kick` on behalf of others, when leaving: does their unlocker's work if the lock is free.
    fn pass_on(&self) {
        if Y::UNLOCK == Unlock::StoreThenLook {
            P::heavy_barrier();
        }
        if self.locked.load(SeqCst) == FREE {
            Step::PassOn.taken::<P>();
            match Y::UNLOCK {
                Unlock::LookThenStore => self.call_one(),
                _ => self.wake_one(),
            }
        }
    }

    /// The owner takes itself out of the list, or ends its being called.
    fn leave(&self, id: NodeId) {
        let queue = self.queue();
        if id.node::<P>().state.load(Relaxed) == QUEUED {
            queue.unlink(id);
            Step::LookAndLeave.taken::<P>();
        } else {
            queue.set_awake(false);
            Step::LookAndCalled.taken::<P>();
        }
        let kick = queue.first().is_some() && !queue.someone_is_awake();
        queue.ask_for(if kick { KICK } else { NOTHING }, id);
    }

    /// Sleeps until called, or until `due`; out of the list then. False once `limit` is reached.
    pub(super) fn halt(
        &self,
        id: NodeId,
        sleeper: &mut Sleeper,
        mut due: Instant,
        limit: &Limit<'_, P>,
    ) -> bool {
        let node = id.node::<P>();
        let since = P::now();
        loop {
            self.halt_while(node, QUEUED, Some(limit.earlier(due)), limit);
            // NA: acquire, pairs with NS.
            if node.state.load(Acquire) == QUEUED {
                let now = P::now();
                let end = limit.reached();
                let give_up = end.is_some();
                if now < due && !give_up {
                    continue;
                }
                let queue = self.queue();
                let slept = now.nanos_since(since);
                let held = self.locked.load(Relaxed) != FREE;
                if held && self.request() != NOTHING && !give_up && slept < LONGEST_NS {
                    // The owner's unlock will call the first, and this one may have to wait for others; more and more rarely it looks
                    // whether it was forgotten.
                    let last = since.plus_nanos(LONGEST_NS);
                    due = now.plus_nanos(slept.max(TURN_NS)).min(last);
                    Step::SleepOn.taken::<P>();
                    continue;
                }
                if node.state.load(Relaxed) == QUEUED {
                    queue.unlink(id);
                    // An unlock may have called nobody: a deadline ends no wait beside a free lock.
                    let tries = !give_up || end == Some(End::Deadline) && !held;
                    let left = if tries {
                        Step::WakeByTimer
                    } else {
                        Step::GiveUpAsleep
                    };
                    left.taken::<P>();
                    if queue.first().is_none() {
                        queue.ask_for(NOTHING, id);
                    }
                    sleeper.wakes(due, false);
                    return tries;
                }
                Step::CalledInTime.taken::<P>();
            }
            Step::Wake.taken::<P>();
            stat::count::<P>(Event::PvKickWake);
            sleeper.wakes(Instant::from_nanos(node.kicked_at.load(Relaxed)), true);
            return true;
        }
    }

    /// Sleeps while the sleeper's state is `state`, until kicked or until `until`; returns for no reason too.
    fn halt_while(&self, node: &Node<P>, state: u32, until: Option<Instant>, limit: &Limit<'_, P>) {
        // The kicks are read before what they tell of: acquire, pairs with the release in `kick` and that of a
        // cancelling thread.
        let kicks = node.kicks.load(Acquire);
        if node.state.load(Relaxed) == state && !limit.is_cancelled() {
            let sleeps = if state == QUEUED {
                Step::Sleep
            } else {
                Step::ClaimSleeps
            };
            sleeps.taken::<P>();
            stat::timed::<P, ()>(Latency::TimeBlocked, || P::halt(&node.kicks, kicks, until));
        }
    }

    /// Whether a fair unlock has given the lock to the sleeper, which has taken it then.
    fn was_given(&self, id: NodeId, sleeper: &mut Sleeper) -> bool {
        // NA was before: the state has not changed since.
        let given = id.node::<P>().state.load(Relaxed) == GIVEN && self.take_handed(id);
        if given {
            Step::Given.taken::<P>();
            // It was not called: another sleeper may be on its way.
            sleeper.kicked = false;
            self.settle(&self.queue(), id, sleeper);
        }
        given
    }

    /// A sleeper that has woken tries to become the owner, with more and more weight.
    pub(super) fn compete(
        &self,
        id: NodeId,
        sleeper: &mut Sleeper,
        firm: bool,
        limit: &Limit<'_, P>,
    ) -> bool {
        sleeper.asked = false;
        let soon = limit.earlier(P::now().plus_nanos(FIXED_SPIN_NS));
        let mut acquired = self.spin(Spin::Until(soon), None);
        if !acquired {
            stat::count::<P>(Event::PvWaitHead);
            let state = if firm { CLAIMING } else { CALLED };
            sleeper.asked = self.queue().ask_for_hand_over(id, state);
            let asks = match (sleeper.asked, firm) {
                (true, false) => Step::Ask,
                (true, true) => Step::Claim,
                (false, _) => Step::AskInVain,
            };
            asks.taken::<P>();
            acquired = if sleeper.asked && firm {
                self.claim(id, limit)
            } else {
                let end = P::now().plus_nanos(sleeper.patience_ns);
                self.spin(Spin::Until(limit.earlier(end)), sleeper.asked.then_some(id))
            };
        }
        if acquired {
            self.settle(&self.queue(), id, sleeper);
        }
        acquired
    }

    /// Waits asleep for the hand-over; returns without the lock once `limit` is reached.
    #[cold]
    pub(super) fn claim(&self, id: NodeId, limit: &Limit<'_, P>) -> bool {
        let node = id.node::<P>();
        let mut acquired = self.last_look();
        loop {
            if acquired {
                Step::ClaimTakes.taken::<P>();
                return true;
            }
            let until = match Y::UNLOCK {
                // An owner that looked before the claim was announced may release after OL.
                Unlock::LookThenStore => Some(limit.earlier(P::now().plus_nanos(CLAIM_LOOK_NS))),
                _ => limit.deadline,
            };
            self.halt_while(node, CLAIMING, until, limit);
            // NA: acquire, pairs with NS.
            if node.state.load(Acquire) == CALLED && self.take_handed(id) {
                return true;
            }
            if limit.reached().is_some() {
                return false;
            }
            acquired = Y::UNLOCK == Unlock::LookThenStore && self.last_look();
        }
    }

    /// A sleeper is the owner now: says what its unlock has to do for the others (I3).
    pub(super) fn settle(&self, queue: &Queue<'_, P, Y>, id: NodeId, sleeper: &mut Sleeper) {
        if sleeper.kicked {
            queue.set_awake(false);
        }
        // Where CPUs are short and the lock is busy, the others come by their timers.
        let now = P::now();
        let waited = now.nanos_since(sleeper.called);
        let done = self.done.load(Relaxed).wrapping_sub(sleeper.done);
        let busy = u64::from(done) * BUSY_NS >= now.nanos_since(sleeper.entered);
        let late = Y::LEARN && busy && waited > LATE_NS;
        sleeper.very_late = busy && waited > VERY_LATE_NS;
        let others = queue.first().is_some() && !queue.someone_is_awake();
        let kick = others && !late;
        // No barrier: this thread owns the lock and its own unlock sees it.
        let asked = queue.ask_for(if kick { KICK } else { NOTHING }, id);
        let settled = match (asked, kick) {
            (false, _) => Step::KickAsked,
            (true, true) => Step::KickOthers,
            (true, false) if others => Step::KickLater,
            (true, false) => Step::KickNobody,
        };
        settled.taken::<P>();
    }
}

//! Visits that begin as the lock's upgradable reader.

use overlock_core::raw::{RawFairRwLock, RawUpgradeRwLock};

use super::{Inner, Shared};
use crate::canary::Torn;
use crate::plan::{How, Side, Step, Then};
use crate::worker::{Limit, Worker};
use crate::worker_state::Op;

/// Acquires as the upgradable reader, by one of the ways, perhaps changes sides, and leaves. Its
/// data stay as it reads them until it writes.
pub fn visit<L: RawUpgradeRwLock>(
    shared: &Shared<L>,
    worker: &Worker,
    lock: usize,
    step: &Step,
    inner: Inner<'_>,
) {
    let Some(token) = acquire(shared, worker, lock, step) else {
        return;
    };
    let seen = shared.inspect(worker, lock, step, inner);
    let raw = &shared.seats[lock].lock;
    if step.then != Then::Change {
        // SAFETY: each token is that of the acquisition before, here and below.
        return worker.release(lock, || unsafe { raw.unlock_upgradable(token) });
    }
    if step.bits & 3 == 0 {
        // SAFETY: as above.
        let token = unsafe { raw.downgrade_upgradable(token) };
        worker.hold(lock, Side::Read);
        shared.inspect_again(worker, lock, step, seen);
        return shared.leave_read(worker, lock, token, step);
    }
    match upgrade(shared, worker, lock, step, token) {
        Ok(token) => write(shared, worker, lock, step, token, seen),
        Err(token) => {
            shared.inspect_again(worker, lock, step, seen);
            // SAFETY: as above.
            worker.release(lock, || unsafe { raw.unlock_upgradable(token) });
        }
    }
}

/// The same, with a release that favours those that wait.
pub fn fair_visit<L: RawFairRwLock>(
    shared: &Shared<L>,
    worker: &Worker,
    lock: usize,
    step: &Step,
    inner: Inner<'_>,
) {
    let Some(mut token) = acquire(shared, worker, lock, step) else {
        return;
    };
    shared.inspect(worker, lock, step, inner);
    let raw = &shared.seats[lock].lock;
    if step.then == Then::Bump {
        // SAFETY: the token is that of the acquisition before, here and below.
        let bump = || unsafe { raw.bump_upgradable(token) };
        token = worker.wait(Op::Bump, lock, Side::Upgradable, bump);
        shared.inspect(worker, lock, step, &|| {});
    }
    // SAFETY: as above.
    worker.release(lock, || unsafe { raw.unlock_upgradable_fair(token) });
}

fn acquire<L: RawUpgradeRwLock>(
    shared: &Shared<L>,
    worker: &Worker,
    lock: usize,
    step: &Step,
) -> Option<L::Upgradable> {
    let attempt = |raw: &L, how, limit: &Limit| match how {
        How::Try => raw.try_upgradable(),
        How::Timed(_) => raw.upgradable_until(limit.until()),
        How::Wait | How::Cancel => Some(raw.upgradable()),
    };
    shared.acquire(worker, lock, Side::Upgradable, step.how, attempt)
}

/// Becomes the writer, or stays what it is.
fn upgrade<L: RawUpgradeRwLock>(
    shared: &Shared<L>,
    worker: &Worker,
    lock: usize,
    step: &Step,
    token: L::Upgradable,
) -> Result<L::Write, L::Upgradable> {
    let raw = &shared.seats[lock].lock;
    let (op, side) = match step.bits >> 2 & 3 {
        0 => (Op::TryUpgrade, Side::Upgradable),
        1 => (Op::UpgradeUntil, Side::Upgradable),
        _ => (Op::Upgrade, Side::Write),
    };
    let limit = Limit::within(step.bits >> 32 & 0xf_ffff);
    let result = worker.wait(op, lock, side, || match op {
        // SAFETY: callers pass the token of their acquisition, here and below.
        Op::TryUpgrade => unsafe { raw.try_upgrade(token) },
        // SAFETY: as above.
        Op::UpgradeUntil => unsafe { raw.upgrade_until(token, limit.until()) },
        // SAFETY: as above.
        _ => Ok(unsafe { raw.upgrade(token) }),
    });
    if op == Op::UpgradeUntil && result.is_err() {
        worker.gave_up(op, limit.until(), worker.since());
    }
    if result.is_ok() {
        worker.hold(lock, Side::Write);
    }
    result
}

/// The section of the writer that was the upgradable reader and has seen `seen`.
fn write<L: RawUpgradeRwLock>(
    shared: &Shared<L>,
    worker: &Worker,
    lock: usize,
    step: &Step,
    token: L::Write,
    seen: Option<u64>,
) {
    let raw = &shared.seats[lock].lock;
    let left = shared.change(worker, lock, step);
    if let (Some(seen), Some(left)) = (seen, left)
        && left != seen + 1
    {
        worker.check::<()>(lock, Err(Torn::Changed(seen, left - 1)));
    }
    if step.bits & 1 << 4 != 0 {
        return shared.leave_write(worker, lock, token, step, left);
    }
    // SAFETY: the caller passes the token of its acquisition, here and below.
    let token = unsafe { raw.downgrade_to_upgradable(token) };
    worker.hold(lock, Side::Upgradable);
    shared.inspect_again(worker, lock, step, left);
    // SAFETY: as above.
    worker.release(lock, || unsafe { raw.unlock_upgradable(token) });
}

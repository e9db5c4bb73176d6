//! The types' `Send` and `Sync`. Guards: the `unsafe impl`s of `Sync`, and the marker that keeps
//! guards from being `Send`.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use overlock::*;

/// Has a method for types that are not `Send` and one for those that are: does not compile ("type
/// annotations needed") unless exactly one of the two fits.
trait NotSend<A> {
    fn not_send() {}
}
struct Sent;
impl<T: ?Sized> NotSend<()> for T {}
impl<T: ?Sized + Send> NotSend<Sent> for T {}

/// The same for `Sync`.
trait NotSync<A> {
    fn not_sync() {}
}
struct Shared;
impl<T: ?Sized> NotSync<()> for T {}
impl<T: ?Sized + Sync> NotSync<Shared> for T {}

fn send<T: ?Sized + Send>() {}
fn sync<T: ?Sized + Sync>() {}

/// `Sync`, not `Send`: as a standard guard is.
type SyncOnly = std::sync::MutexGuard<'static, u32>;

macro_rules! check {
    ($($check:ident: $($type:ty),+;)*) => {$($(
        check!(@ $check $type);
    )+)*};
    (@ not_send $type:ty) => { <$type as NotSend<_>>::not_send() };
    (@ not_sync $type:ty) => { <$type as NotSync<_>>::not_sync() };
    (@ $check:ident $type:ty) => { $check::<$type>() };
}

#[test]
fn locks() {
    check! {
        send: Mutex<u32>, Mutex<Cell<u32>>, RwLock<Cell<u32>>, PerCpuRwLock<Cell<u32>>;
        sync: Mutex<u32>, Mutex<Cell<u32>>, RwLock<u32>, PerCpuRwLock<u32>;
        not_send: Mutex<Rc<u32>>, Mutex<SyncOnly>, RwLock<Rc<u32>>, RwLock<SyncOnly>;
        // Locking would send the data.
        not_sync: Mutex<Rc<u32>>, Mutex<SyncOnly>, RwLock<SyncOnly>;
        // Reading would share it.
        not_sync: RwLock<Cell<u32>>, PerCpuRwLock<Cell<u32>>;
        send: OnceLock<Cell<u32>>, Once, Barrier, RtMutex<Cell<u32>>;
        sync: OnceLock<u32>, Once, Barrier, RtMutex<Cell<u32>>;
        not_send: OnceLock<Rc<u32>>, OnceLock<SyncOnly>;
        not_sync: OnceLock<Cell<u32>>, OnceLock<SyncOnly>;
        send: Condvar, Semaphore, CancelToken, Cancelled, WaitTimeoutResult;
        sync: Condvar, Semaphore, CancelToken, Cancelled, WaitTimeoutResult;
    }
}

#[test]
fn guards_stay_on_their_thread() {
    check! {
        not_send: MutexGuard<'static, u32>, MappedMutexGuard<'static, u32>, ArcMutexGuard<RawMutex, u32>;
        not_send: RwLockReadGuard<'static, u32>, RwLockWriteGuard<'static, u32>;
        not_send: RwLockUpgradableReadGuard<'static, u32>, MappedRwLockReadGuard<'static, u32>;
        not_send: MappedRwLockWriteGuard<'static, u32>, ArcRwLockReadGuard<RawRwLock, u32>;
        not_send: ArcRwLockWriteGuard<RawRwLock, u32>, ArcRwLockUpgradableReadGuard<RawRwLock, u32>;
        not_send: ReentrantMutexGuard<'static, u32>, MappedReentrantMutexGuard<'static, u32>;
        not_send: ArcReentrantMutexGuard<RawMutex, RawThreadId, u32>, FairMutexGuard<'static, u32>;
        send: Permit<'static>;
    }
}

/// The types that say so are exceptions, where the data may be sent, too.
#[test]
fn guards_are_sent_by_type() {
    check! {
        send: SendMutexGuard<'static, Cell<u32>>, MappedSendMutexGuard<'static, Cell<u32>>;
        send: ArcMutexGuard<RawSendMutex, u32>, ArcRwLockReadGuard<RawSendRwLock, u32>;
        send: SendRwLockReadGuard<'static, u32>, SendRwLockWriteGuard<'static, u32>;
        send: SendRwLockUpgradableReadGuard<'static, u32>;
        send: MappedSendRwLockReadGuard<'static, u32>, MappedSendRwLockWriteGuard<'static, u32>;
        not_send: SendMutexGuard<'static, Rc<u32>>, SendMutexGuard<'static, SyncOnly>;
        not_send: ArcMutexGuard<RawSendMutex, Rc<u32>>, MappedSendMutexGuard<'static, Rc<u32>>;
        // Another thread would read what this one reads.
        not_send: SendRwLockReadGuard<'static, Cell<u32>>, MappedSendRwLockReadGuard<'static, Cell<u32>>;
        not_send: SendRwLockWriteGuard<'static, Cell<u32>>;
    }
}

/// Its owner's guards share the data, and no other thread's do.
#[test]
fn a_reentrant_mutex_needs_send_alone() {
    check! {
        send: ReentrantMutex<Cell<u32>>;
        sync: ReentrantMutex<Cell<u32>>, ReentrantMutexGuard<'static, u32>;
        not_send: ReentrantMutex<Rc<u32>>;
        not_sync: ReentrantMutex<Rc<u32>>, ReentrantMutex<SyncOnly>;
        // Two threads would share the cell.
        not_sync: ReentrantMutexGuard<'static, Cell<u32>>, MappedReentrantMutexGuard<'static, Cell<u32>>;
        not_sync: ArcReentrantMutexGuard<RawMutex, RawThreadId, Cell<u32>>;
        not_sync: ReentrantMutexGuard<'static, SyncOnly>;
    }
}

#[test]
fn guards_are_shared_where_their_data_and_their_lock_are() {
    check! {
        sync: MutexGuard<'static, u32>, ArcMutexGuard<RawMutex, u32>, RwLockReadGuard<'static, u32>;
        sync: RwLockWriteGuard<'static, u32>, RwLockUpgradableReadGuard<'static, u32>, Permit<'static>;
        not_sync: MutexGuard<'static, Cell<u32>>, ArcMutexGuard<RawMutex, Cell<u32>>;
        // `MutexGuard::mutex` of a shared guard would lock on another thread.
        not_sync: MutexGuard<'static, SyncOnly>, ArcMutexGuard<RawMutex, SyncOnly>;
        not_sync: RwLockReadGuard<'static, SyncOnly>, RwLockWriteGuard<'static, SyncOnly>;
        not_sync: MappedMutexGuard<'static, Cell<u32>>, MappedRwLockReadGuard<'static, Cell<u32>>;
        // Nothing leads from these to the lock.
        sync: MappedMutexGuard<'static, SyncOnly>, MappedRwLockReadGuard<'static, SyncOnly>;
        sync: MappedRwLockWriteGuard<'static, SyncOnly>;
    }
}

/// Other threads may read a guard while its thread holds it.
#[test]
fn a_shared_guard_is_read_by_another_thread() {
    let lock = Arc::new(Mutex::new(vec![1, 2]));
    let guard = lock.lock_arc();
    std::thread::scope(|scope| {
        let sum = scope.spawn(|| guard.iter().sum::<i32>());
        assert_eq!(sum.join().unwrap(), 3);
    });
}

/// Types without user data may be borrowed across `catch_unwind`. As in parking_lot, a lock with
/// data may not: without poisoning, a panic may leave the data half changed.
#[test]
fn what_has_no_data_is_unwind_safe() {
    use std::panic::{RefUnwindSafe, UnwindSafe};

    fn both<T: UnwindSafe + RefUnwindSafe>() {}

    both::<Barrier>();
    both::<CancelToken>();
    both::<Condvar>();
    both::<Once>();
    both::<Permit<'static>>();
    both::<Semaphore>();
    both::<OnceLock<u32>>();
    both::<spin::Hybrid>();
    both::<spin::FastQueue>();
    both::<spin::Mcs>();
    both::<sleep::Overlock>();
    both::<rw::OverlockRw>();
    both::<rw::RwSem>();
}

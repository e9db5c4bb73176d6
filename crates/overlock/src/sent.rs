//! Locks whose guards may be sent to other threads.

use overlock_core::raw::Sent;

use crate::guard::MappedReadGuard;
use crate::lock::{Lock, LockGuard, MappedLockGuard};
use crate::rwlock::{MappedWriteGuard, ReadGuard, SharedLock, UpgradableReadGuard, WriteGuard};
use crate::{RawMutex, RawRwLock};

/// The raw lock of [`SendMutex`].
pub type RawSendMutex = Sent<RawMutex>;

/// A [`Mutex`](crate::Mutex) whose guards are `Send`: a task may hold one across an `.await`, and
/// move to another thread meanwhile.
///
/// A task that holds one while it waits for input keeps all others out, and a thread that waits for
/// it runs no other task. So it is a type of its own, and a guard of the usual type is refused:
///
/// ```compile_fail
/// fn spawn(_: impl Future<Output = ()> + Send) {}
///
/// let lock = overlock::Mutex::new(0);
/// spawn(async {
///     let guard = lock.lock();
///     std::future::ready(()).await;
///     drop(guard);
/// });
/// ```
///
/// ```
/// fn spawn(_: impl Future<Output = ()> + Send) {}
///
/// let lock = overlock::SendMutex::new(0);
/// spawn(async {
///     let guard = lock.lock();
///     std::future::ready(()).await;
///     drop(guard);
/// });
/// ```
///
/// The features `lockdep` and `deadlock_detection`, which know what each thread holds, do not see
/// it. `stat` does. 4 bytes beside the data.
pub type SendMutex<T> = Lock<RawSendMutex, T>;

/// The guard of a [`SendMutex`]: see [`Guard`](crate::guard::Guard).
pub type SendMutexGuard<'a, T> = LockGuard<'a, RawSendMutex, T>;

/// The guard of a part of a [`SendMutex`]'s data: see [`MappedGuard`](crate::guard::MappedGuard).
pub type MappedSendMutexGuard<'a, T> = MappedLockGuard<'a, RawSendMutex, T>;

/// The raw lock of [`SendRwLock`].
pub type RawSendRwLock = Sent<RawRwLock>;

/// A [`RwLock`](crate::RwLock) whose guards are `Send`, as those of a [`SendMutex`]. 8 bytes beside
/// the data.
///
/// ```
/// use overlock::{SendRwLock, SendRwLockReadGuard};
///
/// static LIMITS: SendRwLock<[u32; 2]> = SendRwLock::new([1, 2]);
///
/// let guard: SendRwLockReadGuard<[u32; 2]> = LIMITS.read();
/// std::thread::spawn(move || drop(guard)).join().unwrap();
/// assert!(LIMITS.try_write().is_some());
/// ```
pub type SendRwLock<T> = SharedLock<RawSendRwLock, T>;

/// A reader's guard of a [`SendRwLock`]: see [`Guard`](crate::guard::Guard).
pub type SendRwLockReadGuard<'a, T> = ReadGuard<'a, RawSendRwLock, T>;

/// A writer's guard of a [`SendRwLock`]: see [`Guard`](crate::guard::Guard).
pub type SendRwLockWriteGuard<'a, T> = WriteGuard<'a, RawSendRwLock, T>;

/// An upgradable reader's guard of a [`SendRwLock`]: see [`Guard`](crate::guard::Guard).
pub type SendRwLockUpgradableReadGuard<'a, T> = UpgradableReadGuard<'a, RawSendRwLock, T>;

/// A reader's guard of a part of a [`SendRwLock`]'s data: see
/// [`MappedSharedGuard`](crate::guard::MappedSharedGuard).
pub type MappedSendRwLockReadGuard<'a, T> = MappedReadGuard<'a, RawSendRwLock, T>;

/// A writer's guard of a part of a [`SendRwLock`]'s data: see
/// [`MappedGuard`](crate::guard::MappedGuard).
pub type MappedSendRwLockWriteGuard<'a, T> = MappedWriteGuard<'a, RawSendRwLock, T>;

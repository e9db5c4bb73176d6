//! Locks that stay fast when there are more threads than CPUs.
//!
//! A spinlock collapses as soon as its holder loses its CPU; a mutex that wakes a waiter at each
//! unlock pays for a wake-up at each change of owner. [`Mutex`] does neither. Its waiters spin for
//! some microseconds, then sleep, and cost nothing while they do. Those that run pass those that
//! sleep, up to a bound. To unlock takes no locked instruction.
//!
//! ```
//! use overlock::Mutex;
//!
//! let queue = Mutex::new(Vec::new());
//! std::thread::scope(|scope| {
//!     for i in 0..16 {
//!         let queue = &queue;
//!         scope.spawn(move || queue.lock().push(i));
//!     }
//! });
//! assert_eq!(queue.lock().len(), 16);
//! ```
//!
//! # What to take
//!
//! | type | for |
//! |---|---|
//! | [`Mutex`] | what one thread at a time may touch; [`SpinLock`] is the same |
//! | [`RwLock`] | what is read by many and written by one |
//! | [`PerCpuRwLock`] | what is read all the time and hardly ever written |
//! | [`Condvar`] | waiting until what a lock protects has changed |
//! | [`RtMutex`] | threads with real-time priorities: who waits lends the holder its priority |
//! | [`WwMutex`] | several locks at once, taken in any order, without deadlock |
//! | [`Semaphore`] | so many at a time |
//! | [`Barrier`], [`Once`], [`OnceLock`] | waiting for each other, or for the first |
//! | [`CancelToken`] | ending waits from outside |
//!
//! The types have the shape of parking_lot's, so `use overlock as parking_lot` is often all that
//! there is to a trial; see [below](#coming-from-parking_lot). They are made from one source each,
//! for any raw lock: [`lock::Lock`], [`rwlock::SharedLock`] and [`guard::Guard`]. The raw locks are
//! in [`sleep`], [`rw`], and [`spin`], which has the whole family of the kernel's spinlocks. They
//! are written once for every platform, in [`overlock_core`]; [`Linux`] is the platform here.
//!
//! # System calls
//!
//! The locks need `futex`. `membarrier`, `sched_yield` and `futex_waitv` are extras. A program that
//! puts a seccomp filter in force which does not allow them calls [`Linux::use_futex_alone`]
//! before.
//!
//! # Coming from parking_lot
//!
//! Names, methods and guards are those of parking_lot 0.13, with the types of their arguments. What
//! is different:
//!
//! - A lock's raw form has tokens of its own: [`force_unlock`](lock::Lock::force_unlock) and its
//!   kind take one. `lock_api` is not part of these types: where a function asks for a
//!   `lock_api::Mutex`, give it one over a lock of [`spin`].
//! - Guards of `Arc`s and serde's traits (feature `serde`) are there; guards are never `Send`.
//! - Not there: `ReentrantMutex`, `RecursiveRwLock` (0.12's `read_recursive`), `FairMutex` (for
//!   strict order take [`lock::Lock`] over [`spin::Ticket`] or [`spin::Mcs`], and mind what they
//!   say about overcommit), `RawCondvar`, and the features `deadlock_detection`, `owning_ref` and
//!   `send_guard`.
//! - There in addition: [`lock_cancellable`](lock::Lock::lock_cancellable),
//!   [`is_contended`](lock::Lock::is_contended), [`into_token`](guard::Guard::into_token),
//!   [`leak`](guard::Guard::leak) of writers, [`PerCpuRwLock`], [`RtMutex`], [`Semaphore`],
//!   [`OnceLock`], [`Barrier`]; a [`Condvar`] takes the guard of any lock, and of an `Arc` of one.
//!
//! # Features
//!
//! - `lock_api` (default), `lock_api_04`: the `Raw*` traits of lock_api 0.5 and 0.4 for the raw
//!   locks.
//! - `serde`: `Serialize` and `Deserialize` for [`lock::Lock`] and [`rwlock::SharedLock`], as their
//!   data.
//! - `stat`: counters and latency histograms ([`stat`]).
//! - `checked`: misuse that is otherwise silent panics, as it does in debug builds.
//! - `lockdep`: the order of locks is validated while the program runs (`lockdep`). `lockdep_raw`:
//!   the validator's functions alone, for locks of any kind.
//! - `faulty`: locks that are broken on purpose, for tests of checkers.

pub mod barrier;
pub mod cancel;
pub mod condvar;
mod deadline;
pub mod guard;
pub mod lock;
#[cfg(feature = "lockdep_raw")]
pub mod lockdep;
mod names;
pub mod once;
pub mod rw;
pub mod rwlock;
pub mod semaphore;
#[cfg(feature = "serde")]
mod serde;
pub mod sleep;
pub mod spin;
mod watch;
pub mod ww_mutex;

pub use barrier::{Barrier, BarrierWaitResult};
pub use cancel::{CancelToken, Cancelled};
pub use condvar::{Condvar, WaitTimeoutResult};
pub use names::*;
pub use once::{Once, OnceLock, OnceState};
pub use overlock_core::stat;
pub use overlock_linux::Linux;
pub use semaphore::{Permit, Semaphore};
pub use ww_mutex::{WwMutex, WwMutexGuard};

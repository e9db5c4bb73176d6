//! Locks that stay fast when there are more threads than CPUs.
//!
//! A spinlock collapses as soon as its holder loses its CPU. A mutex that wakes a waiter at each
//! unlock pays for a wake-up at each change of owner. [`Mutex`] does neither. Its waiters spin for
//! some microseconds, then sleep, and cost nothing while they do. Running threads bypass sleeping
//! ones, up to a bound. Locking and unlocking are one
//! compare-exchange each.
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
//! # Choosing a type
//!
//! | type | for |
//! |---|---|
//! | [`Mutex`] | data for one thread at a time. [`SpinLock`] is an alias |
//! | [`RwLock`] | data that many threads read and some write |
//! | [`PerCpuRwLock`] | data that is read all the time and hardly ever written |
//! | [`ReentrantMutex`], [`RecursiveRwLock`] | threads that lock what they hold |
//! | [`FairMutex`] | threads that take turns |
//! | [`SendMutex`], [`SendRwLock`] | guards that move between threads, as in tasks |
//! | [`Condvar`] | waiting until the data under a lock has changed |
//! | [`RtMutex`] | threads with real-time priorities: a waiter lends the holder its priority |
//! | [`WwMutex`] | several locks at once, taken in any order, without deadlock |
//! | [`Semaphore`] | a limited number of threads at a time |
//! | [`Barrier`], [`Once`], [`OnceLock`] | waiting for each other, or for the first thread |
//! | [`CancelToken`] | ending waits from outside |
//! | [`wait`](fn@wait), [`wake_one`], [`Parker`] | primitives of your own |
//!
//! The types have the shape of parking_lot's, so a line of Cargo.toml is often enough for a trial:
//! see [below](#coming-from-parking_lot). Four generic types serve every raw lock: [`lock::Lock`],
//! [`rwlock::SharedLock`], [`reentrant::ReentrantLock`] and [`guard::Guard`]. The raw locks are in
//! [`sleep`], [`rw`], and, with the feature `family`, `spin`, which has the kernel's spinlocks.
//! Crates [`overlock_core`] and `overlock_family` have them for any platform; here the platform is
//! [`System`].
//!
//! # Systems
//!
//! The locks are there for Linux, Android, Windows, macOS, iOS, the BSDs, and wherever else the
//! standard library has threads. WebAssembly without threads has them too: there a wait without a
//! deadline panics. `RtMutex`, which needs priority inheritance, exists on Linux and Android. The
//! features `lockdep`, `deadlock_detection` and `stat` are for Linux: a program for other systems
//! too names them under `[target.'cfg(target_os = "linux")'.dependencies]`.
//!
//! On Linux the locks need the system call `futex`. `membarrier`, `sched_yield` and `futex_waitv`
//! are extras. A program calls `Linux::use_futex_alone` before it installs a seccomp filter that
//! refuses the extras.
//!
//! # Fork
//!
//! A child of `fork` has one of its parent's threads. It may use what no other thread held or
//! waited for at that moment, and what it makes itself. It first forgets who waited for the others:
//!
//! ```
//! # #[cfg(any(target_os = "linux", target_os = "android"))] {
//! use overlock::{Mutex, RwLock, rw::RawForkRwLock, sleep::RawFork};
//!
//! static JOBS: Mutex<Vec<u32>> = Mutex::new(Vec::new());
//! static NAMES: RwLock<Vec<String>> = RwLock::new(Vec::new());
//!
//! /// # Safety
//! ///
//! /// The process is a child of fork, has one thread, and has used no lock yet.
//! unsafe fn forget_others() {
//!     // SAFETY: the caller's promise.
//!     unsafe { overlock::Linux::after_fork() };
//!     // SAFETY: as above. Nothing is unlocked.
//!     unsafe { JOBS.raw().forget_waiters() };
//!     let is_writer = false; // this thread, at the fork
//!     // SAFETY: as above.
//!     unsafe { NAMES.raw().forget_waiters(is_writer) };
//! }
//! # let _ = forget_others as unsafe fn();
//! # }
//! ```
//!
//! Its thread still holds its locks, and those of other threads stay held. [`Condvar::raw`] forgets
//! waiters too. A [`Semaphore`], [`Barrier`] or [`WwMutex`] with waiters is not used again.
//!
//! # Two copies in a process
//!
//! A plugin may bring a copy of this crate, of the same version or another. Copies do not disturb
//! each other. Of one version, they may share a [`Mutex`], [`FairMutex`], [`RwLock`],
//! [`RecursiveRwLock`] or `RtMutex`, and words for [`wait`](fn@wait). All of such a lock's state
//! is in the lock, and its sleepers are in the kernel's queue. The other types must not be shared:
//! each copy has its own table of the threads that wait, read or own. Nor may a lock be shared
//! with `lockdep` or `stat`, or on a system without a call to wait at an address. One compiler
//! must have built all copies that pass locks to each other.
//!
//! # Coming from parking_lot
//!
//! Names, methods, guards and argument types are those of parking_lot 0.13, with those that 0.12
//! had besides. A program that uses parking_lot tries these types by one line, and no other change:
//!
//! ```toml
//! parking_lot = { package = "overlock", path = "../overlock/crates/overlock" }
//! ```
//!
//! The differences are:
//!
//! - A raw lock has its own token type, which [`force_unlock`](lock::Lock::force_unlock) and its
//!   kind take.
//! - These types are not lock_api's, which is re-exported. A function that asks for a
//!   `lock_api::Mutex` gets one over the raw lock, [`RawMutex`], and one that asks for a
//!   `lock_api::RwLock` gets one over [`RawRwLock`], as [below](#lock_api).
//! - Guards of `Arc`s are always there. Guards are `Send` by type and not by a feature: those of
//!   [`SendMutex`] and [`SendRwLock`], as in `use overlock::SendMutex as Mutex`.
//! - The feature `owning_ref` is missing: `map` does the same, and that crate has known unsoundness
//!   (RUSTSEC-2022-0040).
//! - Additions are [`lock_cancellable`](lock::Lock::lock_cancellable),
//!   [`is_contended`](lock::Lock::is_contended), [`into_token`](guard::Guard::into_token),
//!   [`leak`](guard::Guard::leak) of writers, [`PerCpuRwLock`], [`RtMutex`], [`Semaphore`],
//!   [`OnceLock`] and [`Barrier`].
//! - A [`Condvar`] takes the guard of any lock, and of an `Arc` of one. Threads may wait with
//!   different mutexes at a time; parking_lot panics then.
//!
//! # lock_api
//!
#![cfg_attr(feature = "lock_api", doc = "```")]
#![cfg_attr(not(feature = "lock_api"), doc = "```ignore")]
//! use overlock::lock_api;
//!
//! static HITS: lock_api::Mutex<overlock::RawMutex, u32> = lock_api::Mutex::new(0);
//!
//! *HITS.lock() += 1;
//! ```
//!
//! A `lock_api::Condvar` over [`RawCondvar`] waits with its guards; [`Condvar`] does not.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `lock_api`: the `Raw*` traits of lock_api 0.5 for the raw locks. It needs Rust 1.95, the rest
//!   1.85.
//! - `serde`: `Serialize` and `Deserialize` for [`lock::Lock`], [`rwlock::SharedLock`] and
//!   [`reentrant::ReentrantLock`], as their data.
//! - `family`: the kernel's lock family for threads, as raw locks in `spin`, [`sleep`] and
//!   [`rw`].
//! - `stat`: acquisitions and waits by the locks' [names](lock::Lock::named), which the program reads,
//!   and the program `overlock`: see [`stat`]. `stat_raw`: counters and latency histograms of all
//!   locks together alone, by [`stat::snapshot`]. Both are off until [`stat::enable`].
//! - `checked`: misuse that is otherwise silent panics, as it does in debug builds: a release of a
//!   lock that is not held, more permits than a [`Semaphore`] holds, a thread that waits for itself
//!   with an [`RtMutex`], a wrong context of a [`WwMutex`]. It does not find a thread that locks its
//!   own [`Mutex`] again, nor orders of locks that can deadlock: `lockdep` does.
//! - `lockdep`: the types report their acquisitions to a validator of lock order. `lockdep_raw`:
//!   the validator's functions alone, for locks of any kind.
//! - `deadlock_detection`: `lockdep`, and the module `deadlock`, which is parking_lot's.
//! - `faulty`: locks with injected faults, for tests of checkers.
//! - `loom`, `shuttle`: with `--cfg loom` or `--cfg shuttle` in `RUSTFLAGS` the types are those
//!   checkers' own, for tests of programs that lock: see [below](#loom-and-shuttle). Without the
//!   flag they do nothing.
//!
//! # loom and shuttle
//!
//! A test under [loom](https://docs.rs/loom) or [shuttle](https://docs.rs/shuttle) sees the locks,
//! if the program's Cargo.toml says
//!
//! ```toml
//! [target.'cfg(loom)'.dependencies]
//! overlock = { path = "../overlock/crates/overlock", features = ["loom"] }
//! loom = "0.7"
//! ```
//!
//! and the test runs with `RUSTFLAGS='--cfg loom'`. A lock's operation is one step, and a limit of
//! time passes as soon as other threads have had a turn. A lock in a `static` is free again in each
//! execution; its data stay. `RtMutex`, [`WwMutex`], [`Parker`], [`wait`](fn@wait) and the raw locks
//! in modules are the real ones: the checker does not see them, and hangs where they wait.
#![deny(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(feature = "stat", not(target_os = "linux")))]
compile_error!(
    "the feature `stat` of overlock is for Linux: name it under \
     [target.'cfg(target_os = \"linux\")'.dependencies]"
);

pub mod barrier;
mod base;
pub mod cancel;
pub mod condvar;
mod deadline;
#[cfg(feature = "deadlock_detection")]
pub mod deadlock;
pub mod guard;
pub mod lock;
#[cfg(feature = "lockdep_raw")]
pub mod lockdep;
mod names;
pub mod once;
pub mod reentrant;
pub mod rw;
pub mod rwlock;
pub mod semaphore;
mod sent;
#[cfg(feature = "serde")]
mod serde;
pub mod sleep;
#[cfg(feature = "family")]
pub mod spin;
pub mod stat;
pub mod wait;
mod watch;
pub mod ww_mutex;

pub use barrier::{Barrier, BarrierWaitResult};
pub use cancel::{CancelToken, Cancelled};
pub use condvar::{Condvar, WaitTimeoutResult};
/// For programs that name parking_lot's: the traits of raw locks, and its own locks over them.
#[cfg(feature = "lock_api")]
pub use lock_api;
pub use names::*;
pub use once::{Once, OnceLock, OnceState};
#[cfg(all(any(target_os = "linux", target_os = "android"), not(overlock_threads)))]
pub use overlock_linux::Linux;
#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(overlock_threads))))]
pub use overlock_threads::Threads;
pub use reentrant::{RawReentrantMutex, RawThreadId};
pub use semaphore::{Permit, Semaphore};
pub use sent::*;
pub use wait::{Parker, Unparker, wait, wait_until, wake_all, wake_one};
pub use ww_mutex::{WwMutex, WwMutexGuard};

/// The platform of all locks of this crate: `Linux` on Linux and Android, `Threads` elsewhere.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(overlock_threads)))]
pub type System = Linux;
/// The platform of all locks of this crate: `Linux` on Linux and Android, `Threads` elsewhere.
#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(overlock_threads))))]
pub type System = Threads;

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

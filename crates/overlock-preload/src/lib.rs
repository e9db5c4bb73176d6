//! `liboverlock_preload.so`: replaces the C library's locks by those of overlock in unmodified
//! programs.
//!
//! Loaded with `LD_PRELOAD`, it defines the functions of `pthread_mutex_t`, `pthread_cond_t`,
//! `pthread_rwlock_t`, `pthread_spinlock_t`, `pthread_barrier_t` and `sem_t`, and of `mtx_t` and
//! `cnd_t` of C11. It also interposes the functions by which a program [restricts itself](sandbox)
//! or [drops privileges](privileges), waits for futexes or files, or installs [signal
//! handlers](handlers). It interposes those that load [plugins] and look up names, and for the lock
//! validator those that [sleep].
//!
//! The locks live in the program's own objects, with the sizes and the static initialisers of
//! glibc. Process-shared, robust and priority-aware objects stay glibc's: the object itself says so
//! ([`mutex`] says how), and [glibc's function](real) is called for it.
//!
//! # Rules for all of this crate
//!
//! - No allocation, no thread-local with a destructor, nothing of `std` that locks, no panic: these
//!   functions run inside of allocators, before `main`, in destructors and while libraries are
//!   loaded.
//! - An object may be freed as soon as the last call *could* have returned: after a release nothing
//!   of the object is accessed.
//! - A child of fork() finds every object usable, as POSIX demands: [`fork`].
//! - These functions call no function that the program may replace, nor each other by their
//!   exported names: a replacement may call them in turn. `build.rs` binds calls within the
//!   library, and system calls do not go through the C library.
//! - Errors are those of POSIX, and glibc's where POSIX leaves a choice.
//!
//! # Configuration
//!
//! Environment variables, read once: [`config`]. `overlock run` sets them.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
#![allow(clippy::missing_safety_doc)] // POSIX says what callers of pthread functions promise

pub mod barrier;
pub mod c11;
pub mod cancel;
mod clock;
pub mod cond;
pub mod config;
mod elf;
mod ends;
mod events;
pub mod fork;
mod futex;
pub mod handlers;
pub mod mutex;
pub mod older;
pub(crate) mod order;
pub mod plugins;
pub mod privileges;
mod probes;
pub mod rank;
pub mod real;
pub mod rwlock;
pub mod sandbox;
pub mod sem;
mod site;
pub mod sleep;
pub mod spin;
pub(crate) mod stat;
mod summary;
mod thread;
mod time;
mod waits;
mod watchers;

/// Runs when the library is loaded; other libraries may have called it before that.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        watchers::start();
        sandbox::start();
        plugins::start();
        handlers::start();
        sleep::start();
        privileges::start();
        if config::get().stat {
            stat::start();
        }
        if config::get().lockdep {
            order::start();
        }
        summary::start();
        fork::register();
    }
    at_load
};

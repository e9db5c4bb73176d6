//! `liboverlock_pthread.so`: the locks of overlock in place of the C library's, in programs that
//! know nothing of it.
//!
//! Loaded with `LD_PRELOAD`, it defines the functions of `pthread_mutex_t`, `pthread_cond_t`,
//! `pthread_rwlock_t`, `pthread_spinlock_t`, `pthread_barrier_t`, `sem_t`, and `mtx_t` and `cnd_t`
//! of C11; those by which a program [restricts itself](sandbox) or [drops privileges](privileges);
//! and, for the validator of lock order, those that install [handlers of signals](handlers) or
//! [sleep]. The locks live in the program's own objects, in the sizes and with the static
//! initialisers of glibc. What is shared between processes, robust or bound to priorities stays
//! glibc's: it is told by the object itself ([`mutex`] says how), and handed to
//! [glibc's function](real).
//!
//! # Rules for all of this crate
//!
//! - No allocation, no thread-local with a destructor, nothing of `std` that locks, no panic: these
//!   functions run inside of allocators, before `main`, in destructors and while libraries are
//!   loaded.
//! - An object may be freed as soon as the last call *could* have returned: after a release nothing
//!   of the object is touched.
//! - A child of fork finds every object usable, as POSIX has it: [`fork`].
//! - What these functions call is never one that the program may have replaced by its own, or
//!   another of these by its exported name: whatever takes their place may call them. `build.rs`
//!   has the linker see to the latter, and system calls are our own.
//! - Errors are those of POSIX, and where it leaves a choice, glibc's.
//!
//! # What decides what happens
//!
//! Environment variables, read once: [`config`]. `overlock run` sets them.
#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
#![allow(clippy::missing_safety_doc)] // the functions of pthread: POSIX says what their callers promise

pub mod barrier;
pub mod c11;
pub mod cancel;
pub mod cond;
pub mod config;
pub mod fork;
mod futex;
pub mod handlers;
pub mod mutex;
pub(crate) mod order;
pub mod privileges;
pub mod real;
pub mod rwlock;
pub mod sandbox;
pub mod sem;
mod site;
pub mod sleep;
pub mod spin;
pub(crate) mod stat;
mod thread;
mod time;

/// Runs when the library is loaded, which may be after other libraries have used it.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        sandbox::start();
        handlers::start();
        sleep::start();
        privileges::start();
        if config::get().stat {
            stat::start();
        }
        if config::get().lockdep {
            order::start();
        }
        fork::register();
    }
    at_load
};

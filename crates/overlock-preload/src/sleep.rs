//! Sleeps outside of lock functions: with `OVERLOCK_LOCKDEP`, reports to the lock validator that a
//! thread is about to sleep in a function of the C library. Without it, each function here is
//! glibc's.
//!
//! A thread that waits for another thread's end while it holds a lock may deadlock: that thread may
//! wait for the lock. A sleep until a time or an outside event, with a lock held, only delays
//! others, and many programs mean to do so. It is reported with `OVERLOCK_LOCKDEP_SLEEP` only.
//!
//! Most of these may be called in signal handlers, and are cancellation points: the thread's stack
//! may be unwound from there.

use core::ffi::{c_int, c_uint, c_void};

use libc::{
    clockid_t, epoll_event, fd_set, nfds_t, pollfd, pthread_t, sigset_t, timespec, timeval,
};

use crate::order;
use crate::real::{interpose, missing};

/// `thrd_error`, as glibc has it.
const THRD_ERROR: c_int = 2;

interpose! {
    pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int: order::sleeps, libc::ENOSYS;
    pthread_timedjoin_np(thread: pthread_t, result: *mut *mut c_void, at: *const timespec) -> c_int: order::sleeps, libc::ENOSYS;
    pthread_clockjoin_np(thread: pthread_t, result: *mut *mut c_void, clock: clockid_t, at: *const timespec) -> c_int: order::sleeps, libc::ENOSYS;
    thrd_join(thread: pthread_t, result: *mut c_int) -> c_int: order::sleeps, THRD_ERROR;
    thrd_sleep(time: *const timespec, left: *mut timespec) -> c_int: order::may_sleep, -2;
    sleep(seconds: c_uint) -> c_uint: order::may_sleep, seconds;
    usleep(micros: c_uint) -> c_int: order::may_sleep, missing();
    nanosleep(time: *const timespec, left: *mut timespec) -> c_int: order::may_sleep, missing();
    clock_nanosleep(clock: clockid_t, flags: c_int, time: *const timespec, left: *mut timespec) -> c_int: order::may_sleep, libc::ENOSYS;
    poll(fds: *mut pollfd, count: nfds_t, millis: c_int) -> c_int: order::may_sleep, missing();
    __poll_chk(fds: *mut pollfd, count: nfds_t, millis: c_int, size: usize) -> c_int: order::may_sleep, missing();
    ppoll(fds: *mut pollfd, count: nfds_t, time: *const timespec, mask: *const sigset_t) -> c_int: order::may_sleep, missing();
    __ppoll_chk(fds: *mut pollfd, count: nfds_t, time: *const timespec, mask: *const sigset_t, size: usize) -> c_int: order::may_sleep, missing();
    select(count: c_int, reads: *mut fd_set, writes: *mut fd_set, others: *mut fd_set, time: *mut timeval) -> c_int: order::may_sleep, missing();
    pselect(count: c_int, reads: *mut fd_set, writes: *mut fd_set, others: *mut fd_set, time: *const timespec, mask: *const sigset_t) -> c_int: order::may_sleep, missing();
    epoll_wait(epoll: c_int, events: *mut epoll_event, most: c_int, millis: c_int) -> c_int: order::may_sleep, missing();
    epoll_pwait(epoll: c_int, events: *mut epoll_event, most: c_int, millis: c_int, mask: *const sigset_t) -> c_int: order::may_sleep, missing();
}

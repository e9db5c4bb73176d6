//! Sleeps outside of lock functions: with `OVERLOCK_LOCKDEP`, reports to the lock validator that a
//! thread is about to sleep in a function of the C library. Those that wait for events spin
//! first (`events`); each of the others is glibc's without the validator.
//!
//! A thread that waits for another thread's end while it holds a lock may deadlock: that thread may
//! wait for the lock. A sleep until a time or an outside event, with a lock held, only delays
//! others, and many programs mean to do so. It is reported with `OVERLOCK_LOCKDEP_SLEEP` only.
//!
//! Most of these may be called in signal handlers, and are cancellation points: the thread's stack
//! may be unwound from there.

use core::ffi::{c_int, c_uint, c_void};

use libc::{
    clockid_t, epoll_event, fd_set, msghdr, nfds_t, pollfd, pthread_t, sigset_t, sockaddr,
    socklen_t, timespec, timeval,
};

use crate::events;
use crate::order;
use crate::real::{interpose, missing};

/// `thrd_error`, as glibc has it.
const THRD_ERROR: c_int = 2;

/// Input of a file is no sleep to the validator: most of them are regular files.
fn as_before() {}

fn no_bytes() -> isize {
    missing() as isize
}

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
    poll(fds: *mut pollfd, count: nfds_t, millis: c_int) -> c_int: order::may_sleep, missing(),
        (millis != 0).then_some(fds.addr()), || events::poll(fds, count, millis);
    __poll_chk(fds: *mut pollfd, count: nfds_t, millis: c_int, size: usize) -> c_int: order::may_sleep, missing(),
        (millis != 0).then_some(fds.addr()), || events::fitting(count, size, || events::poll(fds, count, millis));
    ppoll(fds: *mut pollfd, count: nfds_t, time: *const timespec, mask: *const sigset_t) -> c_int: order::may_sleep, missing(),
        Some(fds.addr()), || events::unmasked(mask, || events::poll_until(fds, count, time));
    __ppoll_chk(fds: *mut pollfd, count: nfds_t, time: *const timespec, mask: *const sigset_t, size: usize) -> c_int: order::may_sleep, missing(),
        Some(fds.addr()), || events::fitting(count, size, || events::unmasked(mask, || events::poll_until(fds, count, time)));
    select(count: c_int, reads: *mut fd_set, writes: *mut fd_set, others: *mut fd_set, time: *mut timeval) -> c_int: order::may_sleep, missing(),
        Some(reads.addr().max(writes.addr())), || events::select(count, [reads, writes, others], time);
    pselect(count: c_int, reads: *mut fd_set, writes: *mut fd_set, others: *mut fd_set, time: *const timespec, mask: *const sigset_t) -> c_int: order::may_sleep, missing(),
        Some(reads.addr()), || events::unmasked(mask, || events::select_until(count, [reads, writes, others], time));
    epoll_wait(epoll: c_int, events: *mut epoll_event, most: c_int, millis: c_int) -> c_int: order::may_sleep, missing(),
        (millis != 0).then_some(epoll as usize), || events::epoll(epoll, events, most, millis);
    epoll_pwait(epoll: c_int, events: *mut epoll_event, most: c_int, millis: c_int, mask: *const sigset_t) -> c_int: order::may_sleep, missing(),
        (millis != 0).then_some(epoll as usize), || events::unmasked(mask, || events::epoll(epoll, events, most, millis));
    epoll_pwait2(epoll: c_int, events: *mut epoll_event, most: c_int, time: *const timespec, mask: *const sigset_t) -> c_int: order::may_sleep, missing(),
        Some(epoll as usize), || events::unmasked(mask, || events::epoll_until(epoll, events, most, time));
    read(file: c_int, buffer: *mut c_void, size: usize) -> isize: as_before, no_bytes(),
        None, || events::input(file, size, 0);
    __read_chk(file: c_int, buffer: *mut c_void, size: usize, room: usize) -> isize: as_before, no_bytes(),
        None, || events::input(file, size, 0);
    recv(file: c_int, buffer: *mut c_void, size: usize, flags: c_int) -> isize: as_before, no_bytes(),
        None, || events::input(file, size, flags);
    __recv_chk(file: c_int, buffer: *mut c_void, size: usize, room: usize, flags: c_int) -> isize: as_before, no_bytes(),
        None, || events::input(file, size, flags);
    recvfrom(file: c_int, buffer: *mut c_void, size: usize, flags: c_int, address: *mut sockaddr, length: *mut socklen_t) -> isize: as_before, no_bytes(),
        None, || events::input(file, size, flags);
    __recvfrom_chk(file: c_int, buffer: *mut c_void, size: usize, room: usize, flags: c_int, address: *mut sockaddr, length: *mut socklen_t) -> isize: as_before, no_bytes(),
        None, || events::input(file, size, flags);
    recvmsg(file: c_int, message: *mut msghdr, flags: c_int) -> isize: as_before, no_bytes(),
        None, || events::input(file, 1, flags);
    accept(file: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int: as_before, missing(),
        None, || events::input(file, 1, 0);
    accept4(file: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int: as_before, missing(),
        None, || events::input(file, 1, 0);
}

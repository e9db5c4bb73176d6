//! Waits for events, by epoll_wait, poll and select, and for input, by read, recv and accept, with
//! their kin.
//!
//! The [policy](overlock_linux::__private::spin) stands before them, with a look by a time-out of 0
//! for each poll: for an epoll object, or an array or sets at an address, it learns whether events
//! come within the time of a wake-up. The wait itself is the C library's. So its errors, its
//! time-out, its signal mask and its cancellation are as before, and begin after the spin.
//!
//! A signal that comes during the spin ends the wait with EINTR, as in the kernel. Programs that
//! must not miss one just before the call block it and pass a mask. Such a wait does not spin, so
//! that a pending signal ends it.
//!
//! A thread does not spin if its time-out is shorter than [`LEAST_NS`], or if it waits for more
//! than [`FILES`] files by one call, since each look takes as long as there are files. Nor does it
//! where `select` has a time-out, since that function says what is left of it.
//!
//! Addresses may be wrong, and the kernel says so by EFAULT. So nothing here loads from one that
//! the kernel has not read before, or stores to one that it has not written before.

use core::cell::Cell;
use core::ffi::c_int;
use core::ptr;

use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use overlock_linux::__private::spin::{self, Spun, Watch};
use overlock_linux::__private::system_call;
use overlock_shared::ObjectKind;

use crate::sandbox::result;
use crate::stat;
use crate::waits::{self, LEAST_NS, is_readable, is_time, is_writable, nanos};

/// The most files of a set.
const FILES: usize = 32;

static NOW: timespec = timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Looks until there is something, or an error, for as long as the policy says. `prepare` makes
/// what `look` needs, or finds that there is nothing to spin for. Returns what the look has found,
/// or EINTR.
fn spin<T>(
    object: usize,
    prepare: impl Fn() -> Option<T>,
    mut look: impl FnMut(&T) -> isize,
) -> Option<isize> {
    let mut found = 0;
    let spun = waits::interruptibly(object, true, |until| {
        let Some(prepared) = prepare() else {
            return Spun::Unfit;
        };
        let watch = Watch::begin();
        let mut looks = 0;
        loop {
            found = look(&prepared);
            // The kernel looks for signals after the files.
            if found == -libc::EINTR as isize {
                return Spun::Interrupted;
            }
            // Another error teaches nothing.
            if found < 0 || found > 0 && looks == 0 {
                return Spun::AtOnce;
            }
            if found > 0 {
                return Spun::Ready;
            }
            if watch.has_noticed() {
                return Spun::Interrupted;
            }
            if spin::now() >= until {
                return Spun::Over;
            }
            looks += 1;
            core::hint::spin_loop();
        }
    });
    match spun {
        Spun::Ready | Spun::AtOnce => Some(found),
        Spun::Interrupted => Some(-libc::EINTR as isize),
        Spun::Over | Spun::Unfit | Spun::Needless => None,
    }
}

fn is_long(millis: c_int) -> bool {
    millis < 0 || i64::from(millis) * 1_000_000 >= LEAST_NS
}

/// The same for a time; null is no end.
fn is_long_time(time: *const timespec) -> Option<()> {
    if time.is_null() {
        return Some(());
    }
    if !is_readable(time.addr(), size_of::<timespec>()) {
        return None;
    }
    // SAFETY: the kernel has just read it.
    let time = unsafe { time.read_unaligned() };
    (is_time(&time) && nanos(&time) >= LEAST_NS).then_some(())
}

/// A number for the object of this kind.
fn object(kind: usize, parts: &[usize]) -> usize {
    parts.iter().fold(kind, |hash, part| {
        (hash ^ part).wrapping_mul(0x0100_0000_01b3) // FNV-1a
    })
}

fn answer(found: Option<isize>) -> Option<c_int> {
    found.map(|found| result(found) as c_int)
}

fn spin_epoll(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    prepare: impl Fn() -> Option<()>,
) -> Option<c_int> {
    let mask: *const sigset_t = ptr::null();
    answer(spin(object(1, &[epoll as usize]), prepare, |()| {
        // SAFETY: the kernel checks the arguments.
        unsafe { system_call!(libc::SYS_epoll_pwait, epoll, events, most, 0, mask, 8usize) }
    }))
}

/// Spins before epoll_wait and epoll_pwait.
#[inline]
pub(crate) fn epoll(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    millis: c_int,
) -> Option<c_int> {
    match is_long(millis) {
        true => spin_epoll(epoll, events, most, || Some(())),
        false => None,
    }
}

/// Spins before epoll_pwait2.
pub(crate) fn epoll_until(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    time: *const timespec,
) -> Option<c_int> {
    spin_epoll(epoll, events, most, || is_long_time(time))
}

fn spin_poll(files: *mut pollfd, count: nfds_t, prepare: impl Fn() -> Option<()>) -> Option<c_int> {
    let number = count as usize;
    if number == 0 || number > FILES {
        return None;
    }
    let mask: *const sigset_t = ptr::null();
    answer(spin(object(2, &[files.addr(), number]), prepare, |()| {
        // SAFETY: the kernel checks the arguments.
        unsafe { system_call!(libc::SYS_ppoll, files, number, &raw const NOW, mask, 8usize) }
    }))
}

/// Spins before poll.
#[inline]
pub(crate) fn poll(files: *mut pollfd, count: nfds_t, millis: c_int) -> Option<c_int> {
    match is_long(millis) {
        true => spin_poll(files, count, || Some(())),
        false => None,
    }
}

/// Spins before ppoll.
pub(crate) fn poll_until(
    files: *mut pollfd,
    count: nfds_t,
    time: *const timespec,
) -> Option<c_int> {
    spin_poll(files, count, || is_long_time(time))
}

const WORDS: usize = size_of::<fd_set>() / 8;

/// The sets of select, which a look overwrites.
type Sets = [[u64; WORDS]; 3];

/// Copies the sets. None if there is nothing to spin for.
fn sets_of(sets: [*mut fd_set; 3], words: usize) -> Option<Sets> {
    let mut copies: Sets = [[0; WORDS]; 3];
    for (copy, set) in copies.iter_mut().zip(sets) {
        if set.is_null() {
            continue;
        }
        if !is_readable(set.addr(), words * 8) {
            return None;
        }
        // SAFETY: the kernel has just read both ends, which are at most a page apart.
        unsafe { ptr::copy_nonoverlapping(set.cast::<u8>(), copy.as_mut_ptr().cast(), words * 8) };
    }
    let number: u32 = copies
        .as_flattened()
        .iter()
        .map(|word| word.count_ones())
        .sum();
    (1..=FILES).contains(&(number as usize)).then_some(copies)
}

/// Spins before pselect.
pub(crate) fn select_until(
    count: c_int,
    sets: [*mut fd_set; 3],
    time: *const timespec,
) -> Option<c_int> {
    let words = usize::try_from(count).ok()?.div_ceil(64);
    if !(1..=WORDS).contains(&words) {
        return None;
    }
    let [first, second, third] = sets;
    let parts = [first.addr(), second.addr(), third.addr(), words];
    let prepare = || is_long_time(time).and_then(|()| sets_of(sets, words));
    let mut copies: Sets = [[0; WORDS]; 3];
    let found = spin(object(3, &parts), prepare, |wanted| {
        copies = *wanted;
        let [read, write, except] = copies.each_mut().map(|copy| copy.as_mut_ptr());
        let mut time = NOW;
        let none: *const sigset_t = ptr::null();
        // SAFETY: valid for as many files, and the time for a write.
        unsafe {
            system_call!(
                libc::SYS_pselect6,
                count,
                read,
                write,
                except,
                &raw mut time,
                none
            )
        }
    });
    // A look may have taken an event away: some files tell of each event once.
    let found = found.filter(|&found| found < 0 || give_sets(&copies, sets, words));
    answer(found)
}

/// Stores the results of a look in the program's sets. Returns whether it may.
fn give_sets(copies: &Sets, sets: [*mut fd_set; 3], words: usize) -> bool {
    let given = || copies.iter().zip(sets).filter(|(_, set)| !set.is_null());
    if !given().all(|(_, set)| is_writable(set.addr(), words * 8)) {
        return false;
    }
    for (copy, set) in given() {
        // SAFETY: the kernel has just written both ends, which are at most a page apart.
        unsafe { ptr::copy_nonoverlapping(copy.as_ptr().cast::<u8>(), set.cast(), words * 8) };
    }
    true
}

/// Spins before select.
pub(crate) fn select(count: c_int, sets: [*mut fd_set; 3], time: *mut timeval) -> Option<c_int> {
    match time.is_null() {
        true => select_until(count, sets, ptr::null()),
        false => None,
    }
}

/// Spins before a call that waits for input of this file, until there is some. The C library's
/// function reads it, or finds that another thread was faster. Returns -1 after a signal that the
/// call would have ended for.
///
/// One time in eight input that is there at once counts as a spin in vain. So files that have
/// always some, and those that never block, are seldom looked at.
#[inline]
pub(crate) fn input<T: From<i8>>(file: c_int, size: usize, flags: c_int) -> Option<T> {
    if size == 0 || flags & (libc::MSG_DONTWAIT | libc::MSG_ERRQUEUE | libc::MSG_OOB) != 0 {
        return None;
    }
    let object = object(4, &[file as usize]);
    let spun = waits::interruptibly(object, false, |until| until_input(file, until));
    (spun == Spun::Interrupted).then(|| {
        result(-libc::EINTR as isize);
        T::from(-1)
    })
}

thread_local! {
    /// A file of which [`may_block`] was found, and the end of that spin.
    static BLOCKS: Cell<(c_int, u64)> = const { Cell::new((-1, 0)) };
}

/// Whether a call for input of this file waits until there is some: a pipe, a socket without a
/// time-out, or a device, and not O_NONBLOCK.
#[cold]
fn may_block(file: c_int) -> bool {
    // SAFETY: it changes nothing.
    let flags = unsafe { system_call!(libc::SYS_fcntl, file, libc::F_GETFL) };
    if flags < 0 || flags & libc::O_NONBLOCK as isize != 0 {
        return false;
    }
    // SAFETY: all zero bytes are a valid value.
    let mut state: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: valid for the write.
    unsafe { system_call!(libc::SYS_fstat, file, &raw mut state) };
    match state.st_mode & libc::S_IFMT {
        libc::S_IFIFO | libc::S_IFCHR => true,
        libc::S_IFSOCK => !has_timeout(file),
        _ => false,
    }
}

/// Whether input of the socket has a time-out.
fn has_timeout(socket: c_int) -> bool {
    let mut time = timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let mut size = size_of::<timeval>() as libc::socklen_t;
    // SAFETY: both are valid for the write.
    unsafe {
        system_call!(
            libc::SYS_getsockopt,
            socket,
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            &raw mut time,
            &raw mut size
        )
    };
    (time.tv_sec, time.tv_usec) != (0, 0)
}

#[cold]
fn until_input(file: c_int, until: u64) -> Spun {
    let (known, at) = BLOCKS.get();
    let is_known = known == file && until.saturating_sub(at) < waits::SIGHT;
    if !is_known && !may_block(file) {
        return Spun::Needless;
    }
    if !is_known {
        BLOCKS.set((file, until));
    }
    let watch = Watch::begin();
    let mut files = pollfd {
        fd: file,
        events: libc::POLLIN,
        revents: 0,
    };
    let mask: *const sigset_t = ptr::null();
    for looks in 0.. {
        // SAFETY: valid for the write.
        let found = unsafe {
            system_call!(
                libc::SYS_ppoll,
                &raw mut files,
                1usize,
                &raw const NOW,
                mask,
                8usize
            )
        };
        match found {
            0 => {}
            1 if looks > 0 => return Spun::Ready,
            // The kernel looks for signals after the file.
            error if error == -libc::EINTR as isize => return Spun::Interrupted,
            // By chance: the clock's last digits.
            1 if spin::now().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61 != 0 => {
                return Spun::AtOnce;
            }
            _ => return Spun::Needless,
        }
        if watch.has_noticed() {
            return Spun::Interrupted;
        }
        if spin::now() >= until {
            break;
        }
        core::hint::spin_loop();
    }
    Spun::Over
}

/// Records a wait that has ended with `result`, for the statistics.
#[inline]
pub(crate) fn over<T: PartialOrd + From<i8>>(
    waits: Option<stat::Event>,
    object: Option<usize>,
    result: T,
) {
    if let (Some(waits), Some(object)) = (waits, object) {
        let gave_up = result <= T::from(0);
        stat::keeping_errno(|| waits.over(object, ObjectKind::Poll, 0, gave_up));
    }
}

/// Spins by `spin` unless the wait has a mask of signals: one that is pending may end it.
pub(crate) fn unmasked(
    mask: *const sigset_t,
    spin: impl FnOnce() -> Option<c_int>,
) -> Option<c_int> {
    match mask.is_null() {
        true => spin(),
        false => None,
    }
}

/// Spins by `spin` if the array of files is as large as the program says, as it was compiled with
/// checks: else glibc complains.
pub(crate) fn fitting(
    count: nfds_t,
    bytes: usize,
    spin: impl FnOnce() -> Option<c_int>,
) -> Option<c_int> {
    match count as usize <= bytes / size_of::<pollfd>() {
        true => spin(),
        false => None,
    }
}

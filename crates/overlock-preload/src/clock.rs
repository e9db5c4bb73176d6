//! Clocks that the program sees in place of the kernel's: `faketime`, `datefudge` and others
//! interpose `clock_gettime`.
//!
//! A deadline is a time of the clock that the program reads, and the kernel sleeps by its own. So
//! where the two differ, a wait asks the program's function whether it is over
//! ([`Deadline::Own`]), and asks again from time to time.
//!
//! A library that fakes clocks may interpose timed waits too, and call ours with a time of the
//! kernel's clock. Its calls are known by their sites. Another wrapper may stand between the two.
//! Then the time tells: soon by the kernel's clock, and more than a day away by the program's.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use libc::{clockid_t, dl_phdr_info};
use overlock_core::Deadline;
use overlock_linux::__private::clock::{self, Read};

use crate::elf;
use crate::site::Site;

/// The addresses of the library that fakes clocks, unless that is the program itself.
static FROM: AtomicUsize = AtomicUsize::new(0);
/// The end of those; 0 where the program sees the C library's clocks.
static TO: AtomicUsize = AtomicUsize::new(0);

const HOUR_NS: i64 = 3_600 * 1_000_000_000;
const DAY_NS: i64 = 24 * HOUR_NS;

unsafe extern "C" {
    fn gnu_get_libc_version() -> *const c_char;
}

/// A loaded object that holds an address.
#[derive(Debug)]
struct Object {
    address: usize,
    from: usize,
    to: usize,
    /// How many objects come before it: 0 for the program.
    number: usize,
    seen: usize,
}

impl Object {
    fn of(address: usize) -> Self {
        let mut object = Object {
            address,
            from: 0,
            to: 0,
            number: 0,
            seen: 0,
        };
        // SAFETY: the function below takes a pointer to an object of this type.
        unsafe { elf::iterate(look, (&raw mut object).cast()) };
        object
    }
}

unsafe extern "C" fn look(info: *mut dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: `Object::of` passes it, and nobody else uses it meanwhile.
    let object = unsafe { &mut *data.cast::<Object>() };
    // SAFETY: the C library passes a description of a loaded object.
    let info = unsafe { &*info };
    let (mut from, mut to) = (usize::MAX, 0);
    let headers = match info.dlpi_phdr.is_null() {
        true => &[],
        // SAFETY: the object's headers, of which there are so many.
        false => unsafe {
            core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum))
        },
    };
    for header in headers {
        if header.p_type == libc::PT_LOAD {
            let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            from = from.min(start);
            to = to.max(start.wrapping_add(header.p_memsz as usize));
        }
    }
    let is_it = (from..to).contains(&object.address);
    if is_it {
        (object.from, object.to, object.number) = (from, to, object.seen);
    }
    object.seen += 1;
    c_int::from(is_it)
}

/// Returns the C library's own `clock_gettime`.
fn libcs() -> Option<Read> {
    let found = elf::find(c"clock_gettime");
    // SAFETY: null, or the function of this name.
    unsafe { core::mem::transmute::<*mut c_void, Option<Read>>(found) }
}

/// Runs when the library is loaded, before anything in it reads a clock.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static AT_LOAD: extern "C" fn() = start;

/// Looks whose clocks the program sees.
extern "C" fn start() {
    let seen = Object::of(libc::clock_gettime as *const () as usize);
    if seen.to == 0 || seen.from == Object::of(gnu_get_libc_version as *const () as usize).from {
        return;
    }
    let Some(libcs) = libcs() else { return };
    clock::read_by(libcs);
    let from = if seen.number == 0 { seen.to } else { seen.from };
    FROM.store(from, Relaxed);
    // Release: pairs with the acquire in `deadline`.
    TO.store(seen.to, Release);
}

/// Returns the deadline at a time of one of the two clocks, for a call from `site`; `None` where it
/// is the kernel's.
#[inline]
pub(crate) fn deadline(clock: clockid_t, at: i64, site: Site) -> Option<Deadline> {
    // Acquire: pairs with the release in `start`.
    let to = TO.load(Acquire);
    if to == 0 {
        return None;
    }
    by_own(clock, at, (FROM.load(Relaxed)..to).contains(&site))
}

#[cold]
#[inline(never)]
fn by_own(clock: clockid_t, at: i64, is_converted: bool) -> Option<Deadline> {
    if is_converted {
        return None;
    }
    let before = clock::read(clock) as i64;
    let programs = clock::programs(clock);
    let after = clock::read(clock) as i64;
    let is_kernels = is_kernels(at, (before, after), programs);
    (!is_kernels).then_some(Deadline::Own { clock, at })
}

/// Whether a time is one of the kernel's clock, which was read before and after the program's:
/// sanitizers interpose its function, and call the C library's.
fn is_kernels(at: i64, (before, after): (i64, i64), programs: i64) -> bool {
    let is_soon = (0..HOUR_NS).contains(&at.saturating_sub(before));
    (before..=after).contains(&programs) || is_soon && programs.abs_diff(before) > DAY_NS as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_the_programs_unless_the_clocks_agree_or_it_was_converted() {
        let now = 1000 * DAY_NS;
        let is_kernels = |at, programs| is_kernels(at, (now, now + 50), programs);
        assert!(is_kernels(now + DAY_NS, now + 50));
        for apart in [51, HOUR_NS, 365 * DAY_NS, 2000 * DAY_NS] {
            for programs in [now + apart, now - apart] {
                assert!(!is_kernels(programs + 1, programs), "{apart}");
                assert!(!is_kernels(0, programs), "{apart}");
                assert!(!is_kernels(i64::MAX, programs), "{apart}");
            }
        }
        assert!(is_kernels(now + 1, now + 365 * DAY_NS));
        assert!(is_kernels(now + 1, now - 2000 * DAY_NS));
        assert!(!is_kernels(now + 1, now + HOUR_NS));
    }

    #[test]
    fn objects_are_found_by_addresses_in_them() {
        static HERE: u8 = 0;
        let here = Object::of((&raw const HERE).addr());
        assert_eq!(here.number, 0);
        let libc = Object::of(gnu_get_libc_version as *const () as usize);
        assert!(libc.number > 0 && libc.from < libc.to);
        assert_eq!(Object::of(1).to, 0);
    }
}

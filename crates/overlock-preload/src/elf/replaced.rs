//! Functions of ours in the tables of symbols of C libraries.
//!
//! The loader binds a name of a plugin by the tables of the objects in the plugin's scope. One that
//! is loaded with `RTLD_DEEPBIND`, or into a namespace of its own, finds the C library there before
//! us. So the C library's table gets our functions' addresses: then every name that is bound from
//! now on leads to us, before any code of the plugin runs, and later ones as well.
//!
//! A symbol's value is relative to its object, and sums wrap around: so it can mean any address.
//! The table is read-only memory of this process, a private copy of the file's. The C library's own
//! calls do not go through it.
//!
//! Our calls of the C library's functions need what the table said before: [`original`].

use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicUsize};

use overlock_linux::__private::system_call;

use super::object::{Object, STT_FUNC, Symbol};
use super::{Loaded, iterate};

/// The former meaning of a symbol.
#[derive(Debug)]
struct Original {
    symbol: AtomicPtr<Symbol>,
    value: AtomicUsize,
}

/// One for each function and version of the program's C library that we have, and room.
const MOST: usize = 512;

static ORIGINALS: [Original; MOST] = [const {
    Original {
        symbol: AtomicPtr::new(core::ptr::null_mut()),
        value: AtomicUsize::new(0),
    }
}; MOST];

/// The value that a symbol had before it was replaced, or has.
pub(super) fn original(symbol: &Symbol) -> usize {
    // Acquire: pairs with the release in `store`. A thread that reads our function's address sees
    // the note.
    let value = symbol.value.load(Acquire);
    for noted in &ORIGINALS {
        // Acquire: pairs with the release in `note`.
        match noted.symbol.load(Acquire) {
            its if its.is_null() => break,
            its if core::ptr::eq(its, symbol) => return noted.value.load(Relaxed),
            _ => {}
        }
    }
    value
}

/// Whether functions of the program's C library have been replaced.
pub(crate) fn is_any() -> bool {
    // Acquire: pairs with the release in `note`.
    !ORIGINALS[0].symbol.load(Acquire).is_null()
}

/// Notes what a symbol means. False if there is no room. The caller holds the loader's lock.
fn note(symbol: &Symbol, value: usize) -> bool {
    let is_free = |noted: &&Original| noted.symbol.load(Relaxed).is_null();
    let Some(free) = ORIGINALS.iter().find(is_free) else {
        return false;
    };
    free.value.store(value, Relaxed);
    let symbol = core::ptr::from_ref(symbol).cast_mut();
    // Release: pairs with the acquire in `original`.
    free.symbol.store(symbol, Release);
    true
}

/// Whose functions are to be replaced, and which.
#[derive(Debug)]
pub(crate) struct Replace<'a> {
    /// The objects of a C library.
    pub(crate) objects: &'a [Object],
    /// Whether they are the program's, whose functions we call.
    pub(crate) are_programs: bool,
    /// Whether a function of this name is to be replaced.
    pub(crate) is_wanted: fn(&CStr) -> bool,
}

impl Replace<'_> {
    /// Replaces them. False if the memory may not be written to.
    pub(crate) fn run(&self) -> bool {
        let mut task = (self, false);
        let data: *mut c_void = (&raw mut task).cast();
        // The loader's lock is held while the function is called: so one thread does this at a
        // time, and the memory is writable until it is done.
        // SAFETY: a function of that type, which gets this pointer.
        unsafe { iterate(locked, data) };
        task.1
    }

    fn run_locked(&self) -> bool {
        // SAFETY: this library is not unloaded while its code runs.
        let Some(ours) = (unsafe { Object::of(Loaded::get().ours) }) else {
            return false;
        };
        self.objects.iter().all(|theirs| self.object(theirs, &ours))
    }

    fn object(&self, theirs: &Object, ours: &Object) -> bool {
        let base = theirs.map.base;
        let mut all = 0..0;
        self.each(theirs, ours, |symbol, function| {
            if symbol.value.load(Relaxed) == function.addr().wrapping_sub(base) {
                return true;
            }
            let at = core::ptr::from_ref(symbol).addr();
            let end = at + size_of::<Symbol>();
            all = match all.is_empty() {
                true => at..end,
                false => all.start.min(at)..all.end.max(end),
            };
            true
        });
        if all.is_empty() {
            return true;
        }
        // SAFETY: it has no preconditions.
        let page = (unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) as usize;
        let start = all.start & !(page - 1);
        let length = all.end.next_multiple_of(page) - start;
        let Some(before) = protection(theirs, all.start) else {
            return false;
        };
        let protect = |how: c_int| {
            // SAFETY: pages of the object, of which nothing is taken away that they allow.
            unsafe { system_call!(libc::SYS_mprotect, start, length, how) == 0 }
        };
        if !protect(before | libc::PROT_WRITE) {
            return false;
        }
        let done = self.each(theirs, ours, |symbol, function| {
            self.store(symbol, function.addr().wrapping_sub(base))
        });
        // If this is refused, the memory stays writable, which does no harm.
        protect(before);
        done
    }

    /// Stores the value, and notes the former one if it may be asked for.
    fn store(&self, symbol: &Symbol, value: usize) -> bool {
        let former = symbol.value.load(Relaxed);
        if former == value {
            return true;
        }
        if self.are_programs && !note(symbol, former) {
            return false;
        }
        // Release: pairs with the acquire in `original`. The loader may read it at the same time,
        // and both values will do.
        symbol.value.store(value, Release);
        true
    }

    /// Calls the function for each symbol to be replaced, and our function, until it returns false.
    fn each(
        &self,
        theirs: &Object,
        ours: &Object,
        mut call: impl FnMut(&Symbol, *mut c_void) -> bool,
    ) -> bool {
        let stopped = ours.each_name(|name| {
            if !(self.is_wanted)(name) {
                return None;
            }
            let function = ours.find(name)?;
            theirs.definition(name, |_, symbol| {
                // If the processor chooses a function, the value is that of the chooser.
                let is_function = symbol.info & 0xf == STT_FUNC;
                (is_function && !call(symbol, function)).then_some(())
            })
        });
        stopped.is_none()
    }
}

unsafe extern "C" fn locked(_: *mut libc::dl_phdr_info, _: usize, task: *mut c_void) -> c_int {
    // SAFETY: the pointer that `run` has passed.
    let task: &mut (&Replace<'_>, bool) = unsafe { &mut *task.cast() };
    task.1 = task.0.run_locked();
    1 // Once is enough.
}

/// A program header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Segment {
    kind: u32,
    flags: u32,
    offset: usize,
    address: usize,
    physical: usize,
    size: usize,
    memory: usize,
    align: usize,
}

/// The protection of the memory of an object at an address.
fn protection(object: &Object, at: usize) -> Option<c_int> {
    /// The places in a header of the place and the number of segments.
    const PLACES: (usize, usize) = (32, 56);
    let base = object.map.base;
    let header: *const u8 = core::ptr::with_exposed_provenance(base);
    // SAFETY: a C library's object, whose header is mapped to its base, as linkers have it.
    if unsafe { header.cast::<[u8; 4]>().read() } != *b"\x7fELF" {
        return None;
    }
    // SAFETY: as above.
    let first = unsafe { header.wrapping_add(PLACES.0).cast::<usize>().read() };
    // SAFETY: as above.
    let count = unsafe { header.wrapping_add(PLACES.1).cast::<u16>().read() };
    let segments: *const Segment = header.wrapping_add(first).cast();
    (0..usize::from(count)).find_map(|number| {
        // SAFETY: within the table of segments, which is mapped with the header.
        let segment = unsafe { segments.wrapping_add(number).read() };
        let start = base.wrapping_add(segment.address);
        let is_in = (start..start.wrapping_add(segment.memory)).contains(&at);
        let flag = |bit, protection| {
            if segment.flags & bit != 0 {
                protection
            } else {
                0
            }
        };
        let all = flag(4, libc::PROT_READ) | flag(2, libc::PROT_WRITE) | flag(1, libc::PROT_EXEC);
        (segment.kind == libc::PT_LOAD && is_in).then_some(all)
    })
}

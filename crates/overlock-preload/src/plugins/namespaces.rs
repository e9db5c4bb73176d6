//! Namespaces of the loader with C libraries whose lock functions are ours.
//!
//! `dlmopen` with `LM_ID_NEWLM` maps a C library from its file, binds the plugin's names to it and
//! runs the constructors, all in one call. So before that call the new namespace gets its C library
//! by calls of our own, in which the lock functions are [replaced](crate::elf::replaced).
//!
//! The names of each object in a namespace are looked up first among those of the first object, and
//! what that needs: in the plugin and its libraries, without us. Were the C library first, it would
//! come before the plugin's own functions. So a [stub] is first, which has no names.
//!
//! The program has 16 namespaces, and memory for the thread-local variables of fewer. It closes a
//! plugin to have them back. So each `dlclose`, and each new namespace, closes the former ones in
//! which nothing is left but what is of ours.

mod stub;

use core::ffi::{CStr, c_int, c_long, c_void};
use core::mem::transmute;
use core::ptr::{null, null_mut};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};

use overlock_linux::__private::system_call;

use super::{Close, Open};
use crate::config;
use crate::elf::replaced::Replace;
use crate::elf::{self, LinkMap, Object};
use crate::thread::me;

/// `LM_ID_NEWLM`.
pub(super) const NEW: c_long = -1;

/// dlfcn.h.
const RTLD_DI_LMID: c_int = 1;

/// The beginnings of the names of functions for lock objects. `dlmopen` makes further namespaces.
const LOCKS: [&[u8]; 10] = [
    b"pthread_mutex_",
    b"pthread_cond_",
    b"pthread_rwlock_",
    b"pthread_spin_",
    b"pthread_barrier_",
    b"mtx_",
    b"cnd_",
    b"__pthread_",
    b"pthread_cancel",
    b"dlmopen",
];

/// Whether a namespace's C library gets ours of this name. The others set its own `errno`, and the
/// text for its own `dlerror`. Those for semaphores do so, too, and share objects with ours, which
/// have the same format: see [`crate::sem`].
fn is_for_locks(name: &CStr) -> bool {
    let bytes = name.to_bytes();
    LOCKS.iter().any(|start| bytes.starts_with(start))
}

/// The most namespaces that the loader makes, and the most objects that we open in one: the stub
/// and, before glibc 2.34, three of a C library.
const MOST: usize = 16;
const OBJECTS: usize = 4;

type Handles = [*mut c_void; OBJECTS];

/// A place for a namespace. A thread that makes or closes one calls the loader, whose lock another
/// thread may hold that comes here. So nobody waits here: a place that is busy is passed over.
#[derive(Debug)]
struct Namespace {
    state: AtomicU32,
    /// The handles of what we have opened in it.
    handles: [AtomicPtr<c_void>; OBJECTS],
    /// The number of objects that came with that.
    objects: AtomicU32,
    /// The thread that it was made for.
    thread: AtomicUsize,
    /// Whether the program has had objects in it.
    is_used: AtomicBool,
}

/// Of a place: there is no namespace.
const FREE: u32 = 0;
/// A thread owns it.
const BUSY: u32 = 1;
/// There is a namespace.
const MADE: u32 = 2;

static NAMESPACES: [Namespace; MOST] = [const {
    Namespace {
        state: AtomicU32::new(FREE),
        handles: [const { AtomicPtr::new(null_mut()) }; OBJECTS],
        objects: AtomicU32::new(0),
        thread: AtomicUsize::new(0),
        is_used: AtomicBool::new(false),
    }
}; MOST];

impl Namespace {
    /// Makes the calling thread the owner of a place in this state. In a child of fork() another
    /// thread's place stays busy.
    fn claim(&self, state: u32) -> bool {
        // state -> busy. Acquire: pairs with the release in `leave`.
        (self.state.compare_exchange(state, BUSY, Acquire, Relaxed)).is_ok()
    }

    fn leave(&self, state: u32) {
        // busy -> state. Release: pairs with the acquire in `claim`.
        self.state.store(state, Release);
    }

    /// Closes it if nothing of the program's is left in it, and nothing is being loaded.
    fn close_if_left(&self, thread: usize) {
        if !self.claim(MADE) {
            return;
        }
        let handles = self.handles.each_ref().map(|handle| handle.load(Relaxed));
        let is_used = count(handles[0]) > self.objects.load(Relaxed);
        if is_used {
            self.is_used.store(true, Relaxed);
        }
        if is_used || !self.is_used.load(Relaxed) && self.thread.load(Relaxed) != thread {
            return self.leave(MADE);
        }
        close(handles);
        self.leave(FREE);
    }
}

/// Whether there is a namespace.
fn is_any() -> bool {
    // Relaxed: a thread that has a handle of one has seen that it was made.
    let is_made = |namespace: &Namespace| namespace.state.load(Relaxed) != FREE;
    NAMESPACES.iter().any(is_made)
}

/// Closes the namespaces in which nothing of the program's is left.
pub(super) fn close_left() {
    if is_any() {
        let thread = me();
        for namespace in &NAMESPACES {
            namespace.close_if_left(thread);
        }
    }
}

/// A handle of the program's has been passed to a function.
pub(super) fn uses(handle: *mut c_void) {
    if !is_any() {
        return;
    }
    let walk = Walk::from(handle);
    for namespace in &NAMESPACES {
        if namespace.handles[0].load(Relaxed).addr() == walk.first {
            namespace.is_used.store(true, Relaxed);
        }
    }
}

/// Makes a namespace, and returns its number; `None` if that is not possible.
pub(super) fn make(open: Open) -> Option<c_long> {
    if config::get().mutex == config::Lock::Glibc {
        end_single_threaded();
    }
    close_left();
    let (number, handles) = fill(open)?;
    // There are as many places as namespaces. A child of fork() may have lost some: then this one
    // stays.
    if let Some(place) = NAMESPACES.iter().find(|place| place.claim(FREE)) {
        place.objects.store(count(handles[0]), Relaxed);
        place.thread.store(me(), Relaxed);
        place.is_used.store(false, Relaxed);
        for (place, handle) in place.handles.iter().zip(handles) {
            place.store(handle, Relaxed);
        }
        place.leave(MADE);
    }
    Some(number)
}

/// Has the program's C library know of several threads, by a thread that ends at once. Before the
/// program makes its first one, its C library's mutexes use plain stores. A thread that a plugin
/// makes by another C library does not count.
fn end_single_threaded() {
    type Start = extern "C" fn(*mut c_void) -> *mut c_void;
    type Create =
        unsafe extern "C" fn(*mut libc::pthread_t, *const c_void, Start, *mut c_void) -> c_int;
    type Join = unsafe extern "C" fn(libc::pthread_t, *mut *mut c_void) -> c_int;
    extern "C" fn start(_: *mut c_void) -> *mut c_void {
        null_mut()
    }
    // SAFETY: null, or the function of this name.
    let create: Option<Create> = unsafe { transmute(elf::find(c"pthread_create")) };
    // SAFETY: as above.
    let join: Option<Join> = unsafe { transmute(elf::find(c"pthread_join")) };
    let (Some(create), Some(join)) = (create, join) else {
        return;
    };
    let set_mask = |new: *const u64, old: *mut u64| {
        let how = libc::SIG_SETMASK;
        // SAFETY: null, or valid for masks of 8 bytes.
        unsafe { system_call!(libc::SYS_rt_sigprocmask, how, new, old, 8usize) }
    };
    let (all, mut before) = (!0_u64, 0_u64);
    // No handler of the program's runs in that thread.
    set_mask(&raw const all, &raw mut before);
    let mut thread = 0;
    // SAFETY: valid for the write, and the function accesses nothing.
    if unsafe { create(&raw mut thread, null(), start, null_mut()) } == 0 {
        // SAFETY: just created, and joined here alone.
        unsafe { join(thread, null_mut()) };
    }
    set_mask(&raw const before, null_mut());
}

/// Opens the stub and a C library like the program's in a new namespace.
fn fill(open: Open) -> Option<(c_long, Handles)> {
    let mut handles: Handles = [null_mut(); OBJECTS];
    handles[0] = stub::open(open);
    let mut known = usize::from(!handles[0].is_null());
    let mut theirs: [Option<Object>; OBJECTS] = [None; OBJECTS];
    for object in elf::libcs() {
        let namespace = number(handles[0]).unwrap_or(NEW);
        // SAFETY: the loader's name of an object, which is its path; and flags.
        let handle = unsafe { open(namespace, object.map.name, libc::RTLD_NOW) };
        if !handle.is_null() {
            handles[known] = handle;
            // SAFETY: a handle is the description of an object.
            theirs[known] = unsafe { Object::of(handle.cast()) };
            known += 1;
        }
    }
    let number = number(handles[0]);
    let done = theirs.iter().flatten().all(|theirs| {
        let replace = Replace {
            objects: core::slice::from_ref(theirs),
            are_programs: false,
            is_wanted: is_for_locks,
        };
        replace.run()
    });
    match number {
        Some(number) if done && theirs.iter().any(Option::is_some) => Some((number, handles)),
        _ => {
            close(handles);
            None
        }
    }
}

/// The number of the namespace of the object with this handle.
fn number(handle: *mut c_void) -> Option<c_long> {
    type Function = unsafe extern "C" fn(*mut c_void, c_int, *mut c_long) -> c_int;
    if handle.is_null() {
        return None;
    }
    // SAFETY: null, or the function of this name.
    let function: Option<Function> = unsafe { transmute(elf::find(c"dlinfo")) };
    let mut number = 0;
    // SAFETY: a handle, and valid for the write.
    let status = unsafe { function?(handle, RTLD_DI_LMID, &raw mut number) };
    (status == 0).then_some(number)
}

fn close(handles: Handles) {
    // SAFETY: null, or the function of this name.
    let function: Option<Close> = unsafe { transmute(elf::find(c"dlclose")) };
    let handles = handles.into_iter().filter(|handle| !handle.is_null());
    for (handle, function) in handles.zip(core::iter::repeat(function)) {
        // SAFETY: a handle that we have opened, and nobody else has. If it stays, nothing is lost
        // but memory.
        let _ = function.map(|close| unsafe { close(handle) });
    }
}

/// A walk along the objects of a namespace.
#[derive(Debug)]
struct Walk {
    from: *const LinkMap,
    first: usize,
    /// The number of objects from the beginning of the walk on.
    objects: u32,
}

impl Walk {
    /// Walks from the object with this handle.
    fn from(handle: *mut c_void) -> Walk {
        let mut result = Walk {
            from: handle.cast_const().cast(),
            first: 0,
            objects: 0,
        };
        // The loader's lock is held while the function is called: no object comes or goes.
        // SAFETY: a function of that type, which gets this pointer.
        unsafe { elf::iterate(walk, (&raw mut result).cast()) };
        result
    }
}

unsafe extern "C" fn walk(_: *mut libc::dl_phdr_info, _: usize, walk: *mut c_void) -> c_int {
    // SAFETY: the pointer that `from` has passed.
    let walk: &mut Walk = unsafe { &mut *walk.cast() };
    let mut map = walk.from;
    // SAFETY: a handle is the description of an object, and the list ends with null both ways.
    while let Some(link) = unsafe { map.as_ref() } {
        walk.first = map.addr();
        map = link.previous;
    }
    map = walk.from;
    // SAFETY: as above.
    while let Some(link) = unsafe { map.as_ref() } {
        walk.objects += 1;
        map = link.next;
    }
    1 // Once is enough.
}

/// The number of objects from this one on.
fn count(handle: *mut c_void) -> u32 {
    Walk::from(handle).objects
}

//! The locks of overlock-core by name, made of the core's own lists.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

use overlock_family::spin::faulty::{Faulty, LostKick, NoExclusion};
use overlock_family::{rw, sleep, spin};
use overlock_guest::Guest;

use crate::subject::{Exclusive, FaultyReaders, Shared, Subject};
use crate::{bench, torture};

/// Bytes that a lock has room in.
const ROOM: usize = 512;

/// Two locks of one type: that of tasks, and that of interrupt handlers.
pub type Pair<L> = [L; 2];

/// A lock, and all that the image does with it.
pub struct Entry {
    /// The lock's name.
    pub name: &'static str,
    /// Whether the lock is broken on purpose: only those who name it get it.
    pub is_faulty: bool,
    /// Creates a pair. Returns whether it could.
    pub create: fn() -> bool,
    pub drop: unsafe fn(),
    /// Whether a lock of the pair is locked or has waiters. At rest none is and has.
    pub is_busy: unsafe fn() -> bool,
    /// A vCPU's part in the benchmark, between the barriers.
    pub bench: unsafe fn(),
    /// A vCPU's part in the tester.
    pub torture: unsafe fn(),
    /// The part of its interrupt handlers.
    pub handler: unsafe fn(),
}

#[repr(C, align(128))]
struct Area(UnsafeCell<MaybeUninit<[u8; ROOM]>>);

// SAFETY: the first vCPU creates a lock there while no other uses it, and drops it so.
unsafe impl Sync for Area {}

static AREA: Area = Area(UnsafeCell::new(MaybeUninit::uninit()));

fn place<L>() -> *mut Pair<L> {
    const {
        assert!(size_of::<Pair<L>>() <= ROOM && align_of::<L>() <= align_of::<Area>());
    }
    AREA.0.get().cast()
}

/// The pair of locks.
///
/// # Safety
///
/// They were created with this type, and not dropped.
pub unsafe fn pair<L: Subject>() -> &'static Pair<L> {
    // SAFETY: the caller's promise.
    unsafe { &*place::<L>() }
}

fn create<L: Subject>() -> bool {
    let (Some(first), Some(second)) = (L::create(), L::create()) else {
        return false;
    };
    // SAFETY: there is room for it, and nobody uses it.
    unsafe { place::<L>().write([first, second]) };
    true
}

unsafe fn drop<L: Subject>() {
    // SAFETY: the caller's promise: they were created, and nobody uses them.
    unsafe { place::<L>().drop_in_place() };
}

unsafe fn is_busy<L: Subject>() -> bool {
    // SAFETY: the caller's promise.
    unsafe { pair::<L>() }.iter().any(L::is_busy)
}

const fn entry<L: Subject>(is_faulty: bool) -> Entry {
    Entry {
        name: L::NAME,
        is_faulty,
        create: create::<L>,
        drop: drop::<L>,
        is_busy: is_busy::<L>,
        bench: bench::work::<L>,
        torture: torture::work::<L>,
        handler: torture::handle::<L>,
    }
}

macro_rules! spin {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => { [$(entry::<Exclusive<spin::$lock<Guest>>>(false)),*] };
}
macro_rules! sleep {
    ($($name:ident: $lock:ident, $kind:ident, $can:ident;)*) => { [$(entry::<Exclusive<sleep::$lock<Guest>>>(false)),*] };
}
macro_rules! readers {
    ($($name:ident: $module:ident::$lock:ident, $can:ident;)*) => { [$(entry::<Shared<$module::$lock<Guest>>>(false)),*] };
}

static SPIN: &[Entry] = &overlock_family::spin_locks!(spin);
static SLEEP: &[Entry] = &overlock_family::sleep_locks!(sleep);
static READERS: &[Entry] = &overlock_family::rw_locks!(readers);
static FAULTY: &[Entry] = &[
    entry::<Exclusive<Faulty<Guest, NoExclusion>>>(true),
    entry::<Exclusive<Faulty<Guest, LostKick>>>(true),
    entry::<FaultyReaders<rw::Qrwlock<Guest>>>(true),
];

pub fn all() -> impl Iterator<Item = &'static Entry> + Clone {
    SPIN.iter().chain(SLEEP).chain(READERS).chain(FAULTY)
}

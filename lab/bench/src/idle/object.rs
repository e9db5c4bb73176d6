//! Objects that block threads for long: our types and those that people use today.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::lock::{BenchCondvar, BenchLock, BenchRwLock, CreateError};
use crate::ours::types;
use crate::peers;

/// Something that threads wait for until its owner lets them.
pub trait Blocking: Send + Sync {
    /// Runs `body` while all waiters are blocked, then unblocks them.
    fn own(&self, body: &mut dyn FnMut());

    /// Waits until the owner is done.
    fn wait(&self);
}

/// One that is new, for so many threads that wait.
type Create = fn(usize) -> Result<Box<dyn Blocking>, CreateError>;

/// An object to measure.
#[derive(Debug)]
pub struct Object {
    /// The kind of object: `mutex`, `read`, `write`, `condvar`, `semaphore`, `barrier`.
    pub what: &'static str,
    /// The lock's name, as in the lists of locks.
    pub lock: &'static str,
    /// Whether it is one of this project's.
    pub ours: bool,
    /// Makes one.
    pub create: Create,
}

/// The kinds of objects, in the order of the tables.
pub const KINDS: [&str; 6] = ["mutex", "read", "write", "condvar", "semaphore", "barrier"];

struct Mutex<L>(L);

impl<L: BenchLock> Mutex<L> {
    fn create(_: usize) -> Result<Box<dyn Blocking>, CreateError> {
        Ok(Box::new(Self(L::create()?)))
    }
}

impl<L: BenchLock> Blocking for Mutex<L> {
    fn own(&self, body: &mut dyn FnMut()) {
        let guard = self.0.lock();
        body();
        drop(guard);
    }

    fn wait(&self) {
        drop(self.0.lock());
    }
}

/// Waits for a writer, to read or to write.
struct Writer<L, const READ: bool>(L);

impl<L: BenchRwLock, const READ: bool> Writer<L, READ> {
    fn create(_: usize) -> Result<Box<dyn Blocking>, CreateError> {
        Ok(Box::new(Self(L::create()?)))
    }
}

impl<L: BenchRwLock, const READ: bool> Blocking for Writer<L, READ> {
    fn own(&self, body: &mut dyn FnMut()) {
        let guard = self.0.write();
        body();
        drop(guard);
    }

    fn wait(&self) {
        if READ {
            drop(self.0.read());
        } else {
            drop(self.0.write());
        }
    }
}

struct Condvar<V: BenchCondvar> {
    mutex: V::Mutex,
    condvar: V,
    /// Guarded by the mutex.
    done: AtomicBool,
}

impl<V: BenchCondvar> Condvar<V> {
    fn create(_: usize) -> Result<Box<dyn Blocking>, CreateError> {
        Ok(Box::new(Self {
            mutex: V::Mutex::create()?,
            condvar: V::create()?,
            done: AtomicBool::new(false),
        }))
    }
}

impl<V: BenchCondvar> Blocking for Condvar<V> {
    fn own(&self, body: &mut dyn FnMut()) {
        body();
        let guard = self.mutex.lock();
        self.done.store(true, Ordering::Relaxed);
        drop(guard);
        self.condvar.notify_all();
    }

    fn wait(&self) {
        let mut guard = self.mutex.lock();
        while !self.done.load(Ordering::Relaxed) {
            guard = self.condvar.wait(guard);
        }
        drop(guard);
    }
}

/// One permit, which the owner has until it is done, and which then goes from one to the next.
struct Semaphore(overlock::Semaphore);

impl Semaphore {
    fn create(_: usize) -> Result<Box<dyn Blocking>, CreateError> {
        Ok(Box::new(Self(overlock::Semaphore::new(0))))
    }
}

impl Blocking for Semaphore {
    fn own(&self, body: &mut dyn FnMut()) {
        body();
        self.0.add_permits(1);
    }

    fn wait(&self) {
        drop(self.0.acquire());
    }
}

/// A barrier that opens when the owner comes too.
macro_rules! barriers {
    ($($name:ident($barrier:ty);)*) => {$(
        struct $name($barrier);

        impl $name {
            fn create(threads: usize) -> Result<Box<dyn Blocking>, CreateError> {
                Ok(Box::new(Self(<$barrier>::new(threads + 1))))
            }
        }

        impl Blocking for $name {
            fn own(&self, body: &mut dyn FnMut()) {
                body();
                self.0.wait();
            }

            fn wait(&self) {
                self.0.wait();
            }
        }
    )*};
}

barriers! {
    OurBarrier(overlock::Barrier);
    StdBarrier(std::sync::Barrier);
}

#[cfg(target_env = "gnu")]
mod glibc {
    use std::cell::UnsafeCell;
    use std::mem::MaybeUninit;

    use super::{Blocking, CreateError};

    /// A POSIX object at an address of its own, where it stays.
    struct Place<T>(Box<UnsafeCell<MaybeUninit<T>>>);

    // SAFETY: such objects are made to be shared; the cell is only passed to their calls.
    unsafe impl<T> Sync for Place<T> {}
    // SAFETY: the object stays in its box, wherever the box moves.
    unsafe impl<T> Send for Place<T> {}

    impl<T> Place<T> {
        fn new() -> Self {
            Self(Box::new(UnsafeCell::new(MaybeUninit::uninit())))
        }

        fn get(&self) -> *mut T {
            self.0.get().cast()
        }
    }

    fn check(status: libc::c_int) -> Result<(), CreateError> {
        match status {
            0 => Ok(()),
            _ => Err(CreateError(std::io::Error::last_os_error().to_string())),
        }
    }

    /// `sem_t`, as `Semaphore` above.
    pub struct Semaphore(Place<libc::sem_t>);

    impl Semaphore {
        pub fn create(_: usize) -> Result<Box<dyn Blocking>, CreateError> {
            let semaphore = Self(Place::new());
            // SAFETY: the place is ours, and no other thread uses it yet.
            check(unsafe { libc::sem_init(semaphore.0.get(), 0, 0) })?;
            Ok(Box::new(semaphore))
        }

        fn post(&self) {
            // SAFETY: initialised by `create`.
            unsafe { libc::sem_post(self.0.get()) };
        }
    }

    impl Blocking for Semaphore {
        fn own(&self, body: &mut dyn FnMut()) {
            body();
            self.post();
        }

        fn wait(&self) {
            // A signal's handler may have ended the wait.
            // SAFETY: initialised by `create`.
            while unsafe { libc::sem_wait(self.0.get()) } != 0 {}
            self.post();
        }
    }

    /// `pthread_barrier_t`.
    pub struct Barrier(Place<libc::pthread_barrier_t>);

    impl Barrier {
        pub fn create(threads: usize) -> Result<Box<dyn Blocking>, CreateError> {
            let barrier = Self(Place::new());
            let count = u32::try_from(threads + 1).unwrap_or(u32::MAX);
            // SAFETY: the place is ours, and no other thread uses it yet.
            let status =
                unsafe { libc::pthread_barrier_init(barrier.0.get(), std::ptr::null(), count) };
            check(status)?;
            Ok(Box::new(barrier))
        }
    }

    impl Blocking for Barrier {
        fn own(&self, body: &mut dyn FnMut()) {
            body();
            self.wait();
        }

        fn wait(&self) {
            // SAFETY: initialised by `create`.
            unsafe { libc::pthread_barrier_wait(self.0.get()) };
        }
    }
}

const fn object(what: &'static str, lock: &'static str, ours: bool, create: Create) -> Object {
    Object {
        what,
        lock,
        ours,
        create,
    }
}

/// All objects: ours first in each kind, then their peers. `usync::Barrier` 0.2.1 is not among
/// them: of nine threads seven slept on after it had opened.
#[rustfmt::skip]
pub static OBJECTS: &[Object] = &[
    object("mutex", "overlock-mutex", true, Mutex::<types::Mutex>::create),
    object("mutex", "std", false, Mutex::<peers::Std>::create),
    object("mutex", "parking_lot", false, Mutex::<peers::ParkingLot>::create),
    object("mutex", "parking_lot-0.12", false, Mutex::<peers::ParkingLot012>::create),
    object("mutex", "usync", false, Mutex::<peers::Usync>::create),
    #[cfg(target_env = "gnu")]
    object("mutex", "glibc", false, Mutex::<peers::glibc::Default>::create),
    #[cfg(target_env = "gnu")]
    object("mutex", "glibc-adaptive", false, Mutex::<peers::glibc::Adaptive>::create),

    object("read", "overlock-rwlock", true, Writer::<types::RwLock, true>::create),
    object("read", "overlock-percpu-rwlock", true, Writer::<types::PerCpuRwLock, true>::create),
    object("read", "std", false, Writer::<peers::rw::Std, true>::create),
    object("read", "parking_lot", false, Writer::<peers::rw::ParkingLot, true>::create),
    object("read", "parking_lot-0.12", false, Writer::<peers::rw::ParkingLot012, true>::create),
    object("read", "usync", false, Writer::<peers::rw::Usync, true>::create),
    #[cfg(target_env = "gnu")]
    object("read", "glibc", false, Writer::<peers::glibc::rw::Default, true>::create),

    object("write", "overlock-rwlock", true, Writer::<types::RwLock, false>::create),
    object("write", "overlock-percpu-rwlock", true, Writer::<types::PerCpuRwLock, false>::create),
    object("write", "std", false, Writer::<peers::rw::Std, false>::create),
    object("write", "parking_lot", false, Writer::<peers::rw::ParkingLot, false>::create),
    object("write", "parking_lot-0.12", false, Writer::<peers::rw::ParkingLot012, false>::create),
    object("write", "usync", false, Writer::<peers::rw::Usync, false>::create),
    #[cfg(target_env = "gnu")]
    object("write", "glibc", false, Writer::<peers::glibc::rw::Default, false>::create),

    object("condvar", "overlock-condvar", true, Condvar::<types::Condvar>::create),
    object("condvar", "std", false, Condvar::<peers::condvar::Std>::create),
    object("condvar", "parking_lot", false, Condvar::<peers::condvar::ParkingLot>::create),
    object("condvar", "parking_lot-0.12", false, Condvar::<peers::condvar::ParkingLot012>::create),
    object("condvar", "usync", false, Condvar::<peers::condvar::Usync>::create),
    #[cfg(target_env = "gnu")]
    object("condvar", "glibc", false, Condvar::<peers::glibc::condvar::Condvar<peers::glibc::Default>>::create),

    object("semaphore", "overlock-semaphore", true, Semaphore::create),
    #[cfg(target_env = "gnu")]
    object("semaphore", "glibc", false, glibc::Semaphore::create),

    object("barrier", "overlock-barrier", true, OurBarrier::create),
    object("barrier", "std", false, StdBarrier::create),
    #[cfg(target_env = "gnu")]
    object("barrier", "glibc", false, glibc::Barrier::create),
];

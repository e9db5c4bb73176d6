//! The types of the crate `overlock`, as its users get them.

use crate::wrap::{condvars, mutexes, rw_locks};

mutexes! {
    /// [`overlock::Mutex`].
    Mutex(overlock::Mutex<()>), overlock::MutexGuard<'a, ()>, |m| m.lock();
    /// [`overlock::RtMutex`].
    RtMutex(overlock::RtMutex<()>), overlock::RtMutexGuard<'a, ()>, |m| m.lock();
}

rw_locks! {
    /// [`overlock::RwLock`].
    RwLock(overlock::RwLock<()>),
        overlock::RwLockReadGuard<'a, ()>, overlock::RwLockWriteGuard<'a, ()>,
        |l| l.read(), |l| l.write();
    /// [`overlock::PerCpuRwLock`].
    PerCpuRwLock(overlock::PerCpuRwLock<()>),
        overlock::rwlock::ReadGuard<'a, overlock::RawPerCpuRwLock, ()>,
        overlock::rwlock::WriteGuard<'a, overlock::RawPerCpuRwLock, ()>,
        |l| l.read(), |l| l.write();
}

condvars! {
    /// [`overlock::Condvar`], with [`overlock::Mutex`].
    Condvar(overlock::Condvar), Mutex,
        |condvar, mut guard| { condvar.wait(&mut guard); guard };
}

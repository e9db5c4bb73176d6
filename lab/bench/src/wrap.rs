//! Wrappers for locks that come as types with data and guards: `Mutex<()>`, `RwLock<()>`,
//! `Condvar`.

/// A line for each type of mutex: its name here, itself, its guard, and how it is locked.
macro_rules! mutexes {
    ($($(#[$doc:meta])* $name:ident($mutex:ty), $guard:ty, $lock:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name($mutex);

        impl $crate::lock::BenchLock for $name {
            type Guard<'a> = $guard;

            fn create() -> Result<Self, $crate::lock::CreateError> {
                Ok(Self(<$mutex>::new(())))
            }

            #[inline]
            fn lock(&self) -> Self::Guard<'_> {
                let lock: fn(&$mutex) -> Self::Guard<'_> = $lock;
                lock(&self.0)
            }
        }
    )*};
}

/// A line for each type of reader-writer lock: its name here, itself, its guards, and how it is
/// acquired.
macro_rules! rw_locks {
    ($($(#[$doc:meta])* $name:ident($lock:ty), $reader:ty, $writer:ty, $read:expr, $write:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name($lock);

        impl $crate::lock::BenchRwLock for $name {
            type Read<'a> = $reader;
            type Write<'a> = $writer;

            fn create() -> Result<Self, $crate::lock::CreateError> {
                Ok(Self(<$lock>::new(())))
            }

            #[inline]
            fn read(&self) -> Self::Read<'_> {
                let read: fn(&$lock) -> Self::Read<'_> = $read;
                read(&self.0)
            }

            #[inline]
            fn write(&self) -> Self::Write<'_> {
                let write: fn(&$lock) -> Self::Write<'_> = $write;
                write(&self.0)
            }
        }
    )*};
}

/// A line for each type of condition variable: its name here, its type, the mutex, and how to wait
/// for it.
macro_rules! condvars {
    ($($(#[$doc:meta])* $name:ident($condvar:ty), $mutex:ty, |$this:ident, $guard:pat_param| $wait:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name($condvar);

        impl $crate::lock::BenchCondvar for $name {
            type Mutex = $mutex;

            fn create() -> Result<Self, $crate::lock::CreateError> {
                Ok(Self(<$condvar>::new()))
            }

            #[inline]
            fn wait<'a>(&self, guard: $crate::lock::Held<'a, Self>) -> $crate::lock::Held<'a, Self> {
                let ($this, $guard) = (&self.0, guard);
                $wait
            }

            #[inline]
            fn notify_one(&self) {
                self.0.notify_one();
            }

            #[inline]
            fn notify_all(&self) {
                self.0.notify_all();
            }
        }
    )*};
}

pub(crate) use {condvars, mutexes, rw_locks};

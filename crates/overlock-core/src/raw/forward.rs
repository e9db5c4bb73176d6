//! The traits of raw locks for a lock around another one.

/// Implements traits of raw locks for a tuple struct by the methods of the lock in it. The lock's
/// tokens are `()`, and so are the struct's.
///
/// For a trait of which the struct has methods of its own, `methods` gives the others.
macro_rules! forward {
    ($(impl [$($generic:tt)*] $trait:ident $(<$platform:ident>)? for $lock:ident<$inner:ident>;)+) => {
        $(
            // SAFETY: the lock inside is what the trait asks for.
            unsafe impl<$($generic)*> $trait $(<$platform>)? for $lock<$inner> {
                forward! { methods $trait }
            }
        )+
    };

    (methods RawLock) => {
        forward! {
            #[inline(always)] fn lock(&self);
            #[inline(always)] fn try_lock(&self) -> Option<()>;
            fn is_locked(&self) -> bool;
            fn is_contended(&self) -> bool;
            fn lock_adopted(&self);
        }

        fn is_overlock<Q: $crate::Platform>(&self) -> bool {
            self.0.is_overlock::<Q>()
        }
    };
    (methods RawTimedLock) => {
        forward! {
            #[inline] fn lock_until(&self, deadline: impl Into<$crate::platform::Deadline>) -> Option<()>;
        }
    };
    (methods RawCancelLock) => {
        forward! {
            fn lock_cancellable(
                &self,
                cancel: &$crate::sleep::cancel::CancelToken<P>,
                deadline: Option<$crate::platform::Deadline>
            ) -> Option<()>;
        }
    };
    (methods RawFairLock) => {
        forward! {
            unsafe fn unlock_fair(&self, (): ());
            unsafe fn bump(&self, (): ());
        }
    };
    (methods RawFork) => {
        forward! { unsafe fn forget_waiters(&self); }
    };

    (methods RawRwLock) => {
        forward! {
            #[inline(always)] unsafe fn unlock_read(&self, (): ());
            #[inline(always)] fn write(&self);
            #[inline(always)] fn try_write(&self) -> Option<()>;
            #[inline(always)] unsafe fn unlock_write(&self, (): ());
            fn is_locked(&self) -> bool;
            fn is_write_locked(&self) -> bool;
            fn is_contended(&self) -> bool;
        }
    };
    (methods RawTimedRwLock) => {
        forward! {
            fn read_until(&self, deadline: impl Into<$crate::platform::Deadline>) -> Option<()>;
            fn write_until(&self, deadline: impl Into<$crate::platform::Deadline>) -> Option<()>;
        }
    };
    (methods RawRecursiveRwLock) => {
        forward! {
            fn read_recursive(&self);
            fn try_read_recursive(&self) -> Option<()>;
            fn read_recursive_until(
                &self,
                deadline: impl Into<$crate::platform::Deadline>
            ) -> Option<()>;
        }
    };
    (methods RawDowngradeRwLock) => {
        forward! { unsafe fn downgrade(&self, (): ()); }
    };
    (methods RawUpgradeRwLock) => {
        type Upgradable = ();

        forward! {
            fn upgradable(&self);
            fn try_upgradable(&self) -> Option<()>;
            fn upgradable_until(
                &self,
                deadline: impl Into<$crate::platform::Deadline>
            ) -> Option<()>;
            unsafe fn unlock_upgradable(&self, (): ());
            unsafe fn upgrade(&self, (): ());
            unsafe fn try_upgrade(&self, (): ()) -> Result<(), ()>;
            unsafe fn upgrade_until(
                &self,
                (): (),
                deadline: impl Into<$crate::platform::Deadline>
            ) -> Result<(), ()>;
            unsafe fn downgrade_upgradable(&self, (): ());
            unsafe fn downgrade_to_upgradable(&self, (): ());
        }
    };
    (methods RawFairRwLock) => {
        forward! {
            unsafe fn unlock_read_fair(&self, (): ());
            unsafe fn unlock_write_fair(&self, (): ());
            unsafe fn unlock_upgradable_fair(&self, (): ());
            unsafe fn bump_write(&self, (): ());
            unsafe fn bump_upgradable(&self, (): ());
        }
    };
    (methods RawForkRwLock) => {
        forward! { unsafe fn forget_waiters(&self, written: bool); }
    };

    // One method after another: a macro cannot choose between the three shapes in a repetition.
    () => {};
    (
        $(#[$how:meta])*
        fn $method:ident(&self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;
        $($rest:tt)*
    ) => {
        $(#[$how])*
        fn $method(&self $(, $argument: $type)*) $(-> $result)? {
            self.0.$method($($argument),*)
        }
        forward! { $($rest)* }
    };
    (
        $(#[$how:meta])*
        unsafe fn $method:ident(&self, (): () $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;
        $($rest:tt)*
    ) => {
        $(#[$how])*
        unsafe fn $method(&self, (): () $(, $argument: $type)*) $(-> $result)? {
            // SAFETY: the caller's promise.
            unsafe { self.0.$method(() $(, $argument)*) }
        }
        forward! { $($rest)* }
    };
    (
        unsafe fn $method:ident(&self $(, $argument:ident: $type:ty)*);
        $($rest:tt)*
    ) => {
        unsafe fn $method(&self $(, $argument: $type)*) {
            // SAFETY: the caller's promise.
            unsafe { self.0.$method($($argument),*) }
        }
        forward! { $($rest)* }
    };
}

pub(crate) use forward;

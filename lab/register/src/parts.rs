//! The parts of a [`Registration`](crate::Registration), one for each feature, with the macro that
//! makes it: nothing where the feature is off. A macro that is expanded in another crate cannot ask
//! for the features of this one.

#[cfg(feature = "bench")]
pub type Bench = fn() -> overlock_bench::registry::Entry;
#[cfg(not(feature = "bench"))]
pub type Bench = ();

#[cfg(feature = "bench")]
#[doc(hidden)]
#[macro_export]
macro_rules! __bench {
    ($kind:ident, $($lock:ident)::+) => {
        $crate::__private::overlock_bench::entry!($kind, $($lock)::+)
    };
}

#[cfg(not(feature = "bench"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __bench {
    ($($any:tt)*) => {
        ()
    };
}

#[cfg(feature = "torture")]
pub type Torture = fn() -> overlock_torture::registry::Entry;
#[cfg(not(feature = "torture"))]
pub type Torture = ();

#[cfg(feature = "torture")]
#[doc(hidden)]
#[macro_export]
macro_rules! __torture {
    ($model:literal, $($lock:ident)::+) => {
        $crate::__private::overlock_torture::entry!($model, $($lock)::+)
    };
}

#[cfg(not(feature = "torture"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __torture {
    ($($any:tt)*) => {
        ()
    };
}

#[cfg(feature = "model")]
pub type Model = overlock_model::list::Added;
#[cfg(not(feature = "model"))]
pub type Model = ();

#[cfg(feature = "model")]
#[doc(hidden)]
#[macro_export]
macro_rules! __model {
    ($($lock:ident)::+) => {
        $crate::__private::overlock_model::lock!($($lock)::+)
    };
}

#[cfg(not(feature = "model"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __model {
    ($($any:tt)*) => {
        ()
    };
}

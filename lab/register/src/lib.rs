//! Adds locks to the lists of `overlock bench`, `sim`, `torture` and `model`, by one line each: the
//! models of other people's locks, and those of a program of your own.
//!
//! A crate of its own, since what is measured is compiled where it is registered: with all
//! optimizations.

mod models;
mod parts;

#[doc(hidden)]
pub mod __private {
    #[cfg(feature = "bench")]
    pub use overlock_bench;
    #[cfg(feature = "model")]
    pub use overlock_model;
    #[cfg(feature = "torture")]
    pub use overlock_torture;
}

/// A lock of mutual exclusion in all lists: see [`register`].
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    #[doc(hidden)]
    pub bench: parts::Bench,
    #[doc(hidden)]
    pub torture: parts::Torture,
    #[doc(hidden)]
    pub model: parts::Model,
}

/// The registration of a lock that is written once over `overlock_core::Platform`: the name of its
/// type, without the platform. It implements `RawLock` and `HasFacts` for every platform. Traits
/// beyond that, such as `RawTimedLock`, are found and tested too.
///
/// ```
/// use overlock_core::spin::Ticket;
///
/// let registration = overlock_register::register!(Ticket);
/// ```
#[macro_export]
macro_rules! register {
    ($($lock:ident)::+) => {
        $crate::__registration!(Added, false, $($lock)::+)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __registration {
    ($kind:ident, $model:literal, $($lock:ident)::+) => {
        $crate::Registration {
            bench: $crate::__bench!($kind, $($lock)::+),
            torture: $crate::__torture!($model, $($lock)::+),
            model: $crate::__model!($($lock)::+),
        }
    };
}

/// Adds the models, and then these, to the lists.
///
/// # Panics
///
/// If it is called twice, or after a use of the lists.
pub fn add(locks: Vec<Registration>) {
    let mut all = models::all();
    all.extend(locks);
    #[cfg(feature = "bench")]
    overlock_bench::registry::add(all.iter().map(|lock| lock.bench).collect());
    #[cfg(feature = "torture")]
    overlock_torture::registry::add(all.iter().map(|lock| lock.torture).collect());
    #[cfg(feature = "model")]
    overlock_model::list::add(all.iter().map(|lock| lock.model).collect());
}

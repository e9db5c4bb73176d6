//! Adds locks to the lists of `bench`, `sim`, `torture` and `model`, by one line each: the models
//! of other people's locks, and those of a program of your own.

#[doc(hidden)]
pub mod __private {
    pub use overlock_bench;
    pub use overlock_model;
    pub use overlock_torture;
}

/// A lock of mutual exclusion in all lists: see [`register`](crate::register).
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    #[doc(hidden)]
    pub bench: fn() -> overlock_bench::registry::Entry,
    #[doc(hidden)]
    pub torture: fn() -> overlock_torture::registry::Entry,
    #[doc(hidden)]
    pub model: overlock_model::list::Added,
}

/// The registration of a lock that is written once over `overlock_core::Platform`: the name of its
/// type, without the platform. It implements `RawLock` and `HasFacts` for every platform. Traits
/// beyond that, such as `RawTimedLock`, are tested too where the word for its abilities comes
/// first, `timed` or `full`: see `overlock_family::spin_locks`.
///
/// ```
/// use overlock_family::spin::Ticket;
///
/// let registration = overlock_lab::register!(Ticket);
/// ```
#[macro_export]
macro_rules! register {
    ($($lock:ident)::+) => {
        $crate::register!(basic, $($lock)::+)
    };
    ($can:ident, $($lock:ident)::+) => {
        $crate::__registration!(Added, false, $can, $($lock)::+)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __registration {
    ($kind:ident, $model:literal, $can:ident, $($lock:ident)::+) => {
        $crate::Registration {
            bench: $crate::__private::overlock_bench::entry!($kind, $($lock)::+),
            torture: $crate::__private::overlock_torture::entry!($model, $can, $($lock)::+),
            model: $crate::__private::overlock_model::lock!($can, $($lock)::+),
        }
    };
}

/// The models of other people's locks, in the order of their list.
fn models() -> Vec<Registration> {
    macro_rules! registrations {
        ($($lock:ident;)*) => {
            vec![$($crate::__registration!(Model, true, basic, overlock_peers::$lock)),*]
        };
    }
    overlock_peers::peers!(registrations)
}

/// Adds the models, and then these, to the lists.
///
/// # Panics
///
/// If it is called twice, or after a use of the lists.
pub(crate) fn add(locks: Vec<Registration>) {
    let mut all = models();
    all.extend(locks);
    overlock_bench::registry::add(all.iter().map(|lock| lock.bench).collect());
    overlock_torture::registry::add(all.iter().map(|lock| lock.torture).collect());
    overlock_model::list::add(all.iter().map(|lock| lock.model).collect());
}

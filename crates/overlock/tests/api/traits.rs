//! Trait by trait: what the types of parking_lot and of the standard library implement, ours do.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

/// Asks whether a type implements a trait: the inherent constant of `asks::Trait<Type>`, which is
/// there if it does, comes before that of `Else`.
mod asks {
    use std::marker::PhantomData;

    pub trait Else {
        const IMPLEMENTED: bool = false;
    }
    impl<T: ?Sized> Else for T {}

    macro_rules! asks {
        ($($name:ident: $bound:path;)+) => {$(
            #[allow(dead_code)] // a name for paths
            pub struct $name<T: ?Sized>(PhantomData<T>);
            #[allow(dead_code)] // where no type has it
            impl<T: ?Sized + $bound> $name<T> {
                pub const IMPLEMENTED: bool = true;
            }
        )+};
    }
    asks! {
        Send: std::marker::Send;
        Sync: std::marker::Sync;
        Unpin: std::marker::Unpin;
        UnwindSafe: std::panic::UnwindSafe;
        RefUnwindSafe: std::panic::RefUnwindSafe;
        Debug: std::fmt::Debug;
        Display: std::fmt::Display;
        Default: std::default::Default;
        Clone: std::clone::Clone;
        Copy: std::marker::Copy;
        PartialEq: std::cmp::PartialEq;
        Eq: std::cmp::Eq;
        Hash: std::hash::Hash;
        FromNumber: From<u32>;
    }
}
use asks::Else;

/// The differences of two types, as sentences. More traits than theirs are no fault, but for
/// `Send` and `Sync`.
macro_rules! compare {
    ($found:ident, $ours:ty, $theirs:ty) => {
        compare!(@ $found, $ours, $theirs; Send Sync Unpin UnwindSafe RefUnwindSafe Debug Display
            Default Clone Copy PartialEq Eq Hash FromNumber)
    };
    (@ $found:ident, $ours:ty, $theirs:ty; $($name:ident)+) => {$({
        let ours = <asks::$name<$ours>>::IMPLEMENTED;
        let theirs = <asks::$name<$theirs>>::IMPLEMENTED;
        let is_marker = matches!(stringify!($name), "Send" | "Sync");
        if theirs && !ours || ours && !theirs && is_marker {
            $found.push(format!("{}, {}: {theirs}", stringify!($theirs), stringify!($name)));
        }
    })+};
}

/// As a standard guard is: `Sync`, not `Send`.
type SyncOnly = std::sync::MutexGuard<'static, u32>;
type Exclusive = &'static mut u32;
type Unsized = dyn fmt::Debug + Send;

/// The types of these names, with data of several kinds.
macro_rules! compare_with_data {
    ($found:ident, $peer:ident: $($name:ident)+; of guards: $($guard:ident)+) => {
        compare_with_data!(@ $found, $peer: u32: $($name)+; $($guard)+);
        compare_with_data!(@ $found, $peer: String: $($name)+; $($guard)+);
        compare_with_data!(@ $found, $peer: Cell<u32>: $($name)+; $($guard)+);
        compare_with_data!(@ $found, $peer: Rc<u32>: $($name)+; $($guard)+);
        compare_with_data!(@ $found, $peer: SyncOnly: $($name)+; $($guard)+);
        compare_with_data!(@ $found, $peer: Exclusive: $($name)+; $($guard)+);
        compare_with_data!(@ $found, $peer: Unsized: $($name)+; $($guard)+);
    };
    (@ $found:ident, $peer:ident: $data:ty: $($name:ident)+; $($guard:ident)+) => {
        $(compare!($found, overlock::$name<$data>, $peer::$name<$data>);)+
        $(compare!($found, overlock::$guard<'static, $data>, $peer::$guard<'static, $data>);)+
    };
}

macro_rules! compare_plain {
    ($found:ident, $peer:ident: $($name:ident)+) => {
        $(compare!($found, overlock::$name, $peer::$name);)+
    };
}

#[test]
fn what_parking_lots_types_implement_ours_do() {
    let mut found: Vec<String> = Vec::new();
    compare_with_data! {
        found, parking_lot: Mutex FairMutex ReentrantMutex RwLock RecursiveRwLock;
        of guards: MutexGuard MappedMutexGuard FairMutexGuard MappedFairMutexGuard ReentrantMutexGuard
        MappedReentrantMutexGuard RwLockReadGuard RwLockWriteGuard RwLockUpgradableReadGuard
        MappedRwLockReadGuard MappedRwLockWriteGuard RecursiveRwLockReadGuard
        RecursiveRwLockWriteGuard RecursiveRwLockUpgradableReadGuard
        MappedRecursiveRwLockReadGuard MappedRecursiveRwLockWriteGuard
    }
    compare_plain! {
        found, parking_lot: Condvar WaitTimeoutResult Once OnceState RawMutex RawFairMutex RawRwLock
        RawRwLockRecursive RawCondvar RawThreadId
    }
    macro_rules! compare_of_arcs {
        ($($data:ty),+) => {$(
            compare!(found, overlock::ArcMutexGuard<overlock::RawMutex, $data>,
                parking_lot::ArcMutexGuard<parking_lot::RawMutex, $data>);
            compare!(found, overlock::ArcRwLockReadGuard<overlock::RawRwLock, $data>,
                parking_lot::ArcRwLockReadGuard<parking_lot::RawRwLock, $data>);
            compare!(found, overlock::ArcRwLockWriteGuard<overlock::RawRwLock, $data>,
                parking_lot::ArcRwLockWriteGuard<parking_lot::RawRwLock, $data>);
            compare!(found, overlock::ArcRwLockUpgradableReadGuard<overlock::RawRwLock, $data>,
                parking_lot::ArcRwLockUpgradableReadGuard<parking_lot::RawRwLock, $data>);
            compare!(found,
                overlock::ArcReentrantMutexGuard<overlock::RawMutex, overlock::RawThreadId, $data>,
                parking_lot::ArcReentrantMutexGuard<parking_lot::RawMutex, parking_lot::RawThreadId, $data>);
        )+};
    }
    compare_of_arcs!(u32, Cell<u32>, Rc<u32>, SyncOnly, Unsized);
    assert_eq!(found, [""; 0], "{found:#?}");
}

#[test]
fn what_the_standard_librarys_types_implement_ours_do() {
    use std::sync as standard;

    let mut found: Vec<String> = Vec::new();
    compare_with_data! {
        found, standard: Mutex RwLock;
        of guards: MutexGuard RwLockReadGuard RwLockWriteGuard
    }
    // Nothing is poisoned. And `MutexGuard::mutex` leads from a guard to its lock.
    let leads_to_lock = |said: &str| said.contains("SyncOnly") && said.contains(", Sync:");
    found.retain(|said| !said.contains("UnwindSafe"));
    found.retain(|said| !leads_to_lock(said));
    macro_rules! compare_once_lock {
        ($($data:ty),+) => {
            $(compare!(found, overlock::OnceLock<$data>, standard::OnceLock<$data>);)+
        };
    }
    compare_once_lock!(u32, String, Cell<u32>, Rc<u32>, SyncOnly, Exclusive);
    compare_plain! {
        found, standard: Condvar WaitTimeoutResult Once Barrier BarrierWaitResult
    }
    assert_eq!(found, [""; 0], "{found:#?}");
}

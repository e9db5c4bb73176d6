//! Programs written for parking_lot: one body of code that uses every public method of the types
//! that both crates have, compiled and run for each of the two. overlock's own page lists the rest
//! of parking_lot.

/// The same files, once for each crate. A test acquires by one of the three functions before it
/// releases by force, since each crate gets tokens in its own way.
macro_rules! suite {
    ($module:ident, $api:ident, { $($tokens:item)* }) => {
        mod $module {
            use std::fmt::{Debug, Display};
            use std::sync::Arc;
            use std::time::{Duration, Instant};
            use std::thread;

            use ::$api as api;

            $($tokens)*

            const SHORT: Duration = Duration::from_millis(10);
            const LONG: Duration = Duration::from_secs(60);

            include!("parking_lot_api/mutex.rs");
            include!("parking_lot_api/rwlock.rs");
            include!("parking_lot_api/upgradable.rs");
            include!("parking_lot_api/condvar.rs");
            include!("parking_lot_api/once.rs");
            include!("parking_lot_api/reentrant.rs");
            include!("parking_lot_api/more.rs");
            include!("parking_lot_api/common.rs");
        }
    };
}

suite!(parking_lot, parking_lot, {
    fn locked(lock: &api::Mutex<u32>) -> ::lock_api::GuardNoSend {
        std::mem::forget(lock.lock());
        ::lock_api::GuardNoSend::new()
    }

    fn read(lock: &api::RwLock<u32>) -> ::lock_api::GuardNoSend {
        std::mem::forget(lock.read());
        ::lock_api::GuardNoSend::new()
    }

    fn written(lock: &api::RwLock<u32>) -> ::lock_api::GuardNoSend {
        std::mem::forget(lock.write());
        ::lock_api::GuardNoSend::new()
    }

    fn upgradable(lock: &api::RwLock<u32>) -> ::lock_api::GuardNoSend {
        std::mem::forget(lock.upgradable_read());
        ::lock_api::GuardNoSend::new()
    }
});

suite!(overlock, overlock, {
    use ::overlock_core::raw::{RawRwLock, RawUpgradeRwLock};

    fn locked(lock: &api::Mutex<u32>) {
        api::MutexGuard::into_token(lock.lock());
    }

    fn read(lock: &api::RwLock<u32>) -> <api::RawRwLock as RawRwLock>::Read {
        api::RwLockReadGuard::into_token(lock.read())
    }

    fn written(lock: &api::RwLock<u32>) -> <api::RawRwLock as RawRwLock>::Write {
        api::RwLockWriteGuard::into_token(lock.write())
    }

    fn upgradable(lock: &api::RwLock<u32>) -> <api::RawRwLock as RawUpgradeRwLock>::Upgradable {
        api::RwLockUpgradableReadGuard::into_token(lock.upgradable_read())
    }
});

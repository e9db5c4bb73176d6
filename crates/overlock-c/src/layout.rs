//! The layout that the header's inline functions rely on. The header asserts its half, and
//! `tests/header.rs` compares the two. In addition to the sizes, the byte of a mutex at its address
//! is 0 while the mutex is free, and an owner makes it 1.

use crate::cond::Cond;
use crate::mutex::Mutex;
use crate::rwlock::RwLock;

const _: () = {
    assert!(size_of::<Mutex>() == 4 && align_of::<Mutex>() == 4);
    assert!(size_of::<RwLock>() == 8 && align_of::<RwLock>() == 4);
    assert!(size_of::<Cond>() == 8 && align_of::<Cond>() == 4);
};

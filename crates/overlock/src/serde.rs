//! A lock is serialised as its data, and deserialised as a new, unlocked lock around it.
//! Serialising acquires the lock and may wait; a thread that holds the lock must not do it.

use overlock_core::raw::{ConstLock, RawLock, RawRwLock, ThreadId};
use serde_core::{Deserialize, Deserializer, Serialize, Serializer};

use crate::lock::Lock;
use crate::reentrant::ReentrantLock;
use crate::rwlock::SharedLock;

impl<R: RawLock, T: ?Sized + Serialize> Serialize for Lock<R, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.lock().serialize(serializer)
    }
}

impl<'de, R: ConstLock, T: Deserialize<'de>> Deserialize<'de> for Lock<R, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Lock::new)
    }
}

impl<R: RawRwLock, T: ?Sized + Serialize> Serialize for SharedLock<R, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.read().serialize(serializer)
    }
}

impl<'de, R: ConstLock, T: Deserialize<'de>> Deserialize<'de> for SharedLock<R, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(SharedLock::new)
    }
}

impl<R: RawLock<Token = ()>, I: ThreadId, T: ?Sized + Serialize> Serialize
    for ReentrantLock<R, I, T>
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.lock().serialize(serializer)
    }
}

impl<'de, R: ConstLock, I, T: Deserialize<'de>> Deserialize<'de> for ReentrantLock<R, I, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(ReentrantLock::new)
    }
}

//! Ways to acquire.

use overlock::System;
use overlock_core::Instant;
use overlock_core::Platform;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Without a limit. Alone, it only tries if it would wait.
    Wait,
    Try,
    /// With a deadline that has passed.
    Past,
    /// With a deadline so many microseconds from now.
    Soon(u16),
    /// With a token that may be cancelled.
    Cancellable,
}

pub fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        3 => Just(How::Wait),
        3 => Just(How::Try),
        1 => Just(How::Past),
        1 => (0..100_u16).prop_map(How::Soon),
        1 => Just(How::Cancellable),
    ]
}

impl How {
    /// If there is one.
    pub fn deadline(self) -> Option<Instant> {
        match self {
            How::Past => Some(Instant::from_nanos(0)),
            How::Soon(micros) => Some(System::now().plus_nanos(u64::from(micros) * 1000)),
            _ => None,
        }
    }
}

/// A thread's pause inside.
#[derive(Clone, Copy, Debug)]
pub enum Pause {
    None,
    Yield,
    Sleep,
}

pub fn pause() -> impl Strategy<Value = Pause> {
    prop_oneof![
        8 => Just(Pause::None),
        2 => Just(Pause::Yield),
        1 => Just(Pause::Sleep),
    ]
}

impl Pause {
    pub fn take(self) {
        match self {
            Pause::None => {}
            Pause::Yield => std::thread::yield_now(),
            Pause::Sleep => std::thread::sleep(std::time::Duration::from_micros(60)),
        }
    }
}

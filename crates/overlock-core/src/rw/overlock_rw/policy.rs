//! The forms of the recommended reader-writer lock.

use core::fmt::Debug;

/// When readers are visible, that is, write to an entry of their own thread instead of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// They always count themselves.
    Never,
    /// From one to two thousand counted reads ([`Policy::LOOK_EVERY`]) without a write on, until the next write.
    Learned,
    /// From the first read on, and again after each write.
    Always,
}

/// See the [module's page](super).
pub trait Policy: Send + Sync + Debug + 'static {
    /// The lock's name in tables.
    const NAME: &'static str;
    /// When readers are visible.
    const BIAS: Bias;
    /// Where that is [learned](Bias::Learned): counted readers between two looks whether it is time, a power of two.
    const LOOK_EVERY: u64 = 1 << 10;
}

macro_rules! policies {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal, $bias:ident;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Policy for $name {
            const NAME: &'static str = $text;
            const BIAS: Bias = Bias::$bias;
        }
    )+};
}

policies! {
    /// What we recommend.
    Recommended = "overlock_rw", Learned;
    /// Readers count themselves.
    Counted = "overlock_rw_counted", Never;
    /// Readers touch nothing but their own slot: [`rw::percpu_rwsem`](crate::rw::percpu_rwsem).
    PerCpu = "percpu_rwsem", Always;
}

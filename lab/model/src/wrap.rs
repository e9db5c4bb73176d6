//! Atomics of other crates behind our trait, and the parts of their platform.

/// Implements `Atomic` for `Word<A>`, a newtype of the calling module, for each atomic type.
macro_rules! words {
    ($($atomic:ty: $int:ty),*) => {$(
        impl ::overlock_core::platform::Atomic<$int> for Word<$atomic> {
            fn new(value: $int) -> Self {
                Word(<$atomic>::new(value))
            }
            fn load(&self, order: Ordering) -> $int {
                fenced(order, || self.0.load(order))
            }
            fn store(&self, value: $int, order: Ordering) {
                fenced(order, || self.0.store(value, order));
            }
            fn swap(&self, value: $int, order: Ordering) -> $int {
                fenced(order, || self.0.swap(value, order))
            }
            fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                fenced(success, || self.0.compare_exchange(current, new, success, failure))
            }
            fn compare_exchange_weak(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                fenced(success, || self.0.compare_exchange_weak(current, new, success, failure))
            }
            fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                fenced(order, || self.0.fetch_add(value, order))
            }
            fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                fenced(order, || self.0.fetch_sub(value, order))
            }
            fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                fenced(order, || self.0.fetch_or(value, order))
            }
            fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                fenced(order, || self.0.fetch_and(value, order))
            }
        }
    )*};
}

/// Implements `Lanes` for words by their halves.
macro_rules! lanes {
    ($($type:ty: $word:ty, $half:ty);*) => {$(
        impl ::overlock_core::platform::Lanes<$word, $half> for $type {
            fn join(low: $half, high: $half) -> $word {
                <$word>::from(low) | <$word>::from(high) << <$half>::BITS
            }
            fn low(word: $word) -> $half {
                word as $half
            }
            fn high(word: $word) -> $half {
                (word >> <$half>::BITS) as $half
            }
            fn add_low(word: $word, value: $half) -> $word {
                Self::join((word as $half).wrapping_add(value), Self::high(word))
            }
        }
    )*};
}

/// The part of `Platform` for a checker of another crate. It works on the functions `with`,
/// `tables` and `me`, and on the type `Word`, of the calling module.
macro_rules! platform_of_run {
    () => {
        fn pause(_turns: u32) {
            thread::yield_now();
        }

        fn kick(word: &Word<AtomicU32>) {
            Self::kick_at(word, Kick::One);
        }

        fn cpu() -> Cpu {
            Cpu(me() as u32 % 2)
        }

        fn now() -> Instant {
            with(|run| {
                run.now += run.setting.tick;
                Instant::from_nanos(run.now)
            })
        }

        fn parallelism() -> u32 {
            with(|run| run.setting.parallelism)
        }

        fn tables() -> overlock_core::tables::Tables<Self> {
            tables().view()
        }

        fn slot() -> Option<usize> {
            let (me, slots) = (me(), with(|run| run.setting.slots));
            (me < slots).then_some(me)
        }

        fn transition(transition: Transition) {
            coverage::took(transition);
        }
    };
}

/// The same for `FutexPlatform`.
macro_rules! futexes_of_run {
    () => {
        /// Takes no time: what happens meanwhile may happen at the next poll as well.
        fn delay(_nanos: u64) -> Instant {
            with(|run| Instant::from_nanos(run.now))
        }

        fn socket() -> u32 {
            Self::cpu().0
        }
    };
}

/// The PI futexes of such a checker: those of [`pi`](crate::pi). `$refuses` says whether the
/// kernel cannot help now.
macro_rules! pi_of_run {
    ($platform:ty, $refuses:expr) => {
        impl Kernel for $platform {
            fn number() -> usize {
                me()
            }

            fn sleepers<R>(work: impl FnOnce(&mut Sleepers) -> R) -> R {
                with(|run| work(&mut run.pi))
            }

            fn refuses() -> bool {
                $refuses
            }

            fn granted(thread: usize) -> &'static Word<AtomicU32> {
                tables().granted(thread)
            }
        }

        impl PiPlatform for $platform {
            fn thread_id() -> u32 {
                pi::id(Self::number())
            }

            fn lock_pi(word: &Word<AtomicU32>, until: Option<Deadline>) -> Result<(), PiError> {
                pi::lock::<Self>(word, until)
            }

            fn unlock_pi(word: &Word<AtomicU32>) {
                pi::unlock::<Self>(word);
            }

            fn was_before_fork(_id: u32) -> bool {
                false
            }
        }
    };
}

pub(crate) use {futexes_of_run, lanes, pi_of_run, platform_of_run, words};

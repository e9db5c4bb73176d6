//! The modes of acquisition: which calls of the raw lock each is made of.

/// Defines a mode: `Mode<RawTrait>: acquire() -> Token, unlock`, and the calls of fair locks.
macro_rules! mode {
    (
        $(#[$meta:meta])*
        $mode:ident<$raw:ident>: $acquire:ident() -> $token:ident, $unlock:ident;
        $fair:ident: $unlock_fair:ident, $bump:ident
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $mode<R>(std::marker::PhantomData<R>, std::convert::Infallible);

        impl<R> $crate::guard::sealed::Sealed for $mode<R> {}
        impl<R: $raw> $crate::guard::Mode for $mode<R> {
            type Raw = R;
            type Token = R::$token;

            #[inline]
            fn acquire(raw: &$crate::watch::Watched<R>) -> R::$token {
                raw.$acquire()
            }

            #[inline]
            unsafe fn release(raw: &$crate::watch::Watched<R>, token: R::$token) {
                // SAFETY: the caller's promise.
                raw.release(|| unsafe { raw.$unlock(token) });
            }
        }

        impl<R: $fair> $crate::guard::Fair for $mode<R> {
            #[inline]
            unsafe fn release_fair(raw: &$crate::watch::Watched<R>, token: R::$token) {
                // SAFETY: the caller's promise.
                raw.release(|| unsafe { raw.$unlock_fair(token) });
            }

            #[inline]
            unsafe fn bump(raw: &$crate::watch::Watched<R>, token: R::$token) -> R::$token {
                // SAFETY: the caller's promise.
                raw.paused(|| unsafe { raw.$bump(token) })
            }
        }
    };
}
pub(crate) use mode;

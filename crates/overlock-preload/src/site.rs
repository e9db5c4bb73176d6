//! Call sites: the return addresses of exported functions.
//!
//! An exported function is a few instructions that pass its return address on as one more argument.
//! That costs nothing measurable; a compiler intrinsic for it is not stable.

/// Defines exported functions as `target(arguments..., return address)`. They have no stack frames,
/// so unwinding from a target that reaches a cancellation point does not pass through them.
///
/// ```text
/// with_site! {
///     /// The documentation.
///     fn pthread_mutex_lock(1) => lock;      // one argument of its own
/// }
/// ```
macro_rules! with_site {
    ($($(#[$meta:meta])* fn $name:ident($count:tt) => $target:path;)*) => {$(
        $(#[$meta])*
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                concat!("mov ", $crate::site::register!($count), ", [rsp]"),
                "jmp {target}",
                target = sym $target,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                concat!("mov ", $crate::site::register!($count), ", x30"),
                "b {target}",
                target = sym $target,
            );
        }
    )*};
}

/// The register of the argument after this many others.
#[cfg(target_arch = "x86_64")]
macro_rules! register {
    (1) => {
        "rsi"
    };
    (2) => {
        "rdx"
    };
    (3) => {
        "rcx"
    };
    (4) => {
        "r8"
    };
}

#[cfg(target_arch = "aarch64")]
macro_rules! register {
    (1) => {
        "x1"
    };
    (2) => {
        "x2"
    };
    (3) => {
        "x3"
    };
    (4) => {
        "x4"
    };
}

pub(crate) use {register, with_site};

/// Begins a code section at the start of a cache line, for one function that `link_section` puts
/// there. Otherwise the alignment of the fast paths depends on all code before them, which makes 5
/// % of their time.
macro_rules! at_cache_line {
    ($section:literal) => {
        core::arch::global_asm!(
            concat!(".pushsection ", $section, ",\"ax\",@progbits"),
            ".p2align 6",
            ".popsection",
        );
    };
}
pub(crate) use at_cache_line;

pub type Site = usize;

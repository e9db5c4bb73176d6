//! Where a function was called from.
//!
//! A function of the C library's interface is a few instructions that pass its return address on as
//! one more argument, which costs nothing that can be measured; a compiler's intrinsic for it is
//! not stable.

/// Defines functions of the C library's interface as `target(arguments..., return address)`. They
/// are no frames of the stack, so what unwinds through one that jumps to a cancellation point does
/// not meet it.
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

/// The register of the argument behind so many.
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

/// Begins a section of code at the start of a cache line, for the one function that is put there by
/// `link_section`. Where the shortest ways come to lie otherwise depends on all code before them,
/// and makes 5 % of the time that they take.
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

/// A return address.
pub type Site = usize;

//! The processor's instructions, as functions.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count, CpuidResult};

pub fn cpuid(leaf: u32) -> CpuidResult {
    __cpuid(leaf)
}

/// Whether CPUID has this leaf, by the highest leaf of its range.
pub fn has_leaf(leaf: u32) -> bool {
    let base = leaf & 0xffff_0000 | leaf & 0xff00;
    let base = if leaf < 0x4000_0000 { 0 } else { base };
    (leaf..=base | 0xffff).contains(&__cpuid_count(base, 0).eax)
}

/// The time-stamp counter.
#[inline]
pub fn rdtsc() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Reads a model-specific register.
///
/// # Safety
///
/// The processor has it, and the caller is in ring 0.
pub unsafe fn rdmsr(number: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("rdmsr", in("ecx") number, out("eax") low, out("edx") high,
            options(nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
///
/// # Safety
///
/// The processor has it, the caller is in ring 0, and the value is right for it.
pub unsafe fn wrmsr(number: u32, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("wrmsr", in("ecx") number, in("eax") value as u32, in("edx") (value >> 32) as u32,
            options(nostack, preserves_flags));
    }
}

/// Writes a byte to a port.
///
/// # Safety
///
/// The caller may access ports, and the device takes the value.
pub unsafe fn outb(port: u16, value: u8) {
    // SAFETY: the caller's promise.
    unsafe { asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags)) }
}

/// Writes 32 bits to a port.
///
/// # Safety
///
/// As for [`outb`].
#[inline]
pub unsafe fn outl(port: u16, value: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("out dx, eax", in("dx") port, in("eax") value, options(nostack, preserves_flags))
    }
}

/// Reads a byte from a port.
///
/// # Safety
///
/// As for [`outb`].
pub unsafe fn inb(port: u16) -> u8 {
    let value: u8;
    // SAFETY: the caller's promise.
    unsafe { asm!("in al, dx", in("dx") port, out("al") value, options(nostack, preserves_flags)) }
    value
}

//! The clock: the hypervisor's paravirtual clock of each vCPU, or the time-stamp counter.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicU64, fence};

use crate::vcpu::{self, Vcpu};
use crate::x86::rdtsc;

/// The clock page of a vCPU, which KVM (`MSR_KVM_SYSTEM_TIME_NEW`) and Xen (`vcpu_time_info`) lay
/// out alike. The hypervisor makes `version` odd while it writes.
#[derive(Debug)]
#[repr(C)]
pub struct PvClock {
    version: u32,
    _pad0: u32,
    tsc_timestamp: u64,
    system_time: u64,
    tsc_to_system_mul: u32,
    tsc_shift: i8,
    flags: u8,
    _pad1: [u8; 2],
}

/// The flag by which a hypervisor says that the clocks of all vCPUs agree.
const TSC_STABLE: u8 = 1;

/// Nanoseconds per tick of the time-stamp counter, times 2^32.
static SCALE: AtomicU64 = AtomicU64::new(0);

/// The latest time that a vCPU has read from a clock that may differ from those of the others.
static LATEST: AtomicU64 = AtomicU64::new(0);

impl PvClock {
    /// A clock that the hypervisor has not written yet.
    pub(crate) const fn new() -> Self {
        PvClock {
            version: 0,
            _pad0: 0,
            tsc_timestamp: 0,
            system_time: 0,
            tsc_to_system_mul: 0,
            tsc_shift: 0,
            flags: 0,
            _pad1: [0; 2],
        }
    }

    /// A consistent copy of the page.
    ///
    /// # Safety
    ///
    /// `page` is the clock page of the calling vCPU.
    unsafe fn read(page: *const PvClock) -> PvClock {
        loop {
            // SAFETY: the caller's promise, here and in the two reads below. The hypervisor writes
            // while the vCPU does not run, so the reads are volatile and checked by the version.
            let before = unsafe { ptr::read_volatile(&raw const (*page).version) };
            fence(Acquire);
            // SAFETY: as above.
            let copy = unsafe { ptr::read_volatile(page) };
            fence(Acquire);
            // SAFETY: as above.
            let after = unsafe { ptr::read_volatile(&raw const (*page).version) };
            if before == after && before & 1 == 0 {
                return copy;
            }
        }
    }

    /// Nanoseconds per tick, times 2^32.
    fn scale(&self) -> u64 {
        let scale = u64::from(self.tsc_to_system_mul);
        match self.tsc_shift {
            shift @ 0.. => scale << shift,
            shift => scale >> -shift,
        }
    }

    /// The hypervisor's time at this value of the counter.
    fn at(&self, ticks: u64) -> u64 {
        let ticks = u128::from(ticks.saturating_sub(self.tsc_timestamp));
        let ticks = match self.tsc_shift {
            shift @ 0.. => ticks << shift,
            shift => ticks >> -shift,
        };
        self.system_time + ((ticks * u128::from(self.tsc_to_system_mul)) >> 32) as u64
    }
}

/// Has the calling vCPU read its time from the hypervisor's page.
///
/// # Safety
///
/// The page is that of the calling vCPU, for ever.
pub unsafe fn use_page(page: *mut PvClock) {
    vcpu::this().clock.store(page, Relaxed);
    // SAFETY: the caller's promise.
    let clock = unsafe { PvClock::read(page) };
    SCALE.store(clock.scale(), Relaxed);
}

/// Sets the frequency of the time-stamp counter.
pub fn set_frequency(khz: u64) {
    SCALE.store((1_000_000 << 32) / khz.max(1), Relaxed);
}

/// Whether the clock has a frequency.
pub fn is_set() -> bool {
    SCALE.load(Relaxed) != 0
}

/// Nanoseconds since boot, monotonic over all vCPUs.
pub fn now() -> u64 {
    let Vcpu { clock, .. } = vcpu::this();
    let page = clock.load(Relaxed);
    if page.is_null() {
        return ticks();
    }
    // SAFETY: `use_page` has its caller's promise for it.
    let page = unsafe { PvClock::read(page) };
    let now = page.at(rdtsc());
    if page.flags & TSC_STABLE != 0 {
        return now;
    }
    now.max(LATEST.fetch_max(now, Relaxed))
}

/// Nanoseconds by the time-stamp counter of this vCPU.
#[inline]
pub fn ticks() -> u64 {
    ((u128::from(rdtsc()) * u128::from(SCALE.load(Relaxed))) >> 32) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_scales_ticks_in_both_directions() {
        let mut page = PvClock::new();
        page.tsc_timestamp = 1_000;
        page.system_time = 5_000;
        // 2 GHz: half a nanosecond per tick.
        page.tsc_to_system_mul = 1 << 31;
        assert_eq!(page.at(1_000 + 2_000), 6_000);
        assert_eq!(page.scale(), 1 << 31);
        page.tsc_shift = 1;
        assert_eq!(page.at(1_000 + 2_000), 7_000);
        page.tsc_shift = -1;
        assert_eq!(page.at(1_000 + 2_000), 5_500);
        assert_eq!(page.scale(), 1 << 30);
        // A counter that lies before the timestamp does not turn the time back.
        assert_eq!(page.at(0), 5_000);
    }
}

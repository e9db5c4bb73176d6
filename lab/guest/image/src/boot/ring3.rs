//! Start in ring 3. The monitor has built the page tables, and points GS to each vCPU's state.

use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use overlock_guest::backend::{self, Backend};
use overlock_guest::ring3::Boot;
use overlock_guest::vcpu::Vcpu;
use overlock_guest::{clock, vcpu};

use crate::coordinator;

// The note for the monitor: entry, boot block, boot line, GS of the first vCPU, and from there on
// the distance to the next.
global_asm!(
    r#"
    .pushsection .notes.ring3, "a", @note
    .balign 4
    .long 9, 40, 1
    .asciz "overlock"
    .balign 4
    .quad ring3_entry
    .quad ring3_boot
    .quad boot_line
    .quad {states}
    .quad {state}
    .popsection

    .pushsection .text.boot, "ax"
ring3_entry:                        // the number of the vCPU in RDI
    lea rsp, [rdi + 1]
    shl rsp, 15                     // STACK
    add rsp, offset stacks
    xor ebp, ebp
    call start_in_ring3
    ud2
    .popsection
    "#,
    states = sym vcpu::STATES,
    state = const size_of::<Vcpu>(),
);

#[unsafe(export_name = "ring3_boot")]
static BOOT: Boot = Boot {
    vcpus: AtomicU64::new(0),
    cpus: AtomicU64::new(0),
    tsc_khz: AtomicU64::new(0),
    line_length: AtomicU64::new(0),
};

#[unsafe(no_mangle)]
extern "C" fn start_in_ring3(index: usize) -> ! {
    backend::choose(Backend::Ring3);
    clock::set_frequency(BOOT.tsc_khz.load(Relaxed));
    vcpu::enter(index);
    if index != 0 {
        coordinator::work();
    }
    super::LINE
        .length
        .store(BOOT.line_length.load(Relaxed) as usize, Relaxed);
    let options = super::options();
    vcpu::set_parallelism(BOOT.cpus.load(Relaxed) as u32);
    coordinator::run(&options)
}

//! Start in ring 0: the PVH entry of the first vCPU, INIT-SIPI-SIPI for the others, long mode,
//! interrupts.
//!
//! PVH is specified in Xen's documentation, "x86/HVM direct boot ABI"; QEMU's `-kernel` follows it.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use overlock_guest::backend::{self, Backend};
use overlock_guest::{interrupts, kvm, vcpu, x86};

use crate::console::say;
use crate::coordinator;

/// The page at which the other vCPUs begin, in real mode.
const TRAMPOLINE: usize = 0x8000;

const MSR_GS_BASE: u32 = 0xc000_0101;

/// QEMU's `isa-debug-exit`.
const DEBUG_EXIT: u16 = 0xf4;

/// The number of the next vCPU that starts.
#[unsafe(export_name = "next_vcpu")]
static NEXT: AtomicU32 = AtomicU32::new(1);

/// vCPUs from this number on are not needed, and stop.
#[unsafe(export_name = "most_vcpus")]
static MOST: AtomicU32 = AtomicU32::new(0);

global_asm!(
    r#"
    .pushsection .notes.pvh, "a", @note
    .balign 4
    .long 4, 8, 18                  // PHYS32_ENTRY
    .asciz "Xen"
    .quad pvh_entry
    .popsection

    .pushsection .text.boot, "ax"
    // The other vCPUs begin here, in a copy at 0x8000. By hand, since LLVM refuses differences of
    // symbols in 16-bit operands.
    .code16
    .global trampoline
    .global trampoline_end
trampoline:
    cli
    xor ax, ax
    mov ds, ax
    .byte 0x66, 0x0f, 0x01, 0x16    // lgdt [imm16]
    .word trampoline_gdt - trampoline + 0x8000
    mov eax, cr0
    or al, 1
    mov cr0, eax
    .byte 0x66, 0xea                // ljmp 0x08:other_entry
    .long other_entry
    .word 0x08
    .balign 4
trampoline_gdt:
    .word gdt_end - gdt - 1
    .long gdt
trampoline_end:

    .code32
pvh_entry:
    cli
    cld
    lgdt [gdt_pointer]
    xor edi, edi
    jmp to_long
other_entry:
    mov ax, 0x10
    mov ds, ax
    mov es, ax
    mov ss, ax
    mov edi, 1
    lock xadd dword ptr [next_vcpu], edi
    cmp edi, dword ptr [most_vcpus]
    jae stop
to_long:
    mov eax, cr4
    or eax, 1 << 5                  // PAE
    mov cr4, eax
    lea eax, [root]
    mov cr3, eax
    mov ecx, 0xc0000080             // EFER.LME
    rdmsr
    or eax, 1 << 8
    wrmsr
    mov eax, cr0
    or eax, 0x80000001              // PG, PE
    mov cr0, eax
    .byte 0xea                      // ljmp 0x18:long_entry
    .long long_entry
    .word 0x18
stop:
    cli
    hlt
    jmp stop

    .code64
long_entry:
    mov ax, 0x10
    mov ds, ax
    mov es, ax
    mov ss, ax
    xor eax, eax
    mov fs, ax
    mov gs, ax
    mov edi, edi
    lea rsp, [rdi + 1]
    shl rsp, 15                     // STACK
    add rsp, offset stacks
    mov esi, ebx
    xor ebp, ebp
    call start_vcpu
    ud2
    .popsection

    .pushsection .rodata.boot, "a"
    .balign 8
gdt:
    .quad 0
    .quad 0x00cf9b000000ffff        // 0x08: 32-bit code
    .quad 0x00cf93000000ffff        // 0x10: data
    .quad 0x00af9b000000ffff        // 0x18: 64-bit code
gdt_end:
gdt_pointer:
    .word gdt_end - gdt - 1
    .quad gdt
    .popsection

    // The first 4 GiB, mapped as they are, in pages of 2 MiB.
    .pushsection .data.boot, "aw"
    .balign 4096
root:
    .quad coordinatories + 3
    .fill 511, 8, 0
coordinatories:
    .quad pages + 0x0003, pages + 0x1003, pages + 0x2003, pages + 0x3003
    .fill 508, 8, 0
pages:
    .set address, 0
    .rept 2048
    .quad address + 0x83
    .set address, address + 0x200000
    .endr
    .popsection

    // Handlers: those of exceptions 0 to 31, then those of the interrupts that the image uses.
    .macro handler vector, code
    .balign 16
    .if \code == 0
    push 0
    .endif
    push \vector
    jmp handle
    .endm

    .pushsection .text.handlers, "ax"
    .balign 16
    .global handlers
handlers:
    .irp vector, 0, 1, 2, 3, 4, 5, 6, 7
    handler \vector, 0
    .endr
    handler 8, 1
    handler 9, 0
    .irp vector, 10, 11, 12, 13, 14
    handler \vector, 1
    .endr
    handler 15, 0
    handler 16, 0
    handler 17, 1
    .irp vector, 18, 19, 20
    handler \vector, 0
    .endr
    handler 21, 1
    .irp vector, 22, 23, 24, 25, 26, 27, 28
    handler \vector, 0
    .endr
    handler 29, 1
    handler 30, 1
    handler 31, 0
    .irp vector, 0x40, 0x41, 0x42, 0xff
    handler \vector, 0
    .endr

handle:
    cld
    push rax
    push rcx
    push rdx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    mov rdi, rsp
    call interrupt
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rax
    add rsp, 16
    iretq
    .popsection
    "#
);

unsafe extern "C" {
    static trampoline: u8;
    static trampoline_end: u8;
    static handlers: u8;
}

/// `hvm_start_info`, up to the command line.
#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
}

/// The stack of a handler.
#[derive(Debug)]
#[repr(C)]
struct Frame {
    saved: [u64; 9],
    vector: u64,
    code: u64,
    rip: u64,
    cs: u64,
    flags: u64,
    rsp: u64,
    ss: u64,
}

struct Descriptors(UnsafeCell<[[u64; 2]; 256]>);

// SAFETY: the first vCPU writes them before it starts others. Only processors read them.
unsafe impl Sync for Descriptors {}

static DESCRIPTORS: Descriptors = Descriptors(UnsafeCell::new([[0; 2]; 256]));

#[unsafe(no_mangle)]
extern "C" fn start_vcpu(index: usize, info: usize) -> ! {
    let state = ptr::from_ref(&vcpu::all()[index]).addr() as u64;
    // SAFETY: in ring 0, in long mode. GS belongs to this.
    unsafe { x86::wrmsr(MSR_GS_BASE, state) };
    vcpu::enter(index);
    backend::choose(Backend::Kvm);
    if index == 0 {
        start_first(info)
    } else {
        load_descriptors();
        // SAFETY: once on each vCPU, after `enter`.
        unsafe { kvm::start_vcpu() };
        interrupts::enable();
        coordinator::work()
    }
}

fn start_first(info: usize) -> ! {
    set_descriptors();
    load_descriptors();
    // SAFETY: PVH's start structure, and its command line, lie there until others run.
    unsafe {
        let info = &*ptr::with_exposed_provenance::<StartInfo>(info);
        super::copy_line(ptr::with_exposed_provenance(info.command_line as usize));
    }
    let options = super::options();
    // SAFETY: once, in ring 0, with interrupts off and the first 4 GiB mapped.
    unsafe { kvm::start() };
    interrupts::enable();
    MOST.store(options.vcpus() as u32, Relaxed);
    // SAFETY: the page is free memory, and holds the other vCPUs' first code.
    unsafe {
        let from = &raw const trampoline;
        let length = (&raw const trampoline_end).offset_from(from) as usize;
        ptr::copy_nonoverlapping(from, ptr::with_exposed_provenance_mut(TRAMPOLINE), length);
        kvm::start_others((TRAMPOLINE >> 12) as u8);
    }
    coordinator::run(&options)
}

fn set_descriptors() {
    const CODE: u64 = 0x18;
    const PRESENT_INTERRUPT_GATE: u64 = 0x8e00;
    let vectors = (0..32).chain([kvm::KICK, kvm::TIMER, kvm::CALL, kvm::SPURIOUS]);
    // SAFETY: only this vCPU runs.
    let descriptors = unsafe { &mut *DESCRIPTORS.0.get() };
    for (place, vector) in vectors.enumerate() {
        let address = (&raw const handlers).addr() as u64 + 16 * place as u64;
        let low = address & 0xffff | CODE << 16 | PRESENT_INTERRUPT_GATE << 32;
        descriptors[usize::from(vector)] = [low | (address >> 16 & 0xffff) << 48, address >> 32];
    }
}

fn load_descriptors() {
    #[repr(C, packed)]
    struct Pointer(u16, u64);
    let pointer = Pointer(0xfff, DESCRIPTORS.0.get().addr() as u64);
    // SAFETY: the table is complete, and lives for ever.
    unsafe { asm!("lidt [{}]", in(reg) &raw const pointer, options(readonly, nostack)) };
}

#[unsafe(no_mangle)]
extern "C" fn interrupt(frame: &Frame) {
    match frame.vector as u8 {
        kvm::KICK => {}
        kvm::TIMER => coordinator::timer(),
        kvm::CALL => coordinator::call(frame.rip),
        kvm::SPURIOUS => return,
        vector => fault(vector, frame),
    }
    kvm::end_of_interrupt();
}

fn fault(vector: u8, frame: &Frame) -> ! {
    let cr2: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, cr2", out(reg) cr2) };
    say!(
        "{{\"end\":\"failed\",\"why\":\"exception {vector} (code {:#x}) at {:#x}, cr2 {cr2:#x}, \
         vCPU {}\"}}",
        frame.code,
        frame.rip,
        vcpu::index()
    );
    end(1)
}

/// Ends an emulator that has the device for it. Else a triple fault ends it.
pub fn end(code: u32) -> ! {
    #[repr(C, packed)]
    struct Pointer(u16, u64);
    let nothing = Pointer(0, 0);
    // SAFETY: nothing runs after this.
    unsafe {
        x86::outl(DEBUG_EXIT, code);
        asm!("lidt [{}]", "ud2", in(reg) &raw const nothing, options(noreturn));
    }
}

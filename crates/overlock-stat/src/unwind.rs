//! The callers of the calling thread, by the unwind information of `.eh_frame`.
//!
//! The unwinder of libgcc takes locks, of which some are pthread's, and allocates when it meets
//! code that was made at run time. This one does neither: it takes no lock and no memory, and can
//! run in a signal handler and below an allocator. It knows what compilers write: a frame address
//! that is a register and an offset, and registers that are saved at an offset of it. Code without
//! unwind information, as JIT compilers make it, is passed through where that is
//! possible. The walk stops at what is else, frames of signal handlers among it.
//!
//! glibc finds the unwind information of an address by `_dl_find_object`, without a lock, from 2.35
//! on. Before that there are no callers.

use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

use crate::cfi::{self, FP, Found, REGISTERS, Rule, SP};
use crate::steps::{self, Step};
use crate::unmarked;

pub use crate::call::{Frame, From, OWN_FRAMES};

/// The registers of a frame.
pub type Registers = [usize; REGISTERS];

/// The beginning of glibc's result, which has room for more.
#[repr(C)]
struct Object {
    flags: u64,
    start: usize,
    end: usize,
    map: *const c_void,
    /// The header of its unwind information.
    frames: *const u8,
    reserved: [u64; 11],
}

/// The program, or a library.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub start: usize,
    pub end: usize,
    /// The header of its unwind information.
    pub frames: *const u8,
}

impl Default for Range {
    fn default() -> Self {
        Self {
            start: 0,
            end: 0,
            frames: ptr::null(),
        }
    }
}

/// `_dl_find_object`; null before the library is loaded, and where there is none.
static FIND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// An address above all frames of the first thread's stack: bytes that the kernel has put there.
static FIRST_END: AtomicUsize = AtomicUsize::new(0);

/// Begins, with the C library's function of that name, or null.
pub fn start(find: *mut c_void) {
    FIND.store(find, Relaxed);
    // SAFETY: it has no preconditions.
    let bytes = unsafe { libc::getauxval(libc::AT_RANDOM) };
    FIRST_END.store(bytes as usize & !7, Relaxed);
}

/// Whether callers, and variables, can be found.
pub fn is_able() -> bool {
    !FIND.load(Relaxed).is_null()
}

pub fn find(address: usize) -> Option<Range> {
    let find = FIND.load(Relaxed);
    if find.is_null() {
        return None;
    }
    // SAFETY: the function of this name has this type.
    let find: unsafe extern "C" fn(usize, *mut Object) -> c_int = unsafe { transmute(find) };
    let mut found = MaybeUninit::uninit();
    // SAFETY: valid for the write. It looks at no memory at the address.
    let status = unsafe { find(address, found.as_mut_ptr()) };
    if status != 0 {
        return None;
    }
    // SAFETY: written where the status is 0.
    let found: Object = unsafe { found.assume_init() };
    Some(Range {
        start: found.start,
        end: found.end,
        frames: found.frames,
    })
}

/// Whether the address is within the program or a library, and so of a variable.
pub fn is_static(address: usize) -> bool {
    find(address).is_some()
}

/// Calls `each` with this library's frames, and then with those from a call outwards, until it
/// returns false. There are none where the call is not found, or its own callers are not known.
#[inline(never)]
pub fn callers(from: From, each: &mut dyn FnMut(Frame) -> bool) {
    if !is_able() {
        return;
    }
    let mut registers = [0; REGISTERS];
    let mut address = here(&mut registers);
    let (end, is_known) = end_of_stack(registers[SP]);
    let library = find(address).map(|own| own.start..own.end);
    let mut last = Last {
        object: Range::default(),
        is_bounded: is_known,
    };
    let mut is_outside = false;
    let mut own = 0;
    // Of a variable's frame the end is known one step later.
    let mut pending = None;
    while let Some((caller, at)) = step(address, &mut registers, end, &mut last) {
        address = caller;
        let was_outside = is_outside;
        let mut frame = Frame {
            address,
            at,
            is_own: false,
        };
        match from {
            From::Outside => {
                is_outside |= (library.as_ref()).is_some_and(|library| !library.contains(&caller));
                frame.is_own = !is_outside;
            }
            From::Site(site) => {
                is_outside |= caller == site;
                frame.is_own = !was_outside;
            }
            From::Frame(variable) => {
                let Some(ended) = pending.replace(frame) else {
                    continue;
                };
                frame = ended;
                is_outside |= registers[SP] > variable;
                frame.is_own = !is_outside;
            }
        }
        own += usize::from(frame.is_own);
        if own > OWN_FRAMES || !each(frame) {
            return;
        }
    }
    if let Some(outermost) = pending.filter(|_| is_outside) {
        each(outermost);
    }
}

/// An address that the stack ends below, and whether it is one of its own. The C library keeps a
/// thread's data at the end of its stack, but for the first thread. Of other stacks, as signal
/// handlers have them, the end is not known; the next frames are near.
pub fn end_of_stack(sp: usize) -> (usize, bool) {
    const LARGEST: usize = 1 << 28;
    const NEAR: usize = 1 << 16;
    let ends = [thread_pointer(), FIRST_END.load(Relaxed)];
    let above = ends.into_iter().filter(|end| {
        let size = end.checked_sub(sp);
        size.is_some_and(|size| size < LARGEST)
    });
    match above.min() {
        Some(end) => (end, true),
        None => (sp.saturating_add(NEAR), false),
    }
}

/// The state of a walk besides the registers.
struct Last {
    /// The object of the last frame that was in one. It stays loaded.
    object: Range,
    /// Whether all memory up to the end is the stack's.
    is_bounded: bool,
}

/// The longest frame of code without unwind information.
const FAR: usize = 1 << 16;

/// Goes from the frame of a call that returns to `address`, or from this function, to its caller.
/// Returns the caller's address and where that is, 0 for a register, and changes the registers to
/// its own.
fn step(
    address: usize,
    registers: &mut Registers,
    end: usize,
    last: &mut Last,
) -> Option<(usize, usize)> {
    // A return address may be the first of the next function.
    let call = address.checked_sub(1)?;
    let object = find(call);
    let frames = match object {
        Some(object) => {
            last.object = object;
            object.frames
        }
        None => ptr::null(),
    };
    let sp = registers[SP];
    let load = |at: usize| {
        // Frames are above the stack pointer: the present one's own is not read.
        let is_word = at % 8 == 0 && at >= sp && at < end;
        // SAFETY: a word of this thread's stack, by the compiler's word, and within its bounds.
        is_word.then(|| unsafe { ptr::with_exposed_provenance::<usize>(at).read() })
    };
    // A frame pointer that is none is not followed far: a stack of the program's own may end
    // before.
    let near = |at: usize| (at.wrapping_sub(sp) < FAR).then(|| load(at)).flatten();
    if let Some(known) = steps::known(call, frames.addr()) {
        return step_as(known, registers, end, load);
    }
    // SAFETY: the object is loaded, and stays so: a function of it is being called.
    let (row, ra) = match unsafe { cfi::row(frames, call) } {
        Found::Rules(row, ra) => (row, ra),
        Found::Nothing if last.is_bounded => {
            let caller = unmarked::step(call, registers, &last.object, near)?;
            // Below the stack pointer of the caller, however it was found.
            return Some((caller, registers[SP].wrapping_sub(size_of::<usize>())));
        }
        Found::Nothing => return None,
        Found::Unknown => return None,
    };
    if let Some(step) = Step::of(&row, ra) {
        steps::keep(call, frames.addr(), step);
    }
    let frame = row.frame(registers, load)?;
    if frame <= sp || frame > end {
        return None;
    }
    let before = *registers;
    for (number, register) in registers.iter_mut().enumerate() {
        match row.rules[number] {
            Rule::SAME => {}
            Rule::UNKNOWN => *register = 0,
            Rule(offset) => *register = load(frame.wrapping_add_signed(offset as isize))?,
        }
    }
    registers[SP] = frame;
    let (caller, at) = match row.rules[ra] {
        Rule::SAME => (before[ra], 0),
        Rule::UNKNOWN => return None,
        Rule(offset) => (registers[ra], frame.wrapping_add_signed(offset as isize)),
    };
    let caller = caller & ADDRESS;
    (caller != 0).then_some((caller, at))
}

/// The same by a step that is known. The other registers are lost: a frame that is found by one of
/// them ends the walk.
fn step_as(
    step: Step,
    registers: &mut Registers,
    end: usize,
    load: impl Fn(usize) -> Option<usize>,
) -> Option<(usize, usize)> {
    let (sp, pointer) = (registers[SP], registers[FP]);
    let base = if step.by_pointer { pointer } else { sp };
    let at = base.wrapping_add_signed(step.offset as isize);
    let frame = if step.is_loaded { load(at)? } else { at };
    if frame <= sp || frame > end {
        return None;
    }
    let at = |offset: i32| frame.wrapping_add_signed(offset as isize);
    let at_caller = at(step.caller);
    let caller = load(at_caller)? & ADDRESS;
    let before = match step.pointer {
        Some(offset) => load(at(offset))?,
        None => pointer,
    };
    *registers = [0; REGISTERS];
    registers[FP] = before;
    registers[SP] = frame;
    (caller != 0).then_some((caller, at_caller))
}

/// The bits of an address: on AArch64 the upper ones of a return address may be a signature.
pub const ADDRESS: usize = if cfg!(target_arch = "aarch64") {
    (1 << 48) - 1
} else {
    usize::MAX
};

/// The registers of this moment that a called function has to keep. Returns the address of a
/// moment in this function.
#[inline(always)]
fn here(registers: &mut Registers) -> usize {
    let address: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: stores some registers within the array, by the numbers that DWARF gives them.
    unsafe {
        core::arch::asm!(
            "mov [{to} + 3 * 8], rbx",
            "mov [{to} + 6 * 8], rbp",
            "mov [{to} + 7 * 8], rsp",
            "mov [{to} + 12 * 8], r12",
            "mov [{to} + 13 * 8], r13",
            "mov [{to} + 14 * 8], r14",
            "mov [{to} + 15 * 8], r15",
            "lea {address}, [rip]",
            to = in(reg) registers.as_mut_ptr(),
            address = lateout(reg) address,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!(
            "stp x19, x20, [{to}, #152]",
            "stp x21, x22, [{to}, #168]",
            "stp x23, x24, [{to}, #184]",
            "stp x25, x26, [{to}, #200]",
            "stp x27, x28, [{to}, #216]",
            "stp x29, x30, [{to}, #232]",
            "mov {address}, sp",
            "str {address}, [{to}, #248]",
            "adr {address}, .",
            to = in(reg) registers.as_mut_ptr(),
            address = out(reg) address,
            options(nostack, preserves_flags),
        );
    }
    address
}

#[inline(always)]
fn thread_pointer() -> usize {
    let pointer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the ABI keeps the thread pointer at its own beginning.
    unsafe {
        core::arch::asm!("mov {}, fs:[0]", out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(pure, nomem, nostack, preserves_flags));
    }
    pointer
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn found() -> *mut c_void {
        // SAFETY: the name ends with a zero.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) }
    }

    #[inline(never)]
    fn inner(frames: &mut [u64; 8]) -> usize {
        let mut registers = [0; REGISTERS];
        let address = here(&mut registers);
        let (end, is_bounded) = end_of_stack(registers[SP]);
        let mut last = Last {
            object: Range::default(),
            is_bounded,
        };
        let (site, at) = step(address, &mut registers, end, &mut last).unwrap();
        // SAFETY: a word of this thread's stack.
        let found = unsafe { ptr::with_exposed_provenance::<usize>(at).read() };
        assert!(at == 0 || found & ADDRESS == site);
        frames[0] = site as u64;
        let mut count = 1;
        callers(From::Site(site), &mut |frame| {
            if !frame.is_own {
                frames[count] = frame.address as u64;
                count += 1;
            }
            count < frames.len()
        });
        std::hint::black_box(count)
    }

    #[inline(never)]
    fn outer(frames: &mut [u64; 8]) -> usize {
        std::hint::black_box(inner(frames))
    }

    #[test]
    fn a_call_has_its_callers() {
        start(found());
        if !is_able() {
            return;
        }
        let mut frames = [0; 8];
        let count = outer(&mut frames);
        assert!(count >= 3, "{frames:x?}");
        let near = |frame: u64, function: usize| (frame as usize).wrapping_sub(function) < 1024;
        assert!(near(frames[0], outer as *const () as usize), "{frames:x?}");
        let test = a_call_has_its_callers as *const () as usize;
        assert!(near(frames[1], test), "{frames:x?}");
        // By steps that are known now, but for the call here.
        let mut again = [0; 8];
        outer(&mut again);
        assert_eq!((frames[0], &frames[2..]), (again[0], &again[2..]));
    }

    /// Fails where the walk begins at another frame than that of the variable.
    #[test]
    fn a_frame_is_found_by_its_variable() {
        #[inline(never)]
        fn within(variable: usize, frames: &mut [usize; 2]) -> usize {
            let mut count = 0;
            callers(From::Frame(variable), &mut |frame| {
                if !frame.is_own {
                    frames[count] = frame.address;
                    count += 1;
                }
                count < frames.len()
            });
            std::hint::black_box(count)
        }

        #[inline(never)]
        fn between(variable: usize, frames: &mut [usize; 2]) -> usize {
            std::hint::black_box(within(variable, frames))
        }

        #[inline(never)]
        fn with_variable(frames: &mut [usize; 2]) -> usize {
            let variable = 7_u8;
            std::hint::black_box(between((&raw const variable).addr(), frames))
        }

        start(found());
        if !is_able() {
            return;
        }
        let mut frames = [0; 2];
        assert_eq!(with_variable(&mut frames), 2);
        let near = |frame: usize, function: usize| frame.wrapping_sub(function) < 1024;
        assert!(near(frames[0], with_variable as *const () as usize));
        let test = a_frame_is_found_by_its_variable as *const () as usize;
        assert!(near(frames[1], test));
    }

    #[test]
    fn variables_are_told_from_the_heap() {
        static VARIABLE: u64 = 7;
        start(found());
        let heap = Box::new(7_u64);
        assert_eq!(is_static((&raw const VARIABLE).addr()), is_able());
        assert!(!is_static((&raw const *heap).addr()));
    }
}

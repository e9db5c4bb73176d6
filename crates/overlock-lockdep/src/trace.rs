//! Callers: a few return addresses, for what is noted once or reported.
//!
//! Not all programs have frame pointers, so this is the unwinder's work, which allocates nothing
//! and takes microseconds. It may take the loader's lock, which a thread may hold while it waits
//! for the gate. So no thread that is inside the gate calls this.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr};
use std::{mem, ptr};

use super::class::Init;
use super::site::Site;
use super::symbol;

/// Number of callers that are kept.
const CALLERS: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Trace([usize; CALLERS]);

/// The unwinder's opaque state.
#[repr(C)]
struct Context(c_void);

type Each = extern "C" fn(*mut Context, *mut c_void) -> c_int;
type Backtrace = unsafe extern "C" fn(Each, *mut c_void) -> c_int;
type GetIp = unsafe extern "C" fn(*mut Context) -> usize;

unsafe extern "C" {
    fn _Unwind_Backtrace(each: Each, data: *mut c_void) -> c_int;
    #[cfg(not(target_arch = "arm"))]
    fn _Unwind_GetIP(context: *mut Context) -> usize;
}

/// On 32-bit Arm the header of C has it, by the Exception Handling ABI for the Arm Architecture.
#[cfg(target_arch = "arm")]
#[allow(non_snake_case)] // the name elsewhere
unsafe extern "C" fn _Unwind_GetIP(context: *mut Context) -> usize {
    unsafe extern "C" {
        fn _Unwind_VRS_Get(
            context: *mut Context,
            class: c_int,
            register: u32,
            representation: c_int,
            value: *mut c_void,
        ) -> c_int;
    }
    const CORE: c_int = 0;
    const UINT32: c_int = 0;
    const PC: u32 = 15;
    let mut address = 0_usize;
    // SAFETY: the caller's context, and room for 32 bits. A failure leaves 0.
    unsafe { _Unwind_VRS_Get(context, CORE, PC, UINT32, (&raw mut address).cast()) };
    // The last bit tells Thumb.
    address & !1
}

/// A [`Backtrace`] and a [`GetIp`]; null for those that this code is linked to.
static BACKTRACE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static GET_IP: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Sets `_Unwind_Backtrace` and `_Unwind_GetIP`, before there is a second thread.
///
/// # Safety
///
/// Both are functions of one library, of these names.
pub(super) unsafe fn set_unwinder(backtrace: *mut c_void, get_ip: *mut c_void) {
    BACKTRACE.store(backtrace, Relaxed);
    GET_IP.store(get_ip, Relaxed);
}

struct Filling {
    trace: Trace,
    length: usize,
    skip: usize,
    /// The caller to begin with: 0 once it has been found, or if it is not a code address.
    first: usize,
}

extern "C" fn each(context: *mut Context, data: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const END: c_int = 5; // _URC_END_OF_STACK
    // SAFETY: `data` is what `here` passes, and nobody else uses it meanwhile.
    let filling = unsafe { &mut *data.cast::<Filling>() };
    if filling.skip > 0 {
        filling.skip -= 1;
        return GO_ON;
    }
    // SAFETY: null, or such a function: see `set_unwinder`.
    let get_ip: Option<GetIp> = unsafe { mem::transmute(GET_IP.load(Relaxed)) };
    let get_ip = get_ip.unwrap_or(_Unwind_GetIP);
    // SAFETY: `context` is the unwinder's own, for the length of this call.
    let address = unsafe { get_ip(context) };
    if address == 0 {
        return END; // some unwinders show the caller of the outermost function so
    }
    if address == filling.first {
        filling.first = 0;
        filling.length = 0;
    }
    match filling.trace.0.get_mut(filling.length) {
        Some(place) => {
            *place = address;
            filling.length += 1;
            GO_ON
        }
        None => END,
    }
}

impl Trace {
    pub(super) const NONE: Trace = Trace([0; CALLERS]);

    /// Returns the callers of the caller, from `site` on if that is one of the first.
    #[inline(never)]
    pub(super) fn here(site: Site) -> Trace {
        let mut filling = Filling {
            trace: Trace::NONE,
            length: 0,
            skip: 1,
            first: site.to_bits(),
        };
        if !cfg!(miri) {
            // SAFETY: null, or such a function: see `set_unwinder`.
            let backtrace: Option<Backtrace> = unsafe { mem::transmute(BACKTRACE.load(Relaxed)) };
            let backtrace = backtrace.unwrap_or(_Unwind_Backtrace);
            // SAFETY: `each` takes what it is given here, for the length of this call.
            unsafe { backtrace(each, (&raw mut filling).cast()) };
        }
        if let Some(rest) = filling.trace.0.get_mut(filling.length..) {
            rest.fill(0);
        }
        filling.trace
    }

    /// Returns the first caller outside of the object that contains this code: [`Site::NONE`] if
    /// there is none.
    pub(super) fn caller(&self) -> Site {
        let own = symbol::base_of(each as *const () as usize);
        let addresses = self.0.into_iter().take_while(|address| *address != 0);
        let mut others = addresses.filter(|address| symbol::base_of(*address) != own);
        others.next().map_or(Site::NONE, Site::code)
    }

    /// Returns the callers above `site`, if that is the first and has a caller.
    pub(super) fn init(&self, site: Site) -> Option<Init> {
        let [first, caller, above @ ..] = &self.0;
        if *first != site.to_bits() || *caller == 0 {
            return None;
        }
        let add = |sum: u64, address: &usize| sum.wrapping_mul(31).wrapping_add(*address as u64);
        let sum = above.iter().fold(0, add);
        Some(Init {
            site,
            caller: Site::code(*caller),
            above: (sum ^ sum >> 32) as u32,
        })
    }

    /// The callers, from the first that is no function of overlock's on.
    pub(super) fn callers(&self) -> impl Iterator<Item = impl fmt::Display> {
        let hidden = match HIDDEN.load(Relaxed) {
            true => symbol::base_of(each as *const () as usize),
            false => None,
        };
        let callers = self.0.into_iter().take_while(|address| *address != 0);
        let shown =
            callers.filter(move |address| hidden.is_none() || symbol::base_of(*address) != hidden);
        shown
            .skip_while(|address| symbol::is_own(*address))
            .map(symbol::Code)
    }
}

/// The object that contains this code has no code of the program's.
static HIDDEN: AtomicBool = AtomicBool::new(false);

pub(super) fn hide_own() {
    HIDDEN.store(true, Relaxed);
}

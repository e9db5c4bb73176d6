//! Fibres: a stack for each vCPU.

use std::cell::RefCell;
use std::fs;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr;

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, Yielder};

use super::Stuck;

/// Enough for every lock and workload, in debug builds too.
const STACK: usize = 256 * 1024;

/// Mappings that are left to everything else in the process.
const OTHER_MAPPINGS: usize = 8192;

/// Returns how many vCPUs this process can have at a time, in all simulations together, by the
/// number of mappings that Linux allows: the stack of each takes two, with its guard.
pub fn most_stacks() -> usize {
    let most = fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let most = most.and_then(|text| text.trim().parse().ok());
    most.unwrap_or(65_530_usize).saturating_sub(OTHER_MAPPINGS) / 2
}

type Fibre<T> = Coroutine<(), (), T, DefaultStack>;
/// Suspends a fibre.
type Suspend = Yielder<(), ()>;

thread_local! {
    /// Of each vCPU's fibre, the addresses of its stack, and what suspends it, once it has begun.
    static STACKS: RefCell<Vec<(Range<usize>, *const Suspend)>> =
        const { RefCell::new(Vec::new()) };
}

/// The fibres of a simulation. They are leaked unless all have ended: outside of the simulation the
/// code on their stacks must not be unwound, since its calls to the engine would fail.
pub(super) struct Fibres<T> {
    fibres: ManuallyDrop<Vec<Fibre<T>>>,
    results: Vec<Option<T>>,
}

impl<T> Fibres<T> {
    /// Makes a fibre for each vCPU, not started yet. `body` outlives them all: it is borrowed for
    /// as long as `self` is used.
    pub fn new(vcpus: usize, body: &impl Fn(usize) -> T) -> Result<Self, Stuck> {
        STACKS.with_borrow_mut(Vec::clear);
        let fibre = |vcpu| {
            let stack = DefaultStack::new(STACK).map_err(|_| Stuck::Stacks {
                wanted: vcpus,
                got: vcpu,
            })?;
            let addresses = stack.limit().get()..stack.base().get();
            STACKS.with_borrow_mut(|stacks| stacks.push((addresses, ptr::null())));
            let main = move |yielder: &Suspend, ()| {
                STACKS.with_borrow_mut(|stacks| stacks[vcpu].1 = ptr::from_ref(yielder));
                body(vcpu)
            };
            // SAFETY: beyond the safe constructor, the fibre must not outlive `body`, which `main`
            // borrows. Only `run` resumes it, and holds on to `body`. A fibre that has not ended
            // when `run` returns is leaked, and neither runs nor is unwound ever again.
            Ok(unsafe { Fibre::with_stack_unchecked(stack, main) })
        };
        Ok(Self {
            fibres: ManuallyDrop::new((0..vcpus).map(fibre).collect::<Result<_, _>>()?),
            results: (0..vcpus).map(|_| None).collect(),
        })
    }

    /// Runs the fibre until it is suspended. Returns whether it has ended.
    pub fn resume(&mut self, vcpu: usize) -> bool {
        let result = self.fibres[vcpu].resume(()).as_return();
        self.results[vcpu] = result;
        self.results[vcpu].is_some()
    }

    /// Returns the results of all fibres, which have ended.
    pub fn results(mut self) -> Vec<T> {
        assert!(self.fibres.iter().all(Coroutine::done));
        // SAFETY: `self` is consumed here and has no destructor, so this happens once.
        unsafe { ManuallyDrop::drop(&mut self.fibres) };
        self.results.drain(..).flatten().collect()
    }
}

/// Whether the word at `address` is on the stack of `vcpu`.
pub(super) fn is_on_stack(vcpu: usize, address: usize) -> bool {
    STACKS.with_borrow(|stacks| stacks[vcpu].0.contains(&address))
}

/// Returns the vCPU on whose stack the word at `address` is, if any.
pub(super) fn stack_of(address: usize) -> Option<usize> {
    STACKS.with_borrow(|stacks| stacks.iter().position(|(at, _)| at.contains(&address)))
}

/// Suspends the calling fibre, which is that of `vcpu`, until the engine resumes it.
pub(super) fn suspend(vcpu: usize) {
    let yielder = STACKS.with_borrow(|stacks| stacks[vcpu].1);
    // SAFETY: the pointer was taken from a reference that the fibre's main function has for as long
    // as it runs, and it runs: it called this.
    let yielder = unsafe { &*yielder };
    yielder.suspend(());
}

//! The fibres: a stack for each vCPU.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Enough for every lock and workload, in debug builds too.
const STACK: usize = 256 * 1024;

type Fibre<T> = Coroutine<(), (), T>;

thread_local! {
    /// What suspends each vCPU's fibre, from its first moment to its end.
    static YIELDERS: RefCell<Vec<*const Yielder<(), ()>>> = const { RefCell::new(Vec::new()) };
}

/// The fibres of a simulation. They are leaked unless all of them have ended: the code on their
/// stacks must not be unwound outside of the simulation, where nobody would answer it.
pub(super) struct Fibres<T> {
    fibres: ManuallyDrop<Vec<Fibre<T>>>,
    results: Vec<Option<T>>,
}

impl<T> Fibres<T> {
    /// A fibre for each vCPU, not started yet. `body` outlives them all: it is borrowed for as long
    /// as `self` is used.
    pub fn new(vcpus: usize, body: &impl Fn(usize) -> T) -> Self {
        YIELDERS.with_borrow_mut(|yielders| {
            yielders.clear();
            yielders.resize(vcpus, ptr::null());
        });
        let fibre = |vcpu| {
            let stack = DefaultStack::new(STACK).expect("there is address space for another stack");
            let main = move |yielder: &Yielder<(), ()>, ()| {
                YIELDERS.with_borrow_mut(|yielders| yielders[vcpu] = ptr::from_ref(yielder));
                body(vcpu)
            };
            // SAFETY: what is asked for beyond the safe form is that the fibre not outlive what
            // `main` borrows, `body`. It is resumed by `run` only, which holds on to
            // `body`; a fibre that has not ended when `run` returns is leaked, and
            // neither runs nor is unwound ever again.
            unsafe { Fibre::with_stack_unchecked(stack, main) }
        };
        Self {
            fibres: ManuallyDrop::new((0..vcpus).map(fibre).collect()),
            results: (0..vcpus).map(|_| None).collect(),
        }
    }

    /// Lets the fibre run until it is suspended; true if it has ended.
    pub fn resume(&mut self, vcpu: usize) -> bool {
        match self.fibres[vcpu].resume(()) {
            CoroutineResult::Yield(()) => false,
            CoroutineResult::Return(result) => {
                self.results[vcpu] = Some(result);
                true
            }
        }
    }

    /// What all of them have returned; all have ended.
    pub fn results(mut self) -> Vec<T> {
        assert!(self.fibres.iter().all(Coroutine::done));
        // SAFETY: `self` is consumed here and has no destructor, so this happens once.
        unsafe { ManuallyDrop::drop(&mut self.fibres) };
        self.results.drain(..).flatten().collect()
    }
}

/// Suspends the calling fibre, which is that of `vcpu`, until the engine resumes it.
pub(super) fn suspend(vcpu: usize) {
    let yielder = YIELDERS.with_borrow(|yielders| yielders[vcpu]);
    // SAFETY: the pointer was taken from the reference that the fibre's main function has for as
    // long as it runs, and it runs: it called this.
    let yielder = unsafe { &*yielder };
    yielder.suspend(());
}

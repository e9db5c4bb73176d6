//! How a guest's kicker finds a halted vCPU, with weak memory: no wake-up is lost.
//!
//! The file of the guest is compiled here over the explorer's atomics.

#[path = "../../../../guest/image/src/publication.rs"]
#[allow(dead_code)] // not all of it is used here
mod protocol;

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use overlock_core::platform::{Atomic, FutexPlatform, Kick, Pause, Platform};

use self::protocol::{Publication, word_has_changed};
use self::sync::AtomicUsize;
use super::check;
use crate::arena::Placed;
use crate::explore::exec::step;
use crate::explore::{Explorer, Word};
use crate::failure::Kind;
use crate::world::World;

/// The atomics and the fence of the protocol, over those of the explorer.
mod sync {
    pub(crate) use std::sync::atomic::Ordering;

    use super::*;

    #[derive(Debug)]
    pub(crate) struct AtomicUsize(pub(super) Word<usize>);

    impl AtomicUsize {
        #[track_caller]
        pub(crate) fn load(&self, order: Ordering) -> usize {
            self.0.load(order)
        }

        #[track_caller]
        pub(crate) fn swap(&self, value: usize, order: Ordering) -> usize {
            self.0.swap(value, order)
        }

        #[track_caller]
        pub(crate) fn compare_exchange(
            &self,
            current: usize,
            new: usize,
            success: Ordering,
            failure: Ordering,
        ) -> Result<usize, usize> {
            self.0.compare_exchange(current, new, success, failure)
        }
    }

    /// A sequentially consistent fence: a heavy barrier is one, and no thread here passes a light
    /// barrier, which it would order too.
    pub(crate) fn fence(_order: Ordering) {
        if UNFENCED.get() != Some(step::me()) {
            Explorer::heavy_barrier();
        }
    }
}

const NAME: usize = 4;
const OTHER: usize = 8;

const HALTS: usize = 0;
const KICKS: usize = 1;

thread_local! {
    /// The thread that passes no fence.
    static UNFENCED: Cell<Option<usize>> = const { Cell::new(None) };
}

/// A vCPU, and the latch of its back end.
struct Vcpu {
    publication: Publication,
    latch: Word<u32>,
}

impl Vcpu {
    fn new() -> Self {
        Vcpu {
            publication: Publication(AtomicUsize(Word::ZERO)),
            latch: Word::ZERO,
        }
    }

    /// Sleeps until the latch is set, and clears it. The explorer reports a sleep that nobody ends.
    fn sleep(&self) {
        // Acquire: pairs with the release of `wake`.
        while self.latch.swap(0, Acquire) == 0 {
            Explorer::halt(&self.latch, 0, None);
        }
    }

    fn wake(&self) {
        // Release: pairs with the acquire of `sleep`.
        self.latch.store(1, Release);
        Explorer::kick(&self.latch, Kick::One);
    }

    /// Halts once, if the word holds 0.
    fn halt(&self, word: &Word<u32>) {
        let outer = self.publication.begin(NAME);
        if word.load(Relaxed) == 0 {
            self.sleep();
        }
        self.publication.end(NAME, outer);
    }

    /// Kicks the vCPU if it halts. Returns whether it does.
    fn kick(&self) -> bool {
        let halts = self.publication.consume(NAME);
        if halts {
            self.wake();
        }
        halts
    }
}

/// One vCPU waits, as `halt` says, for a word that another one changes before it kicks.
fn waits(halt: impl Fn(&Vcpu, &Word<u32>) + Copy + 'static) -> Result<bool, Kind> {
    let done = check(move || {
        let (vcpu, word) = Placed::new((Vcpu::new(), Word::ZERO)).share();
        let kicker = Explorer::spawn(|| {
            assert_eq!(step::me(), KICKS);
            word.store(1, Relaxed);
            word_has_changed();
            vcpu.kick();
        });
        assert_eq!(step::me(), HALTS);
        while word.load(Relaxed) == 0 {
            halt(vcpu, word);
            Explorer::pause(Pause::Iterations(1));
        }
        Explorer::join(kicker);
    });
    done.map(|done| done.complete)
}

/// Fails where a publication is withdrawn without a recheck.
#[test]
fn a_change_and_its_kick_end_the_wait() {
    assert_eq!(waits(Vcpu::halt), Ok(true));
}

#[test]
fn without_either_fence_a_kick_may_be_lost() {
    for thread in [HALTS, KICKS] {
        UNFENCED.set(Some(thread));
        let found = waits(Vcpu::halt);
        UNFENCED.set(None);
        assert_eq!(found, Err(Kind::Deadlock), "thread {thread}");
    }
}

/// Fails where a kick does not consume the publication: both kicks then wake the first vCPU.
#[test]
fn two_kicks_of_one_wake_two() {
    let done = check(|| {
        let (vcpus, word) = Placed::new(([Vcpu::new(), Vcpu::new()], Word::ZERO)).share();
        let halts = [0, 1].map(|vcpu| Explorer::spawn(move || vcpus[vcpu].halt(word)));
        word.store(1, Relaxed);
        for _ in 0..2 {
            word_has_changed();
            let _ = vcpus.iter().any(Vcpu::kick);
        }
        for thread in halts {
            Explorer::join(thread);
        }
    });
    assert!(done.unwrap().complete);
}

/// A handler halts between the recheck of the code that it interrupts and that code's sleep, as on
/// Xen. Its halt ends without a sleep, and leaves the latch as it says.
fn interrupted_halt(ends_outer: bool) -> Result<bool, Kind> {
    waits(move |vcpu, word| {
        let outer = vcpu.publication.begin(NAME);
        if word.load(Relaxed) == 0 {
            let interrupted = vcpu.publication.begin(OTHER);
            vcpu.publication.end(OTHER, interrupted);
            if ends_outer {
                vcpu.wake();
            }
            vcpu.sleep();
        }
        vcpu.publication.end(NAME, outer);
    })
}

#[test]
fn a_handler_that_halts_ends_the_halt_that_it_interrupts() {
    assert_eq!(interrupted_halt(true), Ok(true));
}

#[test]
fn without_that_its_kick_may_be_lost() {
    assert_eq!(interrupted_halt(false), Err(Kind::Deadlock));
}

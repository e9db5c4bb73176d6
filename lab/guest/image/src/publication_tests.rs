//! The publication under loom, in every interleaving and with weak memory: no wake-up is lost.

#[path = "publication.rs"]
#[allow(dead_code)] // not all of it is used here
mod publication;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering, fence};
}

use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::Relaxed;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use self::publication::{Publication, word_has_changed};
use self::sync::AtomicUsize;

const NAME: usize = 4;
const OTHER: usize = 8;

/// A vCPU, and the latch of its back end.
struct Vcpu {
    publication: Publication,
    latch: Mutex<bool>,
    woken: Condvar,
}

impl Vcpu {
    fn new() -> Self {
        Vcpu {
            publication: Publication(AtomicUsize::new(0)),
            latch: Mutex::new(false),
            woken: Condvar::new(),
        }
    }

    /// Sleeps until the latch is set, and clears it. Loom reports a sleep that nobody ends.
    fn sleep(&self) {
        let mut latch = self.latch.lock().unwrap();
        while !*latch {
            latch = self.woken.wait(latch).unwrap();
        }
        *latch = false;
    }

    fn wake(&self) {
        *self.latch.lock().unwrap() = true;
        self.woken.notify_one();
    }

    /// Halts once, if the word holds 0.
    fn halt(&self, word: &AtomicU32) {
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

/// Fails where a fence is missing, or where a publication is withdrawn without a recheck.
#[test]
fn a_change_and_its_kick_end_the_wait() {
    loom::model(|| {
        let shared = Arc::new((Vcpu::new(), AtomicU32::new(0)));
        let other = shared.clone();
        let kicker = thread::spawn(move || {
            let (vcpu, word) = &*other;
            word.store(1, Relaxed);
            word_has_changed();
            vcpu.kick();
        });
        let (vcpu, word) = &*shared;
        while word.load(Relaxed) == 0 {
            vcpu.halt(word);
        }
        kicker.join().unwrap();
    });
}

/// Fails where a kick does not consume the publication: both kicks then wake the first vCPU.
#[test]
fn two_kicks_of_one_wake_two() {
    // Three threads: with all preemptions it takes minutes.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let shared = Arc::new(([Vcpu::new(), Vcpu::new()], AtomicU32::new(0)));
        let other = shared.clone();
        let first = thread::spawn(move || {
            let ([vcpu, _], word) = &*other;
            vcpu.halt(word);
        });
        let other = shared.clone();
        let second = thread::spawn(move || {
            let ([_, vcpu], word) = &*other;
            vcpu.halt(word);
        });
        let (vcpus, word) = &*shared;
        word.store(1, Relaxed);
        for _ in 0..2 {
            word_has_changed();
            let _ = vcpus.iter().any(Vcpu::kick);
        }
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// A handler halts between the recheck of the code that it interrupts and that code's sleep, as on
/// Xen. Its halt ends without a sleep, and leaves the latch as it says.
fn interrupted_halt(ends_outer: bool) {
    loom::model(move || {
        let shared = Arc::new((Vcpu::new(), AtomicU32::new(0)));
        let other = shared.clone();
        let kicker = thread::spawn(move || {
            let (vcpu, word) = &*other;
            word.store(1, Relaxed);
            word_has_changed();
            vcpu.kick();
        });
        let (vcpu, word) = &*shared;
        while word.load(Relaxed) == 0 {
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
            thread::yield_now();
        }
        kicker.join().unwrap();
    });
}

#[test]
fn a_handler_that_halts_ends_the_halt_that_it_interrupts() {
    interrupted_halt(true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_that_its_kick_may_be_lost() {
    interrupted_halt(false);
}

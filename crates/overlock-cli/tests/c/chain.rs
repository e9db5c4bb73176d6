//! As chain.c, in Rust: functions of modules, with the mutexes of the C library.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// A `pthread_mutex_t`, of which zeros are a free one.
#[repr(C, align(8))]
pub struct Mutex([u8; 64]);

unsafe extern "C" {
    fn pthread_mutex_lock(mutex: *mut Mutex) -> i32;
    fn pthread_mutex_unlock(mutex: *mut Mutex) -> i32;
}

static mut TILL: Mutex = Mutex([0; 64]);
static mut SAFE: Mutex = Mutex([0; 64]);

/// The directory of the calling thread, where the kernel says what it does.
fn this_thread() -> PathBuf {
    fs::canonicalize("/proc/thread-self").unwrap()
}

mod shop {
    use super::*;

    /// Until each of two others waits.
    fn await_sleep(others: Receiver<PathBuf>) {
        for thread in others.into_iter().take(2) {
            let stat = || fs::read_to_string(thread.join("stat")).unwrap();
            while !stat().contains(") S ") {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    #[inline(never)]
    pub fn guard(kept: Sender<()>, others: Receiver<PathBuf>) {
        // SAFETY: of mutexes that live as long as the program, here as below.
        unsafe { pthread_mutex_lock(&raw mut SAFE) };
        kept.send(()).unwrap();
        await_sleep(others);
        thread::sleep(Duration::from_millis(200));
        // SAFETY: as above; this thread has it.
        unsafe { pthread_mutex_unlock(&raw mut SAFE) };
    }

    #[inline(never)]
    pub fn manager(asked: Sender<()>, waits: Sender<PathBuf>) {
        // SAFETY: as above.
        unsafe { pthread_mutex_lock(&raw mut TILL) };
        asked.send(()).unwrap();
        waits.send(this_thread()).unwrap();
        // SAFETY: as above.
        unsafe { pthread_mutex_lock(&raw mut SAFE) };
        // SAFETY: as above; this thread has it.
        unsafe { pthread_mutex_unlock(&raw mut SAFE) };
        // SAFETY: as above; this thread has it.
        unsafe { pthread_mutex_unlock(&raw mut TILL) };
    }

    #[inline(never)]
    pub fn clerk(waits: Sender<PathBuf>) {
        waits.send(this_thread()).unwrap();
        // SAFETY: as above.
        unsafe { pthread_mutex_lock(&raw mut TILL) };
        // SAFETY: as above; this thread has it.
        unsafe { pthread_mutex_unlock(&raw mut TILL) };
    }
}

fn main() {
    let (kept, is_kept) = channel();
    let (waits, others) = channel();
    let guard = thread::spawn(|| shop::guard(kept, others));
    is_kept.recv().unwrap();
    let (asked, is_asked) = channel();
    let for_manager = waits.clone();
    let manager = thread::spawn(|| shop::manager(asked, for_manager));
    is_asked.recv().unwrap();
    let clerk = thread::spawn(|| shop::clerk(waits));
    for thread in [guard, manager, clerk] {
        thread.join().unwrap();
    }
}

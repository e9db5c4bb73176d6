//! As chain.c, in Rust: functions of modules, with the mutexes of the C library.

use std::sync::mpsc::{Sender, channel};
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

mod shop {
    use super::*;

    #[inline(never)]
    pub fn guard(kept: Sender<()>) {
        // SAFETY: of mutexes that live as long as the program, here as below.
        unsafe { pthread_mutex_lock(&raw mut SAFE) };
        kept.send(()).unwrap();
        thread::sleep(Duration::from_millis(200));
        // SAFETY: as above; this thread has it.
        unsafe { pthread_mutex_unlock(&raw mut SAFE) };
    }

    #[inline(never)]
    pub fn manager(asked: Sender<()>) {
        // SAFETY: as above.
        unsafe { pthread_mutex_lock(&raw mut TILL) };
        asked.send(()).unwrap();
        // SAFETY: as above.
        unsafe { pthread_mutex_lock(&raw mut SAFE) };
        // SAFETY: as above; this thread has it.
        unsafe { pthread_mutex_unlock(&raw mut SAFE) };
        // SAFETY: as above; this thread has it.
        unsafe { pthread_mutex_unlock(&raw mut TILL) };
    }

    #[inline(never)]
    pub fn clerk() {
        // SAFETY: as above.
        unsafe { pthread_mutex_lock(&raw mut TILL) };
        // SAFETY: as above; this thread has it.
        unsafe { pthread_mutex_unlock(&raw mut TILL) };
    }
}

fn main() {
    let (kept, is_kept) = channel();
    let guard = thread::spawn(|| shop::guard(kept));
    is_kept.recv().unwrap();
    let (asked, is_asked) = channel();
    let manager = thread::spawn(|| shop::manager(asked));
    is_asked.recv().unwrap();
    let clerk = thread::spawn(shop::clerk);
    for thread in [guard, manager, clerk] {
        thread.join().unwrap();
    }
}

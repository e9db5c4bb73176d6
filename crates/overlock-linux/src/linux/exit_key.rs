//! A thread-specific key that the first thread creates. It reports the end of threads without a
//! thread-local that has a destructor, for which the C library may allocate.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::load;

/// The last key for which glibc allocates nothing. Android's keys have larger numbers, and their
/// values always a place.
const LAST: u32 = 31;

/// Calls a function at the end of threads. Creating and setting the key allocate nothing within the
/// first 32 keys of a process, and take no lock; both may happen in signal handlers.
///
/// A plugin that glibc's `dlmopen` loads has a C library of its own, which numbers its keys from 0
/// and keeps their values in the same places of a thread. So the key is the last of the 32.
#[derive(Debug)]
pub struct ExitKey {
    /// The key (an int or an unsigned int, which is never all ones) + 1; 0 until a thread needs it.
    key: AtomicU32,
    ends: unsafe extern "C" fn(*mut c_void),
}

impl ExitKey {
    /// Returns a key, not created yet. `ends` is passed the value that the thread has
    /// [set](Self::set), and runs again for a thread that sets it meanwhile.
    pub const fn new(ends: unsafe extern "C" fn(*mut c_void)) -> ExitKey {
        ExitKey {
            key: AtomicU32::new(0),
            ends,
        }
    }

    /// Returns the key, and creates it if there is none; `None` if the process has no more keys.
    /// `created` runs once, in the thread that created it.
    pub fn get(&self, created: impl FnOnce()) -> Option<u32> {
        // Relaxed, as below: the key's number is the only data.
        match self.key.load(Relaxed) {
            0 => self.create(created),
            key => Some(key - 1),
        }
    }

    #[cold]
    fn create(&self, created: impl FnOnce()) -> Option<u32> {
        // The linker leaves unreferenced objects of a static library out.
        black_box(&load::LOADED);
        let key = self.create_last()?;
        match self.key.compare_exchange(0, key + 1, Relaxed, Relaxed) {
            Ok(_) => {
                created();
                Some(key)
            }
            Err(first) => {
                // SAFETY: created above, and nobody else knows it.
                unsafe { libc::pthread_key_delete(key as libc::pthread_key_t) };
                Some(first - 1)
            }
        }
    }

    /// Creates the last key of those that are free among the first.
    fn create_last(&self) -> Option<u32> {
        // Those that were created, one bit each.
        let mut created = 0_u32;
        let behind = loop {
            let mut key = 0;
            // SAFETY: `key` is valid for the write; `ends` has the signature of a destructor.
            if unsafe { libc::pthread_key_create(&mut key, Some(self.ends)) } != 0 {
                break None;
            }
            #[allow(clippy::unnecessary_cast)] // signed on Android
            let key = key as u32;
            match key {
                0..LAST => created |= 1 << key,
                LAST => {
                    created |= 1 << LAST;
                    break None;
                }
                _ => break Some(key),
            }
        };
        let last = created.checked_ilog2();
        let superfluous = (0..=LAST)
            .filter(|&key| created & 1 << key != 0 && Some(key) != last)
            .chain(behind.filter(|_| last.is_some()));
        for key in superfluous {
            // SAFETY: created above, and nobody else knows it.
            unsafe { libc::pthread_key_delete(key as libc::pthread_key_t) };
        }
        last.or(behind)
    }

    /// Has the function called with `value`, which is not 0, at the calling thread's end. False if
    /// that is refused.
    pub fn set(&self, value: usize, created: impl FnOnce()) -> bool {
        self.get(created).is_some_and(|key| {
            // SAFETY: the key was created and is never deleted.
            unsafe {
                let key = key as libc::pthread_key_t;
                libc::pthread_setspecific(key, ptr::without_provenance(value)) == 0
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use super::*;

    static SEEN: AtomicUsize = AtomicUsize::new(0);
    static KEY: ExitKey = ExitKey::new(ends);

    unsafe extern "C" fn ends(value: *mut c_void) {
        SEEN.fetch_add(value.addr(), Relaxed);
    }

    /// Fails where a plugin with a C library of its own has the same key. (musl's keys begin
    /// anywhere.)
    #[cfg(target_env = "gnu")]
    #[test]
    fn the_first_keys_stay_free() {
        static ANOTHER: ExitKey = ExitKey::new(ends);
        let key = ANOTHER.get(|| ()).unwrap();
        assert!(key > LAST / 2, "{key}");
        let mut next = 0;
        // SAFETY: valid for the write.
        assert_eq!(unsafe { libc::pthread_key_create(&mut next, None) }, 0);
        assert!(next < key, "{next}");
    }

    #[test]
    fn whoever_comes_first_creates_it_and_each_end_is_seen() {
        const THREADS: usize = 4;
        let (created, meet) = (AtomicU32::new(0), Barrier::new(THREADS));
        thread::scope(|scope| {
            for value in 1..=THREADS {
                let (created, meet) = (&created, &meet);
                // Joined by hand: a scope ends before the threads' destructors have run.
                let run = move || {
                    meet.wait();
                    let created = || _ = created.fetch_add(1, Relaxed);
                    assert!(KEY.set(value, created));
                };
                let thread = scope.spawn(run);
                scope.spawn(move || thread.join().unwrap());
            }
        });
        assert_eq!(created.into_inner(), 1);
        assert_eq!(SEEN.load(Relaxed), 1 + 2 + 3 + 4);
    }
}

//! Lives of threads, to tell whether two of them could be at two places at a time.
//!
//! The kernel numbers threads in the order of their creation, and says in `/proc/loadavg` which
//! number was given last. So a thread whose number is above the one that was last when another
//! ended has begun after that. Numbers begin again where they end: a thread whose own is above the
//! last one is older than that, and counts as one that has always been there. So does a thread of
//! which nothing is known, and one without an end lives for ever: both are reasons to report.

use std::str;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use overlock_linux::__private::calls::{File, thread_id};
use overlock_linux::__private::extras;

use crate::mapped::{Chunks, Zeroed};

/// Any threads: their lives are not told apart.
pub(super) const ANY: u32 = u32::MAX;

struct Life {
    /// The thread's number; 0 if it may have begun at any time.
    begin: AtomicU32,
    /// The last number that the kernel had given when it ended; 0 before, and if that is not known.
    end: AtomicU32,
}

// SAFETY: zero bytes are a valid value of both fields.
unsafe impl Zeroed for Life {}

/// A million lives. Those beyond are [`ANY`].
type Lives = Chunks<Life, { if cfg!(miri) { 4 } else { 1024 } }>;

static LIVES: Lives = Lives::new();

/// The last life's number; the first one is 1.
static LAST: AtomicU32 = AtomicU32::new(0);

/// Returns a number for the calling thread's life.
#[cold]
pub(super) fn begin() -> u32 {
    let known = LAST.fetch_update(Relaxed, Relaxed, |last| {
        ((last as usize) < Lives::LENGTH - 1).then_some(last + 1)
    });
    let Ok(last) = known else { return ANY };
    let Some(life) = LIVES.make(last as usize + 1) else {
        return ANY;
    };
    let thread = thread_id();
    if last_number().is_some_and(|last| thread <= last) {
        life.begin.store(thread, Relaxed);
    }
    last + 1
}

/// The thread ends, or does not exist in this child of fork.
pub(super) fn end(life: u32) {
    if let (Some(life), Some(last)) = (known(life), last_number()) {
        // Relaxed: a thread that begins after this end knows of it by what its creator knows. One
        // that does not see it takes the two for threads that meet.
        life.end.store(last, Relaxed);
    }
}

/// The calling thread goes on in a child of fork, by another number.
pub(super) fn goes_on(life: u32) {
    if let Some(life) = known(life) {
        life.begin.store(0, Relaxed);
    }
}

fn known(life: u32) -> Option<&'static Life> {
    match life {
        0 | ANY => None,
        life => LIVES.get(life as usize),
    }
}

/// Returns the end of a life, larger ones for later ends; `None` while it lasts.
pub(super) fn ended(life: u32) -> Option<u32> {
    known(life)
        .map(|life| life.end.load(Relaxed))
        .filter(|end| *end != 0)
}

/// Whether the two may be lives of two threads that existed at one time.
pub(super) fn meet(one: u32, two: u32) -> bool {
    let is_before = |one, two| {
        let begin = known(two).map_or(0, |life| life.begin.load(Relaxed));
        ended(one).is_some_and(|end| begin > end)
    };
    one == ANY || two == ANY || one != two && !is_before(one, two) && !is_before(two, one)
}

/// Whether a thread of the first life still exists, and began no later than one of the other: so
/// far it meets all those that the other meets, but itself.
pub(super) fn is_around(one: u32, other: u32) -> bool {
    let begin = |life| known(life).map(|life| life.begin.load(Relaxed));
    match (begin(one), begin(other)) {
        (Some(begin), Some(later)) => begin <= later && ended(one).is_none(),
        _ => false,
    }
}

/// Returns the number of the thread that the kernel has created last, of all that this process can
/// see.
fn last_number() -> Option<u32> {
    if cfg!(miri) {
        return None;
    }
    let mut text = [0u8; 128];
    let read = extras::ask(|| {
        let file = File::open(c"/proc/loadavg", libc::O_RDONLY)?;
        Some(file.read(&mut text))
    });
    last_of(text.get(..read??)?)
}

/// The last word of the kernel's line.
fn last_of(line: &[u8]) -> Option<u32> {
    let line = str::from_utf8(line).ok()?;
    line.split_ascii_whitespace().next_back()?.parse().ok()
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// The lives of two threads, of which the second begins after the first has ended, or before.
    fn two(is_after: bool) -> [u32; 2] {
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let second = move || {
                // It has begun; what it does comes after the other's end.
                let _ = told.recv();
                begin()
            };
            let early = (!is_after).then(|| scope.spawn(second));
            let first = scope.spawn(|| {
                let life = begin();
                end(life);
                life
            });
            let first = first.join().unwrap();
            let second = match early {
                Some(second) => {
                    tell.send(()).unwrap();
                    second.join().unwrap()
                }
                None => scope.spawn(begin).join().unwrap(),
            };
            [first, second]
        })
    }

    #[test]
    fn a_thread_meets_those_that_exist_beside_it() {
        let [one, two] = [true, false].map(two);
        assert!(!meet(one[0], one[1]) && !meet(one[1], one[0]));
        assert!(meet(two[0], two[1]) && meet(two[1], two[0]));
        assert!(!meet(one[0], one[0]));
        assert!(meet(one[0], ANY) && meet(ANY, ANY));
    }

    #[test]
    fn what_the_kernel_says_is_read() {
        assert_eq!(last_of(b"0.51 1.08 2.10 1/123 4567\n"), Some(4567));
        assert_eq!(last_of(b""), None);
        assert!(last_number().is_some());
    }
}

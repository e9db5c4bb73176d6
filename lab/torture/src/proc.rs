//! The kernel's account of a thread.

use std::fs;

/// How much of a CPU a thread has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Nanoseconds.
    pub time: u64,
    /// How often it was given one.
    pub slices: u64,
}

/// Returns what the thread `id` of this process has had; none where the kernel does not tell.
pub fn ran(id: u32) -> Option<Ran> {
    ran_of(&fs::read_to_string(format!("/proc/self/task/{id}/schedstat")).ok()?)
}

/// Parses a `schedstat` says; none where it is something else.
pub fn ran_of(text: &str) -> Option<Ran> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let (time, _waited, slices) = (numbers.next()?, numbers.next()?, numbers.next()?);
    Some(Ran {
        time: time.ok()?,
        slices: slices.ok()?,
    })
}

/// Whether the thread `id` of this process has a CPU, waits for one, or sleeps, in words.
pub fn state(id: u32) -> &'static str {
    state_of(&fs::read_to_string(format!("/proc/self/task/{id}/stat")).unwrap_or_default())
}

/// Parses a `stat` says.
pub fn state_of(text: &str) -> &'static str {
    // The name before it may hold anything, parentheses and blanks too.
    let after = text.rsplit_once(") ").map_or("", |(_, after)| after);
    match after.chars().next() {
        Some('R') => "runnable",
        Some('S') => "asleep",
        Some('D') => "asleep, uninterruptible",
        Some('T' | 't') => "stopped",
        Some('Z' | 'X') => "dead",
        _ => "in an unknown state",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_surprises(text in any::<String>(), words in "[0-9 ()RS\\n-]{0,80}") {
            for text in [text, words] {
                let _ = (ran_of(&text), state_of(&text));
            }
        }

        #[test]
        fn what_a_thread_had_is_read_back(time: u64, waited: u64, slices: u64) {
            let text = format!("{time} {waited} {slices}\n");
            prop_assert_eq!(ran_of(&text), Some(Ran { time, slices }));
        }

        /// The kernel does not escape the name.
        #[test]
        fn the_state_is_read_whatever_the_thread_is_called(id: u32, name in "[ ()RSDZx]{0,15}", state in 0..5_usize) {
            let (letter, words) = [
                ('R', "runnable"),
                ('S', "asleep"),
                ('D', "asleep, uninterruptible"),
                ('t', "stopped"),
                ('Z', "dead"),
            ][state];
            let text = format!("{id} ({name}) {letter} 1 2 2 0 -1\n");
            prop_assert_eq!(state_of(&text), words);
        }
    }

    #[test]
    fn a_file_that_ends_early_or_has_no_numbers_says_nothing() {
        for text in [
            "",
            "\n",
            "1 2",
            "1 2 three",
            "-1 2 3",
            "18446744073709551616 0 0",
        ] {
            assert_eq!(ran_of(text), None, "{text}");
        }
        for text in ["", "1 (name", "1 (name)", "1 (name) ?"] {
            assert_eq!(state_of(text), "in an unknown state", "{text}");
        }
    }

    #[test]
    fn the_kernel_knows_this_thread() {
        let id = rustix::thread::gettid().as_raw_pid() as u32;
        assert_eq!(state(id), "runnable");
        assert_eq!(state(0), "in an unknown state");
        // Kernels without scheduler statistics do not tell.
        if let Some(before) = ran(id) {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let after = ran(id).unwrap();
            assert!(after.slices > before.slices && after.time > before.time);
        }
    }
}

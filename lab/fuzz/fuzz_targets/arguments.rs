//! The command line, one word per line. Error messages fit one line.
#![no_main]

use std::ffi::OsString;

use libfuzzer_sys::fuzz_target;
use overlock_lab::{Exit, check};

fuzz_target!(|text: &str| {
    let words = text.split('\n').map(OsString::from);
    let line = std::iter::once(OsString::from("overlock-lab")).chain(words);
    match check(line) {
        Err(Exit::Usage(message)) => {
            assert!(!message.is_empty() && !message.contains(char::is_control));
        }
        Ok(()) | Err(Exit::Help(_)) => {}
        Err(other) => panic!("{other:?}"),
    }
});

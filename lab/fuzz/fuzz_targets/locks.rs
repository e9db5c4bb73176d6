//! The words that choose locks, separated by commas. The names of the chosen locks must choose the
//! same locks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_bench::registry::{Family, select};

fuzz_target!(|text: &str| {
    for family in Family::ALL {
        match select(family, text.split(',')) {
            Ok(chosen) => {
                let names = || chosen.iter().map(|entry| entry.name);
                let again = select(family, names()).expect("they are names");
                assert!(names().eq(again.iter().map(|entry| entry.name)));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});

//! /proc/cpuinfo, /proc/meminfo, and lists of CPUs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_bench::machine::{count_list, field, memory_of};

fuzz_target!(|text: &str| {
    if let Some(value) = field(text, "flags") {
        assert_eq!(value, value.trim());
    }
    assert!(memory_of(text).is_none_or(|bytes| bytes % 1024 == 0));
    assert_ne!(count_list(text), Some(0));
});

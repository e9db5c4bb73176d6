//! /proc/cpuinfo, /proc/meminfo, lists of CPUs, and a thread's stat and schedstat in /proc.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_bench::machine::{count_list, field, memory_of};
use overlock_torture::proc::{ran_of, state_of};

fuzz_target!(|text: &str| {
    if let Some(value) = field(text, "flags") {
        assert_eq!(value, value.trim());
    }
    assert!(memory_of(text).is_none_or(|bytes| bytes % 1024 == 0));
    assert_ne!(count_list(text), Some(0));
    if let Some(ran) = ran_of(text) {
        let again = format!("{} 0 {}", ran.time, ran.slices);
        assert_eq!(ran_of(&again), Some(ran));
    }
    assert!(!state_of(text).is_empty());
});

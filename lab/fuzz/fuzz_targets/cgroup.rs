//! /proc/self/cgroup, /proc/self/mountinfo and the files with quotas, concatenated with a 0 in
//! between.
#![no_main]

use libfuzzer_sys::fuzz_target;
use overlock_bench::cgroup::{limit, limit_of_max, locate};

fuzz_target!(|text: &str| {
    let mut files = text.split('\0');
    let mut file = || files.next().unwrap_or_default();
    let (cgroups, mounts, quota, period) = (file(), file(), file(), file());
    for controller in ["cpu", "pids"] {
        if let Some(place) = locate(controller, cgroups, mounts) {
            assert!(place.dir.starts_with(&place.mount));
        }
    }
    for limit in [limit(quota, period), limit_of_max(quota)].into_iter().flatten() {
        assert!(limit.is_finite() && limit > 0.0);
    }
});

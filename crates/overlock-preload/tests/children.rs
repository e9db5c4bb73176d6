//! Children that run no handlers of `pthread_atfork`: of `_Fork`, of bare system calls, of vfork().

#![cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]

mod common;

use std::path::Path;

use common::{compile_as, ours, same_with};

const GLIBCS: &[(&str, &str)] = &[("OVERLOCK_MUTEX", "glibc"), ("OVERLOCK_RWLOCK", "glibc")];
const ORDERED: &[(&str, &str)] = &[("OVERLOCK_LOCKDEP", "1")];
const COUNTED: &[(&str, &str)] = &[("OVERLOCK_STAT", "1")];

#[test]
fn children_without_handlers_end_as_with_glibc() {
    same_with("children.c", &[], &[&[], GLIBCS, ORDERED, COUNTED]);
}

/// Fails where a child finds waiters that exist in the parent only: glibc's conditions and
/// reader-writer locks fail, too.
#[test]
fn children_without_handlers_find_no_waiters() {
    let program = compile_as("children.c", "children-alone", &[]);
    for setting in [&[][..], ORDERED, COUNTED] {
        ours(&program, &[Path::new("conditions")], setting);
    }
}

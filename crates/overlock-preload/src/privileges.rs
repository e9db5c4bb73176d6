//! Functions by which a process drops privileges, or changes its root directory or namespaces. With
//! `OVERLOCK_STAT`, a child of fork() that has no table yet makes it before: afterwards it may be
//! unable to. Without `OVERLOCK_STAT`, each function here is glibc's.
//!
//! Most of these may be called in signal handlers, so all that is done before is async-signal-safe.

use core::ffi::{c_char, c_int, c_void};

use libc::{gid_t, uid_t};

use crate::real::{interpose, missing};
use crate::stat;

interpose! {
    setuid(user: uid_t) -> c_int: stat::make_table, missing();
    seteuid(user: uid_t) -> c_int: stat::make_table, missing();
    setreuid(real: uid_t, effective: uid_t) -> c_int: stat::make_table, missing();
    setresuid(real: uid_t, effective: uid_t, saved: uid_t) -> c_int: stat::make_table, missing();
    setgid(group: gid_t) -> c_int: stat::make_table, missing();
    setegid(group: gid_t) -> c_int: stat::make_table, missing();
    setregid(real: gid_t, effective: gid_t) -> c_int: stat::make_table, missing();
    setresgid(real: gid_t, effective: gid_t, saved: gid_t) -> c_int: stat::make_table, missing();
    capset(header: *mut c_void, data: *const c_void) -> c_int: stat::make_table, missing();
    chroot(path: *const c_char) -> c_int: stat::make_table, missing();
    unshare(flags: c_int) -> c_int: stat::make_table, missing();
    setns(file: c_int, kind: c_int) -> c_int: stat::make_table, missing();
}

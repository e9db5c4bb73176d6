//! A control group for a test, which is gone when dropped: also where the test panics.

use std::fs;
use std::path::{Path, PathBuf};

/// A control group with a quota of a twentieth of a CPU.
pub struct Group(PathBuf);

impl Group {
    /// Makes it, where such a group can be made.
    pub fn new() -> Option<Group> {
        let name = format!("overlock-test-{}", std::process::id());
        let old = Path::new("/sys/fs/cgroup/cpu").join(&name);
        if fs::create_dir(&old).is_ok() {
            let group = Group(old);
            fs::write(group.0.join("cpu.cfs_period_us"), "100000").ok()?;
            fs::write(group.0.join("cpu.cfs_quota_us"), "5000").ok()?;
            return Some(group);
        }
        let new = Path::new("/sys/fs/cgroup").join(&name);
        fs::create_dir(&new).ok()?;
        let group = Group(new);
        fs::write(group.0.join("cpu.max"), "5000 100000").ok()?;
        Some(group)
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // One that has processes yet stays.
        let _ = fs::remove_dir(&self.0);
    }
}

//! Running with less CPU time than the machine has: a cgroup of our own.
//!
//! A thread whose cgroup has used up its quota loses its CPU until the next period, lock or no
//! lock. This is where locks suffer most in containers.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::cgroup::{Place, Version};

/// The kernel's default, and what container runtimes use.
const PERIOD_US: u64 = 100_000;

/// Membership of a cgroup with a CPU quota, for the whole process, until dropped.
#[derive(Debug)]
pub struct Quota {
    place: Place,
    group: PathBuf,
    /// Whether we gave the children of `place.dir` their CPU controller (version 2).
    delegated: bool,
}

/// The cgroup that the process is in, where every way out can find it.
static CURRENT: Mutex<Option<Quota>> = Mutex::new(None);

/// The process runs in a cgroup of its own until this is dropped, or until [`leave`].
#[derive(Debug)]
pub struct InQuota(());

impl InQuota {
    /// [`Quota::enter`], from where every way out can [`leave`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn enter(percent: f64) -> Result<Self, QuotaError> {
        let quota = Quota::enter(percent)?;
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(quota);
        Ok(Self(()))
    }
}

impl Drop for InQuota {
    fn drop(&mut self) {
        leave();
    }
}

/// Leaves the cgroup that the process entered, if it did.
pub fn leave() {
    drop(
        CURRENT
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(),
    );
}

/// Why there is no quota.
#[derive(Debug)]
pub struct QuotaError(String);

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for QuotaError {}

impl Quota {
    /// Creates a cgroup below the process's own that gets `percent` of one CPU, and moves the
    /// process there.
    ///
    /// # Errors
    ///
    /// If the process may not, or the system has no such thing. Nothing has changed then.
    pub fn enter(percent: f64) -> Result<Self, QuotaError> {
        let place = Place::of("cpu").ok_or_else(|| {
            QuotaError("this system has no cgroup hierarchy with CPU quotas".to_owned())
        })?;
        Self::enter_at(place, percent)
    }

    fn enter_at(place: Place, percent: f64) -> Result<Self, QuotaError> {
        let group = place
            .dir
            .join(format!("overlock-bench-{}", std::process::id()));
        let hint = match place.version {
            Version::V1 => "run as root or in a cgroup that is yours to divide",
            Version::V2 => "run as root, or under `systemd-run --user --scope -p Delegate=yes`",
        };
        let refuse = |what: &str, path: &Path, error: &io::Error| {
            QuotaError(format!(
                "may not set a CPU quota here ({what} {}: {error}); {hint}",
                path.display()
            ))
        };
        fs::create_dir(&group).map_err(|error| refuse("creating", &group, &error))?;
        // From here on dropping it undoes what was done.
        let mut quota = Self {
            place,
            group,
            delegated: false,
        };
        quota
            .move_process(&quota.group)
            .map_err(|error| refuse("entering", &quota.group, &error))?;
        if quota.place.version == Version::V2 {
            let control = quota.place.dir.join("cgroup.subtree_control");
            if !enabled(&control) {
                fs::write(&control, "+cpu")
                    .map_err(|error| refuse("writing +cpu to", &control, &error))?;
                quota.delegated = true;
            }
        }
        quota
            .limit(percent)
            .map_err(|(file, error)| refuse("writing", &quota.group.join(file), &error))?;
        Ok(quota)
    }

    fn limit(&self, percent: f64) -> Result<(), (&'static str, io::Error)> {
        let quota = (PERIOD_US as f64 * percent / 100.0).round() as u64;
        let set = |file: &'static str, text: String| {
            fs::write(self.group.join(file), text).map_err(|error| (file, error))
        };
        match self.place.version {
            Version::V1 => {
                set("cpu.cfs_period_us", PERIOD_US.to_string())?;
                set("cpu.cfs_quota_us", quota.to_string())
            }
            Version::V2 => set("cpu.max", format!("{quota} {PERIOD_US}")),
        }
    }

    /// Moves this process, all its threads, to `group`. 0 stands for the writing process.
    fn move_process(&self, group: &Path) -> io::Result<()> {
        fs::write(group.join("cgroup.procs"), "0")
    }
}

impl Drop for Quota {
    /// Leaves and removes the cgroup. A failure here has no remedy: the cgroup is then left empty
    /// for the system to clean up.
    fn drop(&mut self) {
        if self.delegated {
            // A cgroup whose children have controllers may not hold processes itself.
            let _ = fs::write(self.place.dir.join("cgroup.subtree_control"), "-cpu");
        }
        let _ = self.move_process(&self.place.dir);
        let _ = fs::remove_dir(&self.group);
    }
}

/// Whether the children of a version 2 cgroup have the CPU controller.
fn enabled(control: &Path) -> bool {
    fs::read_to_string(control).is_ok_and(|list| list.split_whitespace().any(|name| name == "cpu"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::quota_of;

    /// A directory with the files that the kernel would put there; the cgroup itself gets them when
    /// they are written.
    fn fake(version: Version) -> (tempfile::TempDir, Place) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("cgroup.subtree_control"), "memory\n").unwrap();
        let place = Place {
            version,
            mount: dir.path().to_owned(),
            dir: dir.path().to_owned(),
        };
        (dir, place)
    }

    fn read(path: PathBuf) -> String {
        fs::read_to_string(path).unwrap()
    }

    #[test]
    fn version_1_gets_a_quota() {
        let (_dir, place) = fake(Version::V1);
        let quota = Quota::enter_at(place, 50.0).unwrap();
        assert_eq!(quota_of(Version::V1, &quota.group), Some(0.5));
        assert_eq!(read(quota.group.join("cgroup.procs")), "0");
    }

    #[test]
    fn version_2_gets_a_quota_and_its_controller() {
        let (dir, place) = fake(Version::V2);
        let control = dir.path().join("cgroup.subtree_control");
        let quota = Quota::enter_at(place, 150.0).unwrap();
        assert_eq!(quota_of(Version::V2, &quota.group), Some(1.5));
        assert_eq!(read(control.clone()), "+cpu");
        drop(quota);
        assert_eq!(read(control), "-cpu");
        assert_eq!(read(dir.path().join("cgroup.procs")), "0");
    }

    #[test]
    fn a_controller_that_is_there_stays() {
        let (dir, place) = fake(Version::V2);
        let control = dir.path().join("cgroup.subtree_control");
        fs::write(&control, "cpu memory\n").unwrap();
        drop(Quota::enter_at(place, 150.0).unwrap());
        assert_eq!(read(control), "cpu memory\n");
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let place = Place {
            version: Version::V2,
            mount: "/proc".into(),
            dir: "/proc".into(),
        };
        let message = Quota::enter_at(place, 50.0).unwrap_err().to_string();
        assert!(
            message.starts_with("may not set a CPU quota here (creating /proc/overlock-bench-"),
            "{message}"
        );
        assert!(message.contains("systemd-run"), "{message}");
    }
}

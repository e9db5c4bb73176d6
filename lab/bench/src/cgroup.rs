//! Reads what the process's cgroups allow it, in both versions of the interface.

use std::fs;
use std::path::{Path, PathBuf};

/// The directory of a controller's files for this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The version of the interface.
    pub version: Version,
    /// Mount point of the hierarchy.
    pub mount: PathBuf,
    /// The directory of the process's own cgroup, in or below `mount`.
    pub dir: PathBuf,
}

/// The version of the cgroup interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy for each controller.
    V1,
    /// One hierarchy for all.
    V2,
}

impl Place {
    /// Finds `controller` for this process; a version 1 hierarchy if it is bound to one.
    pub fn of(controller: &str) -> Option<Self> {
        let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        locate(controller, &cgroups, &mounts)
    }

    /// The process's cgroup and those above it, up to the mount.
    fn ancestors(&self) -> impl Iterator<Item = &Path> {
        self.dir
            .ancestors()
            .take_while(|dir| dir.starts_with(&self.mount))
    }
}

/// Finds `controller` by what /proc/self/cgroup and /proc/self/mountinfo say.
pub fn locate(controller: &str, cgroups: &str, mounts: &str) -> Option<Place> {
    let entry = |wanted: &dyn Fn(&str, &str) -> bool| {
        cgroups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            wanted(id, controllers).then_some(path)
        })
    };
    let (version, path) = match entry(&|_, list| list.split(',').any(|name| name == controller)) {
        Some(path) => (Version::V1, path),
        None => (
            Version::V2,
            entry(&|id, list| id == "0" && list.is_empty())?,
        ),
    };
    let (root, mount) = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let (kind, options) = (right.next()?, right.nth(1)?);
        let matches = match version {
            Version::V1 => {
                kind == "cgroup" && options.split(',').any(|option| option == controller)
            }
            Version::V2 => kind == "cgroup2",
        };
        let mut left = left.split(' ').skip(3);
        matches.then_some((left.next()?, left.next()?))
    })?;
    // Inside a container the mount shows a part of the hierarchy only, and the path may or may not
    // be told relative to it.
    let below = Path::new(path).strip_prefix(root);
    let below = below.unwrap_or(Path::new(path));
    // A path that is joined to the mount must be relative. With an empty `root` it still begins
    // with a slash.
    let below = below.strip_prefix("/").unwrap_or(below);
    let mount = PathBuf::from(mount);
    let dir = mount.join(below);
    Some(Place {
        version,
        dir: if dir.is_dir() { dir } else { mount.clone() },
        mount,
    })
}

/// CPUs' worth of time that this process's cgroups grant: the smallest limit on the way up.
pub fn quota() -> Option<f64> {
    let place = Place::of("cpu")?;
    place
        .ancestors()
        .filter_map(|dir| quota_of(place.version, dir))
        .min_by(f64::total_cmp)
}

/// The limit that `dir` itself sets.
pub fn quota_of(version: Version, dir: &Path) -> Option<f64> {
    let read = |name| fs::read_to_string(dir.join(name)).ok();
    match version {
        Version::V1 => limit(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?),
        Version::V2 => limit_of_max(&read("cpu.max")?),
    }
}

/// CPUs' worth of time, by what cpu.max says.
pub fn limit_of_max(line: &str) -> Option<f64> {
    let (quota, period) = line.trim().split_once(' ')?;
    limit(quota, period)
}

/// CPUs' worth of time: so many microseconds in each period. "No limit" is no number: -1 in version
/// 1, the word max in version 2.
pub fn limit(quota: &str, period: &str) -> Option<f64> {
    let positive = |text: &str| text.trim().parse::<u64>().ok().filter(|&number| number > 0);
    Some(positive(quota)? as f64 / positive(period)? as f64)
}

/// How many more tasks this process's cgroups allow: the smallest number on the way up.
pub fn pids_left() -> Option<u64> {
    let place = Place::of("pids")?;
    let number = |dir: &Path, name| {
        fs::read_to_string(dir.join(name))
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    };
    place
        .ancestors()
        .filter_map(|dir| {
            Some(number(dir, "pids.max")?.saturating_sub(number(dir, "pids.current")?))
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "4:memory:/a\n1:cpu,cpuacct:/jobs/1\n0::/\n";
    const V1_MOUNT: &str = "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n\
                            31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    #[test]
    fn version_1_is_found() {
        let place = locate("cpu", V1, V1_MOUNT).unwrap();
        assert_eq!(place.version, Version::V1);
        assert_eq!(place.mount, Path::new("/sys/fs/cgroup/cpu,cpuacct"));
    }

    #[test]
    fn version_2_is_found() {
        let mounts = "25 1 0:22 /box /nowhere/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let place = locate("cpu", "0::/box/job\n", mounts).unwrap();
        assert_eq!(place.version, Version::V2);
        // The directory does not exist here, so the mount stands in.
        assert_eq!(place.dir, Path::new("/nowhere/cgroup"));
    }

    /// Two spaces: the root is empty, and all of the path is below it.
    #[test]
    fn the_place_is_never_outside_the_mount() {
        let mounts = "25 1 0:22  /nowhere/cgroup rw - cgroup2 cgroup2 rw\n";
        let place = locate("cpu", "0::/\n", mounts).unwrap();
        assert_eq!(place.dir, Path::new("/nowhere/cgroup"));
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        assert_eq!(locate("cpu", "", V1_MOUNT), None);
        assert_eq!(locate("cpu", V1, ""), None);
    }

    #[test]
    fn quotas_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        assert_eq!(quota_of(Version::V2, dir.path()), None);
        write("cpu.max", "max 100000\n");
        assert_eq!(quota_of(Version::V2, dir.path()), None);
        write("cpu.max", "150000 100000\n");
        assert_eq!(quota_of(Version::V2, dir.path()), Some(1.5));
        write("cpu.cfs_quota_us", "-1\n");
        write("cpu.cfs_period_us", "100000\n");
        assert_eq!(quota_of(Version::V1, dir.path()), None);
        write("cpu.cfs_quota_us", "50000\n");
        assert_eq!(quota_of(Version::V1, dir.path()), Some(0.5));
    }
}

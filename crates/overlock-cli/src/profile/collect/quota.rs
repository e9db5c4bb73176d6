//! The quota of a process's control group: how much CPU time it allows, and when it was used up.

use std::fs;
use std::path::{Path, PathBuf};

/// The times in which a group was throttled.
#[derive(Debug, Default)]
pub struct Throttled(Vec<(u64, u64)>);

impl Throttled {
    /// Adds one, which may overlap the last.
    pub fn add(&mut self, from: u64, to: u64) {
        let from = from.max(self.0.last().map_or(0, |last| last.1));
        if from < to {
            self.0.push((from, to));
        }
    }

    /// How much of the time between two moments it was.
    pub fn within(&self, from: u64, to: u64) -> u64 {
        let first = self.0.partition_point(|(_, end)| *end <= from);
        let overlap = |(start, end): &(u64, u64)| to.min(*end).saturating_sub(from.max(*start));
        let later = self.0[first..].iter().take_while(|(start, _)| *start < to);
        later.map(overlap).sum()
    }
}

/// The groups that a process is in, from its own up to the root.
#[derive(Debug, Default)]
pub struct Quota {
    groups: Vec<PathBuf>,
    /// The sum of the times that the kernel has counted, in nanoseconds, and when it was read.
    last: Option<(u64, u64)>,
    pub throttled: Throttled,
}

impl Quota {
    /// Finds the groups of a process, which may have changed. Those with a quota count.
    pub fn find(&mut self, pid: u32) {
        let groups = groups(pid).unwrap_or_default();
        let groups: Vec<PathBuf> = groups
            .into_iter()
            .filter(|group| cpus(group).is_some())
            .collect();
        if groups != self.groups {
            self.groups = groups;
            self.last = None;
        }
    }

    /// The CPUs that it allows; `None` without one.
    pub fn cpus(&self) -> Option<f64> {
        let all = self.groups.iter().filter_map(|group| cpus(group));
        all.min_by(f64::total_cmp)
    }

    /// Reads for how long the groups were throttled.
    pub fn read(&mut self, now_ns: u64) {
        if self.groups.is_empty() {
            return;
        }
        let sum: u64 = self
            .groups
            .iter()
            .filter_map(|group| throttled_ns(group))
            .sum();
        if let Some((before, at)) = self.last
            && sum > before
        {
            // The kernel adds a time at its end, which is between the two readings.
            self.throttled.add(at.saturating_sub(sum - before), now_ns);
        }
        self.last = Some((sum, now_ns));
    }
}

/// The directories of the groups.
fn groups(pid: u32) -> Option<Vec<PathBuf>> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let has_cpu = controllers.split(',').any(|name| name == "cpu");
        if !has_cpu && !controllers.is_empty() {
            continue;
        }
        let Some((root, mount)) = mounted(&mounts, has_cpu) else {
            continue;
        };
        // Seen from within a container the group may lie outside of what is mounted.
        let own = Path::new(path).strip_prefix(&root).unwrap_or(Path::new(""));
        let own = mount.join(own.strip_prefix("/").unwrap_or(own));
        let all = own.ancestors().take_while(|dir| dir.starts_with(&mount));
        found.extend(all.map(Path::to_owned));
    }
    Some(found)
}

/// The root and the place of the mount of the old controller `cpu`, or of the new hierarchy.
fn mounted(mounts: &str, is_old: bool) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let mut kind = kind.split(' ');
        let name = kind.next()?;
        let has_cpu = (kind.nth(1)?).split(',').any(|option| option == "cpu");
        let is_it = match is_old {
            true => name == "cgroup" && has_cpu,
            false => name == "cgroup2",
        };
        is_it.then_some((place.next()?.into(), place.next()?.into()))
    })
}

/// The CPUs that the quota of a group allows.
fn cpus(group: &Path) -> Option<f64> {
    let read = |name| fs::read_to_string(group.join(name)).ok();
    let (quota, period) = match read("cpu.max") {
        Some(text) => {
            let (quota, period) = text.split_once(' ')?;
            (quota.to_owned(), period.to_owned())
        }
        None => (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
    };
    let [quota, period] = [quota, period].map(|text| text.trim().parse::<f64>().ok());
    Some(quota? / period?).filter(|cpus| *cpus > 0.0 && cpus.is_finite())
}

fn throttled_ns(group: &Path) -> Option<u64> {
    let text = fs::read_to_string(group.join("cpu.stat")).ok()?;
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        let value: u64 = value.trim().parse().ok()?;
        match name {
            "throttled_usec" => Some(value * 1000),
            "throttled_time" => Some(value),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_throttled_where_they_overlap() {
        let mut throttled = Throttled::default();
        throttled.add(10, 20);
        throttled.add(15, 30);
        throttled.add(50, 60);
        assert_eq!(throttled.within(0, 5), 0);
        assert_eq!(throttled.within(0, 100), 30);
        assert_eq!(throttled.within(18, 52), 14);
        assert_eq!(throttled.within(30, 50), 0);
    }

    #[test]
    fn the_mount_of_a_hierarchy_is_found() {
        let mounts = "\
            30 25 0:26 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
            31 25 0:27 /pod /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let paths = |one: &str, two: &str| Some((one.into(), two.into()));
        assert_eq!(mounted(mounts, true), paths("/", "/sys/fs/cgroup/cpu"));
        assert_eq!(
            mounted(mounts, false),
            paths("/pod", "/sys/fs/cgroup/unified")
        );
        assert_eq!(mounted("", true), None);
    }
}

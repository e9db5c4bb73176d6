use super::*;

/// Files by their names, read a few bytes at a time.
struct Fake<'a>(&'a [(&'a str, &'a str)]);

impl<'a> Files for Fake<'a> {
    type File = &'a str;

    fn exists(&self, path: &str) -> bool {
        let below = |name: &str| {
            name.strip_prefix(path)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        self.0.iter().any(|(name, _)| *name == path || below(name))
    }

    fn open(&self, path: &str) -> Option<&'a str> {
        let file = self.0.iter().find(|(name, _)| *name == path);
        file.map(|(_, content)| *content)
    }

    fn read(&self, file: &mut &'a str, buffer: &mut [u8]) -> usize {
        let (now, later) = file.split_at(buffer.len().min(7).min(file.len()));
        buffer[..now.len()].copy_from_slice(now.as_bytes());
        *file = later;
        now.len()
    }
}

const GROUP: &str = "/proc/self/cgroup";
const MOUNTS: &str = "/proc/self/mountinfo";

#[test]
#[cfg_attr(miri, ignore)]
fn it_is_what_the_standard_library_finds() {
    let theirs = std::thread::available_parallelism().unwrap().get();
    assert_eq!(parallelism() as usize, theirs);
}

#[test]
fn of_version_2_the_least_of_all_levels_counts() {
    let files = [
        (GROUP, "0::/a/b\n"),
        ("/sys/fs/cgroup/a/b/cgroup.controllers", "cpu"),
        ("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ("/sys/fs/cgroup/a/cpu.max", "350000 100000\n"),
        ("/sys/fs/cgroup/cpu.max", "400000 100000\n"),
        ("/sys/fs/cpu.max", "100000 100000\n"),
    ];
    assert_eq!(quota(&Fake(&files)), Some(3));
    assert_eq!(quota(&Fake(&files[..3])), None);
    assert_eq!(
        quota(&Fake(&[files[0], files[2], files[3]])),
        None,
        "no mount of version 2"
    );
}

#[test]
fn the_root_group_has_a_level_too() {
    let files = [
        (GROUP, "0::/\n"),
        ("/sys/fs/cgroup/cgroup.controllers", ""),
        ("/sys/fs/cgroup/cpu.max", "50000 100000"),
    ];
    assert_eq!(
        quota(&Fake(&files)),
        Some(0),
        "half a CPU; `parallelism` says 1"
    );
}

/// Version 1 names its controllers, so it takes precedence in any order.
#[test]
fn of_version_1_where_cpus_are_controlled_by_it() {
    let files = [
        (
            GROUP,
            "3:cpuset:/z\n0::/y\n2:cpu,cpuacct:/a/b\n1:memory:/x\n",
        ),
        ("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n"),
        (
            "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us",
            "100000\n",
        ),
        ("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "200000\n"),
        ("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"),
        ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "900000\n"),
        ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ("/sys/fs/cgroup/y/cgroup.controllers", ""),
        ("/sys/fs/cgroup/y/cpu.max", "100000 100000"),
    ];
    assert_eq!(quota(&Fake(&files)), Some(2));
}

#[test]
fn of_version_1_where_it_is_mounted_elsewhere() {
    let long = "x".repeat(3 * LONGEST);
    let table = format!(
        "20 1 0:5 / /proc rw - proc proc rw\n{long}\n\
         30 1 0:9 /other /else rw - cgroup cgroup rw,cpu\n\
         31 1 0:9 /docker /mnt/cpu rw,nosuid shared:7 - cgroup cgroup rw,cpu,cpuacct\n"
    );
    let files = [
        (GROUP, "4:cpu:/docker/a"),
        (MOUNTS, &*table),
        ("/mnt/cpu/a/cpu.cfs_quota_us", "100000"),
        ("/mnt/cpu/a/cpu.cfs_period_us", "50000"),
    ];
    assert_eq!(quota(&Fake(&files)), Some(2));
    assert_eq!(quota(&Fake(&files[..2])), None);
}

#[test]
fn a_mount_of_a_part_of_the_hierarchy_has_that_part_alone() {
    let line = "31 1 0:9 /docker /mnt rw - cgroup cgroup rw,cpu";
    assert_eq!(mounted(line, "docker/a/b"), Some(("/mnt", "a/b")));
    assert_eq!(mounted(line, "docker"), Some(("/mnt", "")));
    assert_eq!(mounted(line, "dockers/a"), None);
    let whole = "31 1 0:9 / /mnt rw - cgroup cgroup rw,cpu";
    assert_eq!(mounted(whole, "docker/a"), Some(("/mnt", "docker/a")));
    assert_eq!(
        mounted("31 1 0:9 / /mnt rw - cgroup2 cgroup2 rw,cpu", "a"),
        None
    );
    assert_eq!(
        mounted("31 1 0:9 / /mnt rw - cgroup cgroup rw,cpuset", "a"),
        None
    );
    assert_eq!(mounted("", "a"), None);
}

#[test]
fn what_is_no_number_is_no_quota() {
    for (limit, period, quota) in [
        ("100", "0", None),
        ("max", "100", None),
        ("-1", "100", None),
        ("", "", None),
        ("18446744073709551615", "1", Some(u32::MAX)),
        ("99", "100\n", Some(0)),
    ] {
        assert_eq!(cpus(limit, period), quota, "{limit} / {period}");
    }
    assert_eq!(quota(&Fake(&[])), None);
    assert_eq!(
        quota(&Fake(&[(GROUP, "\n:\n0:\n0::\n0::relative\n")])),
        None
    );
    let long = format!("0::/{}\n", "x".repeat(LONGEST));
    assert_eq!(quota(&Fake(&[(GROUP, &*long)])), None);
}

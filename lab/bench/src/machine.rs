//! The machine that runs the benchmark.

use std::fs;

use overlock_sim::host::Host;
use rustix::process::{Resource, getrlimit};
use rustix::system::uname;
use rustix::thread::{CpuSet, sched_getaffinity};
use serde::Serialize;

use crate::cgroup;
use crate::guest::Guest;

/// The machine, as the report shows it.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// CPUs that the system has online.
    pub cpus_online: usize,
    /// CPUs that this process may run on.
    pub cpus_allowed: usize,
    /// CPUs' worth of time that the cgroup grants, if it limits it.
    pub cpu_quota: Option<f64>,
    /// The CPUs that the process can really use: the smaller of the two.
    pub cpus: f64,
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// The operating system and its release.
    pub kernel: String,
    /// The processor's architecture.
    pub arch: &'static str,
    /// Whether the processor reports a hypervisor.
    pub hypervisor: bool,
    /// The C library's version, where it is glibc.
    pub libc: Option<String>,
    /// The version of this program.
    pub overlock: &'static str,
    /// The guest that ran the locks, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<Guest>,
    #[serde(skip)]
    allowed: Vec<usize>,
}

impl Machine {
    /// Asks the system. Missing answers are left out or guessed low.
    pub fn probe() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let allowed = allowed_cpus();
        let quota = cgroup::quota();
        let name = uname();
        Self {
            cpu: field(&cpuinfo, "model name")
                .unwrap_or("unknown")
                .to_owned(),
            cpus_online: online_cpus(),
            cpus_allowed: allowed.len(),
            cpu_quota: quota,
            cpus: usable(allowed.len(), quota),
            memory: memory(),
            kernel: format!(
                "{} {}",
                name.sysname().to_string_lossy(),
                name.release().to_string_lossy()
            ),
            arch: std::env::consts::ARCH,
            hypervisor: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor")),
            libc: libc_version(),
            overlock: env!("CARGO_PKG_VERSION"),
            guest: None,
            allowed,
        }
    }

    /// A simulated machine with its host. The locks' code is that of the architecture which it was
    /// compiled for.
    pub fn simulated(machine: &overlock_sim::machine::Machine, host: &Host) -> Self {
        let cpus = machine.cpus();
        let whole = overlock_sim::machine::Machine::named(&machine.name);
        // A file's own description says nothing of the keys that the file changes.
        let keys = machine.name.split_once(':').map(|(_, keys)| keys);
        let keys = match keys {
            Some(keys) if !machine.about.ends_with(&keys.replace(':', ", ")) => {
                format!(" ({})", machine.name)
            }
            _ => String::new(),
        };
        Self {
            cpu: format!("simulated {}{keys}", machine.about),
            cpus_online: whole.map_or(cpus, |whole| whole.cpus()),
            cpus_allowed: cpus,
            cpu_quota: None,
            cpus: cpus as f64,
            memory: None,
            kernel: format!("simulated host {}", host.name),
            arch: std::env::consts::ARCH,
            hypervisor: host.hypervisor,
            libc: None,
            overlock: env!("CARGO_PKG_VERSION"),
            guest: None,
            allowed: (0..cpus).collect(),
        }
    }

    /// The numbers of the CPUs that this process may run on.
    pub fn allowed(&self) -> &[usize] {
        &self.allowed
    }

    /// One line for people.
    pub fn summary(&self) -> String {
        let below = if self.hypervisor {
            ", in a virtual machine"
        } else {
            ""
        };
        let quota = self
            .cpu_quota
            .map(|quota| format!(", quota {quota:.2} CPUs"))
            .unwrap_or_default();
        let guest = self.guest.as_ref().map(|guest| {
            let Guest {
                hypervisor, vcpus, ..
            } = guest;
            format!("; a guest of {vcpus} vCPUs under {hypervisor}")
        });
        let guest = guest.unwrap_or_default();
        format!(
            "{}, {} of {} CPUs{quota}, {}{below}{guest}",
            self.cpu, self.cpus_allowed, self.cpus_online, self.kernel
        )
    }
}

/// The CPUs' worth of time that a process has with so many CPUs and such a quota.
fn usable(allowed: usize, quota: Option<f64>) -> f64 {
    let allowed = allowed as f64;
    quota.map_or(allowed, |quota| quota.min(allowed))
}

/// The first value of `key` in a file such as /proc/cpuinfo.
pub fn field<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

fn allowed_cpus() -> Vec<usize> {
    let cpus: Vec<usize> = sched_getaffinity(None)
        .map(|set| {
            (0..CpuSet::MAX_CPU)
                .filter(|&cpu| set.is_set(cpu))
                .collect()
        })
        .unwrap_or_default();
    if cpus.is_empty() {
        (0..online_cpus()).collect()
    } else {
        cpus
    }
}

/// CPUs that the system has online.
pub fn online_cpus() -> usize {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    count_list(&list).unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into))
}

/// How many numbers a list such as `0-3,6` has.
pub fn count_list(list: &str) -> Option<usize> {
    list.trim().split(',').try_fold(0_usize, |count, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        count.checked_add(last.checked_sub(first)?)?.checked_add(1)
    })
}

fn memory() -> Option<u64> {
    memory_of(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// Bytes of memory, by what /proc/meminfo says.
pub fn memory_of(meminfo: &str) -> Option<u64> {
    let kilobytes = field(meminfo, "MemTotal")?.split(' ').next()?;
    kilobytes.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(target_env = "gnu")]
fn libc_version() -> Option<String> {
    // SAFETY: takes nothing and returns a static string.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: that string ends with a zero byte and stays.
    let version = unsafe { std::ffi::CStr::from_ptr(version) };
    Some(format!("glibc {}", version.to_string_lossy()))
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> Option<String> {
    None
}

/// How many threads a run may have here, and which of the system's limits says so.
pub fn most_threads() -> (usize, &'static str) {
    // The rest of the system, this program's own threads, and a little room.
    const RESERVE: u64 = 64;
    let number = |path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // Every thread takes one mapping for its stack and one for the guard below it.
    let limits = [
        (number("/proc/sys/kernel/threads-max"), "kernel.threads-max"),
        (number("/proc/sys/kernel/pid_max"), "kernel.pid_max"),
        (
            number("/proc/sys/vm/max_map_count").map(|maps| maps / 2),
            "vm.max_map_count",
        ),
        (getrlimit(Resource::Nproc).current, "ulimit -u"),
        (cgroup::pids_left(), "pids.max of the cgroup"),
    ];
    let known = limits
        .into_iter()
        .filter_map(|(limit, name)| Some((limit?, name)));
    let (least, name) = known.min().unwrap_or((4096, "a guess"));
    (
        usize::try_from(least.saturating_sub(RESERVE))
            .unwrap_or(usize::MAX)
            .max(1),
        name,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!(count_list("0-3,6\n"), Some(5));
        assert_eq!(count_list("0"), Some(1));
        assert_eq!(count_list(""), None);
        assert_eq!(count_list("3-1"), None);
    }

    #[test]
    fn cpuinfo_fields_are_found() {
        let text = "processor\t: 0\nmodel name\t: A CPU @ 1 GHz\nflags\t\t: fpu hypervisor\n";
        assert_eq!(field(text, "model name"), Some("A CPU @ 1 GHz"));
        assert_eq!(field(text, "model"), None);
    }

    #[test]
    fn a_quota_can_only_take_away() {
        assert_eq!(usable(2, None), 2.0);
        assert_eq!(usable(2, Some(1.5)), 1.5);
        assert_eq!(usable(2, Some(4.0)), 2.0);
    }

    /// The name does not matter: a host that was measured has one of its own.
    #[test]
    fn a_simulated_hypervisor_is_told_from_threads() {
        let machine = &overlock_sim::machine::PRESETS[0];
        let named = |host: &Host| {
            Machine::simulated(machine, host)
                .summary()
                .ends_with(", in a virtual machine")
        };
        let measured = Host {
            name: "measured".into(),
            ..Host::threads()
        };
        assert!(!named(&measured) && !named(&Host::threads()));
        let preset = |name: &str| Host::preset(name).unwrap();
        assert!(named(preset("kvm")) && named(preset("kvm-nople")));
    }

    #[test]
    fn this_machine_has_cpus_and_threads() {
        let machine = Machine::probe();
        assert!(machine.cpus > 0.0 && machine.cpus_allowed <= machine.cpus_online);
        assert_eq!(machine.allowed().len(), machine.cpus_allowed);
        assert!(most_threads().0 > 1);
    }
}

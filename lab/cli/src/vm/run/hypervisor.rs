//! The hypervisors that work here, and the reasons why others do not.

use std::env;
use std::fmt::Write;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use overlock_report::numbers::{count, time};
use overlock_vm::speed::{ITERATIONS, Speed};

use super::image;
use crate::exit::Exit;
use crate::vm::Hypervisor;

/// QEMU's program.
pub const QEMU: &str = "qemu-system-x86_64";

const NO_QEMU: &str = "there is no qemu-system-x86_64 (Debian: qemu-system-x86)";
const NO_XEN: &str =
    "there is no Xen (Debian: xen-hypervisor-4.17-amd64; `scripts/guest xen` fetches it)";

impl Hypervisor {
    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::KvmRing3 => "kvm-ring3",
            Self::Tcg => "tcg",
            Self::Xen => "xen",
        }
    }

    /// The CPUs that its guest is told to have. `None` where the guest learns it otherwise.
    pub fn cpus(self) -> Option<usize> {
        (self == Self::Xen).then_some(2)
    }

    /// The most vCPUs of a guest.
    pub fn most_vcpus(self) -> usize {
        match self {
            // Those whose state the page has that Xen shares with a guest.
            Self::Xen => 32,
            Self::Kvm | Self::KvmRing3 | Self::Tcg => 64,
        }
    }
}

/// Facts about this machine that decide.
#[derive(Debug)]
pub struct Facts {
    /// Why /dev/kvm cannot be used.
    no_kvm: Option<String>,
    /// Why KVM's ring 0 cannot be used.
    no_ring0: Option<String>,
    has_qemu: bool,
    xen: Option<PathBuf>,
}

impl Facts {
    /// Asks the machine, and measures KVM's ring 0.
    pub fn probe() -> Self {
        let device = OpenOptions::new().read(true).write(true).open("/dev/kvm");
        let no_kvm = device.err().map(|error| format!("/dev/kvm: {error}"));
        Self {
            no_ring0: if no_kvm.is_none() { no_ring0() } else { None },
            no_kvm,
            has_qemu: is_in_path(QEMU),
            xen: image::xen(),
        }
    }

    /// Xen's file.
    pub fn xen(&self) -> Option<&Path> {
        self.xen.as_deref()
    }

    /// Why a hypervisor does not work here; `None` if it does.
    fn obstacle(&self, hypervisor: Hypervisor) -> Option<&str> {
        let no_kvm = self.no_kvm.as_deref();
        let no_qemu = (!self.has_qemu).then_some(NO_QEMU);
        match hypervisor {
            Hypervisor::Kvm => no_kvm.or(self.no_ring0.as_deref()).or(no_qemu),
            Hypervisor::KvmRing3 => no_kvm,
            Hypervisor::Tcg => no_qemu,
            Hypervisor::Xen => no_qemu.or(self.xen.is_none().then_some(NO_XEN)),
        }
    }

    /// The hypervisor that was given, or else the best that works.
    pub fn choose(&self, given: Option<Hypervisor>) -> Result<Hypervisor, Exit> {
        if let Some(given) = given {
            return match self.obstacle(given) {
                None => Ok(given),
                Some(why) => Err(Exit::usage(format!("--hypervisor {}: {why}", given.name()))),
            };
        }
        self.best().ok_or_else(|| {
            let all = Hypervisor::value_variants().iter();
            let why: Vec<String> = all.filter_map(|&other| self.line(other)).collect();
            Exit::usage(format!("no hypervisor works here: {}", why.join("; ")))
        })
    }

    fn best(&self) -> Option<Hypervisor> {
        let mut all = Hypervisor::value_variants().iter().copied();
        all.find(|&hypervisor| self.obstacle(hypervisor).is_none())
    }

    fn line(&self, hypervisor: Hypervisor) -> Option<String> {
        let why = self.obstacle(hypervisor)?;
        Some(format!("{}: {why}", hypervisor.name()))
    }

    /// Says which hypervisor was chosen, and why no better one.
    pub fn explain(&self, chosen: Hypervisor) {
        crate::tell!("overlock-lab: the hypervisor is {}", chosen.name());
        let all = Hypervisor::value_variants().iter();
        for better in all.take_while(|&&other| other != chosen) {
            if let Some(line) = self.line(*better) {
                crate::tell!("overlock-lab: not {line}");
            }
        }
    }

    /// All hypervisors for people.
    pub fn describe(&self) -> String {
        let mut text = "hypervisors, the best first:\n".to_owned();
        let best = self.best();
        for &hypervisor in Hypervisor::value_variants() {
            let mark = if best == Some(hypervisor) { '*' } else { ' ' };
            let about = hypervisor.to_possible_value();
            let about = about.and_then(|value| value.get_help().map(ToString::to_string));
            let name = hypervisor.name();
            let _ = writeln!(text, "  {mark} {name:<10} {}", about.unwrap_or_default());
            if let Some(why) = self.obstacle(hypervisor) {
                let _ = writeln!(text, "    {:<10} not here: {why}", "");
            }
        }
        text + "* the default here\n\n"
    }
}

/// Why KVM's ring 0 cannot be used, by a measurement.
fn no_ring0() -> Option<String> {
    let speed = match Speed::measure() {
        Ok(speed) => speed,
        Err(error) => return Some(format!("KVM runs nothing in ring 0: {error}")),
    };
    speed.is_emulated().then(|| {
        let text = |duration: std::time::Duration| time(duration.as_nanos() as f64);
        format!(
            "this KVM emulates ring 0: a loop of {} iterations takes {} there, and {} in ring 3",
            count(ITERATIONS.into()),
            text(speed.ring0),
            text(speed.ring3)
        )
    })
}

/// Whether a program can be found.
fn is_in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(no_kvm: Option<&str>, no_ring0: Option<&str>, has_qemu: bool, xen: bool) -> Facts {
        Facts {
            no_kvm: no_kvm.map(str::to_owned),
            no_ring0: no_ring0.map(str::to_owned),
            has_qemu,
            xen: xen.then(|| PathBuf::from("xen")),
        }
    }

    fn message(result: Result<Hypervisor, Exit>) -> String {
        match result.unwrap_err() {
            Exit::Usage(message) => message,
            other => panic!("not bad use: {other:?}"),
        }
    }

    #[test]
    fn the_best_that_works_is_chosen() {
        let (no_kvm, slow) = (Some("/dev/kvm: no such file"), Some("emulates ring 0"));
        for (facts, best) in [
            (facts(None, None, true, true), Hypervisor::Kvm),
            (facts(None, slow, true, true), Hypervisor::KvmRing3),
            (facts(None, None, false, false), Hypervisor::KvmRing3),
            (facts(no_kvm, None, true, true), Hypervisor::Tcg),
        ] {
            assert_eq!(facts.choose(None).unwrap(), best);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let nothing = facts(Some("/dev/kvm: no such file"), None, false, false);
        let text = message(nothing.choose(None));
        for part in [
            "kvm: /dev/kvm: no such file; kvm-ring3: ",
            "tcg: there is no qemu-system-x86_64 (Debian: qemu-system-x86)",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let no_xen = facts(None, Some("emulates ring 0"), true, false);
        let text = message(no_xen.choose(Some(Hypervisor::Xen)));
        assert!(text.contains("xen-hypervisor-4.17-amd64"), "{text}");
        let text = message(no_xen.choose(Some(Hypervisor::Kvm)));
        assert_eq!(text, "--hypervisor kvm: emulates ring 0");
        let text = no_xen.describe();
        assert!(text.contains("* kvm-ring3") && text.contains("not here: emulates ring 0"));
    }

    #[test]
    fn names_are_those_of_the_options() {
        for hypervisor in Hypervisor::value_variants() {
            let value = hypervisor.to_possible_value().unwrap();
            assert_eq!(value.get_name(), hypervisor.name());
        }
    }
}

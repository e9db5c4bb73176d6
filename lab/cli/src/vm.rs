//! `overlock-lab vm`

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod run;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::measure::load::count;
use crate::measure::results;
use crate::number::{seconds, whole};

pub use run::{check, run};

/// A day in milliseconds.
const DAY_MS: u64 = 86_400_000;

/// Parses the length of a section in nanoseconds, up to a second.
fn section() -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync {
    whole(0, 1_000_000_000)
}

/// Measure our locks on the vCPUs of a virtual machine: waiters halt, and unlockers kick them
///
/// A small image is the whole guest. Its vCPUs take and release one lock in a loop, as in `bench
/// micro`. In each round every lock runs once, and tables and files show medians over the rounds.
/// The guest checks itself: exclusion, lost kicks, and that all locks are free at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    allow(dead_code)
)]
pub struct Args {
    /// Numbers of vCPUs that take the lock; one more directs them
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        value_parser = count,
        default_value = "4,8,16"
    )]
    vcpus: Vec<usize>,

    /// The locks, by name, or `all`; --list shows them
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_value = "ticket,pv_ticket,pv_ticket_small,mcs,queued,pv_queued,hybrid,unfair,overlock"
    )]
    locks: Vec<String>,

    /// The hypervisor [default: the best that works here; --list shows it]
    #[arg(long, value_name = "NAME")]
    hypervisor: Option<Hypervisor>,

    /// Length of a round in milliseconds; a quarter as long goes before to warm up
    #[arg(long, value_name = "MS", value_parser = whole::<u64>(1, DAY_MS), default_value = "100")]
    ms: u64,

    /// Rounds for each lock and number of vCPUs
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 10_000), default_value = "5")]
    rounds: usize,

    /// Critical section in nanoseconds
    #[arg(long, value_name = "NS", value_parser = section(), default_value = "0")]
    cs: usize,

    /// Non-critical section in nanoseconds
    #[arg(long, value_name = "NS", value_parser = section(), default_value = "0")]
    ncs: usize,

    /// Whether locks may learn which vCPUs have lost their CPUs, if the hypervisor tells
    #[arg(long, value_name = "WHAT", default_value = "known")]
    preempted: Preempted,

    /// Seconds without progress after which the guest ends the run, and says what each vCPU does
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "10")]
    hang: Duration,

    /// Length of the whole run at most [default: three times the plan, and a minute]
    #[arg(long, value_name = "S", value_parser = seconds)]
    time_limit: Option<Duration>,

    /// The image, which `scripts/guest --build` builds [default: beside this program, in
    /// ../lib/overlock, or where the script has put it]
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,

    /// List the hypervisors, with what each lacks here, and the locks, and exit
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    output: results::Args,
}

/// The hypervisors, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Hypervisor {
    /// KVM, by QEMU: the guest runs in ring 0
    Kvm,
    /// KVM, by a monitor of overlock's own: the guest runs in ring 3
    KvmRing3,
    /// QEMU's emulator: no speed that means anything
    Tcg,
    /// Xen on two emulated CPUs, whose time its scheduler shares out
    Xen,
}

/// The answers of the hypervisor about vCPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preempted {
    /// As the hypervisor says
    Known,
    /// Always that a vCPU has its CPU
    Unknown,
}

/// Guests are of x86-64, and so is their host.
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod run {
    use crate::exit::Exit;

    pub fn run(_: &super::Args) -> Result<(), Exit> {
        Err(Exit::usage("vm: guests run on x86-64 Linux only"))
    }

    /// Refuses what [`run`] refuses.
    pub fn check(args: &super::Args) -> Result<(), Exit> {
        run(args)
    }
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab vm                                        the published locks and ours on 4 to 16 vCPUs
  overlock-lab vm --list                                 the hypervisors, and why some do not work here
  overlock-lab vm --vcpus 8 --locks pv_queued,hybrid,overlock --cs 65 --ncs 330
  overlock-lab vm --hypervisor xen --locks hybrid --preempted unknown
  overlock-lab vm --rounds 9 --json result.json --svg result.svg

Exit codes: 0 done, 1 a lock or the guest failed, 2 bad use, 130 interrupted.";

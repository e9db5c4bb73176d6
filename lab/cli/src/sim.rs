//! `overlock-lab sim`

mod advise;
pub(crate) mod build;
mod how;
mod machine;
mod merge;
mod run;
mod score;
mod sweep;
mod trace;
mod which_lock;
mod workload;

use clap::Subcommand;

use crate::exit::Exit;

/// Run the benchmark's workloads on a simulated machine with many CPUs, under a simulated
/// hypervisor
///
/// The very code of the locks runs on simulated vCPUs; caches, the host's scheduler, halts and
/// kicks take simulated time. The same options bring the same figures, on any computer.
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    allow_negative_numbers = true,
    args_conflicts_with_subcommands = true
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    run: run::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    Trace(Box<trace::Args>),
    Score(Box<score::Args>),
    Advise(Box<advise::Args>),
    WhichLock(Box<which_lock::Args>),
    Sweep(Box<sweep::Args>),
    Merge(merge::Args),
}

/// Does what `args` say.
pub fn run(args: &Args) -> Result<(), Exit> {
    match &args.command {
        None => run::run(&args.run),
        Some(Command::Trace(args)) => trace::run(args),
        Some(Command::Score(args)) => score::run(args),
        Some(Command::Advise(args)) => advise::run(args),
        Some(Command::WhichLock(args)) => which_lock::run(args),
        Some(Command::Sweep(args)) => sweep::run(args),
        Some(Command::Merge(args)) => merge::run(args),
    }
}

/// Checks the options as [`run`] does.
pub fn check(args: &Args) -> Result<(), Exit> {
    match &args.command {
        None => run::check(&args.run),
        Some(Command::Trace(args)) => trace::check(args),
        Some(Command::Score(args)) => score::check(args),
        Some(Command::Advise(args)) => advise::check(args),
        Some(Command::WhichLock(args)) => which_lock::check(args),
        Some(Command::Sweep(args)) => sweep::check(args),
        Some(Command::Merge(_)) => Ok(()),
    }
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab sim                                       36 cores, 1 to 3 vCPUs for each
  overlock-lab sim --list                                machines, hosts, and the locks that can be simulated
  overlock-lab sim --locks queued,hybrid --vcpus 36,108 --cs 65ns --ncs 330ns
  overlock-lab sim micro:cs=95:ncs=1us --locks ticket,hybrid   a workload with changed keys
  overlock-lab sim --show e5-2699v3 >my.toml             a machine to change: sim --machine ./my.toml
  overlock-lab sim --machine e5-2699v3:socket=60ns:across=200ns --host kvm:kick=3us
  overlock-lab sim semop --machine barcelona --host kvm-2013 --overcommit 2x
  overlock-lab sim rw --locks ours --machine westmere-ex --cores 20 --host threads
  overlock-lab sim trace --lock hybrid --vcpus 72        a timeline for ui.perfetto.dev
  overlock-lab sim advise --section 200ns --gap 2us      which lock for this machine
  overlock-lab sim which-lock                            which lock for which class of machines
  overlock-lab sim score                                 held against published measurements
  overlock-lab sim sweep --vcpus 36,72,108 --out sweep.jsonl   many simulations, on all cores of this machine

Exit codes: 0 done, 1 a lock failed or a result could not be written, 2 bad use, 130 interrupted.";

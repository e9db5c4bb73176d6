//! `overlock-lab bench`

mod grid;
mod idle;
mod work;

use std::io;

use clap::Subcommand;

use overlock_bench::registry;
use overlock_bench::workload::Workload;
use overlock_bench::world::native::Native;

use crate::exit::Exit;
use crate::measure::workload::shown;
use crate::terminal::print;

/// Measure locks under overcommit, ours against those that people use today, the worst cell first
///
/// Without a subcommand this is a short form of `bench grid`: some cells of every kind within 90 s.
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    allow_negative_numbers = true,
    args_conflicts_with_subcommands = true
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// List the locks, with the workloads that they are for, and exit
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    short: grid::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    Grid(Box<GridArgs>),
    Idle(idle::Args),
    /// Lock, critical section, unlock, non-critical section, over and over
    #[command(mut_args(|arg| shown(arg, "micro")))]
    Micro(Box<work::Args>),
    /// Semaphore arrays, each under its own lock
    #[command(mut_args(|arg| shown(arg, "semop")))]
    Semop(Box<work::Args>),
    /// A network queue: a busy lock in front of a root lock, one dequeuer at a time
    #[command(mut_args(|arg| shown(arg, "qdisc")))]
    Qdisc(Box<work::Args>),
    /// A compile farm: fixed work, mostly private, with many short critical sections
    #[command(mut_args(|arg| shown(arg, "build")))]
    Build(Box<work::Args>),
    /// A file server: a tree of directories, each under its own mutex
    #[command(mut_args(|arg| shown(arg, "fserver")))]
    Fserver(Box<work::Args>),
    /// A small record under a reader-writer lock
    #[command(mut_args(|arg| shown(arg, "rw")))]
    Rw(Box<work::Args>),
    /// Reader-writer locks, every thread reading and writing in turn
    #[command(mut_args(|arg| shown(arg, "rwsem")))]
    Rwsem(Box<work::Args>),
    /// Condition variables: threads that wait for each other
    #[command(mut_args(|arg| shown(arg, "condvar")))]
    Condvar(Box<work::Args>),
}

/// Measure every shape of use with every number of threads, and show the worst cells first
///
/// A cell is a shape with a number of threads. Its ratio is the median, over the rounds, of our
/// operations over a peer's in rounds that were neighbours in time; each peer is compared by
/// itself. The whole grid takes about an hour; Ctrl-C ends it and reports what has been measured.
#[derive(Debug, clap::Args)]
#[command(after_help = GRID_EXAMPLES, allow_negative_numbers = true)]
struct GridArgs {
    /// List the shapes, and exit
    #[arg(long)]
    list: bool,

    #[command(flatten)]
    grid: grid::Args,
}

/// Does what `args` say.
pub fn run(args: &Args) -> Result<(), Exit> {
    let print = |text: String| print(io::stdout().lock(), text.as_bytes());
    match &args.command {
        None if args.list => print(registry::describe::<Native>()),
        None => grid::run(&args.short, grid::Form::Short),
        Some(Command::Grid(args)) if args.list => print(overlock_bench::grid::shape::describe()),
        Some(Command::Grid(args)) => grid::run(&args.grid, grid::Form::Whole),
        Some(Command::Idle(args)) => idle::run(args),
        Some(command) => {
            let (workload, args) = command.work();
            work::run(args, workload)
        }
    }
}

/// Checks the options as [`run`] does, on a machine like this one.
pub fn check(args: &Args) -> Result<(), Exit> {
    match &args.command {
        None => grid::check(&args.short, grid::Form::Short),
        Some(Command::Grid(args)) => grid::check(&args.grid, grid::Form::Whole),
        Some(Command::Idle(args)) => idle::check(args),
        Some(command) => {
            let (workload, args) = command.work();
            work::check(args, workload)
        }
    }
}

impl Command {
    /// The workload of one that has one.
    fn work(&self) -> (Workload, &work::Args) {
        let (name, args) = match self {
            Self::Micro(args) => ("micro", args),
            Self::Semop(args) => ("semop", args),
            Self::Qdisc(args) => ("qdisc", args),
            Self::Build(args) => ("build", args),
            Self::Fserver(args) => ("fserver", args),
            Self::Rw(args) => ("rw", args),
            Self::Rwsem(args) => ("rwsem", args),
            Self::Condvar(args) => ("condvar", args),
            Self::Grid(_) | Self::Idle(_) => unreachable!("they have no workload"),
        };
        let workload = Workload::named(name).expect("subcommands are named as their workloads");
        (workload, args)
    }
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab bench                                     the worst cells of a short grid, within 90 s
  overlock-lab bench --locks overlock-mutex,std          against std alone
  overlock-lab bench grid --json grid.json --svg grid.svg   all cells, in about an hour
  overlock-lab bench idle                                what 1,000 blocked threads cost
  overlock-lab bench micro --locks overlock,parking_lot --cs 65 --ncs 330
  overlock-lab bench rw --reads 99 --cs 200 --ncs 500    readers and writers, their waits apart
  overlock-lab bench --list                              the locks

Exit codes: 0 done, 1 a lock failed or a result could not be written, 2 bad use, 130 interrupted.";

const GRID_EXAMPLES: &str = "\
Examples:
  overlock-lab bench grid --list                         the shapes
  overlock-lab bench grid --families mutex --threads 8,64 --rounds 3
  overlock-lab bench grid --shapes 65/330,yield --locks overlock-mutex,std,parking_lot
  overlock-lab bench grid --json grid.json --svg grid.svg --markdown grid.md

Exit codes: 0 done, 1 a lock failed or a result could not be written, 2 bad use, 130 interrupted; what was measured is reported.";

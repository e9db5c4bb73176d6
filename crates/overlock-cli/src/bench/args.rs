//! The options of `overlock bench`.

use std::path::PathBuf;

use clap::ValueEnum;

/// Measure locks under overcommit, ours and those that people use today
///
/// Every lock runs the same loop in the same process; they alternate round by round, so that the
/// machine's drift hits all alike. Tables and files show medians over the rounds.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct Args {
    /// What to run
    #[arg(value_enum, default_value_t = Kind::Micro)]
    pub workload: Kind,

    /// The locks, by name, or `all`, `ours`, `peers`, `default`; --list shows which there are for a workload
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_value = "default"
    )]
    pub locks: Vec<String>,

    /// List the locks, with the workloads that they are for, and exit
    #[arg(long)]
    pub list: bool,

    /// Numbers of threads
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        conflicts_with = "overcommit"
    )]
    pub threads: Vec<String>,

    /// Threads for each CPU that the process may use
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "Nx,…",
        default_value = "1x,2x,4x,8x,16x"
    )]
    pub overcommit: Vec<String>,

    /// micro, rw: length of the critical section, beside its access to the data [default: 0]
    #[arg(long, value_name = "NS")]
    pub cs: Option<String>,

    /// micro, rw: length of the section between two acquisitions [default: 0]
    #[arg(long, value_name = "NS")]
    pub ncs: Option<String>,

    /// semop: semaphore arrays, each under its own lock [default: 4]
    #[arg(long, value_name = "N")]
    pub arrays: Option<String>,

    /// rw: how many of the operations read [default: 90]
    #[arg(long, value_name = "PERCENT")]
    pub reads: Option<String>,

    /// rw: one lock for all, which is the default
    #[arg(long, conflicts_with = "records")]
    pub hot: bool,

    /// rw: so many records, each under its own lock; threads pick one at random, so that with 100000 its line is cold
    #[arg(long, value_name = "N")]
    pub records: Option<String>,

    /// condvar: who waits for whom [default: queue]
    #[arg(long, value_enum)]
    pub pattern: Option<Pattern>,

    /// Length of each round; for `build`, of a build that never waits [default: by --budget]
    #[arg(long, value_name = "S")]
    pub seconds: Option<String>,

    /// Length of the whole run, where --seconds is not given; rounds then take 1 s at most
    #[arg(
        long,
        value_name = "S",
        default_value = "75",
        conflicts_with = "seconds"
    )]
    pub budget: String,

    /// Rounds for each lock and number of threads
    #[arg(long, value_name = "N", default_value = "5")]
    pub runs: String,

    /// Rounds that time each wait, apart from the others
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        conflicts_with = "no_latency"
    )]
    pub latency_runs: String,

    /// Do not time the waits
    #[arg(long)]
    pub no_latency: bool,

    /// Bind threads to CPUs, in turn
    #[arg(long)]
    pub pin: bool,

    /// Run in a new cgroup that gets so much of one CPU: 150 is one and a half
    #[arg(long, value_name = "PERCENT")]
    pub quota: Option<String>,

    /// Show what our locks counted: queued and unfair acquisitions first. Counting costs a little
    #[arg(long)]
    pub stat: bool,

    /// Write everything as JSON; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write a line for each row of the tables
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,

    /// Draw throughput over threads
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    /// Print neither progress nor tables
    #[arg(long, short)]
    pub quiet: bool,
}

/// The workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Lock, critical section, unlock, non-critical section, over and over
    Micro,
    /// Semaphore arrays, each under its own lock
    Semop,
    /// A network queue: a busy lock in front of a root lock, one dequeuer at a time
    Qdisc,
    /// A compile farm: fixed work, mostly private, with many short critical sections
    Build,
    /// A file server: a tree of directories, each under its own mutex, with short sections and long ones
    Fserver,
    /// A small record under a reader-writer lock
    Rw,
    /// Reader-writer locks, every thread reading and writing in turn
    Rwsem,
    /// Condition variables: threads that wait for each other
    Condvar,
}

/// Who waits for whom in `bench condvar`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pattern {
    /// Producers and consumers of a bounded queue
    Queue,
    /// Pairs, each thread for its turn
    PingPong,
    /// All others for one that wakes them all
    Broadcast,
}

const EXAMPLES: &str = "\
Examples:
  overlock bench                                     all there is to see, in less than 90 s
  overlock bench --locks overlock,parking_lot --cs 65 --ncs 330
  overlock bench --threads 2,32 --seconds 5 --json result.json --svg result.svg
  overlock bench --locks peers --quota 150           with the time of one and a half CPUs
  overlock bench build --overcommit 1x,4x
  overlock bench rw --reads 99 --cs 200 --ncs 500    readers and writers, their waits apart
  overlock bench rw --records 100000 --threads 1     what a lock costs that is not in the cache
  overlock bench condvar --pattern ping-pong

Exit codes: 0 done, 1 a lock failed, 2 bad use, 130 interrupted.";

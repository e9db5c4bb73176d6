//! The options.

use std::time::Duration;

use overlock_bench::machine::online_cpus;

use crate::measure::load::{count, level};
use crate::measure::{results, workload};
use crate::number::{number, seconds, whole};

/// The options of a workload.
///
/// Every lock runs the same loop in the same process; they alternate round by round, so that the
/// machine's drift hits all alike. Tables and files show medians over the rounds.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct Args {
    #[command(flatten)]
    pub workload: workload::Options,

    /// The locks, by name, or `all`, `ours`, `peers`, `models`, `default`; `bench --list` shows
    /// them
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_value = "default"
    )]
    pub locks: Vec<String>,

    /// Numbers of threads
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        value_parser = count,
        conflicts_with = "overcommit"
    )]
    pub threads: Vec<usize>,

    /// Threads for each CPU that the process may use
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "Nx,…",
        value_parser = level,
        default_value = "1x,2x,4x,8x,16x"
    )]
    pub overcommit: Vec<f64>,

    /// Length of each round; for `build`, of a build that never waits [default: by --budget]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<Duration>,

    /// Length of the whole run, where --seconds is not given; rounds then take 1 s at most
    #[arg(
        long,
        value_name = "S",
        value_parser = seconds,
        default_value = "75",
        conflicts_with = "seconds"
    )]
    pub budget: Duration,

    /// Rounds for each lock and number of threads
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 10_000), default_value = "5")]
    pub runs: usize,

    /// Rounds that time each wait, apart from the others
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<usize>(0, 10_000),
        default_value = "1",
        conflicts_with = "no_latency"
    )]
    pub latency_runs: usize,

    /// Do not time the waits
    #[arg(long)]
    pub no_latency: bool,

    /// Bind threads to CPUs, in turn
    #[arg(long)]
    pub pin: bool,

    /// Run in a new cgroup that gets so much of one CPU: 150 is one and a half
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = number(1.0, most_quota(), "a percentage of one CPU")
    )]
    pub quota: Option<f64>,

    /// Show what our locks counted: queued and unfair acquisitions first. Counting costs a little
    #[arg(long)]
    pub stat: bool,

    #[command(flatten)]
    pub output: results::Args,
}

/// All of this machine.
fn most_quota() -> f64 {
    100.0 * online_cpus() as f64
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab bench micro --locks overlock,parking_lot --cs 65 --ncs 330
  overlock-lab bench micro --threads 2,32 --seconds 5 --json result.json --svg result.svg
  overlock-lab bench micro --locks peers --quota 150     with the time of one and a half CPUs
  overlock-lab bench build --overcommit 1x,4x
  overlock-lab bench rw --reads 99 --cs 200 --ncs 500    readers and writers, their waits apart
  overlock-lab bench rw --records 100000 --threads 1     what a lock costs that is not in the cache
  overlock-lab bench condvar --pattern ping-pong

Exit codes: 0 done, 1 a lock failed or a result could not be written, 2 bad use, 130 interrupted.";

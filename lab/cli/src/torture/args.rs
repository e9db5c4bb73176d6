//! The options of `overlock-lab torture`.

use std::path::PathBuf;
use std::time::Duration;

use overlock_torture::settings::LOCKS;

use crate::number::{ANY, milliseconds, seconds, whole};

/// Torture every lock, and check that it excludes, wakes and serves those that use it
///
/// Many threads use a few locks of each type in every way that it has, with random delays,
/// priorities, CPUs, signals and deaths, while a torn-write detector and a watchdog look on. The
/// same seed gives the same decisions to each thread.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct Args {
    /// The locks, by name, or `all`, or `models` of other people's; --list shows which there are
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_value = "all"
    )]
    pub locks: Vec<String>,

    /// List the locks, with what each promises to those that wait, and exit
    #[arg(long)]
    pub list: bool,

    /// Length of the whole run; the locks share it
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "60")]
    pub seconds: Duration,

    /// Seed of the threads' decisions [default: another one each time]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0, ANY))]
    pub seed: Option<u64>,

    /// Threads [default: 8 for each CPU, 2 if the waiters of a lock only spin]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, ANY))]
    pub threads: Option<usize>,

    /// How many operations of reader-writer locks read
    #[arg(long, value_name = "PERCENT", value_parser = whole::<u32>(0, 100), default_value = "75")]
    pub reads: u32,

    /// Length of the long sections, of which there are few; 0 for none
    #[arg(long, value_name = "MS", value_parser = milliseconds, default_value = "10")]
    pub long_hold: Duration,

    /// Let all threads stop so often, and check what they have left; 0 for the end only
    #[arg(long, value_name = "MS", value_parser = milliseconds, default_value = "100")]
    pub stutter: Duration,

    /// Give the threads other CPUs so often; 0 for never
    #[arg(long, value_name = "MS", value_parser = milliseconds, default_value = "100")]
    pub shuffle: Duration,

    /// Let a thread exit after so many steps on average, and another take its place: an eighth of
    /// that where waiters only spin, sixteen times as many for greedy threads; 0 for never
    #[arg(
        long,
        value_name = "STEPS",
        value_parser = whole::<u32>(0, 1_000_000_000),
        default_value = "1000"
    )]
    pub churn: u32,

    /// The most locks that a thread holds at a time
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<usize>(1, LOCKS as u64),
        default_value = "4"
    )]
    pub nest: usize,

    /// How long a thread may stand still, beyond what its lock promises; longer with more than 8
    /// threads a CPU
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "10")]
    pub patience: Duration,

    /// Do not interrupt the threads by signals
    #[arg(long)]
    pub no_signals: bool,

    /// Do not change the threads' priorities
    #[arg(long)]
    pub no_boost: bool,

    /// Torture a lock that is broken on purpose instead, to see that it is caught
    #[arg(long, value_name = "FLAW", conflicts_with = "locks")]
    pub inject: Option<String>,

    /// Print the first steps of each thread instead of taking them
    #[arg(long, value_name = "STEPS", value_parser = whole::<usize>(1, 1_000_000))]
    pub plan: Option<usize>,

    /// Write everything as JSON; `-` is the standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Print neither progress nor the table
    #[arg(long, short)]
    pub quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab torture                                   all of them, for a minute
  overlock-lab torture --locks kernel_mutex,rwsem --seconds 600
  overlock-lab torture --locks overlock --threads 64 --seed 7 --json result.json
  overlock-lab torture --locks overlock --seed 7 --plan 5  what each thread would do first

Exit codes: 0 nothing was found, 1 a lock failed, 2 bad use, 130 interrupted.";

//! `overlock-lab sim sweep`

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use overlock_bench::interrupt::Interrupt;
use overlock_bench::workload::Workload;
use overlock_bench::world::here;
use overlock_sim::engine;
use overlock_sim::spec::Spec;
use overlock_study::sweep::grid::MOST_POINTS;
use overlock_study::sweep::merge::failures;
use overlock_study::sweep::run::{left, run as simulated};
use overlock_study::sweep::{Error, Grid, Key, Load, Point, Record, Shard, Store, simulate};

use super::build;
use super::machine::{self, MOST_VCPUS};
use super::run::locks;
use crate::exit::Exit;
use crate::measure::ending;
use crate::measure::progress::Progress;
use crate::number::{simulated_seconds, whole};

/// Run many simulations: every combination of machines, hosts, locks, vCPUs, workloads and seeds
///
/// Results go to a file, a line for each simulation as it ends. The same command with the same file
/// goes on where the last one was stopped. Several machines share a sweep with --shard, each with a
/// file of its own; `overlock-lab sim merge` joins the files.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct Args {
    /// The machines, as --machine of `sim`; NAME:cores=N uses so many of its cores
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_value = "e5-2699v3"
    )]
    machines: Vec<String>,

    /// The hosts of the vCPUs, as --host of `sim`
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_value = "kvm"
    )]
    hosts: Vec<String>,

    /// vCPUs of other guests on the same machine, which want a CPU all the time
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        value_parser = range(0, MOST_VCPUS.0 as u64),
        default_value = "0"
    )]
    others: Vec<RangeInclusive<u64>>,

    /// The locks, by name, or `all`, `ours`, `models`, `default`; --list of `sim` shows them
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,…",
        default_value = "default"
    )]
    locks: Vec<String>,

    /// Numbers of vCPUs; 1..4 is 1, 2, 3 and 4, and 0.5x is a vCPU for two CPUs of the machine
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        value_parser = loads,
        required = true
    )]
    vcpus: Vec<Loads>,

    /// The workloads, as that of `sim`: names, names with changed keys (micro:cs=95:ncs=1us), and
    /// files
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "WORKLOAD,…",
        default_value = "micro"
    )]
    workloads: Vec<String>,

    /// Seeds of the random choices; 1..5 is five seeds
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        value_parser = range(0, u64::MAX),
        default_value = "1..5"
    )]
    seeds: Vec<RangeInclusive<u64>>,

    /// Length of each simulation, in simulated time; for `build`, of a build that never waits
    #[arg(long, value_name = "S", value_parser = simulated_seconds, default_value = "0.05")]
    seconds: Duration,

    /// The file of results, a line of JSON for each simulation; made, or gone on with
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Run a part of the simulations only: 3/16 is the third sixteenth
    #[arg(long, value_name = "N/PARTS", default_value = "1/1")]
    shard: Shard,

    /// Simulations at a time [default: as many as there are CPUs, or as memory has room for]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MOST_JOBS))]
    jobs: Option<usize>,

    /// Print no progress
    #[arg(long, short)]
    quiet: bool,
}

/// More threads than any machine has CPUs.
pub const MOST_JOBS: u64 = 4096;

/// As many simulations as run at a time where --jobs says nothing.
pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, |count| count.get())
}

struct Choice {
    grid: Grid,
    jobs: usize,
}

impl Choice {
    fn new(args: &Args) -> Result<Self, Exit> {
        let workloads: Vec<Workload> = all(&args.workloads, |text| machine::read(text, &[]))?;
        // clap sees to it that no list is empty.
        let locks = locks(&workloads[0], &args.locks)?;
        let grid = Grid {
            machines: all(&args.machines, fixed)?,
            hosts: all(&args.hosts, fixed)?,
            others: flat(&args.others).map(|others| others as usize).collect(),
            workloads,
            vcpus: args.vcpus.concat(),
            locks,
            seeds: flat(&args.seeds).collect(),
            round: args.seconds,
        };
        let grid = grid
            .check()
            .map_err(|error| Exit::usage(error.to_string()))?;
        let vcpus = grid.points().iter().map(|point| point.vcpus).max();
        let vcpus = vcpus.unwrap_or(1);
        let room = (engine::most_stacks() / vcpus).max(1);
        let jobs = args.jobs.unwrap_or_else(|| cpus().min(room));
        if jobs > room {
            return Err(Exit::usage(format!(
                "--jobs {jobs}: this machine has room for {room} simulations of {vcpus} vCPUs at a \
                 time; vm.max_map_count limits it"
            )));
        }
        Ok(Self { grid, jobs })
    }
}

/// A machine or a host that is the same tomorrow.
fn fixed<T: Spec>(text: &str) -> Result<T, Exit> {
    machine::read(text, &[]).map_err(|refused| match refused {
        Exit::Usage(why) if why.contains(here::NAME) => Exit::Usage(format!(
            "{why}. Each measurement of {name} differs; a sweep can use a file that keeps one: \
             overlock-lab sim --show {name} > FILE.toml",
            name = here::NAME
        )),
        other => other,
    })
}

/// Parses each word by `what`.
fn all<T>(words: &[String], what: impl Fn(&str) -> Result<T, Exit>) -> Result<Vec<T>, Exit> {
    words.iter().map(|word| what(word.trim())).collect()
}

fn flat(ranges: &[RangeInclusive<u64>]) -> impl Iterator<Item = u64> {
    ranges.iter().cloned().flatten()
}

/// Parses a number, or a range of numbers.
fn range(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<RangeInclusive<u64>, String> + Clone + Send + Sync {
    move |text| {
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if least <= first && first <= last && last <= most => {
                match last - first < MOST_POINTS as u64 {
                    true => Ok(first..=last),
                    false => Err(format!("more than {MOST_POINTS} simulations")),
                }
            }
            _ => Err(format!(
                "must be whole numbers from {least} to {most}, such as 1,2,3 or 1..3"
            )),
        }
    }
}

/// The numbers of vCPUs that a word stands for.
type Loads = Vec<Load>;

/// Parses a number of vCPUs, a range of numbers, or a level of overcommit.
fn loads(text: &str) -> Result<Loads, String> {
    if text.trim().ends_with(['x', 'X']) {
        let load = text.parse::<Load>();
        return load
            .map(|load| vec![load])
            .map_err(|error| error.to_string());
    }
    let numbers = range(1, MOST_VCPUS.0 as u64)(text)?;
    Ok(numbers.map(|number| Load::Vcpus(number as usize)).collect())
}

/// Runs the simulations that `args` describe, as far as they have not been run.
pub fn run(args: &Args) -> Result<(), Exit> {
    let Choice { grid, jobs } = &Choice::new(args)?;
    if args.out == Path::new("-") {
        return Err(Exit::usage(
            "--out -: results need a file, from which the sweep goes on",
        ));
    }
    let (mut store, mut done) = Store::open(&args.out, &build::this(), grid).map_err(refused)?;
    let mine: Vec<Point<'_>> = args.shard.of(grid.points()).collect();
    let todo = left(mine.iter().copied(), &done);
    if !args.quiet {
        for (name, most) in grid.limited() {
            crate::tell!("overlock-lab: {name} takes at most {most} vCPUs, and is left out beyond");
        }
        crate::tell!(
            "overlock-lab: {} simulations, {} of them done already",
            mine.len(),
            mine.len() - todo.len()
        );
    }

    let interrupt = Arc::new(Interrupt::default());
    ending::on_interrupt(Arc::clone(&interrupt))?;
    let progress = Progress::of(todo.len(), "simulation", args.quiet);
    let ended = simulated(
        &todo,
        *jobs,
        &mut store,
        &interrupt,
        |point| simulate(point, grid.round, &interrupt),
        |ended, key: &Key| {
            progress.at(ended, &format!("{}, {} vCPUs", key.lock, key.vcpus));
        },
    );
    progress.finish();
    let ended = ended.map_err(|error| Exit::Failed(error.to_string()))?;
    if ended.len() < todo.len() {
        if !args.quiet {
            let rest = todo.len() - ended.len();
            crate::tell!(
                "overlock-lab: {} of {} simulations are done; the same command goes on with the others",
                mine.len() - rest,
                mine.len()
            );
        }
        return Err(Exit::Interrupted);
    }
    done.extend(ended);
    if !args.quiet {
        let file = args.out.display();
        crate::tell!("overlock-lab: all are done; `overlock-lab sim merge {file}` shows them");
    }
    verdict(&done)
}

/// A file that is not what it should be.
pub fn refused(error: Error) -> Exit {
    Exit::usage(error.to_string())
}

/// Whether all simulations went well.
pub fn verdict(lines: &[Record]) -> Result<(), Exit> {
    match failures(lines).next() {
        None => Ok(()),
        Some((key, error)) => Err(Exit::Failed(format!(
            "{} of {} simulations failed, first {key}: {error}",
            failures(lines).count(),
            lines.len()
        ))),
    }
}

/// Checks the options as [`run`] does.
pub fn check(args: &Args) -> Result<(), Exit> {
    Choice::new(args).map(drop)
}

const EXAMPLES: &str = "\
Examples:
  overlock-lab sim sweep --vcpus 36,72,108 --out sweep.jsonl
  overlock-lab sim sweep --locks queued,hybrid --workloads micro:cs=95,micro:ncs=330,build --vcpus 72 --out sweep.jsonl
  overlock-lab sim sweep --machines barcelona,westmere-ex:cores=20 --hosts kvm,threads --vcpus 16..32 --seeds 7 --out sweep.jsonl
  overlock-lab sim sweep --machines graviton3,graviton4 --hosts threads --vcpus 0.25x,1x,4x --out sweep.jsonl
  overlock-lab sim sweep --vcpus 36,72,108 --shard 3/16 --out part3.jsonl    the third of sixteen machines

Exit codes: 0 done, 1 a lock failed or a result could not be written, 2 bad use, 130 interrupted.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_their_ends() {
        let numbers = |word: &str| range(1, 1 << 60)(word).ok();
        assert_eq!(numbers("3"), Some(3..=3));
        assert_eq!(numbers("1..4"), Some(1..=4));
        assert_eq!(numbers("4..4"), Some(4..=4));
        for nonsense in [
            "", "..", "1..", "..4", "4..1", "0", "1..2..3", "-1", "1..1e9",
        ] {
            assert_eq!(numbers(nonsense), None, "{nonsense}");
        }
        assert_eq!(numbers("1..1000000"), Some(1..=1_000_000));
        assert_eq!(numbers("1..1000001"), None);
    }
}

//! `overlock-lab sim sweep`

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use itertools::Itertools;
use overlock_bench::interrupt::Interrupt;
use overlock_bench::registry::Entry;
use overlock_bench::workload::Workload;
use overlock_bench::world::here;
use overlock_sim::engine;
use overlock_sim::host::Host;
use overlock_sim::machine::Machine;
use overlock_sim::spec::Spec;
use overlock_study::sweep::{Grid, Key, MOST_POINTS, Sweep};

use super::build;
use super::machine::{self, MOST_VCPUS};
use super::run::locks;
use super::workload::{self, Hints};
use crate::exit::Exit;
use crate::measure::ending;
use crate::measure::load::level;
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
        default_value = "default",
        value_parser = Hints(workload::locks),
        hide_possible_values = true
    )]
    locks: Vec<String>,

    /// Numbers of vCPUs; 1..4 is 1, 2, 3 and 4, and 0.5x is a vCPU for two CPUs of the machine
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "N,…",
        value_parser = vcpus,
        required = true
    )]
    vcpus: Vec<Vcpus>,

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
    #[arg(long, value_name = "N/PARTS", value_parser = shard, default_value = "1/1")]
    shard: (usize, usize),

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

/// The sweep that the options ask for.
struct Choice {
    sweep: Sweep,
    /// The locks that do not take all the numbers of vCPUs.
    limited: Vec<&'static Entry>,
    /// So many simulations run at a time.
    jobs: usize,
}

impl Choice {
    fn new(args: &Args) -> Result<Self, Exit> {
        let machines: Vec<Machine> = all(&args.machines, fixed)?;
        let hosts: Vec<Host> = all(&args.hosts, fixed)?;
        let workloads: Vec<Workload> = all(&args.workloads, |text| machine::read(text, &[]))?;
        // clap sees to it that no list is empty.
        let first = &workloads[0];
        if let Some(other) = workloads.iter().find(|one| one.family() != first.family()) {
            let both = format!("{} and {}", first.name(), other.name());
            return Err(Exit::usage(format!(
                "{both} are for different kinds of locks, and need a sweep each"
            )));
        }
        let mut locks = locks(first.family(), &args.locks)?;
        let of_each = machines.iter().map(|machine| {
            let each = args.vcpus.iter().flat_map(|vcpus| vcpus.on(machine));
            (machine_name(machine), each.unique().collect_vec())
        });
        let grid = Grid {
            machines: of_each.unique_by(|(name, _)| name.clone()).collect(),
            hosts: hosts
                .iter()
                .map(|host| host.name.to_string())
                .unique()
                .collect(),
            others: flat(&args.others).map(|others| others as usize).collect(),
            workloads: workloads.iter().map(Workload::to_string).unique().collect(),
            locks: locks
                .iter()
                .map(|lock| lock.name.to_owned())
                .unique()
                .collect(),
            seeds: flat(&args.seeds).collect(),
            seconds: args.seconds.as_secs_f64(),
        };
        let vcpus = |(name, vcpus): &(String, Vec<usize>)| {
            let most = vcpus.iter().copied().max().unwrap_or(1);
            if most <= MOST_VCPUS.0 {
                return Ok(most);
            }
            let (room, why) = MOST_VCPUS;
            Err(Exit::usage(format!(
                "{most} vCPUs on {name} are more than 1 to {room}, {why}"
            )))
        };
        let mut vcpus = grid.machines.iter().map(vcpus);
        let most = vcpus.fold_ok(1, usize::max)?;
        locks.retain(|lock| !lock.takes(most));
        let sweep = Sweep::new(build::this(), grid).map_err(Exit::usage)?;
        let vcpus = sweep.results.keys().map(|key| key.vcpus).max().unwrap_or(1);
        let room = (engine::most_stacks() / vcpus).max(1);
        let jobs = args.jobs.unwrap_or_else(|| cpus().min(room));
        if jobs > room {
            return Err(Exit::usage(format!(
                "--jobs {jobs}: this machine has room for {room} simulations of {vcpus} vCPUs at \
                 a time; vm.max_map_count limits it"
            )));
        }
        Ok(Self {
            sweep,
            limited: locks,
            jobs,
        })
    }
}

/// Its name, with the number of its cores where it has lost some.
fn machine_name(machine: &Machine) -> String {
    let whole = Machine::named(&machine.name).map(|whole| whole.all_cores());
    match machine.all_cores() {
        cores if Ok(cores) == whole => machine.name.to_string(),
        cores => format!("{}:cores={cores}", machine.name),
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

/// All numbers of the ranges, each once.
fn flat(ranges: &[RangeInclusive<u64>]) -> impl Iterator<Item = u64> {
    ranges.iter().cloned().flatten().unique()
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
#[derive(Clone, Debug)]
enum Vcpus {
    Numbers(RangeInclusive<u64>),
    /// So many for each CPU of the machine.
    Level(f64),
}

impl Vcpus {
    /// Those on this machine.
    fn on(&self, machine: &Machine) -> Vec<usize> {
        match self {
            Self::Numbers(numbers) => numbers.clone().map(|number| number as usize).collect(),
            Self::Level(level) => vec![((level * machine.cpus() as f64).round() as usize).max(1)],
        }
    }
}

/// Parses a number of vCPUs, a range of numbers, or a level of overcommit.
fn vcpus(text: &str) -> Result<Vcpus, String> {
    let most = MOST_VCPUS.0;
    let vcpus = match text.trim().ends_with(['x', 'X']) {
        true => level(text).map(Vcpus::Level),
        false => range(1, most as u64)(text).map(Vcpus::Numbers),
    };
    vcpus.map_err(|_| {
        format!(
            "must be whole numbers from 1 to {most}, such as 1,2,3 or 1..3, or vCPUs for each CPU \
             of the machine, such as 0.25x"
        )
    })
}

/// Parses a part of the simulations, and the number of parts.
fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.trim().split_once('/');
    match parts.map(|(index, count)| (index.parse(), count.parse())) {
        Some((Ok(index), Ok(count @ 1..=MOST_POINTS))) if (1..=count).contains(&index) => {
            Ok((index, count))
        }
        _ => Err(format!(
            "must be a part and the number of parts up to {MOST_POINTS}, such as 3/16; parts are \
             counted from 1"
        )),
    }
}

/// Runs the simulations that `args` describe, as far as they have not been run.
pub fn run(args: &Args) -> Result<(), Exit> {
    let Choice {
        mut sweep,
        limited,
        jobs,
    } = Choice::new(args)?;
    if args.out == Path::new("-") {
        return Err(Exit::usage(
            "--out -: results need a file, from which the sweep goes on",
        ));
    }
    let mut file = sweep.open(&args.out).map_err(Exit::usage)?;
    let all = sweep.part(args.shard).count();
    let todo = sweep.missing(args.shard).count();
    let tell = |text: &str| {
        if !args.quiet {
            crate::tell!("overlock-lab: {text}");
        }
    };
    for lock in limited {
        let (name, most) = (lock.name, lock.most_threads.unwrap_or_default());
        tell(&format!(
            "{name} takes at most {most} vCPUs, and is left out beyond"
        ));
    }
    let plural = if all == 1 { "" } else { "s" };
    tell(&format!(
        "{all} simulation{plural}, {} of them done already",
        all - todo
    ));

    let interrupt = Arc::new(Interrupt::default());
    ending::on_interrupt(Arc::clone(&interrupt))?;
    let progress = Progress::of(todo, "simulation", args.quiet);
    let ended = sweep.run(
        args.shard,
        jobs,
        &mut file,
        &interrupt,
        |key| key.case().simulate(key.seed, args.seconds, &interrupt),
        |ended, key: &Key| {
            progress.at(ended, &format!("{}, {} vCPUs", key.lock, key.vcpus));
        },
    );
    progress.finish();
    ended.map_err(|why| Exit::Failed(format!("{}: {why}", args.out.display())))?;
    let rest = sweep.missing(args.shard).count();
    if rest > 0 {
        let done = all - rest;
        tell(&format!(
            "{done} of {all} simulations are done; the same command goes on with the others"
        ));
        return Err(Exit::Interrupted);
    }
    tell(&match args.shard {
        (index, parts) if all == 0 => {
            let whole = sweep.results.len();
            format!("part {index} of {parts} is empty, since the sweep has {whole} in all")
        }
        _ => {
            let file = args.out.display();
            format!("all are done; `overlock-lab sim merge {file}` shows them")
        }
    });
    verdict(&sweep)
}

/// Whether all simulations went well.
pub fn verdict(sweep: &Sweep) -> Result<(), Exit> {
    let (failed, all) = (sweep.failures().count(), sweep.known().count());
    match sweep.failures().next() {
        None => Ok(()),
        Some((key, error)) => Err(Exit::Failed(format!(
            "{failed} of {all} simulations failed, first {key}: {error}"
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

//! Which machine is simulated, and what runs its vCPUs.

use std::sync::Arc;

use overlock_bench::interrupt::Interrupt;
use overlock_bench::machine::Machine as Shown;
use overlock_bench::settings::Simulation;
use overlock_bench::world::here;
use overlock_bench::world::sim::Simulated;
use overlock_sim::host::Host;
use overlock_sim::machine::{Machine, PRESETS};

use crate::exit::Exit;
use crate::number::whole;

/// The most vCPUs of a simulation, and why.
pub const MOST_VCPUS: (usize, &str) = (
    overlock_sim::MOST_VCPUS,
    "as many as the simulator has room for",
);

/// The options for the machine and its host.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// The machine; --list of `sim` shows which there are
    #[arg(long, value_name = "NAME", default_value = "e5-2699v3")]
    pub machine: String,

    /// Use so many of its cores, and no more sockets than that takes [default: all]
    #[arg(long, value_name = "N")]
    pub cores: Option<String>,

    /// The host of the vCPUs: a hypervisor, or an operating system with threads
    #[arg(long, value_name = "NAME", default_value = "kvm")]
    pub host: String,

    /// vCPUs of other guests on the same machine, which want a CPU all the time
    #[arg(long, value_name = "N", default_value = "0")]
    pub others: String,

    /// Seed of the random choices: another number is another run
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: String,
}

/// The machine and host of the options.
#[derive(Clone, Debug)]
pub struct Place {
    pub machine: Machine,
    pub host: Host,
    pub others: usize,
    pub seed: u64,
}

impl Args {
    /// The machine with its host.
    pub fn place(&self) -> Result<Place, Exit> {
        // Measured only on request: it takes half a second.
        let here = [&self.machine, &self.host]
            .into_iter()
            .any(|name| name == here::NAME)
            .then(|| here::measure(Shown::probe().allowed()));
        let machine = match &here {
            Some((machine, _)) if self.machine == here::NAME => machine,
            _ => machine(&self.machine, &[here::NAME])?,
        };
        let host = match &here {
            Some((_, host)) if self.host == here::NAME => host,
            _ => host(&self.host, &[here::NAME])?,
        };
        Ok(Place {
            machine: with_cores(machine, self.cores.as_deref())?,
            host: *host,
            others: whole("--others", &self.others, 0, MOST_VCPUS.0)?,
            seed: whole("--seed", &self.seed, 0, usize::MAX)? as u64,
        })
    }
}

/// The preset of that name. A complaint names those that may be used in its place, and what `also`
/// may.
pub fn machine(name: &str, also: &[&'static str]) -> Result<&'static Machine, Exit> {
    Machine::preset(name).ok_or_else(|| {
        let names = PRESETS.iter().map(|machine| machine.name);
        unknown("machine", name, names.chain(also.iter().copied()))
    })
}

/// The same of a host.
pub fn host(name: &str, also: &[&'static str]) -> Result<&'static Host, Exit> {
    Host::preset(name).ok_or_else(|| {
        let names = Host::PRESETS.iter().map(|host| host.name);
        unknown("host", name, names.chain(also.iter().copied()))
    })
}

fn unknown<'a>(what: &str, name: &str, names: impl Iterator<Item = &'a str>) -> Exit {
    let names = names.collect::<Vec<_>>().join(", ");
    Exit::usage(format!("unknown {what} '{name}'; the {what}s are {names}"))
}

/// All of a machine's cores, or so many. Its sockets and their clusters are alike, so they share
/// the cores evenly.
pub fn with_cores(machine: &Machine, cores: Option<&str>) -> Result<Machine, Exit> {
    let Some(text) = cores else {
        return Ok(machine.clone());
    };
    let cores = whole("--cores", text, 1, machine.all_cores())?;
    let used = machine.with_cores(cores);
    if used.all_cores() == cores {
        return Ok(used);
    }
    Err(Exit::usage(format!(
        "--cores {cores}: {} cannot share them evenly; they can share {}",
        parts(&used),
        used.all_cores()
    )))
}

fn parts(machine: &Machine) -> String {
    let Machine {
        sockets, clusters, ..
    } = machine;
    match clusters {
        1 => format!("{sockets} sockets"),
        _ => format!("{sockets} sockets of {clusters} clusters"),
    }
}

impl Place {
    /// The world in which locks run there.
    pub fn world(&self, interrupt: Arc<Interrupt>) -> Simulated {
        Simulated::new(self.machine.clone(), self.host, self.seed, interrupt).beside(self.others)
    }

    /// CPUs of the machine.
    pub fn cpus(&self) -> f64 {
        self.machine.cpus() as f64
    }

    /// The machine as reports show it.
    pub fn shown(&self) -> Shown {
        Shown::simulated(&self.machine, &self.host)
    }

    /// The same as settings.
    pub fn settings(&self) -> Simulation {
        Simulation {
            machine: self.machine.name,
            cores: self.machine.all_cores(),
            host: self.host.name,
            others: self.others,
            seed: self.seed,
        }
    }
}

/// All machines and hosts, for people.
pub fn describe() -> String {
    let lines = |title: &str, all: &mut dyn Iterator<Item = (&str, &str)>| {
        let lines = all.map(|(name, about)| format!("    {name:<22} {about}\n"));
        format!("{title}:\n{}\n", lines.collect::<String>())
    };
    lines(
        "machines",
        &mut PRESETS
            .iter()
            .map(|machine| (machine.name, machine.about))
            .chain([(
                here::NAME,
                "the machine that this runs on, as a short measurement finds it",
            )]),
    ) + &lines(
        "hosts",
        &mut Host::PRESETS
            .iter()
            .map(|host| (host.name, host.about))
            .chain([(
                here::NAME,
                "threads of a process on the machine that this runs on",
            )]),
    )
}

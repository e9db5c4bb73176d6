//! Which machine is simulated, and what runs its vCPUs.

use std::cell::OnceCell;
use std::sync::Arc;

use overlock_bench::interrupt::Interrupt;
use overlock_bench::machine::Machine as Shown;
use overlock_bench::settings::Simulation;
use overlock_bench::workload::Workload;
use overlock_bench::world::here;
use overlock_bench::world::sim::Simulated;
use overlock_sim::host::Host;
use overlock_sim::machine::{Machine, PRESETS};
use overlock_sim::spec::{self, Bases, Spec};

use crate::exit::Exit;
use crate::number::{ANY, whole};

/// The most vCPUs of a simulation, and why.
pub const MOST_VCPUS: (usize, &str) = (
    overlock_sim::MOST_VCPUS,
    "as many as the simulator has room for",
);

/// The options for the machine and its host.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// The machine: a name, perhaps with changed keys (e5-2699v3:socket=60ns:cores=8), or a file
    /// in TOML; --list of `sim` shows the names, --show the keys
    #[arg(long, value_name = "NAME", default_value = "e5-2699v3")]
    pub machine: String,

    /// Use so many of its cores, and no more sockets than that takes [default: all]
    #[arg(long, value_name = "N")]
    pub cores: Option<String>,

    /// The host of the vCPUs, a hypervisor or an operating system with threads: a name, perhaps
    /// with changed keys (kvm:kick=3us), or a file in TOML
    #[arg(long, value_name = "NAME", default_value = "kvm")]
    pub host: String,

    /// vCPUs of other guests on the same machine, which want a CPU all the time
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<usize>(0, MOST_VCPUS.0 as u64),
        default_value = "0"
    )]
    pub others: usize,

    /// Seed of the random choices: another number is another run
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0, ANY), default_value = "1")]
    pub seed: u64,
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
        let measured = OnceCell::new();
        let here = || measured.get_or_init(|| here::measure(Shown::probe().allowed()));
        let machine: Machine = read(&self.machine, &[(here::NAME, &|| here().0.clone())])?;
        let host = read(&self.host, &[(here::NAME, &|| here().1.clone())])?;
        Ok(Place {
            machine: match &self.cores {
                Some(cores) => machine
                    .using_cores(cores)
                    .map_err(|why| Exit::usage(format!("--cores {cores}: {why}")))?,
                None => machine,
            },
            host,
            others: self.others,
            seed: self.seed,
        })
    }
}

/// The machine, host or workload of a name, a name with changed keys, or a file.
pub fn read<T: Spec>(text: &str, bases: Bases<'_, T>) -> Result<T, Exit> {
    spec::read(text, bases).map_err(Exit::usage)
}

/// A machine, a host or a workload as a file in TOML, with all of its keys.
pub fn show(text: &str) -> Result<String, Exit> {
    let name = spec::base(text).map_err(Exit::usage)?;
    if name == here::NAME {
        let (measured, _) = here::measure(Shown::probe().allowed());
        let mut machine: Machine = read(text, &[(here::NAME, &|| measured.clone())])?;
        // Any preset can be the base, since all keys are there. A measurement is never the same
        // again.
        machine.name = PRESETS[0].name.clone();
        Ok(spec::toml(&machine))
    } else if Machine::preset(&name).is_some() {
        shown::<Machine>(text)
    } else if Host::preset(&name).is_some() {
        shown::<Host>(text)
    } else if Workload::named(&name).is_some() {
        shown::<Workload>(text)
    } else {
        let machines = PRESETS.iter().map(Spec::name);
        let hosts = Host::presets().iter().map(Spec::name);
        let workloads = Workload::ALL.iter().map(Workload::name);
        let machines = machines.chain([here::NAME]);
        let names: Vec<&str> = machines.chain(hosts).chain(workloads).collect();
        Err(Exit::usage(format!(
            "--show {text}: no machine, host or workload is called '{name}'; they are {}",
            names.join(", ")
        )))
    }
}

fn shown<T: Spec>(text: &str) -> Result<String, Exit> {
    read(text, &[]).map(|read: T| spec::toml(&read))
}

impl Place {
    /// The world in which locks run there.
    pub fn world(&self, interrupt: Arc<Interrupt>) -> Simulated {
        let (machine, host) = (self.machine.clone(), self.host.clone());
        Simulated::new(machine, host, self.seed, interrupt).beside(self.others)
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
            machine: self.machine.name.clone(),
            cores: self.machine.all_cores(),
            host: self.host.name.clone(),
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
            .map(|machine| (machine.name(), machine.about()))
            .chain([(
                here::NAME,
                "the machine that this runs on, as a short measurement finds it",
            )]),
    ) + &lines(
        "hosts",
        &mut Host::presets()
            .iter()
            .map(|host| (host.name(), host.about()))
            .chain([(
                here::NAME,
                "threads of a process on the machine that this runs on",
            )]),
    )
}

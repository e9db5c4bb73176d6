//! A run: the choices, the guest, the reports.

mod choice;
mod hang;
mod hypervisor;
mod image;
mod lines;
mod machine;
mod session;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use overlock_bench::guest::Guest;
use overlock_bench::interrupt::Interrupt;
use overlock_bench::machine::Machine;
use overlock_bench::measure::Measurement;
use overlock_bench::report;
use overlock_bench::settings::Settings;

use super::{Args, Hypervisor};
use crate::exit::Exit;
use crate::measure::progress::Progress;
use crate::measure::{self, ending};
use crate::terminal::print;
use choice::Choice;
use hypervisor::Facts;
use machine::Launch;
use session::Session;

/// Runs the guest that `args` describe.
pub fn run(args: &Args) -> Result<(), Exit> {
    if args.list {
        let text = Facts::probe().describe() + &choice::describe();
        return print(io::stdout().lock(), text.as_bytes());
    }
    let choice = Choice::new(args)?;
    let image = image::find(args.image.as_deref())?;
    let facts = Facts::probe();
    let hypervisor = facts.choose(args.hypervisor)?;
    choice.check_vcpus(hypervisor)?;
    let files = args.output.open()?;
    let quiet = args.output.quiet;
    if !quiet && args.hypervisor.is_none() {
        facts.explain(hypervisor);
    }

    let interrupt = Arc::new(Interrupt::default());
    ending::on_interrupt(Arc::clone(&interrupt))?;
    let launch = Launch {
        hypervisor,
        image: &image,
        xen: facts.xen(),
        vcpus: choice.vcpus(),
        line: choice.line(hypervisor),
    };
    let progress = Progress::of(choice.total(), "round", quiet);
    let begin = Instant::now();
    let mut session = Session::new(&choice, hypervisor, &progress);
    let end = session.run(&launch, &interrupt);
    progress.finish();
    end?;
    let measurement = Measurement {
        cells: session.cells(),
        sections: None,
        elapsed: begin.elapsed(),
    };

    let machine = machine_of(hypervisor, &choice, session.cpus());
    let rows = report::guest_rows(&measurement, &machine, &choice.workload());
    let settings = settings(&choice, &measurement);
    measure::show(files, &machine, &settings, &rows, quiet)
}

/// Checks the options as [`run`] does, whatever works here.
pub fn check(args: &Args) -> Result<(), Exit> {
    Choice::new(args).map(drop)
}

/// This machine, with the guest on it.
fn machine_of(hypervisor: Hypervisor, choice: &Choice, cpus: usize) -> Machine {
    let mut machine = Machine::probe();
    if hypervisor == Hypervisor::Xen {
        // It has emulated CPUs, and no others.
        machine.cpus = cpus as f64;
    }
    machine.guest = Some(Guest {
        hypervisor: hypervisor.name(),
        vcpus: choice.vcpus(),
        cpus,
        preempted: choice.preempted(),
    });
    machine
}

fn settings(choice: &Choice, measurement: &Measurement) -> Settings {
    Settings {
        workload: choice.workload().name(),
        locks: choice.names().collect(),
        rivals: &[],
        threads: choice.counts.clone(),
        parameters: choice.workload().parameters(),
        seconds: choice.round.as_secs_f64(),
        runs: measurement.rounds(),
        latency_runs: 0,
        pin: false,
        quota_percent: None,
        clock: "guest",
        elapsed_s: Some(measurement.elapsed.as_secs_f64()),
        simulation: None,
    }
}

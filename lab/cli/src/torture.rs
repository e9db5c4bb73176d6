//! `overlock-lab torture`

mod args;
mod choice;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use overlock_bench::interrupt::Interrupt;
use overlock_bench::machine::Machine;
use overlock_torture::error::Error;
use overlock_torture::registry;
use overlock_torture::report::{LockReport, json, table};
use overlock_torture::run::{self, run as torture};
use overlock_torture::settings::Settings;

pub use args::Args;
use choice::Choice;

use crate::exit::Exit;
use crate::files::Files;
use crate::measure::ending;
use crate::measure::progress::Progress;
use crate::terminal::{print, print_beside};

/// Runs the test that `args` describe.
pub fn run(args: &Args) -> Result<(), Exit> {
    if args.list {
        return print(io::stdout().lock(), registry::describe().as_bytes());
    }
    let machine = Machine::probe();
    let choice = Choice::new(args, machine.cpus)?;
    if let Some(steps) = choice.plan {
        let text = choice.describe(steps, &here(&machine));
        return print(io::stdout().lock(), text.as_bytes());
    }
    let files = Files::open([("--json", &args.json)])?;
    let interrupt = Arc::new(Interrupt::default());
    ending::on_interrupt(Arc::clone(&interrupt))?;

    let Choice {
        settings, locks, ..
    } = &choice;
    if !args.quiet {
        crate::tell!("overlock-lab: seed {}", settings.seed);
        for (name, most) in choice.fewer() {
            crate::tell!("overlock-lab: {name} takes at most {most} threads, and gets no more");
        }
    }
    let progress = Progress::timed(settings.length, args.quiet);
    let start = Instant::now();
    let reports = torture(
        settings,
        locks,
        &here(&machine),
        &|| interrupt.is_raised(),
        &mut |entry, operations| {
            let what = format!("{}, {operations} operations", entry.name);
            progress.at_time(start.elapsed(), &what);
        },
    );
    progress.finish();
    let reports = reports.map_err(stopped)?;

    if !args.quiet {
        let text = table::render(settings, &reports);
        print_beside(files.use_stdout(), &text)?;
    }
    files.write([&|out| json::write(out, &machine, settings, &reports)])?;
    verdict(args, settings, &reports)
}

/// Checks what can be checked of `args` before anything is done.
pub fn check(args: &Args) -> Result<(), Exit> {
    Choice::new(args, 2.0).map(drop)
}

fn here(machine: &Machine) -> run::Machine {
    run::Machine {
        cpus: machine.cpus,
        allowed: machine.allowed().to_vec(),
    }
}

fn stopped(error: Error) -> Exit {
    match error {
        Error::Interrupted => Exit::Interrupted,
        error @ Error::Spawn { .. } => Exit::usage(error.to_string()),
        error @ Error::Create(_) => Exit::Failed(error.to_string()),
    }
}

/// The violation, and the command that finds it again.
fn verdict(args: &Args, settings: &Settings, reports: &[LockReport]) -> Result<(), Exit> {
    let Some((report, violation)) = reports
        .iter()
        .find_map(|report| Some((report, report.violation.as_ref()?)))
    else {
        return Ok(());
    };
    let (option, name) = match args.inject.as_deref() {
        Some(flaw) => ("--inject", flaw),
        None => ("--locks", report.lock),
    };
    let length = Duration::from_secs_f64(report.seconds);
    let again = settings.replay(option, name, report.threads, length);
    Err(Exit::Failed(format!(
        "{} {violation}\nreplay: {again}",
        report.lock
    )))
}
